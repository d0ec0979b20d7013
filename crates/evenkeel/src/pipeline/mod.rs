//! The pipeline: a model with a detector, a threshold and a defence in front of it, and an answer behind. The last station of the flow.
//!
//! An image is scored; if it raises the alarm (or there is none) it is defended, and the answer is read off what the network is shown; without the alarm
//! the network answers for the image as it is. A pipeline is a network
//! again ([`Pipeline::network`]), so every attack can be aimed through it. The verdict depends on the image and the seed only.

mod eligible;
mod framed;
mod network;
mod unrolled;

pub use network::PipelineNetwork;

use std::sync::Arc;

use crate::answer::{Answer, Answered, Certificate};
use crate::attack::Estimator;
use crate::defence::{Defence, Defended};
use crate::detect::{Detector, ErrorEstimate, EstimateRule};
use crate::error::Result;
use crate::image::Image;
use crate::model::Model;
use crate::network::Tensor;
use crate::optimise::Record;
use crate::task::{Painting, Prediction};
use crate::view::Placed;

/// A model and what protects it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Pipeline {
    /// The model.
    pub model: Arc<Model>,
    /// The defence, if any.
    pub defence: Option<Arc<Defence>>,
    /// How the answer is read off what is shown; the network's own if `None`.
    pub answer: Option<Arc<Answer>>,
    /// The detector, if any.
    pub detector: Option<Arc<Detector>>,
    /// Scores above this raise the alarm. Only images that raise it are then defended and answered otherwise than by the network itself.
    pub threshold: Option<f64>,
    /// How the answer's error is estimated, if that is wanted.
    pub estimate: Option<EstimateRule>,
    /// The seed of the defence.
    pub seed: u64,
}

/// What a pipeline makes of an image.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verdict {
    /// The answer.
    pub prediction: Prediction,
    /// The scores that the answer was read off, as [`Answered::scores`] has them.
    pub scores: Tensor,
    /// The image that was shown to the network.
    pub shown: Image,
    /// The detection score, if there is a detector.
    pub score: Option<f64>,
    /// Whether the score is above the threshold, if there is one.
    pub alarm: Option<bool>,
    /// Whether the image was defended.
    pub defended: bool,
    /// Whether the answer is a vote.
    pub voted: bool,
    /// What is certain about a classifier's vote over noise.
    pub certificate: Option<Certificate>,
    /// The defence's steps.
    pub trace: Vec<Record>,
    /// How wrong the answer probably is, if that was asked for.
    pub estimate: Option<ErrorEstimate>,
}

/// How much of the picture an answer covers.
const OPACITY: f32 = 0.5;

impl Verdict {
    /// The verdict as a JSON object, the same from every front.
    pub fn json(&self, model: &Model) -> serde_json::Value {
        serde_json::json!({
            "prediction": self.prediction.json(&model.class_info()),
            "score": self.score,
            "alarm": self.alarm,
            "defended": self.defended,
            "voted": self.voted,
            "certificate": self.certificate.as_ref().map(Certificate::json),
            "expected_error": self.estimate.as_ref().map(|estimate| estimate.error),
            "estimate": self.estimate.as_ref().map(|estimate| estimate.json(model)),
        })
    }

    /// The answer at the size of the picture as it came, before the model's framing.
    ///
    /// # Errors
    /// If the answer does not fit the picture's frame.
    pub fn answer_on(&self, model: &Model, original: &Image) -> Result<Prediction> {
        self.prediction.unframed(&model.framing(original.size())?)
    }

    /// The answer painted on the picture as it came; on the one that was shown to the network, if that has the same size.
    ///
    /// # Errors
    /// As [`Verdict::answer_on`].
    pub fn overlay(&self, model: &Model, original: &Image) -> Result<Painting> {
        let under = if self.shown.size() == original.size() { &self.shown } else { original };
        self.answer_on(model, original)?.paint(under, OPACITY, &model.class_info())
    }
}

impl Pipeline {
    /// The bare model.
    pub fn new(model: Arc<Model>) -> Self {
        Self { model, defence: None, answer: None, detector: None, threshold: None, estimate: None, seed: 0 }
    }

    /// The same with a defence.
    #[must_use]
    pub fn with_defence(self, defence: impl Into<Arc<Defence>>) -> Self {
        Self { defence: Some(defence.into()), ..self }
    }

    /// The same with another way to read the answer off.
    #[must_use]
    pub fn with_answer(self, answer: impl Into<Arc<Answer>>) -> Self {
        Self { answer: Some(answer.into()), ..self }
    }

    /// The same with a detector.
    #[must_use]
    pub fn with_detector(self, detector: impl Into<Arc<Detector>>) -> Self {
        Self { detector: Some(detector.into()), ..self }
    }

