//! The one loop: evaluate, remember the best, step, project. Every gradient attack and every defence is this loop with another
//! objective, step and budget.
//!
//! An [`Objective`] gives value and gradient at an image; a [`Step`] proposes the next image; a [`Budget`] brings it back. Images, values and records depend on the seed only.

use serde::Serialize;

use crate::budget::Budget;
use crate::error::Result;
use crate::image::Image;
use crate::objective::Progress;
use crate::random::Random;
use crate::step::Step;

/// What an objective finds at an image.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The value, to be raised.
    pub value: f64,
    /// Its gradient `[3, h, w]`, if it was asked for.
    pub gradient: Option<Vec<f32>>,
    /// How right the network's answer still is, from 0 to 1; an attack lowers it. Defences, which know no truth, leave it at 1.
    pub score: f64,
    /// The task loss, where it is not the value itself.
    pub loss: Option<f64>,
}

/// A function of the image, to be raised.
pub trait Objective {
    /// Value and gradient at an image. `random` is the step's own stream.
    ///
    /// # Errors
    /// If the network fails.
    fn evaluate(
        &self,
        image: &Image,
        progress: Progress,
        random: &Random,
        want_gradient: bool,
    ) -> Result<Evaluation>;
}

/// Which image an optimisation ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The one that did most: lowest score, then greatest value.
    Best,
    /// The one of greatest value, whatever its score: for a value that says more than the score, as with an attacker who wants two things.
    Highest,
    /// The nearest one of those with the lowest score: what attacks of least distance keep.
    Nearest,
    /// The last, not evaluated: what a defence does.
    Last,
}

/// Where an optimisation starts.
#[derive(Clone, Debug)]
pub enum Start {
    /// The image itself.
    Origin,
    /// A random point of the budget.
    Random,
    /// A given image, projected.
    From(Image),
}

/// How to optimise.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The budget.
    pub budget: Budget,
    /// Where to start.
    pub start: Start,
    /// Steps per start.
    pub steps: usize,
    /// Starts; each from its own random point.
    pub restarts: usize,
    /// Which image to keep.
    pub keep: Keep,
    /// Stop as soon as the score is at most this.
    pub enough: Option<f64>,
    /// End a start after this many evaluations in a row without a new greatest value.
    pub patience: Option<usize>,
    /// How many of the best iterates are evaluated again at the end, where values are noisy; 0 for none.
    pub finalists: usize,
    /// How often each of them is; the one with the best mean is kept.
    pub rounds: usize,
    /// The seed of everything random.
    pub seed: u64,
}

/// One evaluation, for reports to plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// Which start.
    pub restart: usize,
    /// Which step.
    pub step: usize,
    /// The value.
    pub value: f64,
    /// The task loss, where known.
    pub loss: Option<f64>,
    /// How right the answer was.
    pub score: f64,
    /// Distance from the image, in the budget's norm.
    pub distance: f64,
}

/// Where an optimisation ended.
#[derive(Clone, Debug)]
pub struct Optimum {
    /// The image kept.
    pub image: Image,
    /// Its value; NaN if it was never evaluated.
    pub value: f64,
    /// How right the answer for it is.
    pub score: f64,
    /// Every evaluation.
    pub trace: Vec<Record>,
}

/// What a step may know.
pub struct Iterate<'a> {
    /// The image before anything.
    pub origin: &'a Image,
    /// The image now.
    pub image: &'a Image,
    /// What was found at it.
    pub evaluation: &'a Evaluation,
    /// The best of this start so far, by value.
    pub best: &'a Image,
    /// Where the loop is.
    pub progress: Progress,
    /// The budget.
    pub budget: &'a Budget,
    /// The step's own stream.
    pub random: &'a Random,
}

/// Optimises. `step` is made anew for every start.
///
/// # Errors
/// If the objective fails or the budget makes no sense.
pub fn optimise<'s>(
    objective: &dyn Objective,
    origin: &Image,
    plan: &Plan,
    new_step: &dyn Fn() -> Box<dyn Step + 's>,
) -> Result<Optimum> {
    plan.budget.check()?;
    let root = Random::new(plan.seed);
    let mut kept: Option<Optimum> = None;
    let mut trace = Vec::new();
    let mut finalists = Vec::new();
    for restart in 0..plan.restarts.max(1) {
        let mut ascent =
            Ascent { objective, origin, plan, restart, trace: &mut trace, finalists: &mut finalists };
        let end = ascent.once(&root.fork(restart as u64), &mut *new_step())?;
        let mark = |c: &Optimum| Mark {
            score: c.score,
            value: c.value,
            distance: plan.budget.distance(origin, &c.image),
        };
        if kept.as_ref().is_none_or(|k| plan.keep.prefers(mark(&end), mark(k))) {
            kept = Some(end);
        }
        if kept.as_ref().zip(plan.enough).is_some_and(|(k, enough)| k.score <= enough) {
            break;
        }
    }
    let end = kept.expect("at least one start was made");
    if plan.finalists == 0 || plan.rounds == 0 {
        return Ok(Optimum { trace, ..end });
    }
    let (image, mark) = decided(objective, origin, plan, finalists)?;
    Ok(Optimum { image, value: mark.value, score: mark.score, trace })
}

