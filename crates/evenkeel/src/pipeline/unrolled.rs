//! The gradient through the defence's own steps.
//!
//! The defence is x_{t+1} = P(x_t + η·s(v_t)), v_t = d·v_{t−1} + g_t/(‖g_t‖ + 1e-10) + n_t (d = 0 but for averaged directions), g_t the gradient of its objective at x_t, and P the
//! projection, which depends on the attacked image as its centre. Backwards, with λ the gradient at x_{t+1}:
//! through s by its derivative, where an L∞ step's sign is replaced by tanh(k·v/rms(v)) of sharpness k (rms held
//! fixed) since a sign's own derivative is zero, and an L2 step v/‖v‖ is exact; through P by its derivative at what the tanh would have proposed, for
//! a published step, of twice the radius, leaves the ball everywhere and nothing would come back; through the normalisation exactly; through g_t by the
//! Hessian, as a central difference of gradients along the direction, whose largest entry is `PROBE`. Where views teach, g_t also depends on the target, and the
//! way back leads on through the views of the image that it was made for (`Consensus::curvature`, `pull_target`). Only the x_t, g_t and targets are
//! kept; everything a pass needs is recomputed, so memory does not grow with the network.

use std::cell::RefCell;

use crate::budget::{Budget, Norm, length};
use crate::defence::{Defence, DefenceObjective, StartAt};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::model::Model;
use crate::objective::{Curvature, Progress, Target};
use crate::optimise::{Evaluation, Objective};
use crate::random::Random;
use crate::settings::Choice;
use crate::step::Langevin;

/// The largest change of a value in the difference that stands for the Hessian.
const PROBE: f32 = 1e-3;

/// A defence whose steps are differentiated.
#[derive(Clone, Copy)]
pub(super) struct Unrolled<'a> {
    pub(super) model: &'a Model,
    pub(super) defence: &'a Defence,
    /// How sharp the tanh is.
    pub(super) sharpness: f32,
}

/// One step of the defence as it happened.
pub(super) struct Visit {
    image: Image,
    gradient: Vec<f32>,
    progress: Progress,
    random: Random,
    /// What the image was taught, and whether its own views said so.
    held: Option<(Target, bool)>,
    /// How far image and views disagreed, which may have ended the steps.
    score: f64,
}

/// An objective that records where it was evaluated.
struct Watched<'a> {
    inner: DefenceObjective<'a>,
    visits: RefCell<Vec<Visit>>,
}

impl Objective for Watched<'_> {
    fn evaluate(
        &self,
        image: &Image,
        progress: Progress,
        random: &Random,
        want_gradient: bool,
    ) -> Result<Evaluation> {
        let evaluation = self.inner.evaluate(image, progress, random, want_gradient)?;
        if let Some(gradient) = &evaluation.gradient {
            self.visits.borrow_mut().push(Visit {
                image: image.clone(),
                gradient: gradient.clone(),
                progress,
                random: random.clone(),
                held: self.inner.held_target(progress),
                score: evaluation.score,
            });
        }
        Ok(evaluation)
    }
}

impl<'a> Unrolled<'a> {
    /// Refuses schedules whose steps have no derivative here.
    pub(super) fn new(model: &'a Model, defence: &'a Defence, sharpness: f32) -> Result<Self> {
        if defence.objective.is_some() && defence.unrolled().is_none() {
            let name = defence.schedule.name();
            let reason = format!("differentiates the schedules paper, sgd and averaged, not {name}");
            return Err(Error::setting("estimator exact", reason));
        }
        Ok(Self { model, defence, sharpness })
    }

