//! Defences: change the image, within a budget, so that the network's answer is right again. Labels are never read.
//!
//! r0 uniform in the budget; for t < T: r ← project(r + η · sign(ĝ + n_t)), where ĝ is the normalised gradient of an objective on
//! views and n_t annealed noise (see [`Langevin`]). The answer is the network's for x + r. `none` and `random` are the same with
//! no steps. The answer for an image depends on the image and the seed only.

mod schedule;

#[cfg(test)]
mod tests;

pub use schedule::Schedule;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::model::Model;
use crate::objective::head::Head;
use crate::objective::{
    Bank, Contrastive, Equivariance, Invariance, Pairing, Progress, Rotation, Terms, ViewObjective, ViewTerm,
};
use crate::optimise::{Evaluation, Keep, Objective, Plan, Record, Start, optimise};
use crate::random::Random;
use crate::step::Langevin;
use crate::view::ViewSet;

/// The names of the defences.
pub const DEFENCES: [&str; 6] = ["none", "random", "rotation", "contrastive", "invariance", "equivariance"];

/// A defence, ready to be used on any image.
pub struct Defence {
    /// Its name.
    pub name: String,
    /// What it raises, if it climbs at all.
    pub objective: Option<Box<dyn ViewObjective>>,
    /// How far it may go.
    pub budget: Budget,
    /// Steps.
    pub steps: usize,
    /// Size of a step; at least twice the radius makes every value jump to the edge.
    pub size: f32,
    /// How gradients are used.
    pub schedule: Schedule,
}

/// How a defence is set up.
#[derive(Clone, Debug)]
pub struct DefenceSettings {
    /// How far it may go.
    pub budget: Budget,
    /// Steps.
    pub steps: usize,
    /// Size of a step; `None` for the schedule's own.
    pub size: Option<f32>,
    /// How gradients are used.
    pub schedule: Schedule,
    /// The views to compare.
    pub views: ViewSet,
    /// Which are compared.
    pub pairing: Pairing,
    /// The share of feature cells that take part.
    pub cells: f32,
    /// The head, for `rotation` and `contrastive`.
    pub head: Option<Head>,
    /// Other images' embeddings, for `contrastive`.
    pub bank: Option<Bank>,
}

impl DefenceSettings {
    /// The published loop: as [`standard`](Self::standard), in noisy steps.
    pub fn published(budget: Budget) -> Self {
        Self { schedule: Schedule::Paper, ..Self::standard(budget) }
    }

    /// Twenty gradients over the standard views, each view compared with the image itself.
    pub fn standard(budget: Budget) -> Self {
        Self {
            budget,
            steps: 20,
            size: None,
            schedule: Schedule::DEFAULT,
            views: ViewSet::standard(),
            pairing: Pairing::Anchor,
            cells: 1.0,
            head: None,
            bank: None,
        }
    }
}

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
        let budget = Budget::linf(0.0);
        let schedule = Schedule::DEFAULT;
        Self { name: "none".into(), objective: None, budget, steps: 0, size: 0.0, schedule }
    }

    /// The defence of this name. Views are fitted to what the model accepts.
    ///
    /// # Errors
    /// If there is none of this name, or it needs a head or a bank that is not given.
    pub fn named(name: &str, model: &Model, settings: DefenceSettings) -> Result<Self> {
        let fixed = model.network.fixed_size().is_some();
        let views = settings.views.fitted(fixed, model.multiple);
        views.check()?;
        let missing = |what: &str| Error::setting(format!("defence {name}"), format!("needs {what}"));
        let objective: Option<Box<dyn ViewObjective>> = match name {
            "none" => return Ok(Self::none()),
            "random" => None,
            "equivariance" => Some(Box::new(Equivariance {
                views,
                pairing: settings.pairing,
                cells: settings.cells,
                cell_seed: 0,
            })),
            "invariance" => Some(Box::new(Invariance { views, pairing: settings.pairing })),
            "rotation" => {
                let head = settings.head.ok_or_else(|| missing("a rotation head"))?;
                Some(Box::new(Rotation { head, fixed_canvas: fixed }))
            }
            "contrastive" => Some(Box::new(Contrastive {
                views: ViewSet::contrastive(2).fitted(fixed, model.multiple),
                head: settings.head.ok_or_else(|| missing("a projection head"))?,
                bank: settings.bank.ok_or_else(|| missing("a bank of other images' embeddings"))?,
                temperature: 0.5,
            })),
            _ => {
                return Err(Error::setting(
                    format!("defence {name}"),
                    format!("is not one of {}", DEFENCES.join(", ")),
                ));
            }
        };
        let steps = if objective.is_some() { settings.steps } else { 0 };
        let (budget, schedule) = (settings.budget, settings.schedule);
        let size = settings.size.unwrap_or(schedule.size(budget.radius, steps));
        Ok(Self { name: name.into(), objective, budget, steps, size, schedule })
    }

    /// The image to be shown to the network instead of `image`.
    ///
    /// # Errors
    /// If the network refuses a view.
    pub fn apply(&self, model: &Model, image: &Image, seed: u64) -> Result<Defended> {
        let objective = DefenceObjective { model, objective: self.objective.as_deref() };
        self.climb(&objective, image, seed)
    }

    /// The defence's own loop on any objective; an attacker who looks over its shoulder uses this too.
    pub(crate) fn climb(&self, objective: &dyn Objective, image: &Image, seed: u64) -> Result<Defended> {
        if self.budget.radius == 0.0 {
            return Ok(Defended { image: image.clone(), trace: Vec::new() });
        }
        let plan = Plan {
            budget: self.budget,
            start: Start::Random,
            steps: self.steps,
            restarts: 1,
            keep: if self.steps == 0 { Keep::Last } else { self.schedule.keep() },
            enough: None,
            patience: self.schedule.patience(),
            seed,
        };
        let climb = optimise(objective, image, &plan, &|| self.schedule.step(self.size, &self.budget))?;
        Ok(Defended { image: climb.image, trace: climb.trace })
    }

    /// The step to differentiate and what is kept of the last direction, if the schedule can be unrolled.
    pub(crate) fn unrolled(&self) -> Option<(Langevin, f32)> {
        self.schedule.unrolled(self.size, &self.budget)
    }
}

/// The height of an image is the objective on its views.
pub struct DefenceObjective<'a> {
    /// The model.
    pub model: &'a Model,
    /// The objective; `None` is flat.
    pub objective: Option<&'a dyn ViewObjective>,
}

impl Objective for DefenceObjective<'_> {
    fn evaluate(
        &self,
        image: &Image,
        progress: Progress,
        random: &Random,
        want_gradient: bool,
    ) -> Result<Evaluation> {
        let Some(objective) = self.objective else {
            return Ok(Evaluation { value: 0.0, gradient: None, score: 1.0, loss: None });
        };
        let views = vec![ViewTerm { weight: 1.0, objective }];
        let terms = Terms { output: "", feature: &self.model.feature, losses: vec![], views };
        let seen = terms.evaluate(&*self.model.network, image, progress, random, want_gradient)?;
        Ok(Evaluation { value: seen.value, gradient: seen.gradient, score: 1.0, loss: None })
    }
}
