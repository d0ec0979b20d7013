//! Answers: how a pipeline reads its answer off the image that it shows to the network. The station before the verdict.
//!
//! `plain` is C(F(x)). `vote` is the mean (or median) over the image and its views of the undone class probabilities, each cell over the views that saw
//! it; of the values for regression; of matched objects for instances. `noise-vote` is the same over draws of Gaussian noise, with a certificate for
//! classifiers. A vote is a network again ([`Answer::network`]) whose scores are ln of the combined probabilities and whose pullback is exact.
//! Invariant: the answer for an image depends on the image and the seed only.

mod certificate;
mod combine;
mod network;
mod noise;
pub(crate) mod objects;
mod settings;

#[cfg(test)]
mod tests;

pub use certificate::{Certificate, lower_bound, normal_quantile};
pub use combine::Combine;
pub use network::AnswerNetwork;
pub use settings::AnswerSettings;

use std::sync::Arc;

use crate::defence::NamedViews;
use crate::error::Result;
use crate::image::Image;
use crate::model::Model;
use crate::network::Tensor;
use crate::random::Random;
use crate::settings::{Entry, Heading, Spec};
use crate::task::{Prediction, Readout, argmax};
use crate::view::{Canvas, DrawnView, Stay, ViewSet};
use noise::Noise;

/// One answer of the table.
pub struct AnswerKind {
    heading: Heading,
    voters: fn(&AnswerSettings, &Model) -> Voters,
}

/// Every answer.
pub static ANSWERS: [AnswerKind; 3] = [
    AnswerKind {
        heading: Heading::new("plain", "the network's answer for the image itself", &[]),
        voters: |_, _| Voters::Image,
    },
    AnswerKind {
        heading: Heading::new(
            "vote",
            "the mean or median of what the image and its views say, undone",
            &settings::VOTE,
        ),
        voters: |s, model| {
            Voters::Views(s.views.set.clone().fitted(model.network.fixed_size().is_some(), model.multiple))
        },
    },
    AnswerKind {
        heading: Heading::new(
            "noise-vote",
            "a vote over draws of Gaussian noise; certifies classifiers",
            &settings::NOISE,
        ),
        voters: |s, _| Voters::Noise { sigma: s.sigma_255 / 255.0, draws: s.draws },
    },
];

impl Entry for AnswerKind {
    type Settings = AnswerSettings;
    const KIND: &'static str = "answer";

    fn table() -> &'static [Self] {
        &ANSWERS
    }

    fn heading(&self) -> &Heading {
        &self.heading
    }
}

/// An answer of the table with its settings, before it meets a model.
pub type AnswerSpec = Spec<AnswerKind>;

impl AnswerSpec {
    /// The network's own answer.
    pub fn plain() -> Self {
        Self::named("plain").expect("the table has it")
    }

    /// The answer that goes with [`DefenceSpec::usual`](crate::DefenceSpec::usual) where none is named.
    pub fn usual() -> Self {
        Self::named("vote").expect("the table has it")
    }

    /// Whether it is the network's own answer.
    pub fn is_plain(&self) -> bool {
        self.name() == "plain"
    }

    /// The same with these views, whatever file they came from.
    #[must_use]
    pub fn with_views(mut self, views: impl Into<NamedViews>) -> Self {
        self.settings_mut().views = views.into();
        self
    }

    /// The answer for a model. Views are fitted to what the model accepts.
    ///
    /// # Errors
    /// If settings do not go together.
    pub fn build(&self, model: &Model) -> Result<Answer> {
        self.check()?;
        let settings = self.settings();
        Ok(Answer {
            name: self.name().into(),
            voters: (self.entry().voters)(settings, model),
            combine: settings.combine,
            fixed_seed: settings.fixed_seed,
            alpha: settings.alpha,
        })
    }
}

/// Who votes.
#[derive(Clone, Debug)]
pub enum Voters {
    /// The image alone: no vote.
    Image,
    /// The image and these views.
    Views(ViewSet),
    /// The image with noise, this many times.
    Noise {
        /// Its standard deviation, pixel values in [0, 1].
        sigma: f64,
        /// Draws.
        draws: usize,
    },
}

/// An answer, ready to be read off any image.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its name.
    pub name: String,
    /// Who votes.
    pub voters: Voters,
    /// How votes are combined.
    pub combine: Combine,
    /// The seed of the votes for every image; `None` draws them from the seed of the run.
    pub fixed_seed: Option<u64>,
    /// The chance that a certificate does not hold.
    pub alpha: f64,
}

/// What was read off an image.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answered {
    /// The answer.
    pub prediction: Prediction,
    /// The scores that losses are taken of: ln of the combined probabilities, the combined values; for instances the first voter's own.
    pub scores: Tensor,
    /// What is certain about a classifier's vote over noise.
    pub certificate: Option<Certificate>,
}

