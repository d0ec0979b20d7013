//! A policy: what to do with a network's images, as a file beside the network (`net.policy.toml`). The station that every front obeys.
//!
//! It names a defence, an answer and an alarm with their settings, the network they were chosen for by its fingerprint, and the figures they were chosen by.
//! [`Policy::pipeline`] makes it a [`Pipeline`]. Invariant: a policy for another network's fingerprint is refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::answer::AnswerSpec;
use crate::defence::DefenceSpec;
use crate::detect::{Calibration, DetectorSpec, Heads};
use crate::error::{Error, Result};
use crate::image::write_atomically;
use crate::model::Model;
use crate::pipeline::Pipeline;

/// What to do with a network's images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The fingerprint of the network's file.
    pub model: String,
    /// What it does and what it withstands, in a few sentences.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The seed of defence and answer.
    #[serde(default)]
    pub seed: u64,
    /// The defence; none if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defence: Option<DefenceSpec>,
    /// How the answer is read off; the network's own if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerSpec>,
    /// The alarm. Where there is one, only images that raise it are defended and answered otherwise than by the network itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alarm: Option<Alarm>,
    /// What it was chosen by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
}

/// A detector and when it raises the alarm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alarm {
    /// Scores above this raise it.
    pub threshold: f64,
    /// How many clean images the threshold comes from.
    pub images: usize,
    /// The share of those that raise it.
    pub false_alarm_rate: f64,
    /// The detector.
    pub detector: DetectorSpec,
}

impl Alarm {
    /// The same as a calibration of the model that it belongs to.
    pub fn calibration(&self, model: &Model) -> Calibration {
        let settings = self.detector.settings();
        Calibration {
            model: model.hash.clone(),
            score: self.detector.name().into(),
            seed: settings.seed,
            false_alarm_rate: self.false_alarm_rate,
            threshold: self.threshold,
            images: self.images,
            bias: None,
            residuals: Vec::new(),
            views: settings.views.set.clone(),
        }
    }
}

/// A figure and its 95 % interval, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The figure.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} ({:.1} to {:.1})", self.value, self.low, self.high)
    }
}

/// What a choice was made by, on images that did not make it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// What is measured: `mIoU`.
    pub metric: String,
    /// The attacks' radius in 1/255.
    pub epsilon_255: f64,
    /// Images that judged.
    pub images: usize,
    /// Forward passes of the network that an answer costs, a pullback counted as one and all by their pixels.
    pub cost: f64,
    /// Clean.
    pub clean: Interval,
    /// Under the worst attacker who does not know of it.
    pub unaware: Interval,
    /// Under the worst attacker who aims through it.
    pub aware: Interval,
    /// The bare network, clean.
    pub bare_clean: Interval,
    /// The bare network under the worst attacker.
    pub bare_attacked: Interval,
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { metric, clean, aware, bare_clean, bare_attacked, .. } = self;
        write!(
            f,
            "{metric} clean {:.1} instead of {:.1}, attacked {:.1} instead of {:.1}",
            clean.value, bare_clean.value, aware.value, bare_attacked.value
        )
    }
}

impl Figures {
    /// What is lost and won, in words, if more of the clean score is lost than is won under attackers who know of it.
    pub fn costs_more(&self) -> Option<String> {
        let lost = self.bare_clean.value - self.clean.value;
        let won = self.aware.value - self.bare_attacked.value;
        (lost > 0.0 && lost > won).then(|| self.to_string())
    }
}

impl Policy {
    /// Whether it does anything to an image or its answer.
    pub fn acts(&self) -> bool {
        let defends = self.defence.as_ref().is_some_and(|defence| defence.name() != "none");
        defends || self.answer.as_ref().is_some_and(|answer| !answer.is_plain())
    }

    /// The policy that does nothing, for a model.
    pub fn none(model: &Model) -> Self {
        Self {
            model: model.hash.clone(),
            about: String::new(),
            seed: 0,
            defence: None,
            answer: None,
            alarm: None,
            figures: None,
        }
    }

    /// Where a network's policy lies: `net.policy.toml` beside `net.onnx`.
    pub fn path_beside(network: &Path) -> PathBuf {
        network.with_extension("policy.toml")
    }

    /// The policy beside a network's file, if there is one.
    ///
    /// # Errors
    /// As [`Policy::load`].
    pub fn beside(network: &Path, model: &Model) -> Result<Option<Self>> {
        let path = Self::path_beside(network);
        path.exists().then(|| Self::load(&path, model)).transpose()
    }

