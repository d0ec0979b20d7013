//! Consensus: the views teach the image. The views' side is held fixed, so no view needs a tape, and a step costs K forward passes and one pullback.
//!
//! With p_i = undo_i(softmax(z_i/τ)) of the views (not the image), m_i their masks and t = Σ w_i m_i p_i / Σ w_i m_i, scaled to sum to one, the value
//! is the mean over the cells in sight of Σ_c t_c ln softmax(z_0)_c: minus the cross-entropy of the plain answer to the target. On z_0 that gives
//! (t − softmax(z_0))/n. For values it is minus half the mean square of z_0 − t; for features the cosine of f_0 and t where they are in sight. `consensus` has w = 1; `leave-out` has
//! for w_i the agreement of view i with the other views (see `agreement`), never with the image.

use rayon::prelude::*;

use super::agreement::{Weights, weigh};
use super::views::undone;
use super::{Compared, Cotangent, Seen, ViewObjective, softmax};
use crate::error::{Error, Result};
use crate::network::log_softmax;
use crate::network::{Extents, Tensor, TensorNames};
use crate::random::Random;
use crate::view::{DrawnView, ViewSet};

/// The signal that the views give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The probabilities of classes.
    Classes,
    /// The values of a regression.
    Values,
    /// Features.
    Features,
}

/// The views teach the image.
#[derive(Clone, Debug)]
pub struct Consensus {
    /// The views.
    pub views: ViewSet,
    /// What they teach.
    pub signal: Signal,
    /// The tensors that hold it.
    pub tensors: TensorNames,
    /// Scores of views are divided by this before their softmax; below 1 the target is sharper.
    pub temperature: f32,
    /// Whether a view counts for as much as the other views agree with it.
    pub leave_out: bool,
    /// The target is renewed after this many steps.
    pub refresh: usize,
}

/// What the views say together on the grid of one tensor of the image.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// `[channels, cells]`.
    pub(super) values: Vec<f32>,
    /// 1 for each cell that a view saw.
    pub(super) mask: Vec<f32>,
}

/// What the views say together, held fixed while the image learns.
#[derive(Clone, Debug)]
pub struct Target {
    pub(super) levels: Vec<Level>,
}

/// How far the image has learnt it.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The value, to be raised.
    pub value: f64,
    /// Its cotangents on the image's own tensors.
    pub cotangents: Vec<Cotangent>,
    /// How far image and views agree, from 0 to 1: the share of cells with the same class, of one cell the overlap of the probabilities Σ min(p, t); of
    /// features one minus fifteen times what their cosine lacks; of values one minus the relative error.
    pub agreement: f64,
}

/// One view's say on the image's grid.
pub(super) struct Say {
    pub(super) values: Vec<f32>,
    pub(super) mask: Vec<f32>,
}

impl Consensus {
    /// What the views say together.
    ///
    /// # Errors
    /// If tensors have a form that cannot be compared.
    pub fn target(&self, base: &[Tensor], seen: &[Seen]) -> Result<Target> {
        let levels = base.iter().enumerate().map(|(level, map)| self.level(level, map, seen));
        Ok(Target { levels: levels.collect::<Result<_>>()? })
    }

    fn level(&self, level: usize, map: &Tensor, seen: &[Seen]) -> Result<Level> {
        let form = map.extents("what views teach")?;
        let says = self.says(level, form, seen)?;
        let weights = weigh(self.rule(), &says, form);
        Ok(mixed(&says, &weights, form, self.signal == Signal::Classes))
    }

    /// What each view says on a grid of the image's.
    pub(super) fn says(&self, level: usize, form: Extents, seen: &[Seen]) -> Result<Vec<Say>> {
        let say = |one: &Seen| {
            let (undo, extents, map) = undone(one, level, form)?;
            let own = self.said(map.data(), extents);
            Ok(match form.cells() {
                1 if extents.cells() == 1 => Say { values: own, mask: vec![1.0] },
                _ => Say { values: undo.apply(&own, extents.channels), mask: undo.mask().to_vec() },
            })
        };
        seen.par_iter().map(say).collect()
    }

