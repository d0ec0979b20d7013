//! The error estimate: how wrong the answer probably is, from how much it varies over views.
//!
//! σ² is the variance, over the image and its views, of the probability of the image's own answer at a cell. The expected error is
//! √(2/π) · mean over cells of √(σ² + B²); with probability 1 − δ it is off by at most (b − a)/√n · √ln(1/δ), n the number of
//! cells and [a, b] = [0, 1] the range of an error. B, the bias that views cannot show, is fitted on clean labelled images.

use super::{Outputs, ViewOutputs};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::model::Model;
use crate::random::Random;
use crate::task::Truth;
use crate::view::ViewSet;

/// How wrong an answer probably is.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorEstimate {
    /// The expected error, 0 to 1.
    pub error: f64,
    /// What it may be off by.
    pub within: f64,
    /// The probability that it is not off by more.
    pub confidence: f64,
    /// The variance of each cell.
    pub variances: Vec<f32>,
}

impl ErrorEstimate {
    /// The estimate for an image at the model's size. `delta` is the probability of being off by more than the bound.
    ///
    /// # Errors
    /// If the network refuses a view, or `delta` is not between 0 and 1.
    pub fn of(
        model: &Model,
        image: &Image,
        views: &ViewSet,
        seed: u64,
        bias: f64,
        delta: f64,
    ) -> Result<Self> {
        let outputs = ViewOutputs::at(model, image, &views.draw(&Random::new(seed)), Outputs::Softmax)?;
        Self::from_outputs(&outputs, bias, delta)
    }

    /// The same from outputs that are there already.
    ///
    /// # Errors
    /// If `delta` is not between 0 and 1.
    pub fn from_outputs(outputs: &ViewOutputs, bias: f64, delta: f64) -> Result<Self> {
        if !(delta > 0.0 && delta < 1.0) {
            return Err(Error::setting("delta", format!("{delta} is not between 0 and 1")));
        }
        let variances = outputs.cell_variances();
        let within = (1.0 / delta).ln().sqrt() / (variances.len() as f64).sqrt();
        Ok(Self { error: expected_error(&variances, bias), within, confidence: 1.0 - delta, variances })
    }
}

/// √(2/π) · mean √(σ² + B²) over the cells' variances σ².
pub fn expected_error(variances: &[f32], bias: f64) -> f64 {
    let sum: f64 = variances.iter().map(|v| (f64::from(*v) + bias * bias).sqrt()).sum();
    (2.0 / std::f64::consts::PI).sqrt() * sum / variances.len().max(1) as f64
}

impl ViewOutputs {
    /// The variance over the image and the views that saw a cell, of the probability of the image's answer there.
    pub fn cell_variances(&self) -> Vec<f32> {
        let cells = self.extents.cells();
        let best = crate::task::best_classes(&self.base, self.extents);
        let variance = |i: usize| {
            let at = usize::from(best[i]) * cells + i;
            let seen =
                self.views.iter().filter(|(_, mask)| mask[i % mask.len()] > 0.0).map(|(map, _)| map[at]);
            let values: Vec<f32> = std::iter::once(self.base[at]).chain(seen).collect();
            let mean = values.iter().sum::<f32>() / values.len() as f32;
            values.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / values.len() as f32
        };
        (0..cells).map(variance).collect()
    }

    /// How wrong the image's own outputs are at every cell, `None` where nothing is known.
    ///
    /// # Errors
    /// If the truth is of another task, or the task's error cannot be estimated.
    pub fn cell_errors(&self, model: &Model, truth: &Truth) -> Result<Vec<Option<f32>>> {
        model.task.cell_errors(&self.base, self.extents, truth)
    }

    /// The mean error over the cells of which something is known; `None` if that is none.
    ///
    /// # Errors
    /// As [`ViewOutputs::cell_errors`].
    pub fn true_error(&self, model: &Model, truth: &Truth) -> Result<Option<f64>> {
        let known: Vec<f64> = self.cell_errors(model, truth)?.into_iter().flatten().map(f64::from).collect();
        Ok((!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64))
    }
}

/// The bias B with which the mean estimate over clean images equals their mean true error. Each image gives its cell variances
/// and its error: the mean over labelled cells of one minus the probability of the truth.
///
/// # Errors
/// If there are no images, or an error is not between 0 and 1.
pub fn fit_bias(images: &[(Vec<f32>, f64)]) -> Result<f64> {
    if images.is_empty() || images.iter().any(|(_, e)| !(0.0..=1.0).contains(e)) {
        return Err(Error::setting("error estimate", "needs clean labelled images with errors from 0 to 1"));
    }
    let count = images.len() as f64;
    let wanted = images.iter().map(|(_, e)| e).sum::<f64>() / count;
    let estimate = |bias: f64| images.iter().map(|(v, _)| expected_error(v, bias)).sum::<f64>() / count;
    let (mut low, mut high) = (0.0, 2.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if estimate(middle) < wanted { low = middle } else { high = middle }
    }
    Ok(low)
}
