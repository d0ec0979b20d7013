//! The table of defences: the knobs that each reads, and how it is made for a model.
//!
//! An entry changes nothing, changes the image without running the network, or raises an objective on views in the one loop.

use std::collections::BTreeMap;

use super::Defence;
use super::settings::{self, DefenceSettings, NamedViews, StartAt, Teach};
use super::transform::{self, Transform};
use crate::budget::Budget;
use crate::detect::Heads;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::objective::{Consensus, Contrastive, Equivariance, Invariance, Rotation, Signal, ViewObjective};
use crate::settings::{Entry, Heading, Spec, Value};
use crate::task::Readout;
use crate::view::{Canvas, ViewSet};

/// Steps of an image that learns, as a share of the schedule's own: a target that moves with every step wants shorter ones.
const TAUGHT_SHARE: f32 = 0.8;

/// One defence of the table.
pub struct DefenceKind {
    heading: Heading,
    preset: fn(&mut DefenceSettings),
    recipe: Recipe,
}

/// How a defence of the table is made.
enum Recipe {
    /// No objective: the image, or noise.
    Nothing,
    /// An objective to be raised on a model.
    Raises(fn(&DefenceSettings, &Model, &Heads) -> Result<Box<dyn ViewObjective>>),
    /// A change that runs no network.
    Changes(fn(&DefenceSettings, &Model) -> Box<dyn Transform>),
}

const fn defence(
    name: &'static str,
    about: &'static str,
    reads: &'static [&'static str],
    recipe: Recipe,
) -> DefenceKind {
    DefenceKind { heading: Heading::new(name, about, reads), preset: |_| {}, recipe }
}

/// Every defence: the bare image and noise, input transforms, objectives.
pub static DEFENCES: [DefenceKind; 14] = [
    defence("none", "the image as it is", &[], Recipe::Nothing),
    defence("random", "uniform noise, no gradient", &settings::RANDOM, Recipe::Nothing),
    defence(
        "jpeg",
        "what JPEG compression leaves of the image",
        &["quality"],
        Recipe::Changes(|s, _| Box::new(transform::Jpeg { quality: s.quality as u32 })),
    ),
    defence(
        "bit-depth",
        "every value rounded to a few bits",
        &["bits"],
        Recipe::Changes(|s, _| Box::new(transform::BitDepth { bits: s.bits as u32 })),
    ),
    defence(
        "median-blur",
        "the median of a window around every pixel",
        &["window"],
        Recipe::Changes(|s, _| Box::new(transform::MedianBlur { window: s.window })),
    ),
    defence(
        "gaussian-blur",
        "a Gaussian blur",
        &["blur"],
        Recipe::Changes(|s, _| Box::new(transform::GaussianBlur { sigma: s.blur })),
    ),
    defence(
        "rescale",
        "the answer at another size, undone",
        &["scale"],
        Recipe::Changes(|s, model| {
            let canvas = Canvas { fixed: model.network.fixed_size().is_some(), multiple: model.multiple };
            Box::new(transform::Rescale { scale: s.scale, canvas })
        }),
    ),
    defence(
        "random-resize-pad",
        "the answer for the image shrunk at random and padded, undone",
        &["least_scale"],
        Recipe::Changes(|s, _| Box::new(transform::RandomResizePad { least: s.least_scale })),
    ),
    defence(
        "rotation",
        "a head classifies by how many quarter turns the image was rotated",
        &settings::STEPS,
        Recipe::Raises(rotation),
    ),
    defence(
        "contrastive",
        "embeddings of the views are nearer to each other than to other images'",
        &settings::STEPS,
        Recipe::Raises(contrastive),
    ),
    defence(
        "invariance",
        "pooled features of the views are alike",
        &settings::VIEWS,
        Recipe::Raises(invariance),
    ),
    defence(
        "equivariance",
        "features of the views, undone, are alike",
        &settings::CELLS,
        Recipe::Raises(equivariance),
    ),
    DefenceKind {
        preset: teaching,
        ..defence(
            "consensus",
            "the image is brought to answer as its views do together; they are held fixed",
            &settings::TEACH,
            Recipe::Raises(|s, model, _| consensus(s, model, false)),
        )
    },
    DefenceKind {
        preset: teaching,
        ..defence(
            "leave-out",
            "the same, each view counting for as much as the other views agree with it",
            &settings::TEACH,
            Recipe::Raises(|s, model, _| consensus(s, model, true)),
        )
    },
];

/// What defences do in which the views teach. They leave an image as it is once its views agree with it: most clean images then cost a step and lose nothing.
fn teaching(settings: &mut DefenceSettings) {
    settings.steps = 10;
    settings.agree = Some(0.85);
    settings.start = StartAt::Image;
    settings.views = NamedViews::named("teach").unwrap_or_else(|_| NamedViews::standard());
}

