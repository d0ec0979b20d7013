//! How a defence is set: every knob of the table of defences, with its default. [`DefenceSettings::default`] is the one place that holds the
//! defaults of every front.

use super::Schedule;
use crate::attack::check_radius;
use crate::budget::{Budget, Norm};
use crate::error::{Error, Result};
use crate::objective::Pairing;
use crate::settings::{Choice, Kind, Knob, Knobs, Setting, Value};
use crate::view::ViewSet;

/// A set of views with the name or file that it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedViews {
    /// The name or file.
    pub name: String,
    /// The views.
    pub set: ViewSet,
}

impl NamedViews {
    /// The standard eight.
    pub fn standard() -> Self {
        Self { name: "standard".into(), set: ViewSet::standard() }
    }

    /// The views of this name or file.
    ///
    /// # Errors
    /// As [`ViewSet::named`].
    pub fn named(name: &str) -> Result<Self> {
        Ok(Self { name: name.into(), set: ViewSet::named(name)? })
    }
}

/// Views that no name or file stands for.
impl From<ViewSet> for NamedViews {
    fn from(set: ViewSet) -> Self {
        Self { name: "given".into(), set }
    }
}

impl Setting for NamedViews {
    fn value(&self) -> Option<Value> {
        Some(self.name.clone().into())
    }

    fn assign(&mut self, value: &Value) -> Result<()> {
        let name = value.to_string();
        *self = Self { set: ViewSet::named(&name)?, name };
        Ok(())
    }
}

/// What views teach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Teach {
    /// Their answers: probabilities of classes, values of a regression.
    #[default]
    Answer,
    /// Their features.
    Features,
}

impl Choice for Teach {
    const ALL: &'static [Self] = &[Self::Answer, Self::Features];
    const KIND: &'static str = "teach";

    fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Features => "features",
        }
    }
}

/// Where a defence starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// At a random point of the budget, as published.
    Random,
    /// At the image itself.
    Image,
}

impl Choice for StartAt {
    const ALL: &'static [Self] = &[Self::Random, Self::Image];
    const KIND: &'static str = "start";

    fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Image => "image",
        }
    }
}

/// What a defence does. Made by [`DefenceSpec::named`](super::DefenceSpec) and changed with its builders.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DefenceSettings {
    /// How far it may change a value, in 1/255.
    pub epsilon_255: f64,
    /// How distance is measured.
    pub norm: Norm,
    /// Gradients.
    pub steps: usize,
    /// Size of a step in 1/255; the schedule's own if left out.
    pub step_255: Option<f64>,
    /// How gradients are used.
    pub schedule: Schedule,
    /// The views.
    pub views: NamedViews,
    /// Which are compared.
    pub pairing: Pairing,
    /// Share of feature cells that take part.
    pub cells: f64,
    /// What the views teach; the task's own way if left out.
    pub teach: Option<Teach>,
    /// What scores of views are divided by before their softmax.
    pub temperature: f64,
    /// Steps between two targets.
    pub refresh: usize,
    /// Where the steps start.
    pub start: StartAt,
    /// The agreement of image and views at which the steps end; never if left out.
    pub agree: Option<f64>,
    /// JPEG's quality.
    pub quality: usize,
    /// Bits of a value.
    pub bits: usize,
    /// The side of the median's window.
    pub window: usize,
    /// The deviation of the blur in pixels.
    pub blur: f64,
    /// The factor of both sides.
    pub scale: f64,
    /// The smallest factor of both sides.
    pub least_scale: f64,
}

impl Default for DefenceSettings {
    /// The defaults of every front: one and a half times the usual attack's radius, twenty gradients along an average of directions.
    fn default() -> Self {
        Self {
            epsilon_255: 6.0,
            norm: Norm::Linf,
            steps: 20,
            step_255: None,
            schedule: Schedule::Averaged,
            views: NamedViews::standard(),
            pairing: Pairing::Anchor,
            cells: 1.0,
            teach: None,
            temperature: 1.0,
            refresh: 1,
            start: StartAt::Random,
            agree: None,
            quality: 75,
            bits: 4,
            window: 3,
            blur: 0.8,
            scale: 0.75,
            least_scale: 0.8,
        }
    }
}

impl DefenceSettings {
    /// The budget.
    pub fn budget(&self) -> Budget {
        Budget { norm: self.norm, radius: (self.epsilon_255 / 255.0) as f32 }
    }
}

/// What a defence reads that only adds noise.
pub(super) const RANDOM: [&str; 2] = ["epsilon", "norm"];
/// What a defence reads whose views are its own.
pub(super) const STEPS: [&str; 5] = ["epsilon", "norm", "steps", "step_size", "schedule"];
/// What invariance reads.
pub(super) const VIEWS: [&str; 7] = ["epsilon", "norm", "steps", "step_size", "schedule", "views", "pairing"];
/// What equivariance reads.
pub(super) const CELLS: [&str; 8] =
    ["epsilon", "norm", "steps", "step_size", "schedule", "views", "pairing", "cells"];

