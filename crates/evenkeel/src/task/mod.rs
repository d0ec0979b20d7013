//! Tasks: what a network's scores mean, what is true, and how right an answer is.
//!
//! One seam for classification, semantic and instance segmentation. For the first two, scores are `[classes, h, w]` (a classifier's
//! have one cell), a truth becomes one label per cell of the label grid, and losses are means over labelled cells. Instance
//! segmentation brings a loss of its own ([`ScoreLoss`]).

pub mod instance;

use std::sync::Arc;

use evenkeel_network::zoo::Checkpoint;

use crate::error::{Error, Result};
use crate::image::{IGNORED, LabelMap};
use crate::network::{Extents, Tensor};
use crate::view::Sampler;
use instance::{Instance, InstanceRule, Instances};

/// What is true of an image, or what an attacker wants said of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Truth {
    /// One class for the whole image.
    Class(usize),
    /// A class per pixel.
    Map(LabelMap),
    /// Each object.
    Instances(Vec<Instance>),
}

/// What a network says of an image.
#[derive(Clone, Debug, PartialEq)]
pub enum Prediction {
    /// One class for the whole image.
    Class(usize),
    /// A class per pixel.
    Map(LabelMap),
    /// Each object, the most confident first.
    Instances(Vec<Instance>),
}

/// One label per cell of a grid; [`IGNORED`] cells count for nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    /// (height, width) of the grid.
    pub size: (usize, usize),
    /// The labels in reading order.
    pub labels: Vec<u16>,
}

/// A loss on scores that knows its truth, for tasks without a label per cell.
pub trait ScoreLoss: std::fmt::Debug + Send + Sync {
    /// The loss and its cotangent on the scores.
    ///
    /// # Errors
    /// If the scores have another form than the task's.
    fn evaluate(&self, scores: &Tensor) -> Result<(f64, Vec<f32>)>;
}

/// What the tensors of scores hold, for those who combine several answers to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readout {
    /// Scores of classes, whose softmax are probabilities.
    Classes,
    /// Values.
    Values,
    /// What objects are read off; they have no cells in common.
    Objects,
}

/// What the scores of a network are about.
pub trait Task: Send + Sync {
    /// Its name in settings.
    fn name(&self) -> &'static str;

    /// The answer for an image of this (height, width).
    ///
    /// # Errors
    /// If the scores have another form than the task's, or are not finite.
    fn predict(&self, scores: &Tensor, size: (usize, usize)) -> Result<Prediction>;

    /// What its scores hold.
    fn readout(&self) -> Readout {
        Readout::Classes
    }

    /// How many classes the scores tell apart.
    ///
    /// # Errors
    /// If the scores have another form than the task's.
    fn classes(&self, scores: &Tensor) -> Result<usize> {
        Ok(scores.extents("scores")?.channels)
    }

    /// The loss at a truth, if the task has one of its own; otherwise losses are made from [`Task::labels`].
    fn own_loss(&self, _: &Truth) -> Option<Result<Arc<dyn ScoreLoss>>> {
        None
    }

    /// The truth as labels for losses on `scores`.
    ///
    /// # Errors
    /// If the truth is of another task, has labels beyond the classes, or the size of another image.
    fn labels(&self, truth: &Truth, scores: Extents, size: (usize, usize)) -> Result<Labels>;

    /// How right an answer is, from 0 (all wrong) to 1: what an attack lowers.
    fn score(&self, prediction: &Prediction, truth: &Truth) -> f64;

    /// The answer as a truth, for attacks without labels and for targets taken from another image.
    fn as_truth(&self, prediction: &Prediction) -> Truth {
        match prediction {
            Prediction::Class(class) => Truth::Class(*class),
            Prediction::Map(map) => Truth::Map(map.clone()),
            Prediction::Instances(all) => {
                Truth::Instances(instance::confident(all).into_iter().cloned().collect())
            }
        }
    }
}

/// The index of the largest value; the first of equals.
pub fn argmax(values: &[f32]) -> usize {
    (1..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}

/// The best class of every cell of `[classes, h, w]` scores.
pub fn best_classes(scores: &[f32], extents: Extents) -> Vec<u16> {
    let cells = extents.cells();
    let mut best: Vec<u16> = vec![0; cells];
    let mut top = scores[..cells].to_vec();
    for class in 1..extents.channels {
        for (i, &score) in scores[class * cells..][..cells].iter().enumerate() {
            if score > top[i] {
                top[i] = score;
                best[i] = class as u16;
            }
        }
    }
    best
}

fn size_words((height, width): (usize, usize)) -> String {
    format!("{width}x{height}")
}

/// One class for the whole image.
#[derive(Clone, Copy, Debug)]
pub struct Classification;

impl Task for Classification {
    fn name(&self) -> &'static str {
        "classification"
    }

    fn predict(&self, scores: &Tensor, _: (usize, usize)) -> Result<Prediction> {
        let extents = scores.extents("scores")?;
        scores.check_finite("scores")?;
        match extents.cells() {
            1 => Ok(Prediction::Class(argmax(scores.data()))),
            _ => Err(Error::mismatch(
                "scores of a classifier",
                "[1, classes]",
                format!("{:?}", scores.shape()),
            )),
        }
    }

    fn labels(&self, truth: &Truth, scores: Extents, _: (usize, usize)) -> Result<Labels> {
        match *truth {
            Truth::Class(class) if class < scores.channels => {
                Ok(Labels { size: (1, 1), labels: vec![class as u16] })
            }
            Truth::Class(label) => {
                Err(Error::UnknownClass { what: "label".into(), label, classes: scores.channels })
            }
            _ => {
                Err(Error::mismatch("truth of a classifier", "one class", "a label for each pixel or object"))
            }
        }
    }

    fn score(&self, prediction: &Prediction, truth: &Truth) -> f64 {
        match (prediction, truth) {
            (Prediction::Class(said), Truth::Class(is)) if said == is => 1.0,
            _ => 0.0,
        }
    }
}

