//! Defences: change the image, within a budget, so that the network's answer is right again. Labels are never read.
//!
//! r0 uniform in the budget; for t < T: r ← project(r + η · sign(ĝ + n_t)), where ĝ is the normalised gradient of an objective on
//! views and n_t annealed noise (see [`Langevin`]). The answer is the network's for x + r. `none` and `random` are the same with
//! no steps. The answer for an image depends on the image and the seed only.

mod schedule;
mod settings;

#[cfg(test)]
mod tests;

pub use schedule::Schedule;
pub use settings::{DefenceSettings, NamedViews};

use std::collections::BTreeMap;

use crate::budget::Budget;
use crate::detect::Heads;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::model::Model;
use crate::objective::{
    Contrastive, Equivariance, Invariance, Progress, Rotation, Terms, ViewObjective, ViewTerm,
};
use crate::optimise::{Evaluation, Keep, Objective, Plan, Record, Start, optimise};
use crate::random::Random;
use crate::settings::{Entry, Spec, Value};
use crate::step::Langevin;
use crate::view::ViewSet;

/// One defence of the table.
pub struct DefenceKind {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    reads: &'static [&'static str],
    objective: Recipe,
}

/// What a defence raises on a model.
type Recipe = fn(&DefenceSettings, &Model, &Heads) -> Result<Option<Box<dyn ViewObjective>>>;

/// Every defence.
pub static DEFENCES: [DefenceKind; 6] = [
    DefenceKind { name: "none", about: "the image as it is", reads: &[], objective: |_, _, _| Ok(None) },
    DefenceKind {
        name: "random",
        about: "uniform noise, no gradient",
        reads: &settings::RANDOM,
        objective: |_, _, _| Ok(None),
    },
    DefenceKind {
        name: "rotation",
        about: "a head must tell by how many quarters the image was turned",
        reads: &settings::STEPS,
        objective: rotation,
    },
    DefenceKind {
        name: "contrastive",
        about: "embeddings of the views are nearer to each other than to other images'",
        reads: &settings::STEPS,
        objective: contrastive,
    },
    DefenceKind {
        name: "invariance",
        about: "pooled features of the views are alike",
        reads: &settings::VIEWS,
        objective: invariance,
    },
    DefenceKind {
        name: "equivariance",
        about: "features of the views, undone, are alike",
        reads: &settings::CELLS,
        objective: equivariance,
    },
];

impl Entry for DefenceKind {
    type Settings = DefenceSettings;
    const KIND: &'static str = "defence";

    fn table() -> &'static [Self] {
        &DEFENCES
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn reads(&self) -> &'static [&'static str] {
        self.reads
    }

    fn defaults(&self) -> DefenceSettings {
        DefenceSettings::default()
    }
}

/// A defence of the table with its settings, before it meets a model.
pub type DefenceSpec = Spec<DefenceKind>;

impl DefenceSpec {
    /// Whether it takes gradients of an objective.
    pub fn takes_gradients(&self) -> bool {
        self.knobs().any(|knob| knob.name == "steps")
    }

    /// Whether it uses a head that was trained for it.
    pub fn needs_head(&self) -> bool {
        self.takes_gradients() && !self.knobs().any(|knob| knob.name == "views")
    }

