//! ImageNet validation: a folder per synset, or flat with the devkit's ground truth.
//!
//! The usual class order is that of the sorted synset names (n01440764 is 0). With all 1000 folders there it is their
//! order; with fewer, a synset list or the devkit must say which they are. In the flat layout the devkit's numbers, which
//! run in another order, are turned into the usual one through `meta.mat`. Flat files named `0123_…` carry their class.

use super::files::{FileItem, FileSource, FileTruth, LabelRule};
use super::meta_mat::{Synset, read_synsets};
use super::walk::{PICTURES, entries, files_under, name_of, stem_of};
use super::{Kind, Listing, Offender, Preparation, Request, voc_palette};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) const KIND: Kind = Kind {
    name: "imagenet",
    about: "ImageNet validation, 1000 classes",
    layout: "[val/]nXXXXXXXX/*.JPEG, or [val/]*.JPEG with the devkit's data/ILSVRC2012_validation_ground_truth.txt and data/meta.mat",
    preparation: Preparation::ShortCrop { short: 256, crop: 224 },
    far: Some(|name, _| is_list(name)),
    list,
};

const CLASSES: usize = 1000;
const GROUND_TRUTH: &str = "ILSVRC2012_validation_ground_truth.txt";
/// Files whose n-th line begins with the n-th synset.
const SYNSET_LISTS: [&str; 4] =
    ["LOC_synset_mapping.txt", "synset_words.txt", "synsets.txt", "imagenet_synsets.txt"];
/// Where the devkit may have been unpacked, seen from the images or from the folder above them.
const DEVKIT: [&str; 5] = ["", "data", "devkit/data", "ILSVRC2012_devkit_t12/data", "ILSVRC/devkit/data"];

fn list(root: &Path, request: &Request) -> Result<Listing> {
    let split = request.split.as_deref().unwrap_or("val");
    let inner = [split, "ILSVRC2012_img_val"].iter().map(|name| root.join(name)).find(|path| path.is_dir());
    let pictures = inner.unwrap_or_else(|| root.to_path_buf());
    let folders: Vec<PathBuf> =
        entries(&pictures)?.into_iter().filter(|path| path.is_dir() && is_synset(&name_of(path))).collect();
    let (items, classes, offenders) =
        if folders.is_empty() { flat(&pictures)? } else { by_synset(&pictures, &folders)? };
    let source = Box::new(FileSource { items, rule: LabelRule::plain(classes.len()) });
    Ok(Listing { source, classes, palette: voc_palette(1), offenders })
}

type Found = (Vec<FileItem>, Vec<String>, Vec<Offender>);

fn by_synset(pictures: &Path, folders: &[PathBuf]) -> Result<Found> {
    let order = if folders.len() == CLASSES {
        folders.iter().map(|path| name_of(path)).collect()
    } else {
        synset_order(pictures)?.ok_or_else(|| {
            let fault =
                format!("has {} synset folders, so their class numbers cannot be told", folders.len());
            offence(pictures, fault, "keep all 1000, or put LOC_synset_mapping.txt beside them")
        })?
    };
    let place: BTreeMap<&str, usize> =
        order.iter().enumerate().map(|(class, name)| (name.as_str(), class)).collect();
    let (mut items, mut offenders) = (Vec::new(), Vec::new());
    for folder in folders {
        let Some(&class) = place.get(name_of(folder).as_str()) else {
            offenders.push(Offender::new(
                folder,
                "is no synset of the list",
                "remove it or correct the list",
            ));
            continue;
        };
        for picture in files_under(folder, PICTURES)? {
            let id = format!("{}/{}", name_of(folder), stem_of(&picture));
            items.push(FileItem { id, picture, truth: FileTruth::Class(class) });
        }
    }
    Ok((items, order, offenders))
}