/// The stream of a run's seed that votes are drawn from; a defence draws from others.
const STREAM: u64 = 0x616e_7377_6572;
/// One class is chosen by a tenth as many draws as are counted for it.
const CHOOSING: usize = 10;

impl Answer {
    /// The network's own answer.
    pub fn plain() -> Self {
        let AnswerSettings { combine, alpha, .. } = AnswerSettings::default();
        Self { name: "plain".into(), voters: Voters::Image, combine, fixed_seed: None, alpha }
    }

    /// Whether it is the network's own answer.
    pub fn is_plain(&self) -> bool {
        matches!(self.voters, Voters::Image)
    }

    /// Whether it depends on the seed of the run.
    pub fn is_random(&self) -> bool {
        !self.is_plain() && self.fixed_seed.is_none()
    }

    fn random(&self, seed: u64) -> Random {
        match self.fixed_seed {
            Some(own) => Random::new(own),
            None => Random::new(seed).fork(STREAM),
        }
    }

    /// Everyone who votes, the image itself first where it does.
    pub(crate) fn draw(&self, seed: u64) -> Vec<DrawnView> {
        let random = self.random(seed);
        match &self.voters {
            Voters::Image => vec![DrawnView::of(Stay)],
            Voters::Views(set) => std::iter::once(DrawnView::of(Stay)).chain(set.draw(&random)).collect(),
            Voters::Noise { sigma, draws } => noisy(*sigma, *draws, &random),
        }
    }

    /// The answer for an image at the model's size.
    ///
    /// # Errors
    /// If the network refuses a view, or its scores are not finite.
    pub fn read(&self, model: &Model, image: &Image, seed: u64) -> Result<Answered> {
        if self.is_plain() {
            let scores = model.scores(image)?;
            let prediction = model.task.predict(&scores, image.size())?;
            return Ok(Answered { prediction, scores, certificate: None });
        }
        let views = self.draw(seed);
        if model.task.readout() == Readout::Objects {
            let (prediction, scores) = objects::vote(model, image, &views, self.combine)?;
            return Ok(Answered { prediction, scores, certificate: None });
        }
        let count = network::Count::of(model, image, &views, self.combine)?;
        let scores = count.scores(model)?;
        let prediction = model.task.predict(&scores, image.size())?;
        let certificate = match self.voters {
            Voters::Noise { sigma, .. } if model.task.readout() == Readout::Classes && count.cells() == 1 => {
                Some(self.certificate(model, image, &count.winners(), sigma, seed)?)
            }
            _ => None,
        };
        let Some(certificate) = certificate else { return Ok(Answered { prediction, scores, certificate }) };
        // what is certified is the answer that most draws give
        let class = if certificate.abstains() { most_frequent(&count.winners()) } else { certificate.class };
        let prediction = Prediction::of_class(class, prediction.probabilities().unwrap_or_default().to_vec());
        Ok(Answered { prediction, scores, certificate: Some(certificate) })
    }

    /// The certificate of a class that draws of its own choose, from the classes that the counted draws gave.
    fn certificate(
        &self,
        model: &Model,
        image: &Image,
        winners: &[usize],
        sigma: f64,
        seed: u64,
    ) -> Result<Certificate> {
        let choosing = noisy(sigma, winners.len().div_ceil(CHOOSING), &self.random(seed).fork(u64::MAX));
        let seen: Vec<Image> = choosing.iter().map(|view| view.apply(image)).collect();
        let scores = model.scores_of(&seen.iter().collect::<Vec<_>>())?;
        let class = most_frequent(&scores.iter().map(|scores| argmax(scores.data())).collect::<Vec<_>>());
        let count = winners.iter().filter(|winner| **winner == class).count();
        Ok(Certificate::new(class, count, winners.len(), self.alpha, sigma))
    }

    /// The answer as a network for one draw of its randomness.
    pub fn network<'a>(&'a self, model: &'a Model, seed: u64) -> AnswerNetwork<'a> {
        AnswerNetwork { model, answer: self, seed }
    }
}

fn noisy(sigma: f64, draws: usize, random: &Random) -> Vec<DrawnView> {
    let one = |i: usize| {
        let noise = Noise { sigma: sigma as f32, seed: random.fork(i as u64).seed() };
        DrawnView::new(Arc::new(noise), Canvas::FREE)
    };
    (0..draws).map(one).collect()
}

/// The class that occurs most often; the lowest of equals.
fn most_frequent(classes: &[usize]) -> usize {
    let mut counts = vec![0usize; classes.iter().max().map_or(1, |most| most + 1)];
    classes.iter().for_each(|class| counts[*class] += 1);
    (1..counts.len()).fold(0, |best, i| if counts[i] > counts[best] { i } else { best })
}
