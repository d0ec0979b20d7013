//! The error estimate: how wrong the answer probably is, from how much it varies over views; and three things to go with it, each under its own name.
//!
//! σ² is the variance, over the image and its views, of the outputs at a cell (of the probability of the image's own answer; of values, in their own unit). The **estimate**
//! is √(2/π) · mean over cells of √(σ² + B²); B, the bias that views cannot show, is fitted on clean labelled images. The **theorem's half-width**
//! is (b − a)/√n · √ln(1/δ) for n cells and errors in [a, b]; it would hold if cells were independent and the assumptions true, which they are not. The
//! **interval** is split conformal ([`super::conformal`]): it holds on a share 1 − δ of images like those it was calibrated on, and is not given where the alarm is raised.

use serde_json::{Value, json};

use super::conformal::rank;
use super::{Outputs, ViewOutputs};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::model::Model;
use crate::random::Random;
use crate::task::{Readout, Truth};
use crate::view::ViewSet;

/// The share of images on which an interval may fail, by default.
pub const DELTA: f64 = 0.1;

/// What an estimate is made with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EstimateRule {
    /// The bias B; `None` if it was not fitted, and 0 is taken.
    pub bias: Option<f64>,
    /// The share of images on which the interval may fail.
    pub delta: f64,
    /// |error − estimate| of clean labelled images that the bias was not fitted on, in rising order; empty if there are none.
    pub residuals: Vec<f64>,
}

/// How wrong an answer probably is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ErrorEstimate {
    /// The estimate, in the task's unit of errors.
    pub error: f64,
    /// Whether the bias was fitted on clean labelled images.
    pub bias_fitted: bool,
    /// The theorem's half-width: what would hold if its assumptions did. `None` where errors have no known range.
    pub theorem_half_width: Option<f64>,
    /// The conformal interval, or why there is none.
    pub interval: Interval,
    /// The share of images on which interval or theorem may fail.
    pub delta: f64,
    /// The variance of each cell.
    pub variances: Vec<f32>,
}

/// What is promised about the true error.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Interval {
    /// It lies between these on a share 1 − δ of images like those of the calibration.
    Within {
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
        /// Images behind it.
        images: usize,
    },
    /// Nothing: no clean labelled images were given.
    NotCalibrated,
    /// Nothing: the image raises the alarm, so it is not like those of the calibration.
    Alarm,
}

impl EstimateRule {
    /// An estimate without bias or interval.
    pub fn plain(delta: f64) -> Self {
        Self { delta, ..Self::default() }
    }

    fn check(&self) -> Result<()> {
        match self.delta > 0.0 && self.delta < 1.0 {
            true => Ok(()),
            false => Err(Error::setting("delta", format!("{} is not between 0 and 1", self.delta))),
        }
    }

    /// The conformal interval around an estimate; an error is never below 0.
    ///
    /// # Errors
    /// If there are too few images for the promise, saying how many it takes.
    pub fn interval(&self, error: f64) -> Result<Interval> {
        self.check()?;
        if self.residuals.is_empty() {
            return Ok(Interval::NotCalibrated);
        }
        let images = self.residuals.len();
        let within = self.residuals[rank(images, self.delta, "an interval")? - 1];
        Ok(Interval::Within { low: (error - within).max(0.0), high: error + within, images })
    }
}

impl ErrorEstimate {
    /// The estimate for an image at the model's size.
    ///
    /// # Errors
    /// If the network refuses a view, `delta` is not between 0 and 1, or there are too few images for the promise.
    pub fn of(model: &Model, image: &Image, views: &ViewSet, seed: u64, rule: &EstimateRule) -> Result<Self> {
        let outputs = ViewOutputs::at(model, image, &views.draw(&Random::new(seed)), Outputs::Softmax)?;
        Self::from_outputs(model, &outputs, rule)
    }

    /// The same from outputs that are there already.
    ///
    /// # Errors
    /// As [`ErrorEstimate::of`].
    pub fn from_outputs(model: &Model, outputs: &ViewOutputs, rule: &EstimateRule) -> Result<Self> {
        rule.check()?;
        let variances = outputs.cell_variances();
        let error = expected_error(&variances, rule.bias.unwrap_or(0.0));
        Ok(Self {
            error,
            bias_fitted: rule.bias.is_some(),
            theorem_half_width: model
                .task
                .error_range()
                .map(|range| theorem_half_width(range, variances.len(), rule.delta)),
            interval: rule.interval(error)?,
            delta: rule.delta,
            variances,
        })
    }

    /// The same for an image that raises the alarm: nothing is promised of it.
    #[must_use]
    pub fn alarmed(self) -> Self {
        Self { interval: Interval::Alarm, ..self }
    }

    /// The estimate for machines; keys say what each number is.
    pub fn json(&self, model: &Model) -> Value {
        let (interval, reason) = match self.interval {
            Interval::Within { low, high, images } => (
                json!({ "low": low, "high": high, "coverage": 1.0 - self.delta, "calibration_images": images }),
                None,
            ),
            other => (Value::Null, Some(other.reason())),
        };
        json!({
            "error": self.error,
            "error_is": model.task.error_words(),
            "bias_fitted": self.bias_fitted,
            "interval": interval,
            "no_interval_because": reason,
            "theorem_half_width_under_its_assumptions": self.theorem_half_width,
            "delta": self.delta,
        })
    }

