//! Every layout's miniature is read, and read as Pillow, numpy and pycocotools read it.

use evenkeel_data::dataset::{Dataset, Preparation, Request, Sample, Subset, Truth, contact_sheet};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Expected {
    id: String,
    width: usize,
    height: usize,
    corner: [u8; 3],
    class: Option<usize>,
    labels: Option<Vec<u16>>,
    objects: Option<Vec<ExpectedObject>>,
}

#[derive(Deserialize)]
struct ExpectedObject {
    category: i64,
    crowd: bool,
    area: f64,
    counts: String,
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/datasets")
}

fn native() -> Request {
    Request { preparation: Some(Preparation::Native), ..Request::default() }
}

fn open(kind: &str, folder: &str) -> Dataset {
    Dataset::open(kind, &testdata().join(folder), &native()).unwrap().ready(false).unwrap()
}

fn assert_reads(kind: &str, folder: &str, expected_as: &str) {
    let text = std::fs::read_to_string(testdata().join("expected.json")).unwrap();
    let mut all: HashMap<String, Vec<Expected>> = serde_json::from_str(&text).unwrap();
    let expected = all.remove(expected_as).unwrap();
    let dataset = open(kind, folder);
    assert_eq!(dataset.len(), expected.len());
    for (sample, expected) in dataset.samples().zip(&expected) {
        let sample = sample.unwrap();
        assert_eq!(sample.id, expected.id);
        assert_eq!(sample.image.size(), (expected.height, expected.width));
        for channel in 0..3 {
            // JPEG decoders may differ by a few steps; the other files are read exactly.
            let got = sample.image.plane(channel)[0] * 255.0;
            assert!((got - f32::from(expected.corner[channel])).abs() <= 4.0, "{}: {got}", sample.id);
        }
        match &sample.truth {
            Truth::Unlabelled | Truth::Given(_) => {
                assert!(expected.class.is_none() && expected.labels.is_none())
            }
            Truth::Class(class) => assert_eq!(Some(*class), expected.class),
            Truth::Labels(map) => assert_eq!(Some(map.labels()), expected.labels.as_deref()),
            Truth::Objects(objects) => {
                let expected = expected.objects.as_ref().unwrap();
                assert_eq!(objects.len(), expected.len());
                for (object, expected) in objects.iter().zip(expected) {
                    assert_eq!((object.category, object.crowd), (expected.category, expected.crowd));
                    assert_eq!(
                        (object.area, object.mask.to_text()),
                        (expected.area, expected.counts.clone())
                    );
                }
            }
        }
    }
    let sheet = contact_sheet(&dataset, 25).unwrap();
    assert!(sheet.height() > 100 && sheet.width() > 200);
}

#[test]
fn imagenet_by_synset_folders() {
    assert_reads("imagenet", "imagenet-folders", "imagenet-folders");
}

#[test]
fn imagenet_flat_with_the_devkit() {
    assert_reads("imagenet", "imagenet-flat", "imagenet-flat");
}

#[test]
fn cityscapes() {
    assert_reads("cityscapes", "cityscapes", "cityscapes");
}

#[test]
fn voc() {
    assert_reads("voc", "voc", "voc");
}

#[test]
fn coco_instances() {
    assert_reads("coco", "coco", "coco");
}

#[test]
fn coco_as_voc_classes() {
    assert_reads("coco-voc21", "coco", "coco-voc21");
}

#[test]
fn camvid() {
    assert_reads("camvid", "camvid", "camvid");
}

#[test]
fn cifar10_batches_and_raw() {
    assert_reads("cifar10", "cifar10", "cifar10");
    assert_reads("cifar10", "cifar10-raw", "cifar10-raw");
}

#[test]
fn mnist_plain_and_gzipped() {
    assert_reads("mnist", "mnist", "mnist");
    assert_reads("fashion-mnist", "fashion-mnist", "fashion-mnist");
}

#[test]
fn folders() {
    assert_reads("folder", "folder", "folder");
    assert_reads("labelled-folder", "labelled-folder", "labelled-folder");
}

