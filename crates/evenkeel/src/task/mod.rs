//! Tasks: what a network's scores mean, what is true, how right an answer is, and how it is shown.
//!
//! One folder for each task, one line for each in [`TASKS`]; nobody outside asks which task it is. For classes, scores are `[classes, h, w]` (a classifier's have
//! one cell), a truth becomes one label per cell of the label grid, and losses are means over labelled cells. Other tasks bring losses of their
//! own ([`ScoreLoss`]). A [`Truth`] and a [`Prediction`] are opaque: a task's folder adds constructors and typed accessors to them.

pub mod classification;
#[cfg(test)]
mod counting;
pub mod instance;
mod kind;
mod painting;
mod prediction;
pub mod regression;
pub mod semantic;
mod signs;
mod truth;

pub use classification::Classification;
pub use kind::{OwnTensors, TASKS, TaskKey, TaskKind};
pub use painting::{LegendEntry, Painting, ScaleBar};
pub use prediction::{AnswerFile, ClassInfo, Prediction, PredictionData};
pub use regression::Regression;
pub use semantic::{Semantic, mean_iou};
pub use signs::{OutputSign, Signs, UsualSet};
pub use truth::{Truth, TruthData, TruthSource};

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::network::{Extents, Tensor};

/// One label per cell of a grid; [`crate::image::IGNORED`] cells count for nothing.
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

/// What the tensors of scores hold, for those who compare or combine several answers.
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
    /// Its line in the table of tasks.
    fn kind(&self) -> &'static TaskKind;

    /// Its name in settings.
    fn name(&self) -> &'static str {
        self.kind().name
    }

    /// The answer for an image of this (height, width).
    ///
    /// # Errors
    /// If the scores have another form than the task's, or are not finite.
    fn predict(&self, scores: &Tensor, size: (usize, usize)) -> Result<Prediction>;

    /// What its scores hold.
    fn readout(&self) -> Readout;

    /// How many classes the scores tell apart; 0 where there are none. Refuses scores that are not of such a task.
    ///
    /// # Errors
    /// If the scores have another form than the task's, saying which task they could be of.
    fn classes(&self, scores: &Tensor) -> Result<usize>;

    /// The loss at a truth, if the task has one of its own; otherwise losses are made from [`Task::labels`].
    fn own_loss(&self, _: &Truth) -> Option<Result<Arc<dyn ScoreLoss>>> {
        None
    }

    /// The truth as labels for losses on `scores`.
    ///
    /// # Errors
    /// If the truth is of another task, has labels beyond the classes, or the size of another image; or if the task has no label per cell.
    fn labels(&self, _truth: &Truth, _scores: Extents, _size: (usize, usize)) -> Result<Labels> {
        let reason =
            "has a loss of its own and no label per cell; attacks that need one cannot be made on it";
        Err(Error::setting("loss", format!("the task {} {reason}", self.name())))
    }

    /// How right an answer is, from 0 (all wrong) to 1: what an attack lowers.
    fn score(&self, prediction: &Prediction, truth: &Truth) -> f64;

    /// The same from scores, for an image of this (height, width): what an attack asks at every step.
    ///
    /// # Errors
    /// As [`Task::predict`].
    fn score_of(&self, scores: &Tensor, size: (usize, usize), truth: &Truth) -> Result<f64> {
        Ok(self.score(&self.predict(scores, size)?, truth))
    }

    /// The score to an attacker's target from which on it counts as reached.
    fn reached(&self) -> f64 {
        0.5
    }

    /// Whether an answer is what an attacker wanted said: near enough to the target, and nearer than to the truth.
    fn meets(&self, answer: &Prediction, target: &Truth, truth: &Truth) -> bool {
        let near = self.score(answer, target);
        near >= self.reached() && (near > self.score(answer, truth) || target == truth)
    }

    /// Refuses a truth that is not about an image of this size with this number of classes; `what` names it in messages.
    ///
    /// # Errors
    /// Saying what is wrong.
    fn check_truth(&self, truth: &Truth, classes: usize, size: (usize, usize), what: &str) -> Result<()>;

    /// The truth about a picture in the network's frame, from what a person gave.
    ///
    /// # Errors
    /// If it cannot be read or is not about the picture.
    fn read_truth(&self, source: &TruthSource<'_>) -> Result<Truth>;

    /// What an attacker wants said, from his words (`permuted`, a class, or what else the task knows); `None` if these are not words but a file.
    ///
    /// # Errors
    /// If the words make no sense for the task.
    fn target(&self, wish: &str, truth: &Truth, classes: &ClassInfo<'_>, seed: u64) -> Result<Option<Truth>>;

    /// The width of the range that errors of a cell lie in, for error estimates; `None` if there is none.
    fn error_range(&self) -> Option<f64> {
        Some(1.0)
    }

    /// What an error estimate is about, in a few words.
    fn error_words(&self) -> String {
        "one minus the probability of the truth, mean over cells".into()
    }

    /// How wrong the outputs (probabilities or values `[channels, cells]`) are at every cell, `None` where nothing is known; for error estimates.
    ///
    /// # Errors
    /// If the truth is of another task, or the task's error cannot be estimated.
    fn cell_errors(&self, _outputs: &[f32], _extents: Extents, _truth: &Truth) -> Result<Vec<Option<f32>>> {
        Err(Error::setting(
            "error estimate",
            format!("is about cells, which the task {} does not have", self.name()),
        ))
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

/// The number of classes in scores of classes; one is none.
fn class_count(scores: &Tensor, task: &str) -> Result<usize> {
    match scores.extents("scores")?.channels {
        1 => {
            let hint =
                "it gives values, not class scores: declare the task `regression`, whose range may be 0 to 1";
            Err(Error::setting(format!("task {task}"), format!("the output has one channel; {hint}")))
        }
        classes => Ok(classes),
    }
}

/// Where every class goes in a seeded renaming that leaves none in place: a random cyclic order, each class becoming the next one of it.
fn permutation(classes: usize, seed: u64) -> Result<Vec<usize>> {
    if classes < 2 {
        return Err(Error::setting("permuted target", "needs at least 2 classes"));
    }
    let order = crate::random::Random::new(seed).order(classes);
    let mut next = vec![0; classes];
    (0..classes).for_each(|i| next[order[i]] = order[(i + 1) % classes]);
    Ok(next)
}
