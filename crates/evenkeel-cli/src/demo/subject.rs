//! What the demo looks at: scenes and crops, each with its truth and its figure.

use crate::shipped::{self, Shipped};
use anyhow::{Result, bail};
use evenkeel::Image;
use evenkeel::task::{Prediction, Truth};
use evenkeel_study::dataset::scenes::{OBJECT_CLASSES, SCENE_CLASSES, Split, object, render};
use evenkeel_study::metric::{Bootstrap, IGNORE, SegmentationScore};

/// What is to be found in a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quest {
    /// A class for every pixel.
    Scenes,
    /// What the picture shows.
    Crops,
}

/// A picture of the trial and its truth.
pub(super) struct Subject {
    pub(super) image: Image,
    pub(super) truth: Truth,
}

impl Quest {
    pub(super) fn network(self) -> &'static Shipped {
        match self {
            Self::Scenes => &shipped::SEGMENTER,
            Self::Crops => &shipped::CLASSIFIER,
        }
    }

    /// What is measured.
    pub(super) fn figure(self) -> &'static str {
        match self {
            Self::Scenes => "mIoU",
            Self::Crops => "accuracy",
        }
    }

    /// What the pictures are.
    pub(super) fn pictures(self) -> &'static str {
        match self {
            Self::Scenes => "street scenes",
            Self::Crops => "object crops",
        }
    }

    /// The picture of a number that no network was trained on.
    pub(super) fn subject(self, number: u64) -> Subject {
        match self {
            Self::Scenes => {
                let scene = render(Split::Test.seed(number), 128, 256);
                Subject { image: scene.image, truth: Truth::Map(scene.labels) }
            }
            Self::Crops => {
                let (class, image) = object(Split::Test, number, 64, 64);
                Subject { image, truth: Truth::Class(class) }
            }
        }
    }

    pub(super) fn tally(self) -> Tally {
        match self {
            Self::Scenes => {
                Tally::Scenes(SegmentationScore::new(SCENE_CLASSES.len(), IGNORE, Bootstrap::NONE))
            }
            Self::Crops => Tally::Crops { right: 0, count: 0 },
        }
    }

    /// The name of a class of crops.
    pub(super) fn word(class: usize) -> &'static str {
        OBJECT_CLASSES[class]
    }
}

/// Running counts of one figure.
pub(super) enum Tally {
    Scenes(SegmentationScore),
    Crops { right: usize, count: usize },
}

impl Tally {
    /// Takes in what was said of the picture of number `key`.
    pub(super) fn add(&mut self, key: u64, said: &Prediction, truth: &Truth) -> Result<()> {
        match (self, said, truth) {
            (Self::Scenes(score), Prediction::Map(said), Truth::Map(is)) => {
                score.push(key, is.labels(), said.labels())?;
            }
            (Self::Crops { right, count }, Prediction::Class(said), Truth::Class(is)) => {
                *right += usize::from(said == is);
                *count += 1;
            }
            _ => bail!("an answer of another task"),
        }
        Ok(())
    }

    /// The figure, in [0, 1].
    pub(super) fn figure(&self) -> f64 {
        match self {
            Self::Scenes(score) => score.figures().mean_iou().unwrap_or(0.0),
            Self::Crops { right, count } => *right as f64 / (*count).max(1) as f64,
        }
    }
}
