//! Records: what one image came to under one key, as the store keeps it and as tables show it.
//!
//! An [`Entry`] is one result in a log: a line of JSON, and behind it the attacked picture if there is one. [`crate::rows`] joins entries into the
//! rows of `records.parquet`, in an order that depends on the design only. Clocks stand apart: everything else is the same bytes in
//! every run.

mod frame;

pub use frame::{Cells, ENDING, Frame, FrameWriter, Value};

use evenkeel::image::IGNORED;
use evenkeel::task::{ClassInfo, Prediction, Truth};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::key::Key;
use crate::{Error, Result};
use evenkeel_data::coco_instances::detected;
use evenkeel_data::metric::instance::{InstanceScore, TrueInstance};
use evenkeel_data::metric::{
    Accuracy, Calibration, ClassOverlap, ClassTally, Confusion, Mean, TaskTally, ValueTally,
};

/// One result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What was done.
    pub key: Key,
    /// The image's name.
    pub id: String,
    /// A hash of the image's pixels and truth.
    pub image: Key,
    /// What came out.
    pub body: Body,
    /// Passes through the network.
    pub passes: Passes,
    /// What it took on the clock.
    pub clock: Clock,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    /// An image as it is shown to everybody: clean, corrupted or attacked; with the bare network's answer.
    Shown(Shown),
    /// A defended answer.
    Answered(Answered),
    /// A detector's score.
    Detected(Detected),
}

/// The image of a work and what the bare network says of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// The bare answer.
    pub answer: Evaluated,
    /// Largest change of a value, in 1/255.
    pub linf_255: f64,
    /// Length of the change.
    pub l2: f64,
    /// The height the attack reached, as it saw it.
    pub value: Option<f64>,
    /// How right the answer was, as the attack saw it, before rounding.
    pub seen_score: Option<f64>,
    /// Length of the gradient of the adaptive attack's second term at the attacked image.
    pub term_gradient: Option<f64>,
}

/// An answer held against the truth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// How right it is, from 0 to 1: right or wrong, the image's mean IoU, or its panoptic quality.
    pub score: f64,
    /// Cross-entropy at the truth, or the loss that instance segmentation has of its own.
    pub loss: f64,
    /// How near it is to the attack's target, if there is one.
    pub to_target: Option<f64>,
    /// What adds up over images.
    pub tally: Tally,
}

/// What adds up over images, so that a figure of the whole set can be had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tally {
    /// A class.
    Class {
        /// The true one.
        truth: usize,
        /// The one said.
        said: usize,
        /// The place of the true one among all by probability, 0 the most probable, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rank: Option<usize>,
        /// The probability of the one said, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confidence: Option<f32>,
    },
    /// Pixels per class.
    Pixels {
        /// Said and true.
        right: Vec<u64>,
        /// True.
        truth: Vec<u64>,
        /// Said.
        predicted: Vec<u64>,
        /// Pixels of each true class taken for each other one; nothing in results of earlier versions.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        confused: Vec<(u16, u16, u64)>,
    },
    /// Objects found and missed.
    Instances(InstanceScore),
    /// Values off by how much.
    Values(Box<ValueTally>),
    /// How right the answer is, for tasks that count nothing else.
    Score(f64),
}

impl Tally {
    /// What an answer adds, held against the truth, both about the image as it came; `objects` are those of the data set, with crowds. Answers of other forms add
    /// their score.
    ///
    /// # Errors
    /// If the values of answer and truth are on different grids or infinite, or a mask is not sound.
    pub fn of(
        answer: &Prediction,
        truth: &Truth,
        classes: &ClassInfo<'_>,
        objects: Option<&[TrueInstance]>,
        score: f64,
    ) -> Result<Self> {
        if let (Some(said), Some(truth)) = (answer.class(), truth.class()) {
            let probabilities = answer.probabilities().filter(|all| truth < all.len());
            let rank = probabilities.map(|all| {
                let before =
                    |(class, p): &(usize, &f32)| **p > all[truth] || (**p == all[truth] && *class < truth);
                all.iter().enumerate().filter(before).count()
            });
            let confidence = probabilities.and_then(|all| all.get(said).copied());
            return Ok(Self::Class { truth, said, rank, confidence });
        }
        if let (Some(said), Some(is)) = (answer.label_map(), truth.label_map()) {
            let overlap = ClassOverlap::of(said.labels(), is.labels(), classes.count);
            let [right, truth, predicted] = overlap.counts().map(<[u64]>::to_vec);
            let mut confused: BTreeMap<(u16, u16), u64> = BTreeMap::new();
            let wrong = |(said, is): &(&u16, &u16)| **is != IGNORED && said != is;
            for (said, is) in said.labels().iter().zip(is.labels()).filter(wrong) {
                *confused.entry((*is, *said)).or_default() += 1;
            }
            let confused = confused.into_iter().map(|((is, said), pixels)| (is, said, pixels)).collect();
            return Ok(Self::Pixels { right, truth, predicted, confused });
        }
        if let (Some(said), Some(is)) = (answer.values(), truth.values()) {
            let wide = |values: &[f32]| values.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
            let tally = ValueTally::of(&wide(said.values()), &wide(is.values()));
            let words = "the answer has another form than the truth, or is not finite";
            return Ok(Self::Values(Box::new(tally.ok_or_else(|| Error::Request(words.into()))?)));
        }
        if let (Some(truths), Some(found)) = (objects, answer.instances()) {
            let mut score = InstanceScore::new();
            score.push(0, truths, &detected(found, classes.ids)?)?;
            return Ok(Self::Instances(score));
        }
        Ok(Self::Score(score))
    }

