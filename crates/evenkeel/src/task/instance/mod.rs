//! Instance segmentation: each object with its class, confidence, box and mask.
//!
//! What a network's tensors mean is the business of an [`InstanceHead`], one of the table [`HEADS`]: it turns scores into
//! instances, and gives the loss an attacker raises, with its cotangent. The answer's score for an image is its panoptic
//! quality: Σ IoU of the pairs / (pairs + half the false and half the missed), pairs being of one class and overlapping by more
//! than half, confident predictions first.

mod mask;
mod mask_rcnn;
mod overlay;
mod suppress;
mod yolo;
mod yolo_loss;

#[cfg(test)]
mod tests;

pub use mask::Mask;
pub use mask_rcnn::MaskRcnn;
pub use overlay::overlaid;
pub use yolo::YoloSeg;

use std::sync::Arc;

use evenkeel_network::zoo::Checkpoint;
use serde::{Deserialize, Serialize};

use super::{Labels, Prediction, Readout, ScoreLoss, Task, Truth};
use crate::error::{Error, Result};
use crate::network::{Extents, Tensor, TensorNames};

/// Predictions at least this sure count as said; the others only serve precision-recall curves.
pub const CONFIDENT: f32 = 0.25;

/// One object, seen or true.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Its class.
    pub class: usize,
    /// How sure the network is; 1 for a truth.
    pub score: f32,
    /// Left, top, right, bottom in pixels.
    pub corners: [f32; 4],
    /// Its pixels.
    pub mask: Mask,
}

impl Instance {
    /// A true object; its box is the tight one around the mask.
    pub fn truth(class: usize, mask: Mask) -> Self {
        let ((top, left), (height, width)) = mask.window();
        let corners = [left, top, left + width, top + height].map(|side| side as f32);
        Self { class, score: 1.0, corners, mask }
    }
}

/// How instances are read off a head, as the contract says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceRule {
    /// Which head, of [`HEADS`].
    pub head: String,
    /// Predictions below this confidence are dropped.
    pub confidence: f32,
    /// Of two boxes of one class that overlap by more than this, the less confident is dropped.
    pub overlap: f32,
    /// The most instances kept in an image.
    pub most: usize,
}

/// What the tensors of an instance segmentation network mean.
pub trait InstanceHead: std::fmt::Debug + Send + Sync {
    /// The number of classes.
    ///
    /// # Errors
    /// If the tensors are not such a head's.
    fn classes(&self, scores: &Tensor) -> Result<usize>;

    /// The instances in an image of this (height, width), most confident first.
    ///
    /// # Errors
    /// If the tensors are not such a head's.
    fn instances(&self, scores: &Tensor, size: (usize, usize), rule: &InstanceRule) -> Result<Vec<Instance>>;

    /// The loss at these true objects, and its cotangent on the scores.
    ///
    /// # Errors
    /// If the tensors are not such a head's or a class is beyond them.
    fn loss(&self, scores: &Tensor, truth: &[Instance]) -> Result<(f64, Vec<f32>)>;
}

/// A head by name.
pub struct NamedHead {
    /// Its name in contracts.
    pub name: &'static str,
    /// The contract's output, where the head leaves no choice.
    pub output: Option<fn() -> TensorNames>,
    /// The same of the feature maps.
    pub feature: Option<fn() -> TensorNames>,
    /// The head of a network, whose weights (with the name of their architecture) it may need.
    make: fn(Option<&Checkpoint>) -> Result<Arc<dyn InstanceHead>>,
}

/// Every head. Adding one is a file and a line.
pub static HEADS: [NamedHead; 2] = [
    NamedHead { name: "yolo-seg", output: None, feature: None, make: |_| Ok(Arc::new(YoloSeg)) },
    NamedHead {
        name: "mask-rcnn",
        output: Some(mask_rcnn::output),
        feature: Some(mask_rcnn::feature),
        make: mask_rcnn::of_weights,
    },
];

impl NamedHead {
    /// The head of this name.
    ///
    /// # Errors
    /// Listing the names there are.
    pub fn find(name: &str) -> Result<&'static NamedHead> {
        let names = || HEADS.iter().map(|head| head.name).collect::<Vec<_>>().join(", ");
        HEADS.iter().find(|head| head.name == name).ok_or_else(|| {
            Error::setting(format!("instance.head {name}"), format!("is not one of {}", names()))
        })
    }
}

