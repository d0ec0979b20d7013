//! The worst case: for each image, the most harmful attack. A defence's honest figure is this one.

use super::{Attack, Outcome, Scenario};
use crate::error::Result;
use crate::image::Image;
use crate::task::Prediction;

/// What one attack came to.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The attack.
    pub name: &'static str,
    /// What it achieved, before rounding.
    pub outcome: Outcome,
    /// The image as an eight-bit file holds it.
    pub image: Image,
    /// The deployed answer for that.
    pub prediction: Prediction,
    /// What is left of the right answer, or of the way to the target.
    pub left: f64,
}

/// What each attack of a list did, judged on what is deployed: the pipeline, or the bare network if there is none.
#[derive(Clone, Debug)]
pub struct Verdicts {
    /// Every attack in order.
    pub all: Vec<Attempt>,
    /// The place of the worst among them.
    pub worst: usize,
}

impl Verdicts {
    /// The most harmful attempt.
    pub fn into_worst(mut self) -> Attempt {
        self.all.swap_remove(self.worst)
    }
}

impl Scenario<'_> {
    /// The deployed answer for an image: through the pipeline, if there is one, with this seed.
    ///
    /// # Errors
    /// If the network fails.
    pub fn deployed(&self, image: &Image, seed: u64) -> Result<Prediction> {
        match self.pipeline {
            Some(pipeline) => Ok(pipeline.run_seeded(image, seed)?.prediction),
            None => self.model.predict(image),
        }
    }

    /// What is left for the attacker to do at an answer: how right it is, or how far from the target.
    pub fn left(&self, prediction: &Prediction) -> f64 {
        match self.target {
            Some(target) => 1.0 - self.model.task.score(prediction, target),
            None => self.model.task.score(prediction, self.truth),
        }
    }
}

/// Runs every attack and judges each after rounding to eight bits inside its budget, with the defence's randomness drawn from `seed`.
///
/// # Errors
/// If an attack does not fit the scenario, or the list is empty.
pub fn worst_case(scenario: &Scenario<'_>, attacks: &[Attack], seed: u64) -> Result<Verdicts> {
    let mut all = Vec::with_capacity(attacks.len());
    for attack in attacks {
        let outcome = attack.run(scenario)?;
        let image = attack.settings().budget().rounded(scenario.image, &outcome.image);
        let prediction = scenario.deployed(&image, seed)?;
        let left = scenario.left(&prediction);
        all.push(Attempt { name: attack.name(), outcome, image, prediction, left });
    }
    let worst = (0..all.len()).reduce(|a, b| if all[b].left < all[a].left { b } else { a });
    match worst {
        Some(worst) => Ok(Verdicts { all, worst }),
        None => Err(crate::error::Error::setting("attacks", "the list is empty")),
    }
}