    /// The same with a threshold of the detector's score.
    #[must_use]
    pub fn with_threshold(self, threshold: f64) -> Self {
        Self { threshold: Some(threshold), ..self }
    }

    /// The same with an error estimate by this rule ([`crate::Calibration::estimate_rule`] has one).
    #[must_use]
    pub fn with_estimate(self, rule: EstimateRule) -> Self {
        Self { estimate: Some(rule), ..self }
    }

    /// The same with a seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Whether an answer depends on random numbers.
    pub fn is_random(&self) -> bool {
        self.defence.as_ref().is_some_and(|defence| defence.is_random())
            || self.answer.as_ref().is_some_and(|answer| answer.is_random())
    }

    /// The answer, if it is another than the network's own.
    pub(crate) fn vote(&self) -> Option<&Answer> {
        self.answer.as_deref().filter(|answer| !answer.is_plain())
    }

    /// The detector and threshold that decide whether the defence runs, if they do.
    pub(crate) fn alarm(&self) -> Option<(&Detector, f64)> {
        self.detector.as_deref().zip(self.threshold)
    }

    /// The verdict on an image at the model's size, with the pipeline's own seed.
    ///
    /// # Errors
    /// If the network fails.
    pub fn run(&self, image: &Image) -> Result<Verdict> {
        self.run_seeded(image, self.seed)
    }

    /// The verdict with another seed of the defence.
    ///
    /// # Errors
    /// As [`Pipeline::run`].
    pub fn run_seeded(&self, image: &Image, seed: u64) -> Result<Verdict> {
        let model = &*self.model;
        let seen =
            self.detector.as_ref().map(|d| d.detect(model, image, self.estimate.as_ref())).transpose()?;
        let score = seen.as_ref().map(|seen| seen.score);
        let alarm = score.zip(self.threshold).map(|(score, threshold)| score > threshold);
        let active = alarm.unwrap_or(true);
        let Defended { image: shown, trace } = self.defend(image, active, seed)?;
        let defended = active && self.defence.as_ref().is_some_and(|defence| !defence.is_none());
        let voted = active && self.vote().is_some();
        let (estimate, scores) = seen.map_or((None, None), |seen| (seen.estimate, seen.scores));
        let estimate = if alarm == Some(true) { estimate.map(ErrorEstimate::alarmed) } else { estimate };
        // the detector has seen the image as it is, which is what is shown then
        let (prediction, scores, certificate) = match scores.filter(|_| !defended && !voted) {
            Some(scores) => (model.task.predict(&scores, image.size())?, scores, None),
            None => {
                let Answered { prediction, scores, certificate } = self.read(&shown, active, seed)?;
                (prediction, scores, certificate)
            }
        };
        Ok(Verdict { prediction, scores, shown, score, alarm, defended, voted, certificate, trace, estimate })
    }

    /// The answer for an image that is shown; `alarm` says whether it may be another than the network's own.
    ///
    /// # Errors
    /// As [`Pipeline::run`].
    pub fn read(&self, shown: &Image, alarm: bool, seed: u64) -> Result<Answered> {
        let (plain, frame) = (Answer::plain(), self.frame(shown, alarm, seed));
        let answer = self.vote().filter(|_| alarm).unwrap_or(&plain);
        match frame {
            Some(frame) => framed::read(&self.model, answer, shown, &frame, seed),
            None => answer.read(&self.model, shown, seed),
        }
    }

    /// The view of an image that the network is shown, if the defence shows it one.
    fn frame(&self, shown: &Image, alarm: bool, seed: u64) -> Option<Placed> {
        self.defence.as_ref().filter(|_| alarm)?.frame(shown.size(), seed)
    }

    /// The image that is shown to the network; `alarm` says whether it is to be defended.
    fn defend(&self, image: &Image, alarm: bool, seed: u64) -> Result<Defended> {
        match &self.defence {
            Some(defence) if alarm => defence.apply(&self.model, image, seed),
            _ => Ok(Defended { image: image.clone(), trace: Vec::new() }),
        }
    }

    /// Whether an image is to be defended.
    fn raises_alarm(&self, image: &Image) -> Result<bool> {
        match self.alarm() {
            Some((detector, threshold)) => Ok(detector.score(&self.model, image)? > threshold),
            None => Ok(true),
        }
    }

    /// The pipeline as a network for one draw of its randomness: scores as the answer reads them and other tensors of the image that is shown, and a
    /// pullback to the image that was given, by the estimator.
    pub fn network(&self, seed: u64, estimator: Estimator) -> PipelineNetwork<'_> {
        PipelineNetwork { pipeline: self, seed, estimator, sharpness: 1.0 }
    }
}