    fn objective(&self) -> DefenceObjective<'a> {
        DefenceObjective::new(self.model, self.defence.objective.as_deref())
    }

    /// The defended image, and every step on the way to it.
    pub(super) fn run(&self, image: &Image, seed: u64) -> Result<(Image, Vec<Visit>)> {
        let watched = Watched { inner: self.objective(), visits: RefCell::default() };
        let defended = self.defence.optimise(&watched, image, seed)?.image;
        let mut visits = watched.visits.into_inner();
        // where image and views agree enough, no step follows
        let agreed = |visit: &Visit| self.defence.agree.is_some_and(|agree| visit.score <= 1.0 - agree);
        visits.pop_if(|visit| agreed(visit));
        Ok((defended, visits))
    }

    /// The defence's step and what is kept of the last direction; without an objective none is ever taken.
    fn step(&self) -> (Langevin, f32) {
        self.defence.unrolled().unwrap_or((Langevin { size: self.defence.size, noise: false }, 0.0))
    }

    /// v_t of every visit.
    fn directions(&self, visits: &[Visit]) -> Vec<Vec<f32>> {
        let (step, keep) = self.step();
        let mut all: Vec<Vec<f32>> = Vec::with_capacity(visits.len());
        for visit in visits {
            let mut own = step.direction(&visit.gradient, visit.progress, &visit.random);
            if let Some(last) = all.last().filter(|_| keep != 0.0) {
                own.iter_mut().zip(last).for_each(|(o, l)| *o += keep * l);
            }
            all.push(own);
        }
        all
    }

    /// k/rms(v), which the tanh multiplies its argument by.
    fn sharp(&self, direction: &[f32]) -> f32 {
        let rms = length(direction) / (direction.len() as f64).sqrt();
        self.sharpness / (rms as f32 + 1e-12)
    }

    /// From the gradient at the defended image to the gradient at the attacked one.
    pub(super) fn back(
        &self,
        origin: &Image,
        visits: &[Visit],
        at_end: Vec<f32>,
        end: &Image,
    ) -> Result<Vec<f32>> {
        let mut to_origin = vec![0.0; at_end.len()];
        let mut ahead = at_end;
        let mut after = end.clone();
        let objective = self.objective();
        let (_, keep) = self.step();
        let mut to_later = vec![0.0; to_origin.len()];
        let mut to_target = Vec::new();
        for (visit, direction) in visits.iter().zip(self.directions(visits)).rev() {
            let proposed = self.proposed(&visit.image, &direction);
            let (to_proposed, to_centre) =
                pull_project(&self.defence.budget, origin, &proposed, &after, &ahead);
            to_origin.iter_mut().zip(&to_centre).for_each(|(o, c)| *o += c);
            let mut to_direction = self.pull_sign(&direction, &to_proposed);
            // later directions contain this one
            to_direction.iter_mut().zip(&to_later).for_each(|(d, l)| *d += keep * l);
            let to_gradient = pull_normalised(&visit.gradient, &to_direction);
            to_later = to_direction;
            let curved = match &visit.held {
                Some(held) => self.unlearn(visit, held, &to_gradient, &mut to_target)?,
                None => hessian_product(&objective, visit, &to_gradient)?,
            };
            ahead = to_proposed.iter().zip(&curved).map(|(a, b)| a + b).collect();
            after.clone_from(&visit.image);
        }
        // the start is the image, or the image plus a constant, clipped to the box
        let origin_itself = self.defence.start == StartAt::Image;
        let open = |v: &f32| if origin_itself || (*v > 0.0 && *v < 1.0) { 1.0 } else { 0.0 };
        to_origin.iter_mut().zip(&ahead).zip(after.pixels()).for_each(|((o, a), v)| *o += a * open(v));
        Ok(to_origin)
    }

    /// The same for a gradient that views taught: to the image of the visit goes what its own pass and, if its views gave the target, what all steps that
    /// used this one ask of it.
    fn unlearn(
        &self,
        visit: &Visit,
        (target, made_here): &(Target, bool),
        to_gradient: &[f32],
        to_target: &mut Vec<Vec<f32>>,
    ) -> Result<Vec<f32>> {
        let network = &*self.model.network;
        let Some(teacher) = self.defence.objective.as_ref().and_then(|objective| objective.teacher()) else {
            return Ok(vec![0.0; to_gradient.len()]);
        };
        let Curvature { mut on_image, on_target } =
            teacher.curvature(network, &visit.image, target, to_gradient)?;
        match to_target.is_empty() {
            true => *to_target = on_target,
            false => {
                let values = to_target.iter_mut().flatten().zip(on_target.iter().flatten());
                values.for_each(|(sum, own)| *sum += own);
            }
        }
        if *made_here {
            let all = std::mem::take(to_target);
            let views = teacher.pull_target(network, &visit.image, &visit.random.fork(0), &all)?;
            on_image.iter_mut().zip(&views).for_each(|(o, v)| *o += v);
        }
        Ok(on_image)
    }

    /// What a step proposes before it is projected, with the stand-in for the sign.
    fn proposed(&self, image: &Image, direction: &[f32]) -> Image {
        let mut next = image.clone();
        let size = self.step().0.size;
        let (sharp, scale) = (self.sharp(direction), (f64::from(size) / (length(direction) + 1e-10)) as f32);
        let moved = |d: f32| match self.defence.budget.norm {
            Norm::Linf => size * (sharp * d).tanh(),
            Norm::L2 => scale * d,
        };
        next.pixels_mut().iter_mut().zip(direction).for_each(|(v, d)| *v += moved(*d));
        next
    }

    /// From the proposed image back through s to the direction.
    fn pull_sign(&self, direction: &[f32], ahead: &[f32]) -> Vec<f32> {
        let size = self.step().0.size;
        match self.defence.budget.norm {
            Norm::Linf => {
                let sharp = self.sharp(direction);
                let slope = |v: f32| size * sharp * (1.0 - (sharp * v).tanh().powi(2));
                direction.iter().zip(ahead).map(|(v, a)| slope(*v) * a).collect()
            }
            Norm::L2 => {
                let scaled: Vec<f32> = ahead.iter().map(|a| size * a).collect();
                pull_normalised(direction, &scaled)
            }
        }
    }
}