    /// What a view's say counts for.
    pub(super) fn rule(&self) -> Weights {
        match (self.leave_out, self.signal) {
            (false, _) => Weights::Even,
            (true, Signal::Classes) => Weights::Overlap,
            (true, Signal::Values) => Weights::Nearness,
            (true, Signal::Features) => Weights::Cosine,
        }
    }

    /// A view's scores as what it teaches.
    pub(super) fn said(&self, scores: &[f32], form: Extents) -> Vec<f32> {
        match self.signal {
            Signal::Classes if self.temperature == 1.0 => softmax(scores, form),
            Signal::Classes => {
                let scaled: Vec<f32> = scores.iter().map(|z| z / self.temperature).collect();
                softmax(&scaled, form)
            }
            Signal::Values | Signal::Features => scores.to_vec(),
        }
    }

    /// The value of the image's own tensors against a target.
    ///
    /// # Errors
    /// If they have another form than those that the target was made for.
    pub fn learn(&self, base: &[Tensor], target: &Target) -> Result<Learned> {
        let mut total = Learned { value: 0.0, cotangents: Vec::new(), agreement: 0.0 };
        for (map, level) in base.iter().zip(&target.levels) {
            let form = map.extents("what views teach")?;
            if form.len() != level.values.len() {
                return Err(Error::mismatch(
                    "values of what the views teach",
                    level.values.len(),
                    form.len(),
                ));
            }
            let (value, cotangent, agreement) = match self.signal {
                Signal::Classes => cross_entropy(map.data(), level, form),
                Signal::Values => squares(map.data(), level),
                Signal::Features => cosine(map.data(), level),
            };
            total.value += value;
            total.agreement += agreement / base.len() as f64;
            total.cotangents.push(cotangent);
        }
        Ok(total)
    }
}

/// Σ w_i m_i v_i / Σ w_i m_i in every cell; probabilities are then scaled to sum to one.
fn mixed(says: &[Say], weights: &[Vec<f32>], form: Extents, probabilities: bool) -> Level {
    let cells = form.cells();
    let mut total = vec![0.0f32; cells];
    weights.iter().for_each(|own| total.iter_mut().zip(own).for_each(|(t, w)| *t += w));
    let mut values = vec![0.0; form.len()];
    values.par_chunks_mut(cells).enumerate().for_each(|(channel, plane)| {
        for (say, own) in says.iter().zip(weights) {
            let from = &say.values[channel * cells..][..cells];
            plane.iter_mut().zip(from).zip(own).for_each(|((o, v), w)| *o += w * v);
        }
        plane.iter_mut().zip(&total).for_each(|(o, t)| *o /= t.max(1e-12));
    });
    let mut mask: Vec<f32> = total.iter().map(|t| if *t > 0.0 { 1.0 } else { 0.0 }).collect();
    if probabilities {
        let mut sums = vec![0.0f32; cells];
        values.chunks(cells).for_each(|plane| sums.iter_mut().zip(plane).for_each(|(s, v)| *s += v));
        mask.iter_mut().zip(&sums).for_each(|(m, s)| *m = if *s > 1e-6 { *m } else { 0.0 });
        let scale: Vec<f32> = sums.iter().map(|s| 1.0 / s.max(1e-6)).collect();
        values
            .par_chunks_mut(cells)
            .for_each(|plane| plane.iter_mut().zip(&scale).for_each(|(v, s)| *v *= s));
    }
    Level { values, mask }
}

pub(super) fn in_sight(level: &Level) -> f64 {
    level.mask.iter().map(|m| f64::from(*m)).sum::<f64>().max(1.0)
}