    /// As the metrics of its task take it, over the given number of classes; `None` if it holds counts that no image has.
    pub fn for_metrics(&self, classes: usize) -> Option<TaskTally> {
        Some(match self {
            Self::Class { truth, said, rank, confidence } => {
                let accuracy = match rank {
                    Some(rank) => Accuracy::of_rank(*said, *truth, *rank),
                    None => Accuracy::of_class(*said, *truth),
                };
                let calibration = confidence.and_then(|p| Calibration::of(p.into(), said == truth));
                TaskTally::Classes(Box::new(ClassTally {
                    accuracy,
                    calibration: calibration.unwrap_or_default(),
                }))
            }
            Self::Pixels { right, truth, predicted, .. } => {
                let mut counted = ClassOverlap::empty(classes);
                let own = ClassOverlap::from_counts(right.clone(), truth.clone(), predicted.clone())?;
                counted.add_times(&own, 1);
                TaskTally::Pixels(counted)
            }
            Self::Instances(score) => TaskTally::Objects(score.clone()),
            Self::Values(values) => TaskTally::Values(values.clone()),
            Self::Score(score) => TaskTally::Scores(Box::new(Mean::of(*score)?)),
        })
    }

    /// Whether anything is known of the image: one without a labelled pixel is left out of all figures.
    pub fn is_labelled(&self) -> bool {
        match self {
            Self::Pixels { truth, .. } => truth.iter().any(|pixels| *pixels > 0),
            Self::Values(values) => values.cells() > 0,
            Self::Class { .. } | Self::Instances(_) | Self::Score(_) => true,
        }
    }

    /// Counts what was taken for what; false if that is not known.
    pub fn confuse(&self, matrix: &mut Confusion) -> bool {
        match self {
            Self::Class { truth, said, .. } => matrix.count(*truth, *said),
            Self::Pixels { right, truth, confused, .. } => {
                let all: u64 = truth.iter().sum();
                let known = right.iter().sum::<u64>()
                    + confused.iter().map(|(_, _, pixels)| pixels).sum::<u64>()
                    == all;
                if known {
                    confused
                        .iter()
                        .for_each(|(is, said, n)| matrix.count_times((*is).into(), (*said).into(), *n));
                    right.iter().enumerate().for_each(|(class, n)| matrix.count_times(class, class, *n));
                }
                known
            }
            Self::Instances(_) | Self::Values(_) | Self::Score(_) => false,
        }
    }
}

/// A defended answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The answer.
    pub answer: Evaluated,
    /// Largest change of a value by the defence, in 1/255.
    pub linf_255: f64,
    /// Length of that change.
    pub l2: f64,
    /// The defence's objective before it, per view.
    pub objective_before: Option<f64>,
    /// The same after it, with the same views.
    pub objective_after: Option<f64>,
}

/// What a detector said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detected {
    /// The score; larger is more anomalous.
    pub score: f64,
    /// For the error estimate: the mean squared deviation over views of groups of cells of equal number, in rising order.
    pub variances: Vec<f32>,
    /// For the error estimate: cells.
    pub cells: usize,
    /// For the error estimate: one minus the probability of the truth, mean over cells.
    pub true_error: Option<f64>,
}

/// Passes through the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Passes {
    /// Forward passes.
    pub forwards: u64,
    /// Pullbacks.
    pub backwards: u64,
    /// Pixels of the forward passes.
    pub forward_pixels: u64,
    /// Pixels of the pullbacks.
    pub backward_pixels: u64,
}

impl Passes {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            forwards: self.forwards + other.forwards,
            backwards: self.backwards + other.backwards,
            forward_pixels: self.forward_pixels + other.forward_pixels,
            backward_pixels: self.backward_pixels + other.backward_pixels,
        }
    }
}

/// What a result took on the clock. The same work takes another time in every run; comparisons leave this out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Seconds of the attack, defence or detector.
    pub seconds: f64,
    /// Seconds of the one forward pass that answers.
    #[serde(alias = "look_seconds")]
    pub answer_seconds: f64,
    /// The most memory the process had held by then, in bytes.
    pub peak_bytes: u64,
    /// When it was made, in milliseconds since 1970: of two results of one key and image the later counts.
    #[serde(default)]
    pub made_at_ms: u64,
}

impl Entry {
    /// The entry as a log keeps it, with its picture behind it.
    ///
    /// # Errors
    /// If a number is not finite: it has no form in JSON.
    pub fn payload(&self, picture: &[u8]) -> Result<Vec<u8>> {
        let fail = |words: String| Err(Error::Request(format!("image {}: {words}", self.id)));
        let mut bytes = match serde_json::to_vec(self) {
            Ok(bytes) => bytes,
            Err(e) => return fail(e.to_string()),
        };
        // such a number is written as null, which could not be read again
        if Self::parse(&bytes).is_err() {
            return fail(
                "a result is not a finite number; look at the network's answer for it, and at the settings"
                    .into(),
            );
        }
        bytes.push(b'\n');
        bytes.extend_from_slice(picture);
        Ok(bytes)
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// In words, for the file to be named by whoever knows it.
    pub fn parse(payload: &[u8]) -> std::result::Result<Self, String> {
        let text = payload.split(|b| *b == b'\n').next().unwrap_or_default();
        serde_json::from_slice(text).map_err(|e| {
            format!("holds a result that this version cannot read ({e}); run the study into another folder")
        })
    }

    /// The picture behind an entry; empty if there is none.
    pub fn picture(payload: &[u8]) -> &[u8] {
        match payload.iter().position(|b| *b == b'\n') {
            Some(end) => &payload[end + 1..],
            None => &[],
        }
    }
}
