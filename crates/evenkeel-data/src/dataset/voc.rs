//! PASCAL VOC 2012 segmentation: `JPEGImages`, `SegmentationClassAug` or `SegmentationClass`, `ImageSets/Segmentation`.
//!
//! The path may be the `VOC2012` folder or one of those it lies in. Palette PNGs are read as indices; 255, the rim of
//! objects, is ignored. Without an image set, every label map that lies there is taken.

use super::files::{FileItem, FileSource, FileTruth, LabelRule};
use super::walk::{files_under, stem_of};
use super::{Kind, Listing, Offender, Preparation, Request, names, voc_palette};
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// The 21 classes, background first.
pub(super) const CLASSES: [&str; 21] = [
    "background",
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "dining table",
    "dog",
    "horse",
    "motorbike",
    "person",
    "potted plant",
    "sheep",
    "sofa",
    "train",
    "tv monitor",
];

pub(super) const KIND: Kind = Kind {
    name: "voc",
    about: "PASCAL VOC 2012, 21 classes",
    layout: "JPEGImages/*.jpg, SegmentationClassAug or SegmentationClass/*.png, ImageSets/Segmentation/SPLIT.txt (SPLIT: val)",
    preparation: Preparation::Resize { height: 480, width: 480 },
    far: Some(|name, _| name.contains("ImageSets/Segmentation/")),
    list,
};

fn list(root: &Path, request: &Request) -> Result<Listing> {
    let root = ["", "VOC2012", "VOCdevkit/VOC2012"]
        .iter()
        .map(|inner| root.join(inner))
        .find(|path| path.join("JPEGImages").is_dir())
        .ok_or_else(|| missing(root, "has no JPEGImages folder"))?;
    let labels = ["SegmentationClassAug", "SegmentationClass"]
        .iter()
        .map(|name| root.join(name))
        .find(|path| path.is_dir())
        .ok_or_else(|| missing(&root, "has neither SegmentationClassAug nor SegmentationClass"))?;
    let (mut items, mut offenders) = (Vec::new(), Vec::new());
    for id in ids(&root, &labels, request)? {
        let picture = root.join("JPEGImages").join(format!("{id}.jpg"));
        let label = labels.join(format!("{id}.png"));
        let absent: Vec<&PathBuf> = [&picture, &label].into_iter().filter(|path| !path.is_file()).collect();
        for path in &absent {
            offenders.push(Offender::new(
                path,
                "the image set names it but it is missing",
                "unpack the archive again",
            ));
        }
        if absent.is_empty() {
            items.push(FileItem { id, picture, truth: FileTruth::LabelFile(label) });
        }
    }
    let source = Box::new(FileSource { items, rule: LabelRule::plain(CLASSES.len()) });
    Ok(Listing { source, classes: names(&CLASSES), palette: voc_palette(CLASSES.len()), offenders })
}

fn ids(root: &Path, labels: &Path, request: &Request) -> Result<Vec<String>> {
    let sets = root.join("ImageSets/Segmentation");
    if !sets.is_dir() && request.split.is_none() {
        return Ok(files_under(labels, &["png"])?.iter().map(|path| stem_of(path)).collect());
    }
    let set = sets.join(format!("{}.txt", request.split.as_deref().unwrap_or("val")));
    let text = std::fs::read_to_string(&set).map_err(|_| missing(&set, "there is no such image set"))?;
    Ok(text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_string).collect())
}

fn missing(path: &Path, fault: &str) -> Error {
    Error::Offenders(vec![Offender::new(path, fault, format!("the layout is {}", KIND.layout))])
}