/// The pullback of v/(‖v‖ + 1e-10).
fn pull_normalised(v: &[f32], cotangent: &[f32]) -> Vec<f32> {
    let size = length(v);
    if size == 0.0 {
        return vec![0.0; v.len()];
    }
    let along =
        v.iter().zip(cotangent).map(|(v, c)| f64::from(*v) * f64::from(*c)).sum::<f64>() / (size * size);
    let scale = 1.0 / (size + 1e-10);
    v.iter().zip(cotangent).map(|(v, c)| ((f64::from(*c) - along * f64::from(*v)) * scale) as f32).collect()
}

/// The pullback of the projection: to the image that was projected, and to the centre of the budget.
fn pull_project(
    budget: &Budget,
    centre: &Image,
    from: &Image,
    to: &Image,
    ahead: &[f32],
) -> (Vec<f32>, Vec<f32>) {
    let boxed = |i: usize| to.pixels()[i] > 0.0 && to.pixels()[i] < 1.0;
    let open: Vec<f32> = ahead.iter().enumerate().map(|(i, a)| if boxed(i) { *a } else { 0.0 }).collect();
    let differences: Vec<f32> = from.pixels().iter().zip(centre.pixels()).map(|(f, c)| f - c).collect();
    match budget.norm {
        Norm::Linf => {
            let inside = |i: usize| differences[i].abs() < budget.radius;
            let pick =
                |want: bool| (0..open.len()).map(|i| if inside(i) == want { open[i] } else { 0.0 }).collect();
            (pick(true), pick(false))
        }
        Norm::L2 => {
            let size = length(&differences);
            let radius = f64::from(budget.radius);
            if size <= radius {
                return (open.clone(), vec![0.0; open.len()]);
            }
            // c + radius·d/‖d‖, d = from − c
            let scaled: Vec<f32> = open.iter().map(|o| (radius * f64::from(*o)) as f32).collect();
            let to_from = pull_normalised(&differences, &scaled);
            let to_centre = open.iter().zip(&to_from).map(|(o, f)| o - f).collect();
            (to_from, to_centre)
        }
    }
}

/// The objective's Hessian at a visit times a vector, by a central difference of gradients.
fn hessian_product(objective: &DefenceObjective<'_>, visit: &Visit, vector: &[f32]) -> Result<Vec<f32>> {
    let largest = vector.iter().fold(0.0f32, |most, v| most.max(v.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return Ok(vec![0.0; vector.len()]);
    }
    let scale = PROBE / largest;
    let gradient_at = |side: f32| {
        let mut image = visit.image.clone();
        image.pixels_mut().iter_mut().zip(vector).for_each(|(p, v)| *p += side * scale * v);
        let evaluation = objective.evaluate(&image, visit.progress, &visit.random, true)?;
        Ok(evaluation.gradient.unwrap_or_else(|| vec![0.0; vector.len()]))
    };
    let (up, down) = (gradient_at(1.0)?, gradient_at(-1.0)?);
    Ok(up.iter().zip(&down).map(|(u, d)| (u - d) / (2.0 * scale)).collect())
}

#[cfg(test)]
mod tests;