/// The finalist with the best mean over fresh evaluations, the same draws for each.
fn decided(
    objective: &dyn Objective,
    origin: &Image,
    plan: &Plan,
    finalists: Vec<(Mark, Image)>,
) -> Result<(Image, Mark)> {
    let progress = Progress { step: plan.steps, steps: plan.steps };
    let fresh = Random::new(plan.seed).fork(u64::MAX);
    let mut best: Option<(Image, Mark)> = None;
    for (_, image) in finalists {
        let mut mark = Mark { score: 0.0, value: 0.0, distance: plan.budget.distance(origin, &image) };
        for round in 0..plan.rounds {
            let seen = objective.evaluate(&image, progress, &fresh.fork(round as u64), false)?;
            mark.score += seen.score / plan.rounds as f64;
            mark.value += seen.value / plan.rounds as f64;
        }
        if best.as_ref().is_none_or(|(_, old)| plan.keep.prefers(mark, *old)) {
            best = Some((image, mark));
        }
    }
    Ok(best.expect("an optimisation evaluates at least one image"))
}

/// What decides which image is kept.
#[derive(Clone, Copy, Debug)]
struct Mark {
    score: f64,
    value: f64,
    distance: f64,
}

impl Mark {
    const NONE: Self = Self { score: f64::INFINITY, value: f64::NEG_INFINITY, distance: f64::INFINITY };
}

impl Keep {
    fn prefers(self, new: Mark, old: Mark) -> bool {
        match self {
            Self::Best => new.score < old.score || (new.score == old.score && new.value > old.value),
            Self::Highest => new.value > old.value,
            Self::Nearest => new.score < old.score || (new.score == old.score && new.distance < old.distance),
            Self::Last => true,
        }
    }
}

struct Ascent<'a> {
    objective: &'a dyn Objective,
    origin: &'a Image,
    plan: &'a Plan,
    restart: usize,
    trace: &'a mut Vec<Record>,
    finalists: &'a mut Vec<(Mark, Image)>,
}

impl Ascent<'_> {
    fn once(&mut self, random: &Random, step: &mut dyn Step) -> Result<Optimum> {
        let plan = self.plan;
        let mut image = self.start(random, step);
        let (mut kept, mut highest) = (image.clone(), image.clone());
        let (mut mark, mut top, mut idle) = (Mark::NONE, f64::NEG_INFINITY, 0);
        for number in 0..plan.steps {
            let progress = Progress { step: number, steps: plan.steps };
            let stream = random.fork(1 + number as u64);
            let evaluation = self.objective.evaluate(&image, progress, &stream, step.needs_gradient())?;
            let seen = self.record(number, &image, &evaluation);
            if plan.keep.prefers(seen, mark) {
                mark = seen;
                kept.clone_from(&image);
            }
            idle += 1;
            if evaluation.value > top {
                (top, idle) = (evaluation.value, 0);
                highest.clone_from(&image);
            }
            let tired = plan.patience.is_some_and(|patience| idle >= patience);
            if tired || plan.enough.is_some_and(|enough| evaluation.score <= enough) {
                return Ok(Optimum { image: kept, value: mark.value, score: mark.score, trace: Vec::new() });
            }
            let (origin, budget) = (self.origin, &plan.budget);
            let at = Iterate {
                origin,
                image: &image,
                evaluation: &evaluation,
                best: &highest,
                progress,
                budget,
                random: &stream,
            };
            let mut next = step.next(&at);
            budget.project(origin, &mut next);
            image = next;
        }
        if plan.keep == Keep::Last {
            return Ok(Optimum { image, value: f64::NAN, score: 1.0, trace: Vec::new() });
        }
        let progress = Progress { step: plan.steps, steps: plan.steps };
        let evaluation =
            self.objective.evaluate(&image, progress, &random.fork(1 + plan.steps as u64), false)?;
        let seen = self.record(plan.steps, &image, &evaluation);
        if plan.keep.prefers(seen, mark) {
            mark = seen;
            kept = image;
        }
        Ok(Optimum { image: kept, value: mark.value, score: mark.score, trace: Vec::new() })
    }

    fn start(&self, random: &Random, step: &mut dyn Step) -> Image {
        let mut image = match &self.plan.start {
            Start::Origin => self.origin.clone(),
            Start::Random => self.plan.budget.start(self.origin, &mut random.fork(0)),
            Start::From(image) => image.clone(),
        };
        // a given image is where the caller wants to start, whatever the step would choose
        let given = matches!(self.plan.start, Start::From(_));
        if let Some(own) = step.start(self.origin, &self.plan.budget, &random.fork(0)).filter(|_| !given) {
            image = own;
        }
        self.plan.budget.project(self.origin, &mut image);
        image
    }

    fn record(&mut self, step: usize, image: &Image, evaluation: &Evaluation) -> Mark {
        let distance = self.plan.budget.distance(self.origin, image);
        let (value, loss, score) = (evaluation.value, evaluation.loss, evaluation.score);
        self.trace.push(Record { restart: self.restart, step, value, loss, score, distance });
        let mark = Mark { score, value, distance };
        if self.plan.finalists > 0 {
            let place = self.finalists.iter().position(|(other, _)| self.plan.keep.prefers(mark, *other));
            self.finalists.insert(place.unwrap_or(self.finalists.len()), (mark, image.clone()));
            self.finalists.truncate(self.plan.finalists);
        }
        mark
    }
}
