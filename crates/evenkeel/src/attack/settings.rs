//! How an attack is set: every knob of the table of attacks, with its default.
//!
//! The knobs from `estimator` on decide how an attack aims through a defence. Radii are kept in units of 1/255.

use crate::budget::{Budget, Norm};
use crate::defence::NamedViews;
use crate::error::{Error, Result};
use crate::settings::{Choice, Kind, Knob, Knobs};

/// How the gradient at the defended image is led back to the attacked one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// As if the defence were the identity (BPDA).
    #[default]
    Identity,
    /// Through the defence's own steps, with a smooth stand-in for the sign.
    Exact,
}

impl Choice for Estimator {
    const ALL: &'static [Self] = &[Self::Identity, Self::Exact];
    const KIND: &'static str = "estimator";

    fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Exact => "exact",
        }
    }
}

/// How hard to attack. Made by [`Attack::named`](super::Attack) and changed with its builders.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AttackSettings {
    /// How far a value may change, in 1/255.
    pub epsilon_255: f64,
    /// How distance is measured.
    pub norm: Norm,
    /// Steps; for `square`, queries.
    pub steps: usize,
    /// Size of a step in 1/255; 1 if left out (L2: an eighth of the radius).
    pub step_255: Option<f64>,
    /// Random starts.
    pub restarts: usize,
    /// How much of the past MIM keeps.
    pub momentum: f64,
    /// The margin beyond which margin losses stop growing; no limit if left out.
    pub confidence: Option<f64>,
    /// Weight of the adaptive attack's second term.
    pub weight: f64,
    /// Classes that `apgd-t` and `fab` aim at.
    pub targets: usize,
    /// Whether to stop as soon as the answer is wrong.
    pub stop_when_fooled: bool,
    /// How the gradient comes back through the defence; `None` attacks the bare network.
    pub estimator: Option<Estimator>,
    /// Draws of the defence's randomness that each gradient averages.
    pub draws: usize,
    /// Whether the attacker knows the defence's random numbers (its seed is the attack's).
    pub known_draw: bool,
    /// Steps of APGD on the bare network that the attack through the defence starts from; 0 for a random start.
    pub warm_steps: usize,
    /// How sharp the tanh is that stands for a sign in the exact estimator.
    pub sharpness: f64,
    /// Fresh draws by which the best iterates are compared at the end; 0 keeps the iterate that did best on its own draws.
    pub final_draws: usize,
    /// Weight of staying under the alarm's threshold.
    pub evade: f64,
    /// The views that `views-eot` wants fooled beside the image.
    pub views: NamedViews,
    /// The seed of everything random.
    pub seed: u64,
}

impl Default for AttackSettings {
    fn default() -> Self {
        Self {
            epsilon_255: 4.0,
            norm: Norm::Linf,
            steps: 20,
            step_255: None,
            restarts: 1,
            momentum: 0.5,
            confidence: None,
            weight: 1000.0,
            targets: 9,
            stop_when_fooled: false,
            estimator: None,
            draws: 1,
            known_draw: false,
            warm_steps: 0,
            sharpness: 1.0,
            final_draws: 8,
            evade: 0.0,
            views: NamedViews::named("vote").unwrap_or_else(|_| NamedViews::standard()),
            seed: 0,
        }
    }
}

impl AttackSettings {
    /// The budget.
    pub fn budget(&self) -> Budget {
        Budget { norm: self.norm, radius: (self.epsilon_255 / 255.0) as f32 }
    }

    /// The size of a step: the one given, 1/255, or in L2 a twentieth of the radius times two and a half.
    pub(super) fn step_size(&self) -> f32 {
        match (self.step_255, self.norm) {
            (Some(step), _) => (step / 255.0) as f32,
            (None, Norm::Linf) => 1.0 / 255.0,
            (None, Norm::L2) => 2.5 * self.budget().radius / 20.0,
        }
    }

    /// The margin that is enough.
    pub(super) fn confidence(&self) -> f32 {
        self.confidence.map_or(f32::INFINITY, |c| c as f32)
    }

    /// How the gradient comes back through a defence: as asked, or as the identity if anything is asked for that only an attack through a defence
    /// has.
    pub fn aims_through(&self) -> Option<Estimator> {
        let implied = self.draws > 1 || self.known_draw || self.warm_steps > 0 || self.evade > 0.0;
        self.estimator.or(implied.then_some(Estimator::Identity))
    }
}

/// What every attack reads.
pub(super) const COMMON: [&str; 4] = ["epsilon", "norm", "restarts", "seed"];
/// What an attack reads that can aim through a defence.
pub(super) const THROUGH: [&str; 7] =
    ["estimator", "draws", "known_draw", "warm_steps", "sharpness", "final_draws", "evade"];

type K = Knob<AttackSettings>;

