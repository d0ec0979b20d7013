//! Calibration: a threshold from clean images, kept in a file with the fingerprint of the model it belongs to.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::conformal::{rank, threshold_for};
use super::{Detector, DetectorSpec, EstimateRule, Heads};
use crate::error::{Error, Result};
use crate::image::write_atomically;
use crate::model::Model;
use crate::view::ViewSet;

/// The share of clean images that may raise an alarm unless told otherwise.
pub const FALSE_ALARMS: f64 = 0.05;

/// A threshold and where it came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The fingerprint of the model's file.
    pub model: String,
    /// The score.
    pub score: String,
    /// The seed of the views.
    pub seed: u64,
    /// The share of clean images that may raise an alarm.
    pub false_alarm_rate: f64,
    /// Scores above this are strange.
    pub threshold: f64,
    /// How many clean images there were.
    pub images: usize,
    /// The error estimate's bias, if labels were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias: Option<f64>,
    /// |error − estimate| of the labelled images that the bias was not fitted on, in rising order: what intervals are made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub residuals: Vec<f64>,
    /// The views.
    pub views: ViewSet,
}

impl Calibration {
    /// Refuses a false alarm rate that this number of clean images cannot promise, saying how many it takes.
    ///
    /// # Errors
    /// If it is not a share, or there are too few images.
    pub fn check_promise(images: usize, false_alarm_rate: f64) -> Result<()> {
        rank(images, false_alarm_rate, "the false alarm rate").map(drop)
    }

    /// From the scores of clean images.
    ///
    /// # Errors
    /// As [`threshold_for`], and if there are too few images to promise the rate, saying how many it takes.
    pub fn new(model: &Model, detector: &Detector, scores: &[f64], false_alarm_rate: f64) -> Result<Self> {
        Self::check_promise(scores.len(), false_alarm_rate)?;
        Ok(Self {
            model: model.hash.clone(),
            score: detector.name.clone(),
            seed: detector.seed,
            false_alarm_rate,
            threshold: threshold_for(scores, false_alarm_rate)?,
            images: scores.len(),
            bias: None,
            residuals: Vec::new(),
            views: detector.views.clone(),
        })
    }

    /// Why no image can raise this alarm, if none can: the threshold is the greatest score that the detector gives.
    #[must_use]
    pub fn out_of_reach(&self, model: &Model, detector: &Detector, scores: &[f64]) -> Option<String> {
        let most = detector.most(model).filter(|most| self.threshold >= *most)?;
        let count = scores.iter().filter(|score| **score >= most).count();
        Some(format!(
            "no image can raise this alarm: {count} of the {} clean images have {most}, the greatest score of {} (objects that are not found again in any \
             view); leave those images out, or calibrate another detector (equivariance)",
            scores.len(),
            self.score,
        ))
    }

    /// The same with an error estimate fitted on clean labelled images.
    #[must_use]
    pub fn with_estimate(self, rule: EstimateRule) -> Self {
        Self { bias: rule.bias, residuals: rule.residuals, ..self }
    }

    /// How errors are estimated, with intervals that may fail on a share `delta` of images; none if no labels were given.
    ///
    /// # Errors
    /// If there are too few labelled images for `delta`, saying how many it takes.
    pub fn estimate_rule(&self, delta: f64) -> Result<Option<EstimateRule>> {
        let Some(bias) = self.bias else { return Ok(None) };
        let rule = EstimateRule { bias: Some(bias), delta, residuals: self.residuals.clone() };
        rule.interval(0.0)?;
        Ok(Some(rule))
    }

    /// Where the calibration of a network lies: its own name ending in `.calibration.toml`.
    pub fn path_beside(network: &Path) -> PathBuf {
        network.with_extension("calibration.toml")
    }

    /// The detector that it was made with, for the model that it belongs to.
    ///
    /// # Errors
    /// If a head or bank is missing.
    pub fn detector(&self, model: &Model, heads: Heads) -> Result<Detector> {
        let spec = DetectorSpec::named(&self.score)?.with_views(self.views.clone());
        spec.with("seed", self.seed)?.build(model, heads)
    }

    /// Writes it as TOML.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let fail = |e: toml::ser::Error| Error::File { path: path.to_owned(), reason: e.to_string() };
        write_atomically(path, toml::to_string(self).map_err(fail)?.as_bytes())
    }

    /// Reads it, for this model only.
    ///
    /// # Errors
    /// If it cannot be read, or was made for another model.
    pub fn load(path: &Path, model: &Model) -> Result<Self> {
        Self::parse(&std::fs::read_to_string(path).map_err(Error::io(path))?, path, model)
    }

    /// Reads a file's text, for this model only; `path` is named in errors.
    ///
    /// # Errors
    /// If it cannot be read, or was made for another model.
    pub fn parse(text: &str, path: &Path, model: &Model) -> Result<Self> {
        let fail = |reason: String| Error::File { path: path.to_owned(), reason };
        let calibration: Self = toml::from_str(text).map_err(|e| fail(e.to_string()))?;
        if calibration.model != model.hash {
            return Err(fail("was calibrated for another model; calibrate again for this one".into()));
        }
        calibration.views.check().map_err(|e| fail(e.to_string()))?;
        Ok(calibration)
    }
}
