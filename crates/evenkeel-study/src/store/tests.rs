//! A log that is cut anywhere, damaged anywhere, or written by two.

use super::*;
use crate::record::{Body, Clock, Detected, Passes};

fn entry(id: usize) -> Entry {
    let detected = Detected { score: id as f64 / 3.0, variances: Vec::new(), cells: 0, true_error: None };
    let key = Key::of(&"some work").unwrap();
    Entry {
        key,
        id: format!("image {id}"),
        image: Key::of(&id).unwrap(),
        body: Body::Detected(detected),
        passes: Passes::default(),
        clock: Clock::default(),
    }
}

fn filled(folder: &Path, count: usize) -> PathBuf {
    let mut store = Store::open(folder, Shard::WHOLE).unwrap();
    (0..count).for_each(|i| store.append(&entry(i), &[i as u8; 40]).unwrap());
    folder.join("shard-1-of-1.log")
}

/// Where a log with none, one, two results ends, up to this many.
fn ends(most: usize) -> Vec<usize> {
    let length = |count| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::read(filled(folder.path(), count)).unwrap().len()
    };
    (0..=most).map(length).collect()
}

#[test]
fn what_was_written_is_read_back_and_replaced_by_what_comes_later() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path(), 3);
    let mut store = Store::open(folder.path(), Shard::WHOLE).unwrap();
    let (found, picture) = store.get(&entry(2).key, "image 2").unwrap().unwrap();
    assert_eq!((found, picture), (entry(2), vec![2; 40]));
    assert!(store.get(&entry(2).key, "image 9").unwrap().is_none());
    assert!(!store.has(&entry(1).key, "image 1", Some(&Key::of(&"other pixels").unwrap())));
    store.append(&entry(1), b"new").unwrap();
    assert_eq!(store.get(&entry(1).key, "image 1").unwrap().unwrap().1, b"new");
    drop(store);
    let store = Store::read(folder.path()).unwrap();
    assert_eq!((store.len(), store.get(&entry(1).key, "image 1").unwrap().unwrap().1), (3, b"new".to_vec()));
}

#[test]
fn a_log_cut_anywhere_loses_at_most_the_last_result_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let log = filled(folder.path(), 3);
    let whole = std::fs::read(&log).unwrap();
    let ends = ends(3);
    for cut in 0..whole.len() {
        std::fs::write(&log, &whole[..cut]).unwrap();
        let mut store = Store::open(folder.path(), Shard::WHOLE).unwrap();
        let sound = ends.iter().filter(|e| **e <= cut).count().saturating_sub(1);
        assert_eq!(store.len(), sound, "cut at {cut}");
        (sound..3).for_each(|i| store.append(&entry(i), &[i as u8; 40]).unwrap());
        drop(store);
        assert_eq!(std::fs::read(&log).unwrap(), whole, "cut at {cut} and written on");
    }
    // a file system that kept the length but not the bytes
    std::fs::write(&log, [&whole[..ends[2]], &[0; 100]].concat()).unwrap();
    assert_eq!(Store::open(folder.path(), Shard::WHOLE).unwrap().len(), 2);
}

