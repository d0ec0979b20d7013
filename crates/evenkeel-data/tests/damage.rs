//! Every kind of damage is named, all offenders at once, and `skip_bad` goes on without them and counts them.

use evenkeel_data::Error;
use evenkeel_data::dataset::{Dataset, Offender, Request};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A copy of a miniature that a test may damage.
struct Copy {
    _keep: TempDir,
    root: PathBuf,
}

impl Copy {
    fn of(folder: &str) -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().join(folder);
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/datasets").join(folder), &root);
        Self { _keep: keep, root }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    fn cut(&self, file: &str, keep: usize) {
        let bytes = fs::read(self.path(file)).unwrap();
        fs::write(self.path(file), &bytes[..keep]).unwrap();
    }

    fn replace(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(file)).unwrap();
        assert!(text.contains(from), "{from} is in {file}");
        fs::write(self.path(file), text.replacen(from, to, 1)).unwrap();
    }

    fn ready(&self, kind: &str, skip_bad: bool) -> Result<Dataset, Error> {
        Dataset::open(kind, &self.root, &Request::default())?.ready(skip_bad)
    }

    /// The offenders found.
    fn offenders(&self, kind: &str) -> Vec<Offender> {
        match self.ready(kind, false) {
            Err(Error::Offenders(offenders)) => offenders,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("the damage was not seen"),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target)
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

#[track_caller]
fn assert_names(offenders: &[Offender], file: &str, fault: &str) {
    let found = offenders.iter().any(|o| {
        let file_named = o.file.to_string_lossy().contains(file);
        file_named && o.fault.contains(fault) && !o.remedy.is_empty()
    });
    assert!(found, "no offender {file}: {fault} among {offenders:#?}");
}

#[test]
fn a_missing_label_map_and_a_broken_picture_are_named_together_and_can_be_skipped() {
    let copy = Copy::of("camvid");
    fs::copy(copy.path("test/0001TP_000.png"), copy.path("test/0001TP_002.png")).unwrap();
    fs::copy(copy.path("test/0001TP_000.png"), copy.path("test/0001TP_003.png")).unwrap();
    fs::copy(copy.path("testannot/0001TP_000.png"), copy.path("testannot/0001TP_003.png")).unwrap();
    copy.cut("test/0001TP_003.png", 60);
    let offenders = copy.offenders("camvid");
    assert_eq!(offenders.len(), 2);
    assert_names(&offenders, "0001TP_002.png", "missing");
    assert_names(&offenders, "0001TP_003.png", "");
    let dataset = copy.ready("camvid", true).unwrap();
    assert_eq!((dataset.len(), dataset.skipped().len()), (2, 2));
    assert!(dataset.samples().all(|sample| sample.is_ok()));
}

#[test]
fn labels_out_of_range_and_of_another_size() {
    let copy = Copy::of("camvid");
    let map = evenkeel::LabelMap::new(12, 16, vec![12; 12 * 16]).unwrap();
    map.save_png(copy.path("testannot/0001TP_000.png"), None).unwrap();
    let map = evenkeel::LabelMap::new(5, 5, vec![1; 25]).unwrap();
    map.save_png(copy.path("testannot/0001TP_001.png"), None).unwrap();
    let offenders = copy.offenders("camvid");
    assert_names(&offenders, "testannot/0001TP_000.png", "label 12");
    assert_names(&offenders, "testannot/0001TP_001.png", "5x5");
    let copy = Copy::of("cityscapes");
    let map = evenkeel::LabelMap::new(16, 32, vec![40; 512]).unwrap();
    let file = "gtFine/val/ulm/ulm_000000_000019_gtFine_labelIds.png";
    map.save_png(copy.path(file), None).unwrap();
    assert_names(&copy.offenders("cityscapes"), "labelIds.png", "label 40");
}

#[test]
fn pictures_cut_short_empty_or_of_another_kind() {
    let copy = Copy::of("folder");
    copy.cut("a.png", 100);
    let jpeg = fs::metadata(copy.path("inner/b.jpg")).unwrap().len() as usize;
    copy.cut("inner/b.jpg", jpeg - 20);
    fs::write(copy.path("empty.png"), b"").unwrap();
    fs::write(copy.path("text.jpg"), b"not a picture").unwrap();
    let offenders = copy.offenders("folder");
    for file in ["a.png", "b.jpg", "empty.png", "text.jpg"] {
        assert_names(&offenders, file, "");
    }
    assert_eq!((offenders.len(), copy.ready("folder", true).unwrap().len()), (4, 1));
}

#[test]
fn coco_json_cut_off_or_wrong() {
    let json = "annotations/instances_val2017.json";
    let copy = Copy::of("coco");
    copy.cut(json, 300);
    assert_names(&copy.offenders("coco"), "instances_val2017.json", "ends in the middle");
    let copy = Copy::of("coco");
    fs::remove_file(copy.path("val2017/000000000012.jpg")).unwrap();
    copy.replace(json, "\"counts\": [100, 60, 320]", "\"counts\": [100, 60, 999]");
    let offenders = copy.offenders("coco");
    assert_names(&offenders, "000000000012.jpg", "missing");
    assert_names(&offenders, json, "annotation 4 of image 11");
    assert_eq!(copy.ready("coco", true).unwrap().len(), 1);
    let copy = Copy::of("coco");
    copy.replace(json, "\"category_id\": 13", "\"category_id\": 99");
    assert_names(&copy.offenders("coco"), json, "category 99");
    let copy = Copy::of("coco");
    copy.replace(json, "\"height\": 20", "\"height\": 21");
    assert_names(&copy.offenders("coco"), "000000000010.jpg", "24x20");
    let copy = Copy::of("coco");
    copy.replace(json, "\"image_id\": 11", "\"image_id\": 77");
    assert_names(&copy.offenders("coco"), json, "image 77");
}

#[test]
fn imagenet_without_a_list_a_line_or_a_table() {
    let copy = Copy::of("imagenet-folders");
    fs::remove_file(copy.path("LOC_synset_mapping.txt")).unwrap();
    assert_names(&copy.offenders("imagenet"), "val", "2 synset folders");
    let copy = Copy::of("imagenet-flat");
    fs::write(copy.path("devkit/data/ILSVRC2012_validation_ground_truth.txt"), "3\n9\n").unwrap();
    let offenders = copy.offenders("imagenet");
    assert_names(&offenders, "00000002.JPEG", "`9`");
    assert_names(&offenders, "00000003.JPEG", "no line");
    assert_eq!(copy.ready("imagenet", true).unwrap().len(), 1);
    for keep in [0, 100, 130, 200, 300] {
        copy.cut("devkit/data/meta.mat", keep);
        assert_names(&copy.offenders("imagenet"), "meta.mat", "MATLAB");
        copy_back(&copy);
    }
}

fn copy_back(copy: &Copy) {
    let file = "devkit/data/meta.mat";
    let original =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/datasets/imagenet-flat").join(file);
    fs::copy(original, copy.path(file)).unwrap();
}

#[test]
fn voc_lists_what_is_not_there() {
    let copy = Copy::of("voc");
    fs::remove_file(copy.path("JPEGImages/2007_000000.jpg")).unwrap();
    fs::remove_file(copy.path("SegmentationClass/2007_000001.png")).unwrap();
    let offenders = copy.offenders("voc");
    assert_names(&offenders, "2007_000000.jpg", "missing");
    assert_names(&offenders, "2007_000001.png", "missing");
    fs::remove_dir_all(copy.path("SegmentationClass")).unwrap();
    assert_names(&copy.offenders("voc"), "voc", "neither");
}

#[test]
fn packed_files_cut_off_or_with_foreign_labels() {
    let copy = Copy::of("cifar10");
    copy.cut("test_batch.bin", 5000);
    assert_names(&copy.offenders("cifar10"), "test_batch.bin", "3073-byte");
    let copy = Copy::of("cifar10-raw");
    fs::write(copy.path("labels_u8.bin"), [3, 200]).unwrap();
    assert_names(&copy.offenders("cifar10"), "images_u8_nhwc.bin", "label 200");
    assert_eq!(copy.ready("cifar10", true).unwrap().len(), 1);
    copy.cut("images_u8_nhwc.bin", 3000);
    assert_names(&copy.offenders("cifar10"), "images_u8_nhwc.bin", "3000 bytes");
    let copy = Copy::of("mnist");
    copy.cut("t10k-images-idx3-ubyte", 900);
    assert_names(&copy.offenders("mnist"), "images", "announces");
    copy.cut("t10k-images-idx3-ubyte", 3);
    assert_names(&copy.offenders("mnist"), "images", "begin");
    fs::remove_file(copy.path("t10k-images-idx3-ubyte")).unwrap();
    assert_names(&copy.offenders("mnist"), "images", "no such file");
    let copy = Copy::of("fashion-mnist");
    copy.cut("t10k-images-idx3-ubyte.gz", 100);
    assert_names(&copy.offenders("fashion-mnist"), "images", "unpack");
}

#[test]
fn manifests_with_wrong_paths_labels_or_columns() {
    let copy = Copy::of("manifest");
    let at = |request: &Request| {
        Dataset::open("manifest", &copy.path("table.csv"), request).and_then(|d| d.ready(false))
    };
    fs::write(copy.path("table.csv"), "image,label\np0.png,0\nnone.png,1\np1.png,7\n").unwrap();
    let request = Request { classes: Some(3), ..Request::default() };
    let Err(Error::Offenders(offenders)) = at(&request) else { panic!("not seen") };
    assert_names(&offenders, "table.csv", "line 3");
    assert_names(&offenders, "table.csv", "`7`");
    fs::write(copy.path("table.csv"), "picture,label\np0.png,0\n").unwrap();
    let Err(Error::Offenders(offenders)) = at(&request) else { panic!("not seen") };
    assert_names(&offenders, "table.csv", "column `image`");
}

#[cfg(feature = "parquet")]
#[test]
fn a_parquet_table_cut_off_or_of_another_kind() {
    let copy = Copy::of("manifest");
    let at = || Dataset::open("manifest", &copy.path("table.parquet"), &Request::default());
    for keep in [400, 40, 3, 0] {
        copy.cut("table.parquet", keep);
        let Err(Error::Offenders(offenders)) = at() else { panic!("{keep} bytes were taken for a table") };
        assert_names(&offenders, "table.parquet", "not readable as Parquet");
    }
}

#[test]
fn every_layout_names_a_picture_that_does_not_decode() {
    let pictures = [
        ("imagenet", "imagenet-folders", "val"),
        ("imagenet", "imagenet-flat", ""),
        ("cityscapes", "cityscapes", "leftImg8bit"),
        ("voc", "voc", "JPEGImages"),
        ("coco", "coco", "val2017"),
        ("coco-voc21", "coco", "val2017"),
        ("camvid", "camvid", "test"),
        ("folder", "folder", ""),
        ("labelled-folder", "labelled-folder", "images"),
    ];
    for (kind, folder, below) in pictures {
        let copy = Copy::of(folder);
        let picture = first_picture(&copy.path(below)).unwrap_or_else(|| panic!("{folder} has a picture"));
        let bytes = fs::read(&picture).unwrap();
        fs::write(&picture, &bytes[..bytes.len() / 2]).unwrap();
        let name = picture.file_name().unwrap().to_string_lossy();
        assert_names(&copy.offenders(kind), &name, "");
        let whole = Dataset::open(kind, &copy.root, &Request::default()).unwrap().len();
        match copy.ready(kind, true) {
            Ok(dataset) => assert_eq!((dataset.len(), dataset.skipped().len()), (whole - 1, 1), "{kind}"),
            Err(error) => assert!(whole == 1, "{kind}: {error}"),
        }
    }
}

/// The first PNG or JPEG below a folder.
fn first_picture(folder: &Path) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).ok()?.map(|e| e.unwrap().path()).collect();
    entries.sort();
    let is_picture = |path: &Path| {
        path.extension()
            .is_some_and(|e| ["png", "jpg", "jpeg"].contains(&&*e.to_string_lossy().to_lowercase()))
    };
    entries.into_iter().find_map(|path| match path.is_dir() {
        true => first_picture(&path),
        false => is_picture(&path).then_some(path),
    })
}

#[test]
fn a_wrong_path_or_kind_is_said_in_a_sentence() {
    let nowhere = Path::new("/nowhere/at/all");
    for kind in evenkeel_data::dataset::KINDS {
        let error = Dataset::open(kind.name, nowhere, &Request::default()).err().unwrap();
        assert!(error.to_string().contains("nowhere"), "{}: {error}", kind.name);
    }
    let error = Dataset::open("imagenette", nowhere, &Request::default()).err().unwrap();
    assert!(error.to_string().contains("imagenet, cityscapes"));
}
