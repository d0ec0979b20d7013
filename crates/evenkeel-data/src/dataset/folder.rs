//! Plain folders: pictures alone, or `images/` with label PNGs of the same names in `labels/`.

use super::files::{FileItem, FileSource, FileTruth, LabelRule};
use super::walk::{PICTURES, files_under};
use super::{Kind, Listing, Offender, Preparation, Request, voc_palette};
use crate::{Error, Result};
use std::path::{Path, PathBuf};

pub(super) const PLAIN: Kind = Kind {
    name: "folder",
    about: "a folder of pictures without labels",
    layout: "*.png, *.jpg or *.jpeg, subfolders included",
    preparation: Preparation::Native,
    far: Some(|_, _| false),
    list: list_plain,
};

pub(super) const LABELLED: Kind = Kind {
    name: "labelled-folder",
    about: "a folder of pictures and one of label maps",
    layout: "images/* and labels/*.png (or masks/, annotations/) of the same names; say --classes N",
    preparation: Preparation::Native,
    far: Some(|_, _| false),
    list: list_labelled,
};

fn list_plain(root: &Path, _: &Request) -> Result<Listing> {
    let items = files_under(root, PICTURES)?
        .into_iter()
        .map(|picture| FileItem { id: id_under(root, &picture), picture, truth: FileTruth::Unlabelled })
        .collect();
    let source = Box::new(FileSource { items, rule: LabelRule::plain(0) });
    Ok(Listing { source, classes: Vec::new(), palette: voc_palette(1), offenders: Vec::new() })
}

fn list_labelled(root: &Path, request: &Request) -> Result<Listing> {
    let pictures = root.join("images");
    let labels = ["labels", "masks", "annotations"]
        .iter()
        .map(|name| root.join(name))
        .find(|path| path.is_dir())
        .ok_or_else(|| {
            let fault = "has no labels folder beside its images";
            Error::Offenders(vec![Offender::new(root, fault, format!("the layout is {}", LABELLED.layout))])
        })?;
    let (mut items, mut offenders) = (Vec::new(), Vec::new());
    for picture in files_under(&pictures, PICTURES)? {
        let id = id_under(&pictures, &picture);
        let label = labels.join(format!("{id}.png"));
        if label.is_file() {
            items.push(FileItem { id, picture, truth: FileTruth::LabelFile(label) });
        } else {
            let fault = format!("its label map {} is missing", label.display());
            offenders.push(Offender::new(picture, fault, "add it, or move the picture away"));
        }
    }
    // Without a count, any 8-bit number but 255 is a class.
    let classes = request.classes.unwrap_or(255);
    let source = Box::new(FileSource { items, rule: LabelRule::plain(classes) });
    let names = (0..classes).map(|class| class.to_string()).collect();
    Ok(Listing { source, classes: names, palette: voc_palette(classes), offenders })
}

/// The path below the root without its ending, with forward slashes on every system.
fn id_under(root: &Path, path: &Path) -> String {
    let inner: PathBuf = path.strip_prefix(root).unwrap_or(path).with_extension("");
    inner.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
