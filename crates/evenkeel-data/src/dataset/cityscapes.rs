//! Cityscapes: `leftImg8bit/SPLIT/CITY/*_leftImg8bit.png` with `gtFine/SPLIT/CITY/*_gtFine_labelIds.png`.
//!
//! labelIds are read as the 19 trainIds, everything else ignored. Where only `_gtFine_labelTrainIds.png` files lie, they
//! are read as they are. A flat pair of folders `leftImg8bit/*.png` and `labelTrainIds/*.png` is read too.

use super::cityscapes_labels::{CLASSES, train_id};
use super::files::{FileItem, FileSource, FileTruth, LabelRule};
use super::walk::{files_under, stem_of};
use super::{Kind, Listing, Offender, Preparation, Request, names};
use crate::Result;
use evenkeel::Palette;
use std::path::{Path, PathBuf};

pub(super) const KIND: Kind = Kind {
    name: "cityscapes",
    about: "street scenes, 19 classes",
    layout: "leftImg8bit/SPLIT/CITY/*_leftImg8bit.png and gtFine/SPLIT/CITY/*_gtFine_labelIds.png (SPLIT: val)",
    preparation: Preparation::Resize { height: 340, width: 680 },
    far: Some(|_, _| false),
    list,
};

fn list(root: &Path, request: &Request) -> Result<Listing> {
    let flat = root.join("labelTrainIds");
    if flat.is_dir() && !root.join("gtFine").is_dir() {
        return pair(&root.join("leftImg8bit"), |picture| Some((flat.join(picture.file_name()?), false)));
    }
    let split = request.split.as_deref().unwrap_or("val");
    let (pictures, labels) = (root.join("leftImg8bit").join(split), root.join("gtFine").join(split));
    pair(&pictures, |picture| {
        let stem = stem_of(picture);
        let stem = stem.strip_suffix("_leftImg8bit").unwrap_or(&stem);
        let folder = labels.join(picture.parent()?.strip_prefix(&pictures).ok()?);
        let ids = folder.join(format!("{stem}_gtFine_labelIds.png"));
        let trained = folder.join(format!("{stem}_gtFine_labelTrainIds.png"));
        Some(if !ids.is_file() && trained.is_file() { (trained, false) } else { (ids, true) })
    })
}

/// Pairs every picture with the label file `label_of` names (and whether that holds labelIds).
fn pair(pictures: &Path, label_of: impl Fn(&Path) -> Option<(PathBuf, bool)>) -> Result<Listing> {
    let (mut items, mut offenders, mut as_ids) = (Vec::new(), Vec::new(), false);
    for picture in files_under(pictures, &["png"])? {
        match label_of(&picture) {
            Some((label, ids)) if label.is_file() => {
                as_ids |= ids;
                let id = stem_of(&picture);
                items.push(FileItem { id, picture, truth: FileTruth::LabelFile(label) });
            }
            other => {
                let label = other.map(|(path, _)| path.display().to_string()).unwrap_or_default();
                let fault = format!("its label map {label} is missing");
                offenders.push(Offender::new(picture, fault, "unpack gtFine beside leftImg8bit"));
            }
        }
    }
    let rule = LabelRule { classes: CLASSES.len(), recode: if as_ids { train_id } else { Some } };
    let source = Box::new(FileSource { items, rule });
    Ok(Listing { source, classes: names(&CLASSES), palette: Palette::of_cityscapes(), offenders })
}
