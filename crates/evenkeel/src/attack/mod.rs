//! Attacks: recipes for the one loop. Each is an objective, a step and a plan; all stay in the budget and in [0, 1].
//!
//! An attack maximises a loss at the true labels, or minimises it at wanted ones. Aimed through a pipeline it differentiates the defended network by
//! an estimator, averaged over draws; so every attack of the table [`ATTACKS`] exists through every defence.

mod aim;
mod alarm;
mod boundary;
mod family;
mod minimal;
mod objective;
mod settings;
mod views;
mod worst;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod unchanged;

pub(crate) use aim::Aim;
pub use aim::FINALISTS;
pub use objective::TaskObjective;
pub(crate) use settings::check_radius;
pub use settings::{AttackSettings, Estimator};
pub use worst::{Attempt, Verdicts, worst_case};

use crate::budget::Norm;
use crate::defence::NamedViews;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::model::Model;
use crate::objective::ViewObjective;
use crate::optimise::{Optimum, Record};
use crate::pipeline::Pipeline;
use crate::settings::{Entry, Heading, Spec};
use crate::task::{Prediction, Truth};
use settings::{COMMON, THROUGH};

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
    /// What is deployed in front of the model, if the attacker is to be judged or to aim through it.
    pub pipeline: Option<&'a Pipeline>,
    /// The objective that an adaptive attacker keeps high.
    pub objective: Option<&'a dyn ViewObjective>,
}

impl<'a> Scenario<'a> {
    /// An attack on the bare model.
    pub fn new(model: &'a Model, image: &'a Image, truth: &'a Truth) -> Self {
        Self { model, image, truth, target: None, pipeline: None, objective: None }
    }

    /// An attack on a pipeline.
    pub fn through(pipeline: &'a Pipeline, image: &'a Image, truth: &'a Truth) -> Self {
        Self { pipeline: Some(pipeline), ..Self::new(&pipeline.model, image, truth) }
    }

