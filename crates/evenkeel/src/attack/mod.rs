//! Attacks: recipes for the one loop. Each is a objective, a step and a plan; all stay in the budget and in [0, 1].
//!
//! An attack maximises a loss at the true labels, or minimises it at wanted ones. Those that know of a defence look through it.
//! The table [`ATTACKS`] is the whole list.

mod boundary;
mod family;
mod minimal;
mod objective;
mod through;
mod unrolled;
mod worst;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod unchanged;

pub use objective::TaskObjective;
pub use through::DefendedObjective;
pub use unrolled::UnrolledObjective;
pub use worst::{Verdicts, worst_case};

use crate::budget::{Budget, Norm};
use crate::defence::Defence;
use crate::error::{Error, Result};
use crate::image::{Image, LabelMap};
use crate::model::Model;
use crate::objective::ViewObjective;
use crate::optimise::{Optimum, Record};
use crate::random::Random;
use crate::task::{Truth, instance::Instance};

/// What is attacked.
#[derive(Clone, Copy)]
pub struct Scenario<'a> {
    /// The model.
    pub model: &'a Model,
    /// The image at the model's size.
    pub image: &'a Image,
    /// What is true of it.
    pub truth: &'a Truth,
    /// What the attacker wants said, for a targeted attack.
    pub target: Option<&'a Truth>,
    /// The defence that the attacker knows of.
    pub defence: Option<&'a Defence>,
    /// The objective that an adaptive attacker keeps high.
    pub objective: Option<&'a dyn ViewObjective>,
}

/// How hard to attack.
#[derive(Clone, Debug)]
pub struct AttackSettings {
    /// How far it may go.
    pub budget: Budget,
    /// Steps; for `square`, queries.
    pub steps: usize,
    /// Size of a step.
    pub step_size: f32,
    /// Starts.
    pub restarts: usize,
    /// How much of the past MIM keeps.
    pub momentum: f32,
    /// Beyond this margin, margin losses stop growing.
    pub confidence: f32,
    /// Weight of the adaptive attack's second term.
    pub weight: f64,
    /// Draws of the defence's randomness that an expectation averages.
    pub draws: usize,
    /// Steps of APGD on the bare network that an attack through the defence starts from; 0 for a random start.
    pub warm_steps: usize,
    /// Classes that `apgd-t` aims at.
    pub targets: usize,
    /// How sharp the tanh is that stands for a sign in the unrolled defence.
    pub sharpness: f32,
    /// Whether to stop as soon as the answer is wrong.
    pub stop_when_fooled: bool,
    /// The seed.
    pub seed: u64,
}

impl AttackSettings {
    /// Twenty steps of 1/255, or of a twentieth of an L2 ball times two and a half.
    pub fn new(budget: Budget) -> Self {
        let step_size = match budget.norm {
            Norm::Linf => 1.0 / 255.0,
            Norm::L2 => 2.5 * budget.radius / 20.0,
        };
        Self {
            budget,
            steps: 20,
            step_size,
            restarts: 1,
            momentum: 0.5,
            confidence: f32::INFINITY,
            weight: 1000.0,
            draws: 20,
            warm_steps: 0,
            targets: 9,
            sharpness: 1.0,
            stop_when_fooled: false,
            seed: 0,
        }
    }
}

/// What an attack achieved.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The attacked image.
    pub image: Image,
    /// How right the answer still is (or, targeted, how far from what was wanted), as the attack saw it.
    pub score: f64,
    /// The height it reached.
    pub value: f64,
    /// Every look.
    pub trace: Vec<Record>,
}

impl From<Optimum> for Outcome {
    fn from(climb: Optimum) -> Self {
        Self { image: climb.image, score: climb.score, value: climb.value, trace: climb.trace }
    }
}

