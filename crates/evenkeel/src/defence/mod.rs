//! Defences: change the image, within a budget, so that the network's answer is right again. Labels are never read.
//!
//! r0 uniform in the budget; for t < T: r ← project(r + η · sign(ĝ + n_t)), where ĝ is the normalised gradient of an objective on
//! views and n_t annealed noise (see [`Langevin`]). The answer is the network's for x + r. `none` and `random` are the same with
//! no steps. Beside them stand input transforms ([`transform`](Transform)), the baselines, which run no network. The answer for an image depends on the
//! image and the seed only.

mod objective;
mod schedule;
mod settings;
mod table;
mod transform;

#[cfg(test)]
mod tests;

pub use objective::DefenceObjective;
pub use schedule::Schedule;
pub use settings::{DefenceSettings, NamedViews, StartAt, Teach};
pub use table::{DEFENCES, DefenceKind, DefenceSpec, USUAL};
pub use transform::Transform;

use crate::budget::Budget;
use crate::error::Result;
use crate::image::Image;
use crate::model::Model;
use crate::objective::ViewObjective;
use crate::optimise::{Keep, Objective, Plan, Record, Start, optimise};
use crate::random::Random;
use crate::step::Langevin;
use crate::view::Placed;

/// A defence, ready to be used on any image.
pub struct Defence {
    /// Its name.
    pub name: String,
    /// What it raises, if it takes gradients at all.
    pub objective: Option<Box<dyn ViewObjective>>,
    /// How far it may go.
    pub budget: Budget,
    /// Steps.
    pub steps: usize,
    /// Size of a step; at least twice the radius makes every value jump to the edge.
    pub size: f32,
    /// How gradients are used.
    pub schedule: Schedule,
    /// Where its steps start.
    pub start: StartAt,
    /// The agreement of image and views at which its steps end.
    pub agree: Option<f64>,
    /// The change it makes without running the network, instead of all that.
    pub transform: Option<Box<dyn Transform>>,
}

/// The stream of a run's seed that transforms draw from.
const TRANSFORM: u64 = 0x7472_616e;

/// What a defence made of an image.
#[derive(Clone, Debug)]
pub struct Defended {
    /// The image to be shown to the network instead.
    pub image: Image,
    /// Every step.
    pub trace: Vec<Record>,
}

impl Defence {
    /// The defence that does nothing.
    pub fn none() -> Self {
        let (budget, schedule) = (Budget::linf(0.0), DefenceSettings::default().schedule);
        Self {
            name: "none".into(),
            objective: None,
            budget,
            steps: 0,
            size: 0.0,
            schedule,
            start: StartAt::Random,
            agree: None,
            transform: None,
        }
    }

    /// Whether it leaves every image as it is.
    pub fn is_none(&self) -> bool {
        self.name == "none"
    }

    /// Whether what it makes of an image depends on the seed.
    pub fn is_random(&self) -> bool {
        match &self.transform {
            Some(transform) => transform.is_random(),
            None => !self.is_none(),
        }
    }

    /// The view of an image of this (height, width) that the network is shown, if it is shown one; its answer is then undone.
    pub fn frame(&self, size: (usize, usize), seed: u64) -> Option<Placed> {
        let view = self.transform.as_ref()?.view(&Random::new(seed).fork(TRANSFORM))?;
        Some(view.placed(size))
    }

    /// The image to be shown to the network instead of `image`; before its view is taken, where it has a [`Defence::frame`].
    ///
    /// # Errors
    /// If the network refuses a view.
    pub fn apply(&self, model: &Model, image: &Image, seed: u64) -> Result<Defended> {
        if let Some(transform) = &self.transform {
            return Ok(Defended { image: transform.apply(image), trace: Vec::new() });
        }
        let objective = DefenceObjective::new(model, self.objective.as_deref());
        self.optimise(&objective, image, seed)
    }

    /// The defence's own loop on any objective; an attacker who records its steps uses this too.
    pub(crate) fn optimise(&self, objective: &dyn Objective, image: &Image, seed: u64) -> Result<Defended> {
        if self.budget.radius == 0.0 {
            return Ok(Defended { image: image.clone(), trace: Vec::new() });
        }
        let plan = Plan {
            budget: self.budget,
            start: if self.start == StartAt::Image { Start::Origin } else { Start::Random },
            steps: self.steps,
            restarts: 1,
            keep: if self.steps == 0 { Keep::Last } else { self.schedule.keep() },
            // the score of an image that learns is how far it disagrees with its views
            enough: self.agree.map(|agree| 1.0 - agree),
            patience: self.schedule.patience(),
            finalists: 0,
            rounds: 0,
            seed,
        };
        let end = optimise(objective, image, &plan, &|| self.schedule.step(self.size, &self.budget))?;
        Ok(Defended { image: end.image, trace: end.trace })
    }

    /// The step to differentiate and what is kept of the last direction, if the schedule can be unrolled.
    pub(crate) fn unrolled(&self) -> Option<(Langevin, f32)> {
        self.schedule.unrolled(self.size, &self.budget)
    }
}