    /// Whether an answer does what the attacker wants: it is the target's more than the truth's, or, without a target, less than half of the score before
    /// is left. A class is either lost or not; a label map that is a little worse has fooled nobody.
    pub fn reached(&self, before: &Prediction, after: &Prediction) -> bool {
        let task = &self.model.task;
        match self.target {
            Some(target) => task.meets(after, target, self.truth),
            None => task.score(after, self.truth) < 0.5 * task.score(before, self.truth),
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
    /// The value it reached.
    pub value: f64,
    /// Every evaluation.
    pub trace: Vec<Record>,
}

impl From<Optimum> for Outcome {
    fn from(optimum: Optimum) -> Self {
        let Optimum { image, value, score, trace } = optimum;
        Self { image, score, value, trace }
    }
}

/// One attack of the table.
pub struct AttackKind {
    heading: Heading,
    /// Whether it can aim at a target.
    pub targeted: bool,
    /// Whether it reads the objective of the defence, to keep it high.
    pub reads_objective: bool,
    /// What it is where there is no defence to aim through.
    pub base: &'static str,
    preset: fn(&mut AttackSettings),
    recipe: fn(&Scenario<'_>, &AttackSettings) -> Result<Outcome>,
}

type Recipe = fn(&Scenario<'_>, &AttackSettings) -> Result<Outcome>;

/// The names of several lists in one.
const fn joined<const N: usize>(lists: &[&[&'static str]]) -> [&'static str; N] {
    let mut all = [""; N];
    let (mut list, mut next) = (0, 0);
    while list < lists.len() {
        let mut i = 0;
        while i < lists[list].len() {
            all[next] = lists[list][i];
            next += 1;
            i += 1;
        }
        list += 1;
    }
    assert!(next == N, "the length is the sum of the lists'");
    all
}

static ONE_STEP: [&str; 11] = joined(&[&COMMON, &THROUGH]);
static SIGNED: [&str; 14] = joined(&[&COMMON, &["steps", "step_size", "stop_when_fooled"], &THROUGH]);
static MOMENTUM: [&str; 15] = joined(&[&SIGNED, &["momentum"]]);
static MARGIN: [&str; 15] = joined(&[&SIGNED, &["confidence"]]);
static LEAST_L2: [&str; 12] = joined(&[&["epsilon", "norm", "seed", "steps", "confidence"], &THROUGH]);
static APGD: [&str; 13] = joined(&[&COMMON, &["steps", "stop_when_fooled"], &THROUGH]);
static CLASSES: [&str; 14] = joined(&[&APGD, &["targets"]]);
static BOUNDARY: [&str; 13] = joined(&[&COMMON, &["steps", "targets"], &THROUGH]);
static QUERIES: [&str; 14] = joined(&[&APGD, &["confidence"]]);
static ADAPTIVE: [&str; 15] = joined(&[&SIGNED, &["weight"]]);
static ADAPTIVE_APGD: [&str; 14] = joined(&[&APGD, &["weight"]]);
static BARE: [&str; 7] = joined(&[&COMMON, &["steps", "step_size", "stop_when_fooled"]]);
static VIEWS: [&str; 8] = joined(&[&BARE, &["fooled_views"]]);
static BPDA: [&str; 8] = joined(&[&BARE, &["warm_steps"]]);
static BPDA_EOT: [&str; 9] = joined(&[&BPDA, &["draws"]]);
static UNROLLED: [&str; 9] = joined(&[&BPDA, &["sharpness"]]);
static UNROLLED_EOT: [&str; 10] = joined(&[&UNROLLED, &["draws"]]);

const fn attack(
    name: &'static str,
    about: &'static str,
    targeted: bool,
    reads: &'static [&'static str],
    recipe: Recipe,
) -> AttackKind {
    let heading = Heading::new(name, about, reads);
    AttackKind { heading, targeted, reads_objective: false, base: name, preset: |_| {}, recipe }
}

/// PGD through the defence under the name that papers use. It keeps the iterate that did best on its own draws, as earlier releases did.
const fn alias(
    name: &'static str,
    about: &'static str,
    reads: &'static [&'static str],
    preset: fn(&mut AttackSettings),
) -> AttackKind {
    AttackKind { base: "pgd", preset, ..attack(name, about, true, reads, family::pgd) }
}

fn identity(settings: &mut AttackSettings) {
    *settings = AttackSettings { estimator: Some(Estimator::Identity), final_draws: 0, ..settings.clone() };
}

fn exact(settings: &mut AttackSettings) {
    *settings = AttackSettings { estimator: Some(Estimator::Exact), final_draws: 0, ..settings.clone() };
}

/// What is used where an attack is asked for and none is named.
const USUAL: &str = "pgd";

/// Every attack.
pub static ATTACKS: [AttackKind; 24] = [
    attack("fgsm", "one step of the whole radius", true, &ONE_STEP, family::fgsm),
    attack("ifgsm", "steps of 1/255, as many as the radius needs", true, &ONE_STEP, family::ifgsm),
    attack(USUAL, "steps along the sign of the gradient, projected", true, &SIGNED, family::pgd),
    attack("mim", "steps along a momentum of normalised gradients", true, &MOMENTUM, family::mim),
    attack("cw", "PGD on the margin", true, &MARGIN, family::cw),
    AttackKind {
        preset: |s| s.norm = Norm::L2,
        ..attack(
            "cw-l2",
            "the least L2 change by Adam in tanh space and a search for the weight",
            true,
            &LEAST_L2,
            minimal::cw_l2,
        )
    },
    attack("houdini", "PGD on the chance that noise overturns the margin", true, &SIGNED, family::houdini),
    attack("segpgd", "PGD that turns from right to wrong pixels", true, &SIGNED, family::segpgd),
    attack("masked-ce", "PGD on the pixels that are still right", true, &SIGNED, family::masked),
    attack("jensen-shannon", "PGD on the Jensen-Shannon divergence", true, &SIGNED, family::jensen_shannon),
    attack("apgd-ce", "APGD on cross-entropy", true, &APGD, family::apgd_ce),
    attack("apgd-dlr", "APGD on the difference of logits ratio", false, &APGD, family::apgd_dlr),
    attack("apgd-t", "APGD on the targeted ratio, class after class", false, &CLASSES, family::apgd_t),
    attack("fab", "the least change by steps onto the linearised boundary", false, &BOUNDARY, boundary::fab),
    attack("square", "random squares, no gradient", true, &QUERIES, family::square),
    AttackKind {
        reads_objective: true,
        ..attack("adaptive", "PGD that also keeps the views alike", true, &ADAPTIVE, family::adaptive)
    },
    AttackKind {
        reads_objective: true,
        ..attack(
            "adaptive-apgd",
            "APGD that also keeps the views alike",
            true,
            &ADAPTIVE_APGD,
            family::adaptive_apgd,
        )
    },
    attack(
        "views-eot",
        "PGD on the vote of all views, the same image for every defence",
        true,
        &VIEWS,
        views::eot,
    ),
    alias("transfer", "PGD on the bare network, transferred to the defended one", &BARE, |_| {}),
    alias("bpda", "PGD through the defence taken for the identity", &BPDA, identity),
    alias("bpda-eot", "the same, averaged over the defence's randomness", &BPDA_EOT, |s| {
        identity(s);
        s.draws = 20;
    }),
    alias("fixed-seed", "the same, knowing the defence's random numbers", &BPDA, |s| {
        identity(s);
        s.known_draw = true;
    }),
    alias("unrolled", "PGD on the gradient through the defence's steps", &UNROLLED, exact),
    alias("unrolled-eot", "the same, averaged over the defence's randomness", &UNROLLED_EOT, |s| {
        exact(s);
        s.draws = 20;
    }),
];

impl Entry for AttackKind {
    type Settings = AttackSettings;
    const KIND: &'static str = "attack";

    fn table() -> &'static [Self] {
        &ATTACKS
    }

    fn heading(&self) -> &Heading {
        &self.heading
    }

    fn preset(&self, settings: &mut AttackSettings) {
        (self.preset)(settings);
    }
}

/// An attack of the table with its settings.
pub type Attack = Spec<AttackKind>;

impl Attack {
    /// The attack that is used where none is named.
    pub fn usual() -> Self {
        Self::named(USUAL).expect("the table has it")
    }

    /// The same with a radius between pixel values in [0, 1].
    #[must_use]
    pub fn epsilon(mut self, epsilon: f64) -> Self {
        self.settings_mut().epsilon_255 = 255.0 * epsilon;
        self
    }

    /// The same with a seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings_mut().seed = seed;
        self
    }

    /// The same with these views, whatever file they came from.
    #[must_use]
    pub fn with_views(mut self, views: impl Into<NamedViews>) -> Self {
        self.settings_mut().views = views.into();
        self
    }

    /// Whether it aims through the defence that it meets.
    pub fn aims_through(&self) -> bool {
        self.settings().aims_through().is_some()
    }

    /// The attack as it is where there is no defence to aim through: its base, without what only concerns a defence.
    pub fn on_bare_network(&self) -> Self {
        let base = Self::named(self.entry().base).unwrap_or_else(|_| self.clone());
        let plain = AttackSettings::default();
        let settings = AttackSettings {
            estimator: None,
            draws: plain.draws,
            known_draw: false,
            warm_steps: 0,
            sharpness: plain.sharpness,
            final_draws: plain.final_draws,
            evade: 0.0,
            ..self.settings().clone()
        };
        let mut bare = base;
        *bare.settings_mut() = settings;
        bare
    }

    /// Attacks.
    ///
    /// # Errors
    /// If the attack cannot be made on this task, norm or number of classes, or the network fails.
    pub fn run(&self, scenario: &Scenario<'_>) -> Result<Outcome> {
        self.check()?;
        let refuse = |reason: &str| Err(Error::setting(format!("attack {}", self.name()), reason));
        if scenario.target.is_some() && !self.entry().targeted {
            return refuse("has no targeted form");
        }
        if self.aims_through() && scenario.pipeline.is_none() {
            return refuse("needs a defence to aim through");
        }
        (self.entry().recipe)(scenario, self.settings())
    }
}