/// One attack.
pub struct Attack {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Whether it can aim at a target.
    pub targeted: bool,
    /// Whether it needs to know the defence.
    pub needs_defence: bool,
    recipe: fn(&Scenario<'_>, &AttackSettings) -> Result<Outcome>,
}

const fn attack(
    name: &'static str,
    about: &'static str,
    targeted: bool,
    recipe: fn(&Scenario<'_>, &AttackSettings) -> Result<Outcome>,
) -> Attack {
    Attack { name, about, targeted, needs_defence: false, recipe }
}

const fn through(
    name: &'static str,
    about: &'static str,
    recipe: fn(&Scenario<'_>, &AttackSettings) -> Result<Outcome>,
) -> Attack {
    Attack { name, about, targeted: true, needs_defence: true, recipe }
}

/// Every attack.
pub static ATTACKS: [Attack; 23] = [
    attack("fgsm", "one step of the whole radius", true, family::fgsm),
    attack("ifgsm", "steps of 1/255, as many as the radius asks for", true, family::ifgsm),
    attack("pgd", "steps along the sign of the gradient, projected", true, family::pgd),
    attack("mim", "steps along a momentum of normalised gradients", true, family::mim),
    attack("cw", "PGD on the margin", true, family::cw),
    attack(
        "cw-l2",
        "the least L2 change by Adam in tanh space and a search for the weight",
        true,
        minimal::cw_l2,
    ),
    attack("houdini", "PGD on the chance that noise overturns the margin", true, family::houdini),
    attack("segpgd", "PGD that turns from right to wrong pixels", true, family::segpgd),
    attack("masked-ce", "PGD on the pixels that are still right", true, family::masked),
    attack("jensen-shannon", "PGD on the Jensen-Shannon divergence", true, family::jensen_shannon),
    attack("apgd-ce", "APGD on cross-entropy", true, family::apgd_ce),
    attack("apgd-dlr", "APGD on the difference of logits ratio", false, family::apgd_dlr),
    attack("apgd-t", "APGD on the targeted ratio, class after class", false, family::apgd_t),
    attack("fab", "the least change by steps onto the linearised boundary", false, boundary::fab),
    attack("square", "random squares, no gradient", true, family::square),
    attack("adaptive", "PGD that also keeps the views alike", true, family::adaptive),
    attack("adaptive-apgd", "APGD that also keeps the views alike", true, family::adaptive_apgd),
    attack("transfer", "PGD on the bare network, to be shown to the defended one", true, family::pgd),
    through("bpda", "PGD through the defence taken for the identity", through::bpda),
    through("bpda-eot", "the same, averaged over the defence's randomness", through::bpda_eot),
    through("fixed-seed", "the same, knowing the defence's random numbers", through::fixed_seed),
    through("unrolled", "PGD on the gradient through the defence's steps", unrolled::unrolled),
    through("unrolled-eot", "the same, averaged over the defence's randomness", unrolled::unrolled_eot),
];

impl Attack {
    /// The attack of this name.
    ///
    /// # Errors
    /// Listing the names there are.
    pub fn named(name: &str) -> Result<&'static Self> {
        ATTACKS.iter().find(|a| a.name == name).ok_or_else(|| {
            let names: Vec<_> = ATTACKS.iter().map(|a| a.name).collect();
            Error::setting(format!("attack {name}"), format!("is not one of {}", names.join(", ")))
        })
    }

    /// Attacks.
    ///
    /// # Errors
    /// If the attack cannot be made on this task, norm or number of classes, or the network fails.
    pub fn run(&self, scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
        settings.budget.check()?;
        if scenario.target.is_some() && !self.targeted {
            return Err(Error::setting(format!("attack {}", self.name), "has no targeted form"));
        }
        if self.needs_defence && scenario.defence.is_none() {
            return Err(Error::setting(format!("attack {}", self.name), "needs a defence to look through"));
        }
        (self.recipe)(scenario, settings)
    }
}

/// A target: the true labels with the classes renamed by a seeded permutation that leaves none in place.
pub fn permuted(truth: &Truth, classes: usize, seed: u64) -> Result<Truth> {
    if classes < 2 {
        return Err(Error::setting("permuted target", "needs at least 2 classes"));
    }
    // a random cyclic order: each class becomes the next one of it
    let order = Random::new(seed).order(classes);
    let mut next = vec![0; classes];
    (0..classes).for_each(|i| next[order[i]] = order[(i + 1) % classes]);
    Ok(match truth {
        Truth::Class(class) => Truth::Class(next[*class % classes]),
        Truth::Map(map) => {
            let rename = |l: &u16| next.get(usize::from(*l)).map_or(*l, |n| *n as u16);
            Truth::Map(LabelMap::new(map.height(), map.width(), map.labels().iter().map(rename).collect())?)
        }
        Truth::Instances(objects) => {
            let rename =
                |object: &Instance| Instance { class: next[object.class % classes], ..object.clone() };
            Truth::Instances(objects.iter().map(rename).collect())
        }
    })
}