/// What defences read in which the views teach.
pub(super) const TEACH: [&str; 11] = [
    "epsilon",
    "norm",
    "steps",
    "step_size",
    "schedule",
    "views",
    "teach",
    "temperature",
    "refresh",
    "start",
    "agree",
];

type K = Knob<DefenceSettings>;

static KNOBS: [K; 19] = [
    K::new(
        "epsilon",
        Kind::Radius,
        "how far the defence may change a value",
        |s| &s.epsilon_255,
        |s| &mut s.epsilon_255,
    )
    .key("epsilon_255")
    .symbol("ε_v"),
    K::new(
        "norm",
        Kind::Choice(Norm::names),
        "how the defence's distance is measured",
        |s| &s.norm,
        |s| &mut s.norm,
    )
    .switch("l2", "l2"),
    K::new("steps", Kind::Whole(1), "gradients that the defence takes", |s| &s.steps, |s| &mut s.steps)
        .symbol("T"),
    K::new(
        "step_size",
        Kind::Radius,
        "size of a step; the schedule's own if left out",
        |s| &s.step_255,
        |s| &mut s.step_255,
    )
    .key("step_255")
    .symbol("η"),
    K::new(
        "schedule",
        Kind::Choice(Schedule::names),
        "how gradients are used",
        |s| &s.schedule,
        |s| &mut s.schedule,
    )
    .symbol("")
    .switch("sgd", "sgd"),
    K::new(
        "views",
        Kind::Text,
        "which views are compared: a set of `evenkeel list views`, or a TOML file of views",
        |s| &s.views,
        |s| &mut s.views,
    )
    .symbol(""),
    K::new(
        "pairing",
        Kind::Choice(Pairing::names),
        "each view with the image, or every two",
        |s| &s.pairing,
        |s| &mut s.pairing,
    )
    .symbol("")
    .switch("all-pairs", "all-pairs"),
    K::new(
        "cells",
        Kind::Above(0.0, 1.0),
        "share of feature cells that take part",
        |s| &s.cells,
        |s| &mut s.cells,
    )
    .symbol("p"),
    K::new(
        "teach",
        Kind::Choice(Teach::names),
        "what the views teach: their answers, or their features; for objects always features",
        |s| &s.teach,
        |s| &mut s.teach,
    )
    .symbol(""),
    K::new(
        "temperature",
        Kind::Above(0.0, 100.0),
        "what scores of the views are divided by before their softmax; below 1 the target is sharper",
        |s| &s.temperature,
        |s| &mut s.temperature,
    )
    .symbol("τ"),
    K::new(
        "refresh",
        Kind::Whole(1),
        "steps after which the views are drawn and evaluated anew",
        |s| &s.refresh,
        |s| &mut s.refresh,
    ),
    K::new(
        "start",
        Kind::Choice(StartAt::names),
        "where the steps start: at a random point of the budget, or at the image",
        |s| &s.start,
        |s| &mut s.start,
    ),
    K::new(
        "agree",
        Kind::Above(0.0, 1.0),
        "the steps end once image and views agree on this share of the answer; 1 for never",
        |s| &s.agree,
        |s| &mut s.agree,
    ),
    K::new("quality", Kind::Level(1, 100), "JPEG quality", |s| &s.quality, |s| &mut s.quality).symbol("q"),
    K::new(
        "bits",
        Kind::Whole(1),
        "bits that are left of a value, from 1 to 8",
        |s| &s.bits,
        |s| &mut s.bits,
    ),
    K::new(
        "window",
        Kind::Level(3, 31),
        "side of the window that the median is taken of, in pixels; odd",
        |s| &s.window,
        |s| &mut s.window,
    ),
    K::new(
        "blur",
        Kind::Above(0.0, 100.0),
        "standard deviation of the blur, in pixels",
        |s| &s.blur,
        |s| &mut s.blur,
    )
    .symbol("σ"),
    K::new(
        "scale",
        Kind::Number(0.1, 4.0),
        "factor by which both sides are scaled before the network runs",
        |s| &s.scale,
        |s| &mut s.scale,
    )
    .symbol("x"),
    K::new(
        "least_scale",
        Kind::Number(0.1, 1.0),
        "smallest factor of both sides that is drawn",
        |s| &s.least_scale,
        |s| &mut s.least_scale,
    ),
];

impl Knobs for DefenceSettings {
    fn knobs() -> &'static [Knob<Self>] {
        &KNOBS
    }

    fn check(&self) -> Result<()> {
        check_radius("epsilon", self.norm, Some(self.epsilon_255))?;
        if self.step_255 == Some(0.0) {
            return Err(Error::setting("step_size", "must be above 0"));
        }
        if self.window.is_multiple_of(2) {
            return Err(Error::setting("window", format!("{} must be odd", self.window)));
        }
        self.views.set.check()
    }
}
