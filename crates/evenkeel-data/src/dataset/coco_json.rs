//! The JSON files of COCO: instance annotations and result lists.
//!
//! Segmentations stay in the compact form the file has (polygons, run lengths, run-length text) until somebody asks for
//! the mask, so a whole validation set fits in tens of megabytes. Numbers are read to the last bit.

use super::Offender;
use crate::mask::{BoxXywh, Rle};
use crate::{Error, Result};
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::path::Path;

/// An instances file.
#[derive(Clone, Debug, Deserialize)]
pub struct GroundTruth {
    /// The images.
    pub images: Vec<ImageEntry>,
    /// The objects in them.
    #[serde(default)]
    pub annotations: Vec<Annotation>,
    /// The categories scored.
    pub categories: Vec<Category>,
}

/// One image of an instances file.
#[derive(Clone, Debug, Deserialize)]
pub struct ImageEntry {
    /// The number annotations refer to.
    pub id: i64,
    /// The file's name.
    #[serde(default)]
    pub file_name: String,
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
}

/// A category.
#[derive(Clone, Debug, Deserialize)]
pub struct Category {
    /// The number annotations refer to.
    pub id: i64,
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// One annotated object.
#[derive(Clone, Debug, Deserialize)]
pub struct Annotation {
    /// The annotation's number.
    pub id: i64,
    /// The image it is in.
    pub image_id: i64,
    /// What it is.
    pub category_id: i64,
    /// Area in pixels as stated.
    #[serde(default)]
    pub area: Option<f64>,
    /// Its box.
    #[serde(default, deserialize_with = "box_or_none")]
    pub bbox: Option<BoxXywh>,
    /// Whether it is a region of many objects.
    #[serde(default, rename = "iscrowd", deserialize_with = "flag")]
    pub crowd: bool,
    /// Its mask.
    #[serde(default)]
    pub segmentation: Segmentation,
}

/// One detection of a results file.
#[derive(Clone, Debug, Deserialize)]
pub struct Detection {
    /// The image it is in.
    pub image_id: i64,
    /// What it is said to be.
    pub category_id: i64,
    /// Confidence.
    pub score: f64,
    /// Its box.
    #[serde(default, deserialize_with = "box_or_none")]
    pub bbox: Option<BoxXywh>,
    /// Its mask.
    #[serde(default)]
    pub segmentation: Segmentation,
}

/// A mask in one of the forms COCO files have.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Segmentation {
    /// No mask given.
    #[default]
    Absent,
    /// The union of polygons `x0 y0 x1 y1 …`.
    Polygons(Box<[Box<[f64]>]>),
    /// Run lengths as numbers, with height and width.
    Counts([u32; 2], Box<[u32]>),
    /// Run lengths as compressed text, with height and width.
    Text([u32; 2], Box<str>),
}

impl Segmentation {
    /// The mask on an image of this size; refuses broken masks and masks of another size.
    pub fn mask(&self, height: u32, width: u32) -> Result<Rle> {
        let fits = |&[h, w]: &[u32; 2]| {
            ((h, w) == (height, width))
                .then_some(())
                .ok_or_else(|| Error::Mask(format!("it is {h}x{w} but its image is {height}x{width}")))
        };
        match self {
            Self::Absent => Err(Error::Mask("there is none".into())),
            Self::Polygons(parts) => {
                let parts: Result<Vec<Rle>> =
                    parts.iter().map(|xy| Rle::from_polygon(height, width, xy)).collect();
                Rle::merge(&parts?, false)
            }
            Self::Counts(size, counts) => {
                fits(size).and_then(|()| Rle::from_counts(height, width, counts.to_vec()))
            }
            Self::Text(size, text) => fits(size).and_then(|()| Rle::from_text(height, width, text)),
        }
    }
}

/// Reads an instances file.
pub fn read_ground_truth(path: &Path) -> Result<GroundTruth> {
    read(path, "an instances file of COCO (images, annotations, categories)")
}

/// Reads a results file.
pub fn read_results(path: &Path) -> Result<Vec<Detection>> {
    read(path, "a COCO results file (a list of image_id, category_id, score, segmentation or bbox)")
}

fn read<T: DeserializeOwned>(path: &Path, what: &str) -> Result<T> {
    let offender = |fault: String, remedy: &str| Error::Offenders(vec![Offender::new(path, fault, remedy)]);
    let bytes = std::fs::read(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            offender("there is no such file".into(), "give the path of the JSON file")
        }
        _ => Error::io(path, e),
    })?;
    serde_json::from_slice(&bytes).map_err(|e| {
        if e.is_eof() {
            let fault =
                format!("the JSON ends in the middle of a value (line {}, column {})", e.line(), e.column());
            offender(fault, "the file was cut off: copy or download it again")
        } else {
            offender(format!("not {what}: {e}"), "give the right file or repair that place")
        }
    })
}

fn box_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<BoxXywh>, D::Error> {
    let numbers = Option::<Vec<f64>>::deserialize(deserializer)?.unwrap_or_default();
    if numbers.is_empty() {
        return Ok(None);
    }
    let count = numbers.len();
    let xywh =
        numbers.try_into().map_err(|_| de::Error::custom(format!("a bbox of {count} numbers, not 4")))?;
    Ok(Some(xywh))
}

fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<bool, D::Error> {
    struct Flag;
    impl Visitor<'_> for Flag {
        type Value = bool;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("0 or 1")
        }
        fn visit_bool<E>(self, v: bool) -> std::result::Result<bool, E> {
            Ok(v)
        }
        fn visit_u64<E>(self, v: u64) -> std::result::Result<bool, E> {
            Ok(v != 0)
        }
        fn visit_i64<E>(self, v: i64) -> std::result::Result<bool, E> {
            Ok(v != 0)
        }
        fn visit_f64<E>(self, v: f64) -> std::result::Result<bool, E> {
            Ok(v != 0.0)
        }
    }
    deserializer.deserialize_any(Flag)
}

impl<'de> Deserialize<'de> for Segmentation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Segmentation;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of polygons or an object with size and counts")
            }
            fn visit_unit<E>(self) -> std::result::Result<Segmentation, E> {
                Ok(Segmentation::Absent)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Segmentation, A::Error> {
                let mut parts: Vec<Box<[f64]>> = Vec::new();
                while let Some(xy) = seq.next_element::<Vec<f64>>()? {
                    parts.push(xy.into());
                }
                Ok(if parts.is_empty() { Segmentation::Absent } else { Segmentation::Polygons(parts.into()) })
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Segmentation, A::Error> {
                let (mut size, mut counts) = (None, None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "size" => size = Some(map.next_value::<[u32; 2]>()?),
                        "counts" => counts = Some(map.next_value::<Counts>()?),
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                let size = size.ok_or_else(|| de::Error::missing_field("size"))?;
                Ok(match counts.ok_or_else(|| de::Error::missing_field("counts"))? {
                    Counts::Numbers(counts) => Segmentation::Counts(size, counts),
                    Counts::Text(text) => Segmentation::Text(size, text),
                })
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

enum Counts {
    Numbers(Box<[u32]>),
    Text(Box<str>),
}

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Counts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("run lengths as a list of numbers or as text")
            }
            fn visit_str<E>(self, text: &str) -> std::result::Result<Counts, E> {
                Ok(Counts::Text(text.into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Counts, A::Error> {
                let mut counts = Vec::new();
                while let Some(count) = seq.next_element::<u32>()? {
                    counts.push(count);
                }
                Ok(Counts::Numbers(counts.into()))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