impl InstanceRule {
    /// Refuses what makes no sense by itself.
    ///
    /// # Errors
    /// If there is no such head or a number is out of its range.
    pub fn check(&self) -> Result<()> {
        NamedHead::find(&self.head)?;
        let share = |value: f32| (0.0..=1.0).contains(&value);
        if !share(self.confidence) || !share(self.overlap) || self.most == 0 {
            return Err(Error::setting(
                "instance",
                "confidence and overlap must be from 0 to 1, and most at least 1",
            ));
        }
        Ok(())
    }
}

/// Each object of an image.
#[derive(Clone, Debug)]
pub struct Instances {
    head: Arc<dyn InstanceHead>,
    rule: InstanceRule,
}

impl Instances {
    /// The task under a rule, for a network of these weights, if they are known.
    ///
    /// # Errors
    /// If the rule makes no sense or its head is not the network's.
    pub fn new(rule: InstanceRule, weights: Option<&Checkpoint>) -> Result<Self> {
        rule.check()?;
        Ok(Self { head: (NamedHead::find(&rule.head)?.make)(weights)?, rule })
    }
}

fn wrong_truth(truth: &Truth) -> Error {
    let got = match truth {
        Truth::Class(_) => "one class",
        Truth::Map(_) => "a label map",
        Truth::Instances(_) => "instances",
    };
    Error::mismatch("truth of an instance segmenter", "instances", got)
}

impl Task for Instances {
    fn name(&self) -> &'static str {
        "instance"
    }

    fn readout(&self) -> Readout {
        Readout::Objects
    }

    fn classes(&self, scores: &Tensor) -> Result<usize> {
        self.head.classes(scores)
    }

    fn predict(&self, scores: &Tensor, size: (usize, usize)) -> Result<Prediction> {
        scores.check_finite("scores")?;
        Ok(Prediction::Instances(self.head.instances(scores, size, &self.rule)?))
    }

    fn labels(&self, _: &Truth, _: Extents, _: (usize, usize)) -> Result<Labels> {
        Err(Error::setting(
            "loss",
            "instance segmentation has a loss of its own and no label per cell; attacks that need one cannot be made on it",
        ))
    }

    fn own_loss(&self, truth: &Truth) -> Option<Result<Arc<dyn ScoreLoss>>> {
        Some(match truth {
            Truth::Instances(truth) => {
                Ok(Arc::new(InstanceLoss { head: self.head.clone(), truth: truth.clone() }))
            }
            other => Err(wrong_truth(other)),
        })
    }

    fn score(&self, prediction: &Prediction, truth: &Truth) -> f64 {
        match (prediction, truth) {
            (Prediction::Instances(said), Truth::Instances(is)) => panoptic_quality(said, is),
            _ => 0.0,
        }
    }
}

/// A head's loss at given objects.
#[derive(Debug)]
struct InstanceLoss {
    head: Arc<dyn InstanceHead>,
    truth: Vec<Instance>,
}

impl ScoreLoss for InstanceLoss {
    fn evaluate(&self, scores: &Tensor) -> Result<(f64, Vec<f32>)> {
        self.head.loss(scores, &self.truth)
    }
}

/// Those that count as said.
pub fn confident(instances: &[Instance]) -> Vec<&Instance> {
    instances.iter().filter(|instance| instance.score >= CONFIDENT).collect()
}

/// How right the confident predictions are, from 0 to 1; 1 where there is nothing to see and nothing was seen.
pub fn panoptic_quality(said: &[Instance], is: &[Instance]) -> f64 {
    let said = confident(said);
    let mut free: Vec<&Instance> = is.iter().collect();
    let (mut pairs, mut overlap) = (0usize, 0.0);
    for one in &said {
        let same = free.iter().enumerate().filter(|(_, truth)| truth.class == one.class);
        let best = same
            .map(|(place, truth)| (place, one.mask.iou(&truth.mask)))
            .fold((0, 0.5), |best, next| if next.1 > best.1 { next } else { best });
        if best.1 > 0.5 {
            free.swap_remove(best.0);
            pairs += 1;
            overlap += best.1;
        }
    }
    let both = said.len() + is.len();
    if both == 0 { 1.0 } else { 2.0 * overlap / (both.max(2 * pairs)) as f64 }
}

/// The objects without those of one class: what an attacker wants who makes a class vanish.
pub fn without(truth: &[Instance], class: usize) -> Vec<Instance> {
    truth.iter().filter(|instance| instance.class != class).cloned().collect()
}

/// The objects with one class taken for another.
pub fn recast(truth: &[Instance], from: usize, to: usize) -> Vec<Instance> {
    let rename = |class: usize| if class == from { to } else { class };
    truth.iter().map(|instance| Instance { class: rename(instance.class), ..instance.clone() }).collect()
}
