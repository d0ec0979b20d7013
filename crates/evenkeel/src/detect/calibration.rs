//! Calibration: a threshold from clean images, kept in a file with the fingerprint of the model it belongs to.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Detector, DetectorSpec, Heads};
use crate::error::{Error, Result};
use crate::image::write_atomically;
use crate::model::Model;
use crate::view::ViewSet;

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
    /// The views.
    pub views: ViewSet,
}

/// The smallest threshold that at most this share of the scores exceeds.
///
/// # Errors
/// If there are no scores or the rate is not from 0 to 1.
pub fn threshold_for(scores: &[f64], false_alarm_rate: f64) -> Result<f64> {
    if scores.is_empty() || scores.iter().any(|s| !s.is_finite()) {
        return Err(Error::setting("calibration", "needs clean images with finite scores"));
    }
    if !(0.0..=1.0).contains(&false_alarm_rate) {
        return Err(Error::setting("false alarm rate", format!("{false_alarm_rate} is not from 0 to 1")));
    }
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    let may_exceed = ((scores.len() as f64 * false_alarm_rate).floor() as usize).min(scores.len() - 1);
    Ok(sorted[scores.len() - 1 - may_exceed])
}

impl Calibration {
    /// From the scores of clean images.
    ///
    /// # Errors
    /// As [`threshold_for`].
    pub fn new(model: &Model, detector: &Detector, scores: &[f64], false_alarm_rate: f64) -> Result<Self> {
        Ok(Self {
            model: model.hash.clone(),
            score: detector.name.clone(),
            seed: detector.seed,
            false_alarm_rate,
            threshold: threshold_for(scores, false_alarm_rate)?,
            images: scores.len(),
            bias: None,
            views: detector.views.clone(),
        })
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
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        let fail = |reason: String| Error::File { path: path.to_owned(), reason };
        let calibration: Self = toml::from_str(&text).map_err(|e| fail(e.to_string()))?;
        if calibration.model != model.hash {
            return Err(fail("was calibrated for another model; calibrate again for this one".into()));
        }
        calibration.views.check().map_err(|e| fail(e.to_string()))?;
        Ok(calibration)
    }
}
