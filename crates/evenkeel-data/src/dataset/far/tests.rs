//! The same data set near and far: a folder stands for the object store, since both are `Objects`.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel::{Image, LabelMap};

use super::*;
use crate::dataset::{Check, Dataset, KINDS};
use crate::objects::{Folder, Listed};

/// A folder that counts what is fetched.
struct Counting(Folder, AtomicUsize);

impl Objects for Counting {
    fn list(&self) -> Result<Vec<Listed>> {
        self.0.list()
    }
    fn list_below(&self) -> Result<Vec<Listed>> {
        self.0.list_below()
    }
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.read(name)
    }
    fn create(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        self.0.create(name, bytes)
    }
    fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        self.0.put(name, bytes)
    }
}

fn picture(folder: &Path, name: &str, seed: u64) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut random = evenkeel::Random::new(seed);
    Image::new(8, 9, (0..3 * 72).map(|_| random.unit()).collect()).unwrap().save_png(path).unwrap();
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A data set of each layout, in a folder: (kind, what follows the folder, split).
fn layouts(folder: &Path) -> Vec<(&'static str, &'static str, Option<&'static str>)> {
    for number in 0..4 {
        picture(folder, &format!("plain/deep/{number}.png"), number);
        picture(folder, &format!("labelled/images/{number}.png"), number);
        std::fs::create_dir_all(folder.join("labelled/labels")).unwrap();
        let labels = LabelMap::new(8, 9, vec![number as u16 % 3; 72]).unwrap();
        labels.save_png(folder.join(format!("labelled/labels/{number}.png")), None).unwrap();
        picture(folder, &format!("table/pictures/{number}.png"), number);
        picture(folder, &format!("imagenet/val/n0000000{}/x{number}.png", 1 + number % 2), number);
        picture(folder, &format!("coco/val2017/{number}.png"), number);
    }
    let rows: String = (0..4).map(|n| format!("pictures/{n}.png,{}\n", n % 2)).collect();
    write(folder, "table/table.csv", &format!("image,label\n{rows}"));
    write(folder, "imagenet/LOC_synset_mapping.txt", "n00000001 one\nn00000002 two\n");
    let images: Vec<String> = (0..4)
        .map(|n| format!("{{\"id\":{n},\"file_name\":\"{n}.png\",\"height\":8,\"width\":9}}"))
        .collect();
    let objects: Vec<String> = (0..4)
        .map(|n| format!("{{\"id\":{n},\"image_id\":{n},\"category_id\":1,\"iscrowd\":0,\"area\":16,\"segmentation\":[[1,1,5,1,5,5,1,5]]}}"))
        .collect();
    let json = format!(
        "{{\"images\":[{}],\"annotations\":[{}],\"categories\":[{{\"id\":1,\"name\":\"person\"}}]}}",
        images.join(","),
        objects.join(",")
    );
    write(folder, "coco/annotations/instances_val2017.json", &json);
    write(folder, "coco/annotations/captions_val2017.json", "not read");
    vec![
        ("folder", "plain", None),
        ("labelled-folder", "labelled", None),
        ("manifest", "table/table.csv", None),
        ("imagenet", "imagenet", None),
        ("coco", "coco", None),
        ("coco-voc21", "coco", Some("val2017")),
    ]
}

const URL: &str = "far://bucket";

/// Opens what lies in a folder as if it lay far away.
fn far(
    kind: &str,
    place: &Arc<Counting>,
    (inner, local): (&str, &Path),
    (request, limit): (&Request, u64),
) -> Result<Dataset> {
    let kind = KINDS.iter().find(|k| k.name == kind).unwrap();
    let url = format!("{URL}/{inner}");
    let root = root_of(kind, &url).trim_start_matches(URL).trim_start_matches('/').to_string();
    let below = Arc::new(Counting(Folder(place.0.0.join(root)), AtomicUsize::new(0)));
    let room = Room::new(local.to_owned(), limit);
    Dataset::of_listing(
        kind,
        list_in(kind, &url, request, (below, local.join("tree"), room))?,
        Path::new(&url),
        request,
    )
}

#[test]
fn every_layout_is_read_as_it_is_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let place = Arc::new(Counting(Folder(folder.path().to_owned()), AtomicUsize::new(0)));
    for (kind, inner, split) in layouts(folder.path()) {
        let request = Request { split: split.map(str::to_string), classes: Some(3), ..Request::default() };
        let near = Dataset::open(kind, &folder.path().join(inner), &request).unwrap();
        let cache = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let there = far(kind, &place, (inner, cache.path()), (&request, 1 << 30)).unwrap();
            assert_eq!((there.len(), there.classes()), (near.len(), near.classes()), "{kind}");
            for position in 0..near.len() {
                assert_eq!(
                    there.sample(position).unwrap(),
                    near.sample(position).unwrap(),
                    "{kind} {position}"
                );
            }
            let (here, away) = (Check::of(&near), Check::of(&there));
            assert_eq!(
                (here.sound, &here.classes, away.offenders.len()),
                (away.sound, &away.classes, 0),
                "{kind}"
            );
        }
    }
}

