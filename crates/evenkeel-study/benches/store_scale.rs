//! What a result costs to keep, find and join, from ten thousand to a million of them, and the memory that takes.
//!
//!     cargo bench -p evenkeel-study --bench store_scale [-- MOST]
//!
//! Four real results of one image are written again under as many names as it takes, into work items of a thousand results, as a cluster would keep
//! them. Then: reading the place into an index, finding that nothing is missing (a resumed run), joining it into one store and writing the tables
//! (a merge). Printed for each size in seconds and in microseconds a result, with the process's peak memory.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use evenkeel_study::experiment::Experiment;
use evenkeel_study::key::Key;
use evenkeel_study::record::{Clock, Entry};
use evenkeel_study::rows;
use evenkeel_study::run::{Effort, Study, Watch};
use evenkeel_study::store::{Shard, Store};

/// Results in one work item.
const ITEM: usize = 1000;

struct Quiet;

impl Watch for Quiet {
    fn done(&self, _: usize, _: Option<f64>) {}
}

fn study(images: usize) -> Study {
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("../evenkeel/models/scenes_classifier.onnx");
    let text = format!(
        "name = \"scale\"\nobjective = false\n[[subject]]\nname = \"crops\"\nmodel = {network:?}\ndata = \"scenes-objects\"\npath = \"{images}@32x32\"\n\
         [[attack]]\nkind = \"pgd\"\nsteps = 1\n[[defence]]\nkind = \"random\"\n"
    );
    let experiment = Experiment::parse(&text, Path::new("scale")).expect("an experiment");
    Study::load(experiment, &[]).expect("a study")
}

/// The results of one image, made for real.
fn made() -> Vec<(Entry, Vec<u8>)> {
    let (study, folder) = (study(1), tempfile::tempdir().expect("a folder"));
    let stop = AtomicBool::new(false);
    let effort = Effort { threads: 1, shard: Shard::WHOLE, save_images: false, stop: &stop };
    let store = Store::open(folder.path(), Shard::WHOLE).expect("a store");
    let (store, _) = study.run(store, &effort, &Quiet).expect("a run");
    let id = &study.design.subjects[0].images[0];
    let keys = study.design.keys(0);
    keys.iter().map(|key| store.get(key, id).expect("a log").expect("a result")).collect()
}

/// Writes the results of all images, a thousand in each item.
fn write(study: &Study, entries: &[(Entry, Vec<u8>)], folder: &Path) -> usize {
    let ids = &study.design.subjects[0].images;
    let mut count = 0;
    for (number, some) in ids.chunks(ITEM / entries.len()).enumerate() {
        let scratch = folder.join("scratch");
        let mut store = Store::open(&scratch, Shard::WHOLE).expect("a store");
        for id in some {
            for (entry, picture) in entries {
                let clock = Clock { made_at_ms: 1, ..entry.clock };
                let entry =
                    Entry { id: id.clone(), image: Key::of_parts(&[id.as_bytes()]), clock, ..entry.clone() };
                store.append(&entry, picture).expect("room on the disk");
                count += 1;
            }
        }
        let log = store.own_path().expect("a log").to_owned();
        std::fs::rename(log, folder.join(format!("item-{number:06}.log"))).expect("a rename");
        drop(store);
        std::fs::remove_dir_all(scratch).expect("a folder");
    }
    count
}

fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).map_or(0.0, |kb: f64| kb / 1024.0)
}

/// Says what a step took.
fn told<T>(what: &str, results: usize, step: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let out = step();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "  {what:<34} {seconds:>8.2} s {:>8.1} µs a result   peak {:>6.0} MB",
        1e6 * seconds / results as f64,
        peak_megabytes()
    );
    out
}

fn main() {
    let most: usize = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(1_000_000);
    let entries = made();
    for results in [10_000, 100_000, 1_000_000].into_iter().filter(|results| *results <= most) {
        let study = study(results / entries.len());
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("items");
        std::fs::create_dir(&place).expect("a folder");
        let count = write(&study, &entries, &place);
        println!("{count} results in {} work items", count.div_ceil(ITEM));
        let store = told("index", count, || Store::read(&place).expect("a store"));
        assert_eq!(store.len(), count);
        let missing = told("resume: what is missing", count, || rows::missing(&study.design, &store).len());
        assert_eq!(missing, 0);
        let out = folder.path().join("merged");
        let mut merged = Store::open(&out, Shard::WHOLE).expect("a store");
        let taken =
            told("merge: joined", count, || merged.take_from(&store, &study.design).expect("a merge"));
        assert_eq!(taken, count);
        told("merge: synced and proved complete", count, || {
            merged.sync().expect("a sync");
            assert!(rows::missing(&study.design, &merged).is_empty());
        });
        let rows =
            told("merge: tables", count, || rows::export(&study.design, &merged, &out).expect("tables"));
        println!("  {rows} rows");
    }
}