    /// The values that decide what it raises, by their keys in files; the others decide how far and in which steps.
    pub fn objective_values(&self) -> BTreeMap<&'static str, Value> {
        let of_objective = self.knobs().filter(|knob| !settings::STEPS.contains(&knob.name));
        of_objective.filter_map(|knob| Some((knob.key, knob.get(self.settings())?))).collect()
    }

    /// The same with these views, whatever file they came from.
    #[must_use]
    pub fn with_views(mut self, views: impl Into<NamedViews>) -> Self {
        self.settings_mut().views = views.into();
        self
    }

    /// The defence for a model. Views are fitted to what the model accepts.
    ///
    /// # Errors
    /// If settings do not go together, or a head or bank is missing.
    pub fn build(&self, model: &Model, heads: &Heads) -> Result<Defence> {
        self.check()?;
        let settings = self.settings();
        if self.name() == "none" {
            return Ok(Defence::none());
        }
        let objective = (self.entry().objective)(settings, model, heads)?;
        let steps = if objective.is_some() { settings.steps } else { 0 };
        let (budget, schedule) = (settings.budget(), settings.schedule);
        let own = settings.step_255.map(|step| (step / 255.0) as f32);
        let size = own.unwrap_or(schedule.size(budget.radius, steps));
        Ok(Defence { name: self.name().into(), objective, budget, steps, size, schedule })
    }
}

fn fitted(settings: &DefenceSettings, model: &Model) -> ViewSet {
    settings.views.set.clone().fitted(model.network.fixed_size().is_some(), model.multiple)
}

fn missing(name: &str, what: &str) -> Error {
    Error::setting(format!("defence {name}"), format!("needs {what}"))
}

fn equivariance(s: &DefenceSettings, model: &Model, _: &Heads) -> Result<Option<Box<dyn ViewObjective>>> {
    let (views, pairing) = (fitted(s, model), s.pairing);
    Ok(Some(Box::new(Equivariance { views, pairing, cells: s.cells as f32, cell_seed: 0 })))
}

fn invariance(s: &DefenceSettings, model: &Model, _: &Heads) -> Result<Option<Box<dyn ViewObjective>>> {
    Ok(Some(Box::new(Invariance { views: fitted(s, model), pairing: s.pairing })))
}

fn rotation(_: &DefenceSettings, model: &Model, heads: &Heads) -> Result<Option<Box<dyn ViewObjective>>> {
    let head = heads.head.clone().ok_or_else(|| missing("rotation", "a rotation head"))?;
    Ok(Some(Box::new(Rotation { head, fixed_canvas: model.network.fixed_size().is_some() })))
}

fn contrastive(_: &DefenceSettings, model: &Model, heads: &Heads) -> Result<Option<Box<dyn ViewObjective>>> {
    let fixed = model.network.fixed_size().is_some();
    Ok(Some(Box::new(Contrastive {
        views: ViewSet::contrastive(2).fitted(fixed, model.multiple),
        head: heads.head.clone().ok_or_else(|| missing("contrastive", "a projection head"))?,
        bank: heads
            .bank
            .clone()
            .ok_or_else(|| missing("contrastive", "a bank of other images' embeddings"))?,
        temperature: 0.5,
    })))
}

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
        let (budget, schedule) = (Budget::linf(0.0), DefenceSettings::default().schedule);
        Self { name: "none".into(), objective: None, budget, steps: 0, size: 0.0, schedule }
    }

    /// Whether it leaves every image as it is.
    pub fn is_none(&self) -> bool {
        self.name == "none"
    }

    /// Whether what it makes of an image depends on the seed.
    pub fn is_random(&self) -> bool {
        !self.is_none()
    }

    /// The image to be shown to the network instead of `image`.
    ///
    /// # Errors
    /// If the network refuses a view.
    pub fn apply(&self, model: &Model, image: &Image, seed: u64) -> Result<Defended> {
        let objective = DefenceObjective { model, objective: self.objective.as_deref() };
        self.optimise(&objective, image, seed)
    }

    /// The defence's own loop on any objective; an attacker who records its steps uses this too.
    pub(crate) fn optimise(&self, objective: &dyn Objective, image: &Image, seed: u64) -> Result<Defended> {
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

/// A defence's objective as the loop takes it: the objective on an image's views.
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
        let terms = Terms { output: None, feature: &self.model.feature, losses: vec![], views };
        let seen = terms.evaluate(&*self.model.network, image, progress, random, want_gradient)?;
        Ok(Evaluation { value: seen.value, gradient: seen.gradient, score: 1.0, loss: None })
    }
}