/// Nothing is fetched twice while there is room, and what the layout does not need is not fetched at all.
#[test]
fn objects_are_fetched_once_and_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    layouts(folder.path());
    let cache = tempfile::tempdir().unwrap();
    let place = Arc::new(Counting(Folder(folder.path().join("coco")), AtomicUsize::new(0)));
    let kind = KINDS.iter().find(|k| k.name == "coco").unwrap();
    let open = || {
        let room = Room::new(cache.path().to_owned(), 1 << 30);
        let listing =
            list_in(kind, URL, &Request::default(), (place.clone(), cache.path().join("tree"), room))
                .unwrap();
        Dataset::of_listing(kind, listing, Path::new(URL), &Request::default()).unwrap()
    };
    let fetched = || place.1.swap(0, Ordering::SeqCst);
    let there = open();
    assert_eq!(fetched(), 1, "the annotations alone");
    there.sample(2).unwrap();
    there.sample(2).unwrap();
    assert_eq!(fetched(), 1);
    let again = open();
    again.samples().for_each(|sample| drop(sample.unwrap()));
    assert_eq!(fetched(), 3, "what an earlier process fetched is still here");
    // another picture under the same name is seen when the data set is opened the next time
    picture(folder.path(), "coco/val2017/1.png", 77);
    let changed = open();
    let near = Dataset::open("coco", &folder.path().join("coco"), &Request::default()).unwrap();
    assert_eq!(changed.sample(1).unwrap(), near.sample(1).unwrap());
    assert_eq!(fetched(), 1);
}

/// A cache with room for some of the files gives every sample, and never holds more than its limit.
#[test]
fn the_cache_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    (0..30).for_each(|number| picture(folder.path(), &format!("plain/{number:02}.png"), number));
    let place = Arc::new(Counting(Folder(folder.path().to_owned()), AtomicUsize::new(0)));
    let one = std::fs::metadata(folder.path().join("plain/00.png")).unwrap().len();
    let (cache, request) = (tempfile::tempdir().unwrap(), Request::default());
    let limit = 12 * one;
    let there = far("folder", &place, ("plain", cache.path()), (&request, limit)).unwrap();
    let near = Dataset::open("folder", &folder.path().join("plain"), &request).unwrap();
    let held = || {
        let all = Folder(cache.path().to_owned()).list_below().unwrap();
        all.iter().map(|object| object.bytes).sum::<u64>()
    };
    for position in (0..30).chain([3, 17, 29, 0]) {
        assert_eq!(there.sample(position).unwrap(), near.sample(position).unwrap());
        assert!(held() <= limit, "{} of {limit}", held());
    }
    std::thread::scope(|scope| {
        for first in 0..3 {
            let (there, near) = (&there, &near);
            scope.spawn(move || {
                for position in (first..30).step_by(3).chain(0..30) {
                    assert_eq!(there.sample(position).unwrap(), near.sample(position).unwrap());
                }
            });
        }
    });
    assert!(held() <= limit);
    let cramped = far("folder", &place, ("plain", &cache.path().join("other")), (&request, one / 2)).unwrap();
    let said = cramped.sample(0).unwrap_err().to_string();
    assert!(
        said.contains("no room")
            && said.contains("EVENKEEL_CACHE_GB")
            && said.contains("far://bucket/plain/00.png"),
        "{said}"
    );
}

/// Errors name the URL, and what is cut off is no sample.
#[test]
fn offenders_are_named_by_their_url() {
    let folder = tempfile::tempdir().unwrap();
    layouts(folder.path());
    let place = Arc::new(Counting(Folder(folder.path().to_owned()), AtomicUsize::new(0)));
    let (cache, request) = (tempfile::tempdir().unwrap(), Request::default());
    let open = |kind: &str, inner: &str, local: &str| {
        far(kind, &place, (inner, &cache.path().join(local)), (&request, 1 << 30))
    };
    std::fs::write(folder.path().join("plain/deep/1.png"), b"no picture").unwrap();
    let there = open("folder", "plain", "a").unwrap();
    let check = Check::of(&there);
    assert_eq!(check.sound, 3);
    assert!(
        check.offenders[0].to_string().starts_with("far://bucket/plain/deep/1.png: "),
        "{:?}",
        check.offenders
    );
    std::fs::remove_file(folder.path().join("table/pictures/2.png")).unwrap();
    let table = open("manifest", "table/table.csv", "b").unwrap();
    let said = Check::of(&table).offenders[0].to_string();
    assert!(
        said.contains("far://bucket/table/table.csv") && said.contains("far://bucket/table/pictures/2.png"),
        "{said}"
    );
    // gone or another between listing and reading
    let there = open("folder", "labelled/images", "c").unwrap();
    std::fs::write(folder.path().join("labelled/images/0.png"), b"longer or shorter").unwrap();
    std::fs::remove_file(folder.path().join("labelled/images/1.png")).unwrap();
    let words = |position| there.sample(position).unwrap_err().to_string();
    assert!(words(0).contains("is 17 now") && words(1).contains("not there any more"), "{}", words(0));
    for (kind, inner, expected) in [
        ("folder", "nowhere", "nothing below"),
        ("mnist", "plain", "copy it there"),
        ("coco", "plain", "instances_val2017"),
    ] {
        let said = open(kind, inner, "d").err().unwrap().to_string();
        assert!(said.contains(expected) && said.contains("far://bucket"), "{kind}: {said}");
    }
}