fn flat(pictures: &Path) -> Result<Found> {
    let files = files_under(pictures, PICTURES)?;
    let Some(truth_file) = near(pictures, GROUND_TRUTH) else {
        return by_prefix(pictures, files);
    };
    let meta = truth_file.with_file_name("meta.mat");
    let synsets = read_synsets(&meta)?;
    let classes = sorted_leaves(&synsets);
    let class_of: BTreeMap<u32, usize> =
        synsets.iter().filter_map(|s| Some((s.id, classes.binary_search(&s.wnid).ok()?))).collect();
    let text = std::fs::read_to_string(&truth_file).map_err(|e| Error::io(&truth_file, e))?;
    let numbers: Vec<&str> = text.split_whitespace().collect();
    let (mut items, mut offenders) = (Vec::new(), Vec::new());
    for picture in files {
        let id = stem_of(&picture);
        let line = id.rsplit('_').next().and_then(|n| n.parse::<usize>().ok()).filter(|&n| n > 0);
        let number = line.and_then(|line| numbers.get(line - 1));
        match number.and_then(|n| n.parse().ok()).and_then(|n: u32| class_of.get(&n)) {
            Some(&class) => items.push(FileItem { id, picture, truth: FileTruth::Class(class) }),
            None => {
                let fault = match number {
                    Some(n) => format!("its ground truth is `{n}`, which is no synset of {}", meta.display()),
                    None => format!("has no line in {}", truth_file.display()),
                };
                offenders.push(Offender::new(picture, fault, "use the devkit of the same year and whole"));
            }
        }
    }
    Ok((items, classes, offenders))
}

fn by_prefix(pictures: &Path, files: Vec<PathBuf>) -> Result<Found> {
    let class = |path: &Path| stem_of(path).split('_').next()?.parse::<usize>().ok().filter(|&c| c < CLASSES);
    if files.is_empty() || !files.iter().any(|path| class(path).is_some()) {
        let fault = format!("has neither synset folders nor a {GROUND_TRUTH} near it");
        return Err(offence(pictures, fault, &format!("the layout is {}", KIND.layout)));
    }
    let (mut items, mut offenders) = (Vec::new(), Vec::new());
    for picture in files {
        match class(&picture) {
            Some(class) => {
                items.push(FileItem { id: stem_of(&picture), picture, truth: FileTruth::Class(class) })
            }
            None => {
                offenders.push(Offender::new(picture, "its name does not begin with its class", "rename it"))
            }
        }
    }
    Ok((items, (0..CLASSES).map(|class| class.to_string()).collect(), offenders))
}

/// The synsets in the usual order, from a list or from the devkit; `None` if neither lies near.
fn synset_order(pictures: &Path) -> Result<Option<Vec<String>>> {
    if let Some(path) = SYNSET_LISTS.iter().find_map(|name| near(pictures, name)) {
        let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, e))?;
        let first = |line: &str| {
            line.split([' ', '\t', ',']).next().filter(|word| is_synset(word)).map(str::to_string)
        };
        let order: Vec<String> = text.lines().filter_map(first).collect();
        return Ok((!order.is_empty()).then_some(order));
    }
    near(pictures, "meta.mat").map(|meta| Ok(sorted_leaves(&read_synsets(&meta)?))).transpose()
}

fn sorted_leaves(synsets: &[Synset]) -> Vec<String> {
    let mut leaves: Vec<String> = synsets.iter().filter(|s| s.leaf).map(|s| s.wnid.clone()).collect();
    leaves.sort();
    leaves
}

/// A file beside the images, above them, or in a devkit at either place.
fn near(pictures: &Path, name: &str) -> Option<PathBuf> {
    let above = pictures.parent().map(Path::to_path_buf);
    std::iter::once(pictures.to_path_buf())
        .chain(above)
        .flat_map(|base| DEVKIT.map(|inner| base.join(inner).join(name)))
        .find(|path| path.is_file())
}

/// Whether an object far away is one of the lists that classes are told from.
fn is_list(name: &str) -> bool {
    let own = name.rsplit('/').next().unwrap_or(name);
    [GROUND_TRUTH, "meta.mat"].iter().chain(&SYNSET_LISTS).any(|list| own == *list)
}

fn is_synset(name: &str) -> bool {
    name.len() == 9 && name.starts_with('n') && name[1..].bytes().all(|b| b.is_ascii_digit())
}

fn offence(path: &Path, fault: String, remedy: &str) -> Error {
    Error::Offenders(vec![Offender::new(path, fault, remedy)])
}