impl Entry for DefenceKind {
    type Settings = DefenceSettings;
    const KIND: &'static str = "defence";

    fn table() -> &'static [Self] {
        &DEFENCES
    }

    fn heading(&self) -> &Heading {
        &self.heading
    }

    fn preset(&self, settings: &mut DefenceSettings) {
        (self.preset)(settings);
    }
}

/// A defence of the table with its settings, before it meets a model.
pub type DefenceSpec = Spec<DefenceKind>;

/// What is used where a defence is asked for and none is named, with [`AnswerSpec::usual`](crate::AnswerSpec::usual); docs/results.md has the figures that chose it.
pub const USUAL: &str = "consensus";

impl DefenceSpec {
    /// The defence that is used where none is named.
    pub fn usual() -> Self {
        Self::named(USUAL).expect("the table has it")
    }

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
        let how = settings::STEPS.iter().chain(&["refresh", "start", "agree"]);
        let of_objective = self.knobs().filter(|knob| !how.clone().any(|name| *name == knob.name));
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
        let (budget, schedule) = (settings.budget(), settings.schedule);
        let none = Defence { name: self.name().into(), budget, schedule, ..Defence::none() };
        let objective = match &self.entry().recipe {
            Recipe::Nothing => return Ok(none),
            Recipe::Changes(make) => {
                let transform = Some(make(settings, model));
                return Ok(Defence { budget: Budget::linf(1.0), transform, ..none });
            }
            Recipe::Raises(make) => make(settings, model, heads)?,
        };
        let steps = settings.steps;
        let own = settings.step_255.map(|step| (step / 255.0) as f32);
        let teaches = objective.teacher().is_some();
        let share = if teaches { TAUGHT_SHARE } else { 1.0 };
        let size = own.unwrap_or(share * schedule.size(budget.radius, steps));
        let (start, agree) = if teaches { (settings.start, settings.agree) } else { (StartAt::Random, None) };
        Ok(Defence { objective: Some(objective), steps, size, start, agree, ..none })
    }
}

fn fitted(settings: &DefenceSettings, model: &Model) -> ViewSet {
    settings.views.set.clone().fitted(model.network.fixed_size().is_some(), model.multiple)
}

fn missing(name: &str, what: &str) -> Error {
    Error::setting(format!("defence {name}"), crate::objective::head::needs_head(what))
}

fn equivariance(s: &DefenceSettings, model: &Model, _: &Heads) -> Result<Box<dyn ViewObjective>> {
    let (views, pairing) = (fitted(s, model), s.pairing);
    Ok(Box::new(Equivariance { views, pairing, cells: s.cells as f32, cell_seed: 0 }))
}

fn invariance(s: &DefenceSettings, model: &Model, _: &Heads) -> Result<Box<dyn ViewObjective>> {
    Ok(Box::new(Invariance { views: fitted(s, model), pairing: s.pairing }))
}

fn rotation(_: &DefenceSettings, model: &Model, heads: &Heads) -> Result<Box<dyn ViewObjective>> {
    let head = heads.head.clone().ok_or_else(|| missing("rotation", "a rotation head"))?;
    Ok(Box::new(Rotation { head, fixed_canvas: model.network.fixed_size().is_some() }))
}

fn contrastive(_: &DefenceSettings, model: &Model, heads: &Heads) -> Result<Box<dyn ViewObjective>> {
    let fixed = model.network.fixed_size().is_some();
    Ok(Box::new(Contrastive {
        views: ViewSet::contrastive(2).fitted(fixed, model.multiple),
        head: heads.head.clone().ok_or_else(|| missing("contrastive", "a projection head"))?,
        bank: heads
            .bank
            .clone()
            .ok_or_else(|| missing("contrastive", "a bank of other images' embeddings"))?,
        temperature: 0.5,
    }))
}

/// What the views teach, and the tensors that hold it.
fn consensus(s: &DefenceSettings, model: &Model, leave_out: bool) -> Result<Box<dyn ViewObjective>> {
    let signal = match (s.teach, model.task.readout()) {
        (Some(Teach::Answer), Readout::Objects) => {
            let reason = "objects have no cells in common; views can teach their features";
            return Err(Error::setting("teach answer", reason));
        }
        (Some(Teach::Features), _) | (None, Readout::Objects) => Signal::Features,
        (_, Readout::Classes) => Signal::Classes,
        (_, Readout::Values) => Signal::Values,
    };
    let tensors = if signal == Signal::Features { &model.feature } else { &model.output };
    Ok(Box::new(Consensus {
        views: fitted(s, model),
        signal,
        tensors: tensors.clone(),
        temperature: s.temperature as f32,
        leave_out,
        refresh: s.refresh,
    }))
}