    /// Reads a policy, for this model only.
    ///
    /// # Errors
    /// If it cannot be read, names something that is not there, or was made for another network.
    pub fn load(path: &Path, model: &Model) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        let fail = |reason: String| Error::File { path: path.to_owned(), reason };
        let policy: Self = toml::from_str(&text).map_err(|e| fail(e.to_string().trim_end().to_string()))?;
        if policy.model != model.hash {
            let reason = "was made for another network; `evenkeel tune` makes one for this, and --no-policy does without";
            return Err(fail(reason.into()));
        }
        if policy.alarm.as_ref().is_some_and(|alarm| !alarm.threshold.is_finite()) {
            return Err(fail("the alarm's threshold is not a number".into()));
        }
        Ok(policy)
    }

    /// Writes it as TOML.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let fail = |e: toml::ser::Error| Error::File { path: path.to_owned(), reason: e.to_string() };
        write_atomically(path, toml::to_string(self).map_err(fail)?.as_bytes())
    }

    /// The policy as a pipeline.
    ///
    /// # Errors
    /// If it was made for another network, settings do not go together, or a head is missing.
    pub fn pipeline(&self, model: Arc<Model>, heads: &Heads) -> Result<Pipeline> {
        if self.model != model.hash {
            return Err(Error::mismatch("the network of the policy", &self.model, &model.hash));
        }
        let mut pipeline = Pipeline::new(model.clone()).with_seed(self.seed);
        if let Some(defence) = &self.defence {
            pipeline = pipeline.with_defence(defence.build(&model, heads)?);
        }
        if let Some(answer) = &self.answer {
            pipeline = pipeline.with_answer(answer.build(&model)?);
        }
        if let Some(alarm) = &self.alarm {
            let detector = alarm.detector.build(&model, heads.clone())?;
            pipeline = pipeline.with_detector(detector).with_threshold(alarm.threshold);
        }
        Ok(pipeline)
    }

    /// What it does, in a line.
    pub fn words(&self) -> String {
        let defence = self.defence.as_ref().map(|d| d.name()).filter(|name| *name != "none");
        let answer = self.answer.as_ref().filter(|a| !a.is_plain()).map(|a| a.name());
        let acts = match (defence, answer) {
            (Some(defence), Some(answer)) => Some(format!("{defence} + {answer}")),
            (one, other) => one.or(other).map(str::to_string),
        };
        match (acts, &self.alarm) {
            (Some(acts), Some(alarm)) => format!("{acts} when {} raises the alarm", alarm.detector.name()),
            (Some(acts), None) => format!("{acts}, always"),
            (None, Some(alarm)) => format!("the alarm of {}, nothing else", alarm.detector.name()),
            (None, None) => "the network as it is".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;
    use crate::task::Classification;
    use crate::toy::{Conv, picture};

    fn model(hash: &str) -> Arc<Model> {
        let network = Box::new(Conv::random(&[6, 8], 5, false, 3));
        let model = Model::new(network, Box::new(Classification), "scores", "features");
        Arc::new(Model { hash: hash.into(), ..model })
    }

    fn policy(model: &Model, threshold: f64) -> Policy {
        let at = |value: f64| Interval { value, low: value - 1.5, high: value + 1.5 };
        Policy {
            about: "what helps".into(),
            seed: 7,
            defence: Some(DefenceSpec::named("consensus").unwrap().with("steps", 3).unwrap()),
            answer: Some(AnswerSpec::named("vote").unwrap().with("combine", "median").unwrap()),
            alarm: Some(Alarm {
                threshold,
                images: 20,
                false_alarm_rate: 0.05,
                detector: DetectorSpec::named("variance").unwrap().with("seed", 3).unwrap(),
            }),
            figures: Some(Figures {
                metric: "accuracy".into(),
                epsilon_255: 4.0,
                images: 12,
                cost: 34.5,
                clean: at(80.0),
                unaware: at(60.0),
                aware: at(40.0),
                bare_clean: at(81.0),
                bare_attacked: at(2.0),
            }),
            ..Policy::none(model)
        }
    }

    #[test]
    fn a_policy_comes_back_from_its_file_and_does_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let (model, network) = (model("one"), folder.path().join("net.onnx"));
        assert!(Policy::beside(&network, &model).unwrap().is_none());
        let image: Image = picture((20, 16), 2);
        for (threshold, acts) in [(-1e9, true), (1e9, false)] {
            let policy = policy(&model, threshold);
            policy.save(&Policy::path_beside(&network)).unwrap();
            let read = Policy::beside(&network, &model).unwrap().unwrap();
            assert_eq!(read, policy);
            let verdict = read.pipeline(model.clone(), &Heads::default()).unwrap().run(&image).unwrap();
            assert_eq!([verdict.alarm, Some(verdict.defended), Some(verdict.voted)], [Some(acts); 3]);
            assert!(acts || verdict.prediction == model.predict(&image).unwrap());
        }
    }

    #[test]
    fn a_policy_for_another_network_or_with_unknown_words_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (own, path) = (model("one"), folder.path().join("net.policy.toml"));
        policy(&own, 0.1).save(&path).unwrap();
        let sentence = Policy::load(&path, &model("other")).unwrap_err().to_string();
        assert!(sentence.contains("net.policy.toml") && sentence.contains("another network"), "{sentence}");
        assert!(policy(&own, 0.1).pipeline(model("other"), &Heads::default()).is_err());
        let text = std::fs::read_to_string(&path).unwrap();
        for (from, to) in [("consensus", "prayer"), ("steps = 3", "steps = 0"), ("seed = 7", "sede = 7")] {
            std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let sentence = Policy::load(&path, &own).unwrap_err().to_string();
            assert!(sentence.contains("net.policy.toml"), "{sentence}");
        }
    }

    #[test]
    fn a_policy_is_told_in_a_line() {
        let model = model("one");
        assert_eq!(Policy::none(&model).words(), "the network as it is");
        let full = policy(&model, 0.1);
        assert_eq!(full.words(), "consensus + vote when variance raises the alarm");
        let alarm = Policy { alarm: full.alarm.clone(), ..Policy::none(&model) };
        assert_eq!(alarm.words(), "the alarm of variance, nothing else");
        assert_eq!(Policy { alarm: None, answer: None, ..full }.words(), "consensus, always");
    }
}