static KNOBS: [K; 19] = [
    K::new("epsilon", Kind::Radius, "how far a value may change", |s| &s.epsilon_255, |s| &mut s.epsilon_255)
        .key("epsilon_255")
        .symbol("ε"),
    K::new("norm", Kind::Choice(Norm::names), "how distance is measured", |s| &s.norm, |s| &mut s.norm)
        .switch("l2", "l2"),
    K::new("steps", Kind::Whole(1), "steps; for square, queries", |s| &s.steps, |s| &mut s.steps).symbol("T"),
    K::new(
        "step_size",
        Kind::Radius,
        "size of a step; 1/255 if left out (L2: an eighth of the radius)",
        |s| &s.step_255,
        |s| &mut s.step_255,
    )
    .key("step_255")
    .symbol("η"),
    K::new("restarts", Kind::Whole(1), "random starts", |s| &s.restarts, |s| &mut s.restarts),
    K::new(
        "momentum",
        Kind::Number(0.0, 1.0),
        "how much of the past direction is kept",
        |s| &s.momentum,
        |s| &mut s.momentum,
    )
    .symbol("μ"),
    K::new(
        "confidence",
        Kind::Number(0.0, f64::INFINITY),
        "the margin beyond which the loss stops growing; no limit if left out (cw-l2: 0)",
        |s| &s.confidence,
        |s| &mut s.confidence,
    )
    .symbol("κ"),
    K::new(
        "weight",
        Kind::Number(0.0, f64::INFINITY),
        "weight of the term that keeps the views alike",
        |s| &s.weight,
        |s| &mut s.weight,
    )
    .symbol("λ"),
    K::new(
        "targets",
        Kind::Whole(1),
        "how many wrong classes are aimed at, the likeliest first; fab takes at least 9",
        |s| &s.targets,
        |s| &mut s.targets,
    ),
    K::new(
        "stop_when_fooled",
        Kind::Switch,
        "stop as soon as the answer is wrong",
        |s| &s.stop_when_fooled,
        |s| &mut s.stop_when_fooled,
    ),
    K::new(
        "estimator",
        Kind::Choice(Estimator::names),
        "attack through the defence, its gradient taken for the identity (BPDA) or led through its steps; left out, the bare network is \
         attacked unless draws, known_draw, warm_steps or evade is set",
        |s| &s.estimator,
        |s| &mut s.estimator,
    ),
    K::new(
        "draws",
        Kind::Whole(1),
        "draws of the defence's randomness that each gradient averages (EOT)",
        |s| &s.draws,
        |s| &mut s.draws,
    )
    .symbol("m"),
    K::new(
        "known_draw",
        Kind::Switch,
        "the attacker knows the defence's random numbers",
        |s| &s.known_draw,
        |s| &mut s.known_draw,
    ),
    K::new(
        "warm_steps",
        Kind::Whole(0),
        "steps of APGD on the bare network that the attack through the defence starts from",
        |s| &s.warm_steps,
        |s| &mut s.warm_steps,
    ),
    K::new(
        "sharpness",
        Kind::Above(0.0, f64::INFINITY),
        "how sharp the tanh is that stands for a sign in the exact estimator",
        |s| &s.sharpness,
        |s| &mut s.sharpness,
    )
    .symbol("k"),
    K::new(
        "final_draws",
        Kind::Whole(0),
        "fresh draws by which the best iterates are compared at the end; 0 keeps the one that did best on the attack's own draws",
        |s| &s.final_draws,
        |s| &mut s.final_draws,
    )
    .formerly("judge_draws"),
    K::new(
        "evade",
        Kind::Number(0.0, f64::INFINITY),
        "weight of keeping the detection score under the alarm's threshold",
        |s| &s.evade,
        |s| &mut s.evade,
    ),
    K::new(
        "fooled_views",
        Kind::Text,
        "which views are fooled beside the image: a set of `evenkeel list views`, or a TOML file of views",
        |s| &s.views,
        |s| &mut s.views,
    )
    .symbol(""),
    K::new("seed", Kind::Whole(0), "the seed of everything random", |s| &s.seed, |s| &mut s.seed),
];

impl Knobs for AttackSettings {
    fn knobs() -> &'static [Knob<Self>] {
        &KNOBS
    }

    fn check(&self) -> Result<()> {
        check_radius("epsilon", self.norm, Some(self.epsilon_255))?;
        if self.step_255 == Some(0.0) {
            return Err(Error::setting("step_size", "must be above 0"));
        }
        self.views.set.check()?;
        check_radius("step_size", self.norm, self.step_255)
    }
}

/// Refuses an L∞ radius beyond the whole range of a pixel value, which is a forgotten `/255`.
pub(crate) fn check_radius(name: &str, norm: Norm, radius_255: Option<f64>) -> Result<()> {
    match radius_255 {
        Some(value) if norm == Norm::Linf && value > 255.0 * (1.0 + 1e-9) => {
            let plain = value / 255.0;
            let cure = match plain.fract() == 0.0 && plain <= 255.0 {
                true => format!("did you mean {plain}/255?"),
                false => "a radius is a share of it, such as 4/255".into(),
            };
            let plain = (plain * 1e4).round() / 1e4;
            Err(Error::setting(
                name,
                format!("{plain} is more than the whole range of a pixel value; {cure}"),
            ))
        }
        _ => Ok(()),
    }
}