/// One class per pixel. The score of an answer is the mean IoU over the classes in it or in the truth.
#[derive(Clone, Copy, Debug)]
pub struct Semantic;

impl Task for Semantic {
    fn name(&self) -> &'static str {
        "semantic"
    }

    fn predict(&self, scores: &Tensor, size: (usize, usize)) -> Result<Prediction> {
        let extents = scores.extents("scores")?;
        scores.check_finite("scores")?;
        let labels = if extents.size() == size {
            best_classes(scores.data(), extents)
        } else {
            let scaled = Sampler::resize(extents.size(), size).apply(scores.data(), extents.channels);
            best_classes(&scaled, Extents { channels: extents.channels, height: size.0, width: size.1 })
        };
        Ok(Prediction::Map(LabelMap::new(size.0, size.1, labels)?))
    }

    fn labels(&self, truth: &Truth, scores: Extents, size: (usize, usize)) -> Result<Labels> {
        let Truth::Map(map) = truth else {
            return Err(Error::mismatch("truth of a segmenter", "a label map", "a class or objects"));
        };
        if map.size() != size {
            return Err(Error::mismatch("label map", size_words(size), size_words(map.size())));
        }
        map.check_classes(scores.channels, "label map")?;
        Ok(Labels { size: map.size(), labels: map.labels().to_vec() })
    }

    fn score(&self, prediction: &Prediction, truth: &Truth) -> f64 {
        match (prediction, truth) {
            (Prediction::Map(said), Truth::Map(is)) => mean_iou(said.labels(), is.labels()),
            _ => 0.0,
        }
    }
}

/// The mean over classes of intersection over union; classes in neither are left out, ignored pixels count for nothing.
pub fn mean_iou(said: &[u16], is: &[u16]) -> f64 {
    let classes = said.iter().chain(is).filter(|&&l| l != IGNORED).max().map_or(0, |&l| usize::from(l) + 1);
    let (mut both, mut said_count, mut is_count) =
        (vec![0u64; classes], vec![0u64; classes], vec![0u64; classes]);
    for (&said, &is) in said.iter().zip(is).filter(|&(_, &is)| is != IGNORED) {
        is_count[usize::from(is)] += 1;
        if said != IGNORED {
            said_count[usize::from(said)] += 1;
            both[usize::from(is)] += u64::from(said == is);
        }
    }
    let present: Vec<usize> = (0..classes).filter(|&c| said_count[c] + is_count[c] > 0).collect();
    if present.is_empty() {
        return 1.0;
    }
    let iou = |c: usize| both[c] as f64 / (said_count[c] + is_count[c] - both[c]) as f64;
    present.iter().map(|&c| iou(c)).sum::<f64>() / present.len() as f64
}

/// Refuses a task that is not there, and a way to read instances where it is missing or not wanted.
///
/// # Errors
/// Listing the names there are, or saying what is wrong.
pub fn check_task(name: &str, instances: Option<&InstanceRule>) -> Result<()> {
    match (name, instances) {
        ("classification" | "semantic", None) => Ok(()),
        ("instance", Some(rule)) => rule.check(),
        ("instance", None) => Err(Error::setting("task instance", "needs a table [instance]")),
        ("classification" | "semantic", Some(_)) => {
            Err(Error::setting("[instance]", format!("has no meaning for the task {name}")))
        }
        (other, _) => {
            Err(Error::setting(format!("task {other}"), "is not one of classification, semantic, instance"))
        }
    }
}

/// The task of this name; instance segmentation needs to be told how instances are read. `weights` are the network's own with the name
/// of their architecture, for heads that need them.
///
/// # Errors
/// As [`check_task`], and if the network is not one whose instances can be read so.
pub fn task_named(
    name: &str,
    instances: Option<&InstanceRule>,
    weights: Option<&Checkpoint>,
) -> Result<Box<dyn Task>> {
    check_task(name, instances)?;
    Ok(match instances {
        Some(rule) => Box::new(Instances::new(rule.clone(), weights)?),
        None if name == "classification" => Box::new(Classification),
        None => Box::new(Semantic),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iou_leaves_out_what_is_nowhere() {
        assert_eq!(mean_iou(&[0, 0, 1, 1], &[0, 0, 1, 1]), 1.0);
        assert_eq!(mean_iou(&[0, 0, 3, 3], &[0, 0, 1, 255]), 1.0 / 3.0);
        assert_eq!(mean_iou(&[7, 7], &[255, 255]), 1.0, "nothing labelled, nothing wrong");
    }

    #[test]
    fn labels_of_the_wrong_kind_are_refused() {
        let extents = Extents { channels: 3, height: 2, width: 2 };
        let map = |labels: Vec<u16>| Truth::Map(LabelMap::new(2, 2, labels).unwrap());
        assert!(Semantic.labels(&map(vec![0, 1, 2, 255]), extents, (2, 2)).is_ok());
        let sentence = Semantic.labels(&map(vec![0, 1, 3, 0]), extents, (2, 2)).unwrap_err().to_string();
        assert!(sentence.contains("label 3"), "{sentence}");
        let sentence = Semantic.labels(&map(vec![0; 4]), extents, (4, 3)).unwrap_err().to_string();
        assert_eq!(sentence, "label map: expected 3x4, got 2x2");
        assert!(Semantic.labels(&Truth::Class(0), extents, (2, 2)).is_err());
        assert!(Classification.labels(&Truth::Class(3), extents, (2, 2)).is_err());
    }
}
