//! How a defence is set: every knob of the table of defences, with its default. [`DefenceSettings::default`] is the one place that says what
//! every front does unless told otherwise.

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
}

impl Default for DefenceSettings {
    /// What every front does unless told otherwise: one and a half times the usual attack's radius, twenty gradients along an average of directions.
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

type K = Knob<DefenceSettings>;

static KNOBS: [K; 8] = [
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
        self.views.set.check()
    }
}