    /// The estimate for people; [`ErrorEstimate::note`] says once what it is.
    pub fn words(&self) -> String {
        let interval = match self.interval {
            Interval::Within { low, high, images } => format!(
                ", {low:.3} to {high:.3} on {:.0} % of images like the {images} of the calibration",
                100.0 * (1.0 - self.delta)
            ),
            Interval::Alarm => format!(", no interval: {}", Interval::Alarm.reason()),
            Interval::NotCalibrated => String::new(),
        };
        format!("expected error {:.3}{interval}", self.error)
    }

    /// What the estimates of a run are, and what they lack.
    pub fn note(&self, model: &Model) -> String {
        let fitted = if self.bias_fitted { "" } else { ", bias not fitted" };
        let lacks = match self.interval {
            Interval::NotCalibrated => format!("; no interval: {}", Interval::NotCalibrated.reason()),
            _ => String::new(),
        };
        format!("expected error: {}{fitted}{lacks}", model.task.error_words())
    }
}

impl Interval {
    fn reason(self) -> &'static str {
        match self {
            Self::Within { .. } => "",
            Self::NotCalibrated => "calibrate with clean labelled images to have one",
            Self::Alarm => "the image raises the alarm, so it is not like those of the calibration",
        }
    }
}

/// (b − a)/√n · √ln(1/δ): what the estimate would be off by at most, were the theorem's assumptions true.
pub fn theorem_half_width(range: f64, cells: usize, delta: f64) -> f64 {
    range * ((1.0 / delta).ln() / cells.max(1) as f64).sqrt()
}

/// √(2/π) · mean √(σ² + B²) over the cells' variances σ².
pub fn expected_error(variances: &[f32], bias: f64) -> f64 {
    let sum: f64 = variances.iter().map(|v| (f64::from(*v) + bias * bias).sqrt()).sum();
    (2.0 / std::f64::consts::PI).sqrt() * sum / variances.len().max(1) as f64
}

/// What an image with a truth gives to a calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledCells {
    /// The variances of the cells of which something is known.
    pub variances: Vec<f32>,
    /// The mean error over these.
    pub error: f64,
}

impl ViewOutputs {
    /// The variance over the image and the views that saw a cell: of the probability of the image's answer there, or of its values (mean over channels).
    pub fn cell_variances(&self) -> Vec<f32> {
        let (cells, channels) = (self.extents.cells(), self.extents.channels);
        let best = match self.readout {
            Readout::Classes => Some(crate::task::best_classes(&self.base, self.extents)),
            _ => None,
        };
        let at_place = |at: usize, i: usize| {
            let seen =
                self.views.iter().filter(|(_, mask)| mask[i % mask.len()] > 0.0).map(|(map, _)| map[at]);
            let values: Vec<f32> = std::iter::once(self.base[at]).chain(seen).collect();
            let mean = values.iter().sum::<f32>() / values.len() as f32;
            values.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / values.len() as f32
        };
        let variance = |i: usize| match &best {
            Some(best) => at_place(usize::from(best[i]) * cells + i, i),
            None => (0..channels).map(|c| at_place(c * cells + i, i)).sum::<f32>() / channels as f32,
        };
        (0..cells).map(variance).collect()
    }

    /// What is known of the image: the variances of its labelled cells, and the mean error over them. `None` if nothing is known.
    ///
    /// # Errors
    /// If the truth is of another task, or the task's error cannot be estimated.
    pub fn labelled(&self, model: &Model, truth: &Truth) -> Result<Option<LabelledCells>> {
        let errors = model.task.cell_errors(&self.base, self.extents, truth)?;
        let known: Vec<(f32, f32)> =
            self.cell_variances().into_iter().zip(errors).filter_map(|(v, e)| Some((v, e?))).collect();
        if known.is_empty() {
            return Ok(None);
        }
        let error = known.iter().map(|(_, e)| f64::from(*e)).sum::<f64>() / known.len() as f64;
        Ok(Some(LabelledCells { variances: known.into_iter().map(|(v, _)| v).collect(), error }))
    }
}

/// The bias B with which the mean estimate over clean images equals their mean true error. Each image gives its cell variances
/// and its error.
///
/// # Errors
/// If there are no images, or an error is not a number of at least 0.
pub fn fit_bias(images: &[(Vec<f32>, f64)]) -> Result<f64> {
    if images.is_empty() || images.iter().any(|(_, e)| !(e.is_finite() && *e >= 0.0)) {
        return Err(Error::setting(
            "error estimate",
            "needs clean labelled images with errors of at least 0",
        ));
    }
    let count = images.len() as f64;
    let wanted = images.iter().map(|(_, e)| e).sum::<f64>() / count;
    let estimate = |bias: f64| images.iter().map(|(v, _)| expected_error(v, bias)).sum::<f64>() / count;
    // with no variance at all the bias is √(π/2) times the error
    let (mut low, mut high) = (0.0, 2.0f64.max(2.0 * wanted));
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if estimate(middle) < wanted { low = middle } else { high = middle }
    }
    Ok(low)
}
