//! What the demo runs on: scenes, crops, and scenes as cars and people; each with its truth and its figure.

use anyhow::{Context, Result};
use evenkeel::Image;
use evenkeel::model::Letterbox;
use evenkeel::shipped::{self, Shipped};
use evenkeel::task::{Prediction, Truth};
use evenkeel_data::coco_instances::{countable, detected, framed};
use evenkeel_data::dataset::scenes::{SCENE_CLASSES, Split, object, render};
use evenkeel_data::metric::instance::{InstanceScore, TrueInstance};
use evenkeel_data::metric::{Bootstrap, IGNORE, SegmentationScore};

/// What is to be found in a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DemoTask {
    /// A class for every pixel.
    Scenes,
    /// What the picture shows.
    Crops,
    /// Each car and person.
    Instances,
}

/// A picture of the trial and its truth.
pub(super) struct Sample {
    pub(super) image: Image,
    pub(super) truth: Truth,
    /// All true objects, with those too small to count.
    objects: Vec<TrueInstance>,
}

impl DemoTask {
    pub(super) fn network(self) -> evenkeel::Result<&'static Shipped> {
        shipped::named(match self {
            Self::Scenes => "segmenter",
            Self::Crops => "classifier",
            Self::Instances => "instances",
        })
    }

    /// What is measured.
    pub(super) fn figure(self) -> &'static str {
        match self {
            Self::Scenes => "mIoU",
            Self::Crops => "accuracy",
            Self::Instances => "mask AP50",
        }
    }

    /// What the pictures are.
    pub(super) fn pictures(self) -> &'static str {
        match self {
            Self::Scenes => "street scenes",
            Self::Crops => "object crops",
            Self::Instances => "cars and people in street scenes",
        }
    }

    /// The picture of a number that no network was trained on; `ids` are the data set's numbers of the network's classes.
    pub(super) fn subject(self, number: u64, ids: &[i64]) -> Result<Sample> {
        if self == Self::Crops {
            let (class, image) = object(Split::Test, number, 64, 64);
            return Ok(Sample { image, truth: Truth::of_class(class), objects: Vec::new() });
        }
        let scene = render(Split::Test.seed(number), 128, 256);
        if self == Self::Scenes {
            return Ok(Sample {
                image: scene.image,
                truth: Truth::of_labels(scene.labels),
                objects: Vec::new(),
            });
        }
        let objects = scene.objects(number);
        let size = scene.image.size();
        let counted = framed(&objects, ids, &Letterbox::stretched(size, size))?;
        Ok(Sample { image: scene.image, truth: Truth::of_instances(counted), objects: countable(objects) })
    }

    pub(super) fn tally(self) -> Tally {
        match self {
            Self::Scenes => {
                Tally::Scenes(SegmentationScore::new(SCENE_CLASSES.len(), IGNORE, Bootstrap::NONE))
            }
            Self::Crops => Tally::Crops { right: 0, count: 0 },
            Self::Instances => Tally::Instances(InstanceScore::new()),
        }
    }
}

/// Running counts of one figure.
pub(super) enum Tally {
    Scenes(SegmentationScore),
    Crops { right: usize, count: usize },
    Instances(InstanceScore),
}

impl Tally {
    /// Takes in what was said of the picture of number `key`; `ids` are the data set's numbers of the classes.
    pub(super) fn add(&mut self, key: u64, said: &Prediction, subject: &Sample, ids: &[i64]) -> Result<()> {
        let truth = &subject.truth;
        match self {
            Self::Scenes(score) => {
                let maps = said.label_map().zip(truth.label_map());
                let (said, is) = maps.context("a segmenter answers with a label map")?;
                score.push(key, is.labels(), said.labels())?;
            }
            Self::Crops { right, count } => {
                *right += usize::from(said.class() == truth.class());
                *count += 1;
            }
            Self::Instances(score) => {
                let said = said.instances().context("an instance segmenter answers with objects")?;
                score.push(key as i64, &subject.objects, &detected(said, ids)?)?;
            }
        }
        Ok(())
    }

    /// The figure, in [0, 1].
    pub(super) fn figure(&self) -> f64 {
        match self {
            Self::Scenes(score) => score.figures().mean_iou().unwrap_or(0.0),
            Self::Crops { right, count } => *right as f64 / (*count).max(1) as f64,
            Self::Instances(score) => score.figures().0[1].unwrap_or(0.0),
        }
    }
}
