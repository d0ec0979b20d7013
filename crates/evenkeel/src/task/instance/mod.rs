//! Instance segmentation: each object with its class, confidence, box and mask.
//!
//! What a network's tensors mean is the business of an [`InstanceHead`], one of the table [`HEADS`]: it turns scores into
//! instances, and gives the loss an attacker raises, with its cotangent. The answer's score for an image is its panoptic
//! quality: Σ IoU of the pairs / (pairs + half the false and half the missed), pairs being of one class and overlapping by more
//! than half, confident predictions first.

mod answer;
mod detections;
mod mask;
mod mask_rcnn;
mod overlay;
mod suppress;
mod yolo;
mod yolo_loss;

#[cfg(test)]
mod tests;

pub use detections::Detections;
pub use mask::Mask;
pub use mask_rcnn::MaskRcnn;
pub use overlay::overlaid;
pub use yolo::YoloSeg;

use std::sync::Arc;

use evenkeel_network::zoo::Checkpoint;
use serde::{Deserialize, Serialize};

use super::kind::settings;
use super::{
    ClassInfo, Prediction, Readout, ScoreLoss, Signs, Task, TaskKey, TaskKind, Truth, TruthSource, UsualSet,
    permutation,
};
use crate::error::{Error, Result};
use crate::network::{Tensor, TensorNames};

pub(crate) const KIND: TaskKind = TaskKind {
    name: "instance",
    about: "each object with its class, confidence, box and mask",
    figure: "mask-ap",
    estimates_error: false,
    keys: &[
        key("head", "the head: yolo-seg, or mask-rcnn, which knows its tensors", None),
        key("confidence", "instances less sure than this are dropped", Some("0.01")),
        key(
            "overlap",
            "of two boxes of one class that overlap by more than this, one is dropped",
            Some("0.7"),
        ),
        key("most", "the most instances kept in an image", Some("100")),
    ],
    tensors: |own| {
        let Some(name) = own.get("head").and_then(toml::Value::as_str) else { return Ok((None, None)) };
        let head = NamedHead::find(name)?;
        Ok((head.output.map(|output| output()), head.feature.map(|feature| feature())))
    },
    signs: Signs {
        sets: &[
            UsualSet::new(80, "coco", "80 classes, as in COCO"),
            UsualSet::new(91, "coco:91", "91 classes, as torchvision numbers COCO's"),
        ],
        asks: |own| {
            (!own.contains_key("head")).then_some(("head", "which head it has: yolo-seg or mask-rcnn"))
        },
        ..Signs::NONE
    },
    check: |own| rule_of(own)?.check(),
    make: |own, weights| Ok(Box::new(Instances::new(rule_of(own)?, weights)?)),
};

const fn key(name: &'static str, help: &'static str, default: Option<&'static str>) -> TaskKey {
    TaskKey { name, help, default }
}

fn rule_of(own: Option<&toml::Table>) -> Result<InstanceRule> {
    if own.is_none() {
        return Err(Error::setting("task instance", "needs a table [instance]"));
    }
    settings("instance", own)
}

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
    /// How many classes there are, for a head whose tensors do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
}

/// What the tensors of an instance segmentation network mean.
pub trait InstanceHead: std::fmt::Debug + Send + Sync {
    /// The number of classes.
    ///
    /// # Errors
    /// If the tensors are not such a head's.
    fn classes(&self, scores: &Tensor, rule: &InstanceRule) -> Result<usize>;

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
pub static HEADS: [NamedHead; 3] = [
    NamedHead { name: "yolo-seg", output: None, feature: None, make: |_| Ok(Arc::new(YoloSeg)) },
    NamedHead { name: "detections", output: None, feature: None, make: |_| Ok(Arc::new(Detections)) },
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

fn objects_of(truth: &Truth) -> Result<&[Instance]> {
    truth.instances().ok_or_else(|| truth.mismatch("truth of an instance segmenter", "instances"))
}

impl Task for Instances {
    fn kind(&self) -> &'static TaskKind {
        &KIND
    }

    fn readout(&self) -> Readout {
        Readout::Objects
    }

    fn classes(&self, scores: &Tensor) -> Result<usize> {
        self.head.classes(scores, &self.rule)
    }

    fn predict(&self, scores: &Tensor, size: (usize, usize)) -> Result<Prediction> {
        scores.check_finite("scores")?;
        Ok(Prediction::of_instances(size, self.head.instances(scores, size, &self.rule)?))
    }

    fn own_loss(&self, truth: &Truth) -> Option<Result<Arc<dyn ScoreLoss>>> {
        let loss = |truth: &[Instance]| -> Arc<dyn ScoreLoss> {
            Arc::new(InstanceLoss { head: self.head.clone(), truth: truth.to_vec() })
        };
        Some(objects_of(truth).map(loss))
    }

    fn score(&self, prediction: &Prediction, truth: &Truth) -> f64 {
        match (prediction.instances(), truth.instances()) {
            (Some(said), Some(is)) => panoptic_quality(said, is),
            _ => 0.0,
        }
    }

    /// What the target lacks must be gone: one person left of ten objects is still a person.
    fn meets(&self, answer: &Prediction, target: &Truth, truth: &Truth) -> bool {
        let (near, far) = (self.score(answer, target), self.score(answer, truth));
        let (Some(said), Some(wanted), Some(is)) =
            (answer.instances(), target.instances(), truth.instances())
        else {
            return false;
        };
        let has = |objects: &[Instance], class: usize| objects.iter().any(|object| object.class == class);
        let left = confident(said).iter().any(|o| has(is, o.class) && !has(wanted, o.class));
        !left && near >= self.reached() && (near > far || target == truth)
    }

    fn check_truth(&self, truth: &Truth, classes: usize, _: (usize, usize), what: &str) -> Result<()> {
        match objects_of(truth)?.iter().find(|object| object.class >= classes && classes > 0) {
            Some(wild) => Err(Error::UnknownClass { what: what.into(), label: wild.class, classes }),
            None => Ok(()),
        }
    }

    fn read_truth(&self, source: &TruthSource<'_>) -> Result<Truth> {
        Ok(Truth::of_instances((source.objects)(source)?))
    }

    /// `permuted`; a class that every object is to be taken for; `vanish:CLASS`; `recast:CLASS:CLASS`.
    fn target(&self, wish: &str, truth: &Truth, classes: &ClassInfo<'_>, seed: u64) -> Result<Option<Truth>> {
        let objects = objects_of(truth)?;
        let words: Vec<&str> = wish.split(':').collect();
        let with = |rename: &dyn Fn(usize) -> usize| -> Vec<Instance> {
            objects.iter().map(|o| Instance { class: rename(o.class), ..o.clone() }).collect()
        };
        Ok(Some(Truth::of_instances(match words.as_slice() {
            ["vanish", class] => without(objects, classes.class(class)?),
            ["recast", from, to] => recast(objects, classes.class(from)?, classes.class(to)?),
            ["vanish" | "recast", ..] => {
                return Err(Error::setting(wish, "vanish:CLASS or recast:CLASS:CLASS is needed"));
            }
            ["permuted"] => {
                let next = permutation(classes.count, seed)?;
                with(&|class| next[class % next.len()])
            }
            _ => match classes.class(wish) {
                Ok(class) => with(&|_| class),
                Err(_) => return Ok(None),
            },
        })))
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
