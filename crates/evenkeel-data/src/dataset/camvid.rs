//! CamVid: `SPLIT/*.png` with `SPLITannot/*.png`, numbers 0 to 10 and 11 for void.

use super::files::{FileItem, FileSource, FileTruth, LabelRule};
use super::walk::{files_under, name_of, stem_of};
use super::{Kind, Listing, Offender, Preparation, Request, names, voc_palette};
use crate::Result;
use crate::metric::IGNORE;
use std::path::Path;

const CLASSES: [&str; 11] = [
    "sky",
    "building",
    "pole",
    "road",
    "pavement",
    "tree",
    "sign",
    "fence",
    "car",
    "pedestrian",
    "bicyclist",
];
const VOID: u16 = 11;

pub(super) const KIND: Kind = Kind {
    name: "camvid",
    about: "street scenes, 11 classes",
    layout: "SPLIT/*.png and SPLITannot/*.png (SPLIT: test)",
    preparation: Preparation::Native,
    far: Some(|_, _| false),
    list,
};

fn list(root: &Path, request: &Request) -> Result<Listing> {
    let split = request.split.as_deref().unwrap_or("test");
    let labels = root.join(format!("{split}annot"));
    let (mut items, mut offenders) = (Vec::new(), Vec::new());
    for picture in files_under(&root.join(split), &["png"])? {
        let label = labels.join(name_of(&picture));
        if label.is_file() {
            items.push(FileItem { id: stem_of(&picture), picture, truth: FileTruth::LabelFile(label) });
        } else {
            let fault = format!("its label map {} is missing", label.display());
            offenders.push(Offender::new(picture, fault, "put the annotations beside the images"));
        }
    }
    let recode = |label| Some(if label == VOID { IGNORE } else { label });
    let source = Box::new(FileSource { items, rule: LabelRule { classes: CLASSES.len(), recode } });
    Ok(Listing { source, classes: names(&CLASSES), palette: voc_palette(CLASSES.len()), offenders })
}
