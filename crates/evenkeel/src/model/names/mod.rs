//! Names of classes that many networks share, by the name of their data set.
//!
//! A contract can say `names = "imagenet"` instead of listing a thousand, and a named palette or COCO's numbers bring the names with them.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::image::Palette;

/// The classes of a data set.
#[derive(Debug)]
pub struct ClassSet {
    /// Its name in contracts and flags.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// One name a line, in class order.
    text: &'static str,
    /// The numbers the data set gives the classes, where they are not 0, 1, 2…
    ids: Option<fn() -> Vec<i64>>,
}

/// Every known set of classes. Adding one is a file and a line.
pub static CLASS_SETS: [ClassSet; 7] = [
    ClassSet { name: "cifar10", about: "the 10 of CIFAR-10", text: include_str!("cifar10.txt"), ids: None },
    ClassSet {
        name: "cityscapes",
        about: "the 19 training classes of Cityscapes",
        text: include_str!("cityscapes.txt"),
        ids: None,
    },
    ClassSet {
        name: "cityscapes:20",
        about: "the 19 training classes of Cityscapes, and background",
        text: concat!(include_str!("cityscapes.txt"), "background\n"),
        ids: None,
    },
    ClassSet {
        name: "coco",
        about: "the 80 object classes of COCO",
        text: include_str!("coco.txt"),
        ids: Some(coco_ids),
    },
    ClassSet {
        name: "coco:91",
        about: "the object classes of COCO under its own numbers 0 to 90",
        text: include_str!("coco91.txt"),
        ids: None,
    },
    ClassSet {
        name: "imagenet",
        about: "the 1000 of ImageNet",
        text: include_str!("imagenet.txt"),
        ids: None,
    },
    ClassSet {
        name: "voc",
        about: "background and the 20 of Pascal VOC",
        text: include_str!("voc.txt"),
        ids: None,
    },
];

/// COCO's 80 categories are numbered up to 90, with gaps.
pub fn coco_ids() -> Vec<i64> {
    const GAPS: [i64; 10] = [12, 26, 29, 30, 45, 66, 68, 69, 71, 83];
    (1..=90).filter(|id| !GAPS.contains(id)).collect()
}

impl ClassSet {
    /// The set of this name; `voc:21` is `voc`.
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = if name == "voc:21" { "voc" } else { name };
        CLASS_SETS.iter().find(|set| set.name == name)
    }

    /// The names in class order.
    pub fn names(&self) -> Vec<String> {
        self.text.lines().map(str::to_owned).collect()
    }

    /// How many classes there are.
    pub fn len(&self) -> usize {
        self.text.lines().count()
    }

    /// Whether there are none, which no set of the table is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers the data set gives the classes; empty where they are 0, 1, 2…
    pub fn ids(&self) -> Vec<i64> {
        self.ids.map(|ids| ids()).unwrap_or_default()
    }

    /// The usual colours: the data set's own, or VOC's without black.
    pub fn palette(&self) -> Result<Palette> {
        let cityscapes = Palette::of_cityscapes();
        match self.name {
            "cityscapes" => Ok(cityscapes),
            "cityscapes:20" => Palette::new([cityscapes.colours(), &[[0, 0, 0]]].concat()),
            "voc" => Ok(Palette::of_voc(21)),
            _ if self.len() > 255 => Err(Error::setting(
                format!("palette {}", self.name),
                "has more classes than a label map can tell apart; leave the palette out and say names",
            )),
            _ => Palette::new(Palette::of_voc(self.len() + 1).colours()[1..].to_vec()),
        }
    }
}

/// Names of classes in a contract: one by one, or a known set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NamesRule {
    /// By the name of a set of [`CLASS_SETS`].
    Known(String),
    /// One by one.
    Each(Vec<String>),
}

impl Default for NamesRule {
    fn default() -> Self {
        Self::Each(Vec::new())
    }
}

impl From<Vec<String>> for NamesRule {
    fn from(names: Vec<String>) -> Self {
        Self::Each(names)
    }
}

impl NamesRule {
    /// The names in class order; none if none are written down.
    ///
    /// # Errors
    /// Listing the sets there are.
    pub fn list(&self) -> Result<Vec<String>> {
        match self {
            Self::Each(names) => Ok(names.clone()),
            Self::Known(name) => ClassSet::find(name).map(ClassSet::names).ok_or_else(|| unknown(name)),
        }
    }
}

fn unknown(name: &str) -> Error {
    let known: Vec<_> = CLASS_SETS.iter().map(|set| set.name).collect();
    Error::setting(format!("classes.names {name}"), format!("is not one of {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_as_many_names_as_their_data_sets_have_classes() {
        let sizes: Vec<_> = CLASS_SETS.iter().map(|set| (set.name, set.len())).collect();
        let expected = [
            ("cifar10", 10),
            ("cityscapes", 19),
            ("cityscapes:20", 20),
            ("coco", 80),
            ("coco:91", 91),
            ("imagenet", 1000),
            ("voc", 21),
        ];
        assert_eq!(sizes, expected);
        for set in &CLASS_SETS {
            assert!(set.names().iter().all(|name| !name.is_empty() && name.trim() == name), "{}", set.name);
            assert!(set.ids().is_empty() || set.ids().len() == set.len());
            assert_eq!(
                set.palette().map_or(0, |p| p.colours().len()),
                if set.len() > 255 { 0 } else { set.len() }
            );
        }
        let (coco, numbered) = (&CLASS_SETS[3], CLASS_SETS[4].names());
        for (name, id) in coco.names().iter().zip(coco.ids()) {
            assert_eq!(*name, numbered[id as usize]);
        }
    }
}
