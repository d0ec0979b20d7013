//! The worst case: for each image, the attack that hurt most. A defence's honest figure is this one.

use super::{Attack, AttackSettings, Outcome, Scenario};
use crate::error::Result;
use crate::image::Image;
use crate::task::Prediction;

/// What each attack of a list did, judged on what is deployed: the defended network, or the bare one if there is no defence.
#[derive(Clone, Debug)]
pub struct Verdicts {
    /// For every attack: its name, its image, and how right the deployed answer still is.
    pub all: Vec<(&'static str, Image, f64)>,
    /// The place of the worst among them.
    pub worst: usize,
}

impl Scenario<'_> {
    /// The deployed answer for an image: through the defence, if there is one, with this seed.
    ///
    /// # Errors
    /// If the network fails.
    pub fn deployed(&self, image: &Image, seed: u64) -> Result<Prediction> {
        match self.defence {
            Some(defence) => self.model.predict(&defence.apply(self.model, image, seed)?.image),
            None => self.model.predict(image),
        }
    }
}

/// Runs every attack and judges each after rounding to eight bits, with the defence's randomness drawn from `seed`.
///
/// # Errors
/// If an attack does not fit the scenario, or the list is empty.
pub fn worst_case(
    scenario: &Scenario<'_>,
    attacks: &[&'static Attack],
    settings: &AttackSettings,
    seed: u64,
) -> Result<Verdicts> {
    let mut all = Vec::with_capacity(attacks.len());
    for attack in attacks {
        let Outcome { image, .. } = attack.run(scenario, settings)?;
        let image = settings.budget.rounded(scenario.image, &image);
        let prediction = scenario.deployed(&image, seed)?;
        let score = match scenario.target {
            Some(target) => 1.0 - scenario.model.task.score(&prediction, target),
            None => scenario.model.task.score(&prediction, scenario.truth),
        };
        all.push((attack.name, image, score));
    }
    let worst = (0..all.len()).reduce(|a, b| if all[b].2 < all[a].2 { b } else { a });
    match worst {
        Some(worst) => Ok(Verdicts { all, worst }),
        None => Err(crate::error::Error::setting("attacks", "the list is empty")),
    }
}
