//! Street scenes drawn from a seed: pictures with exact truths, without a file.
//!
//! Three kinds share one renderer: `scenes` (a class for every pixel), `scenes-instances` (cars and people as objects) and
//! `scenes-objects` (one thing to be named). Instead of a folder they are given what to draw, `500@256x128` say. Splits are disjoint
//! ranges of seeds. Invariant: a split, a number and a size always give the same bytes, on every machine.

mod building;
mod canvas;
mod class;
mod ground;
mod light;
mod object;
mod person;
mod scene;
mod street;
#[cfg(test)]
mod tests;
mod texture;
mod thing;
mod vehicle;

pub use class::{OBJECT_CLASSES, SCENE_CLASSES, SCENE_COLOURS};
pub use object::render_object;
pub use scene::{Scene, render};

use super::{Kind, Listing, Object, Offender, Preparation, Request, Sample, Source, Truth, names};
use crate::mask::Rle;
use crate::{Error, Result};
use evenkeel::{Palette, Random};
use std::path::Path;

const LAYOUT: &str =
    "no files: instead of a path, what to draw, COUNT@WIDTHxHEIGHT (SPLIT: test, val or train)";

pub(super) const SEMANTIC: Kind = Kind {
    name: "scenes",
    about: "street scenes drawn from a seed, 11 classes",
    layout: LAYOUT,
    preparation: Preparation::Native,
    far: None,
    list: |path, request| list(path, request, What::Labels),
};

pub(super) const INSTANCES: Kind = Kind {
    name: "scenes-instances",
    about: "the same scenes with their cars and people as objects",
    far: None,
    list: |path, request| list(path, request, What::Instances),
    ..SEMANTIC
};

pub(super) const OBJECTS: Kind = Kind {
    name: "scenes-objects",
    about: "single things drawn from a seed, 10 classes",
    far: None,
    list: |path, request| list(path, request, What::Object),
    ..SEMANTIC
};

/// Instances with fewer visible pixels are marked as crowds, which scores leave out.
pub const SMALLEST_INSTANCE: usize = 24;
/// The classes of instances: their names and their numbers among the classes of a scene.
pub const INSTANCE_CLASSES: [(&str, u8); 2] = [("person", class::PERSON), ("car", class::CAR)];

/// The place among [`INSTANCE_CLASSES`] of a class of scenes.
///
/// # Panics
/// If it has no instances.
pub fn instance_class(class: u8) -> usize {
    INSTANCE_CLASSES.iter().position(|(_, c)| *c == class).expect("a class of instances")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Labels,
    Instances,
    Object,
}

/// A part of the endless supply of scenes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// For fitting weights.
    Train,
    /// For choosing settings.
    Val,
    /// For scores.
    Test,
}

impl Split {
    /// The seed of the scene of this number.
    pub fn seed(self, number: u64) -> u64 {
        let root = Random::new(match self {
            Self::Train => 0x7261_696e,
            Self::Val => 0x7661_6c69,
            Self::Test => 0x7465_7374,
        });
        root.fork(number).seed()
    }

    fn named(name: &str) -> Result<Self> {
        match name {
            "train" => Ok(Self::Train),
            "val" => Ok(Self::Val),
            "test" => Ok(Self::Test),
            _ => Err(Error::Request(format!("scenes have no split `{name}`; there are train, val and test"))),
        }
    }
}

/// The class and picture of the object crop of a number: classes take turns.
pub fn object(split: Split, number: u64, height: usize, width: usize) -> (usize, evenkeel::Image) {
    let class = (number % OBJECT_CLASSES.len() as u64) as usize;
    // Another stream than the scene of the same number.
    let seed = Random::new(split.seed(number)).fork(1).seed();
    (class, render_object(seed, class, height, width))
}

struct Drawn {
    what: What,
    split: Split,
    count: usize,
    height: usize,
    width: usize,
}

fn list(path: &Path, request: &Request, what: What) -> Result<Listing> {
    let text = path.to_string_lossy();
    let (count, height, width) = recipe(&text).ok_or_else(|| {
        let fault = "does not say what to draw";
        Error::Offenders(vec![Offender::new(path, fault, "write COUNT@WIDTHxHEIGHT, 500@256x128 say")])
    })?;
    let split = Split::named(request.split.as_deref().unwrap_or("test"))?;
    let classes = match what {
        What::Labels => names(&SCENE_CLASSES),
        What::Instances => INSTANCE_CLASSES.iter().map(|(name, _)| (*name).to_string()).collect(),
        What::Object => names(&OBJECT_CLASSES),
    };
    let palette = Palette::new(SCENE_COLOURS.to_vec()).map_err(|e| Error::Request(e.to_string()))?;
    let source = Box::new(Drawn { what, split, count, height, width });
    Ok(Listing { source, classes, palette, offenders: Vec::new() })
}

/// Count, height and width out of `500@256x128`.
fn recipe(text: &str) -> Option<(usize, usize, usize)> {
    let (count, size) = text.split_once('@')?;
    let (width, height) = size.split_once('x')?;
    let (count, width, height) = (count.parse().ok()?, width.parse().ok()?, height.parse().ok()?);
    let sound =
        (1..=1 << 31).contains(&count) && [width, height].iter().all(|side| (8..=1 << 13).contains(side));
    sound.then_some((count, height, width))
}

impl Source for Drawn {
    fn len(&self) -> usize {
        self.count
    }

    fn id(&self, index: usize) -> String {
        format!("{index:06}")
    }

    fn load(&self, index: usize) -> std::result::Result<Sample, Offender> {
        let number = index as u64;
        let (image, truth) = match self.what {
            What::Object => {
                let (class, image) = object(self.split, number, self.height, self.width);
                (image, Truth::Class(class))
            }
            What::Labels => {
                let scene = render(self.split.seed(number), self.height, self.width);
                (scene.image, Truth::Labels(scene.labels))
            }
            What::Instances => {
                let scene = render(self.split.seed(number), self.height, self.width);
                let objects = scene.objects(number);
                (scene.image, Truth::Objects(objects))
            }
        };
        Ok(Sample { id: self.id(index), image, truth })
    }
}

impl Scene {
    /// The visible instances as objects, numbered from `1000 · number`.
    pub fn objects(&self, number: u64) -> Vec<Object> {
        let (height, width) = self.image.size();
        let mut objects = Vec::new();
        for (k, class) in self.instance_classes.iter().enumerate() {
            let mask: Vec<u8> = self.instances.iter().map(|&i| u8::from(usize::from(i) == k + 1)).collect();
            let area = mask.iter().filter(|&&inside| inside == 1).count();
            let place = INSTANCE_CLASSES.iter().position(|(_, c)| c == class);
            let (Some(place), true) = (place, area > 0) else { continue };
            let Ok(mask) = Rle::encode(height as u32, width as u32, &mask) else { continue };
            objects.push(Object {
                id: (number * 1000) as i64 + k as i64 + 1,
                category: place as i64 + 1,
                class: place,
                crowd: area < SMALLEST_INSTANCE,
                area: area as f64,
                mask,
            });
        }
        objects
    }
}