#[test]
fn csv_manifest() {
    assert_reads("manifest", "manifest/table.csv", "manifest");
    assert_eq!(open("manifest", "manifest/table.csv").classes(), ["cat", "dog"]);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_manifest() {
    assert_reads("manifest", "manifest/table.parquet", "manifest");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_manifest_says_what_is_missing() {
    let opened = Dataset::open("manifest", &testdata().join("manifest/table.parquet"), &native());
    assert!(opened.err().unwrap().to_string().contains("--features parquet"));
}

#[test]
fn samples_come_at_the_size_of_their_kind_with_labels_in_place() {
    let sized = |kind: &str, folder: &str| -> Sample {
        Dataset::open(kind, &testdata().join(folder), &Request::default()).unwrap().sample(0).unwrap()
    };
    assert_eq!(sized("imagenet", "imagenet-folders").image.size(), (224, 224));
    for (kind, size) in [("cityscapes", (340, 680)), ("voc", (480, 480)), ("coco-voc21", (400, 400))] {
        let sample = sized(kind, kind.trim_end_matches("-voc21"));
        assert_eq!(sample.image.size(), size);
        let Truth::Labels(map) = sample.truth else { panic!("{kind} has label maps") };
        assert_eq!(map.size(), size);
    }
    let sample = sized("coco", "coco");
    let Truth::Objects(objects) = sample.truth else { panic!("coco has objects") };
    let native = open("coco", "coco").sample(0).unwrap();
    let Truth::Objects(originals) = native.truth else { panic!("coco has objects") };
    for (object, original) in objects.iter().zip(&originals) {
        assert_eq!((object.mask.height(), object.mask.width()), (400, 400));
        let ratio = object.area / f64::from(original.mask.area()) / (400.0 * 400.0 / (20.0 * 24.0));
        assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
    }
}

#[test]
fn subsets_repeat_and_keep_the_order() {
    let subset = Subset { every: None, limit: Some(2), seed: Some(4) };
    let ids = || -> Vec<String> {
        let request = Request { subset, ..native() };
        let dataset = Dataset::open("manifest", &testdata().join("manifest/table.csv"), &request).unwrap();
        (0..dataset.len()).map(|k| dataset.id(k)).collect()
    };
    assert_eq!(ids().len(), 2);
    assert_eq!(ids(), ids());
    assert!(ids().is_sorted());
}

#[test]
fn resizing_is_pillows_bilinear() {
    let load = |name: &str| evenkeel::Image::load(testdata().join("resize").join(name)).unwrap();
    let source = load("source.png");
    for (w, h) in [(13, 9), (40, 30), (24, 5), (7, 31)] {
        let (got, expected) = (source.resized(h, w), load(&format!("{w}x{h}.png")));
        for (a, b) in got.pixels().iter().zip(expected.pixels()) {
            // Pillow rounds to eight bits after each of its two passes.
            assert!((a - b).abs() <= 1.1 / 255.0, "{w}x{h}: {a} for {b}");
        }
    }
    let flat = evenkeel::Image::filled(30, 20, 0.3);
    assert!(flat.resized(7, 9).pixels().iter().all(|v| (v - 0.3).abs() < 1e-6));
}

#[test]
fn real_coco_label_maps_equal_those_made_elsewhere() {
    let shared = std::env::var_os("EVENKEEL_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let masks = shared.join("coco/voc21_masks");
    if !masks.is_dir() {
        println!("skipped: {} is not there", masks.display());
        return;
    }
    let dataset = Dataset::open("coco-voc21", &shared.join("coco"), &native()).unwrap();
    for sample in dataset.samples() {
        let sample = sample.unwrap();
        let name = format!("{:012}.png", sample.id.parse::<u64>().unwrap());
        let expected = evenkeel::LabelMap::load(masks.join(name)).unwrap();
        let Truth::Labels(map) = sample.truth else { panic!("label maps") };
        // Those maps were drawn from panoptic segments: crowds, and pixels in no segment, are ignored in them.
        for (got, expected) in map.labels().iter().zip(expected.labels()).filter(|(_, e)| **e != 255) {
            assert_eq!(got, expected, "image {}", sample.id);
        }
    }
}
