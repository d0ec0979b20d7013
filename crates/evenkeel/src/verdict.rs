//! The verdict: what is finally said of an image, with the evidence for it. The last station of the flow.

use crate::defence::Defence;
use crate::detect::{Detector, ErrorEstimate, Guard};
use crate::error::Result;
use crate::image::Image;
use crate::model::Model;
use crate::task::Prediction;

/// How a verdict is reached.
#[derive(Clone, Copy, Default)]
pub struct Court<'a> {
    /// The defence, if any.
    pub defence: Option<&'a Defence>,
    /// What strangeness is measured by, if it is.
    pub detector: Option<&'a Detector>,
    /// Scores above this are strange. With a defence, only strange images are then defended.
    pub threshold: Option<f64>,
    /// The error estimate's bias, if an estimate is wanted, and the probability that its bound fails.
    pub estimate: Option<(f64, f64)>,
    /// The seed of the defence.
    pub seed: u64,
}

/// What is said of an image.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The answer.
    pub prediction: Prediction,
    /// The image that was shown to the network.
    pub shown: Image,
    /// How strange the image is, if it was measured.
    pub score: Option<f64>,
    /// Whether that is beyond the threshold, if there is one.
    pub strange: Option<bool>,
    /// Whether it was defended.
    pub defended: bool,
    /// How wrong the answer probably is, if that was asked for.
    pub estimate: Option<ErrorEstimate>,
}

impl Court<'_> {
    /// The verdict on an image at the model's size.
    ///
    /// # Errors
    /// If the network fails.
    pub fn judge(&self, model: &Model, image: &Image) -> Result<Verdict> {
        let (shown, score, strange, defended) = match (self.defence, self.detector, self.threshold) {
            (Some(defence), Some(detector), Some(threshold)) => {
                let guard = Guard { detector, threshold, defence };
                let (shown, score, alarm) = guard.apply(model, image, self.seed)?;
                (shown.image, Some(score), Some(alarm), alarm && defence.name != "none")
            }
            (defence, detector, threshold) => {
                let score = detector.map(|d| d.score(model, image)).transpose()?;
                let shown = match defence {
                    Some(defence) => defence.apply(model, image, self.seed)?.image,
                    None => image.clone(),
                };
                let strange = score.zip(threshold).map(|(s, t)| s > t);
                (shown, score, strange, defence.is_some_and(|d| d.name != "none"))
            }
        };
        let estimate = match (self.estimate, self.detector) {
            (Some((bias, delta)), Some(detector)) => {
                Some(ErrorEstimate::of(model, image, &detector.views, detector.seed, bias, delta)?)
            }
            _ => None,
        };
        Ok(Verdict { prediction: model.predict(&shown)?, shown, score, strange, defended, estimate })
    }
}