/// Damage costs the results it touches and no other; they can be added again, and the log says where it is hurt.
#[test]
fn damage_costs_what_it_touches_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let log = filled(folder.path(), 3);
    let whole = std::fs::read(&log).unwrap();
    let ends = ends(2);
    for at in (0..ends[2]).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        std::fs::write(&log, &bytes).unwrap();
        let hurt = ends.iter().filter(|end| **end <= at).count();
        let said = Store::read(folder.path()).unwrap().amiss().join(" ");
        assert!(said.contains("shard-1-of-1.log") && said.contains("are damaged"), "at {at}: {said}");
        let from = if hurt == 0 { 0 } else { ends[hurt - 1] };
        assert!(
            said.contains(&format!("{} bytes from byte {from} on", ends[hurt] - from)),
            "at {at}: {said}"
        );
        let mut store = Store::open(folder.path(), Shard::WHOLE).unwrap();
        assert_eq!(std::fs::read(&log).unwrap(), bytes, "nothing was touched");
        for id in 0..3 {
            let there = store.get(&entry(id).key, &format!("image {id}")).unwrap();
            // what is hurt before the first result is the line that says what the file is
            assert_eq!(there.is_none(), id + 1 == hurt, "image {id}, damage at {at}");
        }
        if hurt > 0 {
            store.append(&entry(hurt - 1), &[]).unwrap();
            drop(store);
            assert_eq!(Store::read(folder.path()).unwrap().len(), 3);
        }
    }
    // after the last result nothing is left to be kept
    for at in (ends[2]..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        std::fs::write(&log, &bytes).unwrap();
        let store = Store::open(folder.path(), Shard::WHOLE).unwrap();
        let said = store.amiss().join(" ");
        assert!(said.contains("shard-1-of-1.log") && said.contains("damaged"), "at {at}: {said}");
        assert_eq!((store.len(), std::fs::read(&log).unwrap()), (2, whole[..ends[2]].to_vec()), "at {at}");
    }
    std::fs::write(&log, b"these are the notes of somebody").unwrap();
    let Err(error) = Store::open(folder.path(), Shard::WHOLE) else { panic!("notes were taken for results") };
    assert!(error.to_string().contains("move it away"), "{error}");
}

#[test]
fn a_second_writer_of_a_shard_is_refused_and_of_another_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let first = Store::open(folder.path(), Shard { number: 1, count: 2 }).unwrap();
    let Err(error) = Store::open(folder.path(), Shard { number: 1, count: 2 }) else { panic!("two writers") };
    assert!(error.to_string().contains("another process"), "{error}");
    assert!(Store::open(folder.path(), Shard { number: 2, count: 2 }).is_ok());
    drop(first);
    assert!(Store::open(folder.path(), Shard { number: 1, count: 2 }).is_ok());
}

#[test]
fn shards_are_parsed_and_part_the_images() {
    assert!(Shard::parse("0/3").is_err() && Shard::parse("4/3").is_err() && Shard::parse("x").is_err());
    let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].iter().map(|s| Shard::parse(s).unwrap()).collect();
    assert!((0..20).all(|place| shards.iter().filter(|s| s.has(place)).count() == 1));
}

/// Whatever the logs are called, of two results of one image the later counts; and what another shard writes meanwhile can be seen.
#[test]
fn the_later_of_two_logs_counts() {
    let folder = tempfile::tempdir().unwrap();
    let shard = |number, count| Store::open(folder.path(), Shard { number, count }).unwrap();
    let at = |id, made_at_ms| Entry { clock: Clock { made_at_ms, ..Clock::default() }, ..entry(id) };
    let (mut whole, mut third) = (shard(1, 1), shard(2, 3));
    third.append(&at(0, 5), b"first").unwrap();
    whole.append(&at(0, 9), b"second").unwrap();
    assert!(third.get(&entry(0).key, "image 0").unwrap().unwrap().1 == b"first");
    third.look_again().unwrap();
    assert_eq!(third.get(&entry(0).key, "image 0").unwrap().unwrap().1, b"second");
    third.append(&at(7, 9), b"seventh").unwrap();
    whole.look_again().unwrap();
    assert_eq!(whole.get(&entry(7).key, "image 7").unwrap().unwrap().1, b"seventh");
    let read = Store::read(folder.path()).unwrap();
    assert_eq!(read.get(&entry(0).key, "image 0").unwrap().unwrap().1, b"second");
}

#[test]
fn a_result_that_could_not_be_read_again_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path(), Shard::WHOLE).unwrap();
    let detected = Detected { score: f64::NAN, variances: Vec::new(), cells: 0, true_error: None };
    let broken = Entry { body: Body::Detected(detected), ..entry(3) };
    let said = store.append(&broken, &[]).unwrap_err().to_string();
    assert!(said.contains("image 3") && said.contains("finite"), "{said}");
    store.append(&entry(3), &[]).unwrap();
    drop(store);
    assert_eq!(Store::read(folder.path()).unwrap().len(), 1);
}