/// The mean over cells in sight of Σ t ln p, its cotangent (t − p)/n, and the share of cells with the same class.
fn cross_entropy(scores: &[f32], level: &Level, form: Extents) -> (f64, Cotangent, f64) {
    let (cells, count) = (form.cells(), in_sight(level));
    let logs = log_softmax(scores, form);
    let plane = |(logs, target): (&[f32], &[f32])| {
        let cell = |((l, t), m): ((&f32, &f32), &f32)| f64::from(m * t) * f64::from(*l);
        logs.iter().zip(target).zip(&level.mask).map(cell).sum::<f64>()
    };
    // one sum a class, added in order
    let sums: Vec<f64> = logs.par_chunks(cells).zip(level.values.par_chunks(cells)).map(plane).collect();
    let value = sums.iter().sum::<f64>() / count;
    let share = (1.0 / count) as f32;
    let mut cotangent = vec![0.0; scores.len()];
    cotangent.par_chunks_mut(cells).enumerate().for_each(|(channel, plane)| {
        let part = channel * cells..(channel + 1) * cells;
        let from = logs[part.clone()].iter().zip(&level.values[part]).zip(&level.mask);
        plane.iter_mut().zip(from).for_each(|(o, ((l, t), m))| *o = m * share * (t - l.exp()));
    });
    (value, cotangent, same_classes(scores, level, form) / count)
}

/// The cells in sight where scores and target have the same best class; of a single cell how far the probabilities overlap, so that agreement has degrees.
fn same_classes(scores: &[f32], level: &Level, form: Extents) -> f64 {
    if form.cells() == 1 {
        let own = softmax(scores, form);
        return own.iter().zip(&level.values).map(|(p, t)| f64::from(p.min(*t))).sum();
    }
    let (own, taught) =
        (crate::task::best_classes(scores, form), crate::task::best_classes(&level.values, form));
    own.iter().zip(&taught).zip(&level.mask).filter(|((a, b), m)| a == b && **m > 0.0).count() as f64
}

/// −½ mean (z − t)² over what is in sight.
fn squares(values: &[f32], level: &Level) -> (f64, Cotangent, f64) {
    let (cells, channels) = (level.mask.len(), values.len() / level.mask.len());
    let share = 1.0 / (in_sight(level) * channels as f64);
    let (mut value, mut off, mut size) = (0.0, 0.0, 0.0);
    let mut cotangent = Vec::with_capacity(values.len());
    for (i, (z, t)) in values.iter().zip(&level.values).enumerate() {
        let m = level.mask[i % cells];
        let far = m * (t - z);
        value -= 0.5 * share * f64::from(far * far);
        off += f64::from(far.abs());
        size += f64::from((m * t).abs());
        cotangent.push(share as f32 * far);
    }
    (value, cotangent, 1.0 - (off / size.max(1e-12)).min(1.0))
}

/// How fast agreement falls with the cosine of features: those of clean images and their views have cosines close to 1.
const LACK: f64 = 15.0;

/// The cosine of f and t over what is in sight.
fn cosine(values: &[f32], level: &Level) -> (f64, Cotangent, f64) {
    let cells = level.mask.len();
    let (mut dot, mut own, mut taught) = (0.0f64, 0.0f64, 0.0f64);
    for (i, (f, t)) in values.iter().zip(&level.values).enumerate() {
        let m = f64::from(level.mask[i % cells]);
        let (f, t) = (m * f64::from(*f), m * f64::from(*t));
        dot += f * t;
        own += f * f;
        taught += t * t;
    }
    let lengths = (own.sqrt() + 1e-10) * (taught.sqrt() + 1e-10);
    let value = dot / lengths;
    let (scale, shrink) = ((1.0 / lengths) as f32, (value / own.max(1e-20)) as f32);
    let one = |(i, (f, t)): (usize, (&f32, &f32))| level.mask[i % cells] * (scale * t - shrink * f);
    let cotangent = values.iter().zip(&level.values).enumerate().map(one).collect();
    (value, cotangent, (1.0 - LACK * (1.0 - value)).clamp(0.0, 1.0))
}

impl ViewObjective for Consensus {
    fn draw(&self, random: &Random) -> Vec<DrawnView> {
        self.views.draw(random)
    }

    fn tensors(&self) -> Option<&TensorNames> {
        Some(&self.tensors)
    }

    fn teacher(&self) -> Option<&Consensus> {
        Some(self)
    }

    fn compare(&self, base: &[Tensor], seen: &[Seen]) -> Result<Compared> {
        let learned = self.learn(base, &self.target(base, seen)?)?;
        Ok(Compared { value: learned.value, base: learned.cotangents, seen: Vec::new() })
    }
}
