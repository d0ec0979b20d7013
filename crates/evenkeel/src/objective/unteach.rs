//! The way back through a step of consensus, for an attacker who differentiates the steps of an image that learns.
//!
//! A step follows g(x, t) = ∇ₓL(x, t) with t = T(x') what the views of x' say. A cotangent w on g gives x the Hessian times w, and t the derivative
//! d/ds ∂L/∂t(x + s·w, t); both are central differences. What t is given is led on to x' exactly: through scaling, mixing and weights, undo, softmax, the network
//! and the view. x' is x itself where the target is fresh, and the image of an earlier step where it was held.

use super::agreement::{pull_weigh, weigh};
use super::consensus::{Level, Say, in_sight};
use super::passes::{ViewPasses, pass};
use super::views::undone;
use super::{Consensus, Cotangent, Signal, Target};
use crate::error::Result;
use crate::image::Image;
use crate::network::{Extents, Network, Tensor, log_softmax, pull_softmax};
use crate::random::Random;
use crate::view::Placed;

/// The largest change of a value in the differences.
const PROBE: f32 = 1e-3;

/// Where a cotangent on the gradient of consensus leads.
pub(crate) struct Curvature {
    /// To the image that learns.
    pub(crate) on_image: Vec<f32>,
    /// To what it is taught, level by level.
    pub(crate) on_target: Vec<Cotangent>,
}

impl Consensus {
    /// From a cotangent on the gradient at an image, its target held fixed, to the image and to the target.
    ///
    /// # Errors
    /// If the network refuses the image.
    pub(crate) fn curvature(
        &self,
        network: &dyn Network,
        image: &Image,
        target: &Target,
        cotangent: &[f32],
    ) -> Result<Curvature> {
        let largest = cotangent.iter().fold(0.0f32, |most, c| most.max(c.abs()));
        let scale = if largest > 0.0 && largest.is_finite() { PROBE / largest } else { 0.0 };
        let side = |sign: f32| {
            let mut moved = image.clone();
            moved.pixels_mut().iter_mut().zip(cotangent).for_each(|(p, c)| *p += sign * scale * c);
            let base = pass(network, &moved, &self.tensors.list(), true)?;
            let own = self.learn(&base.tensors, target)?.cotangents;
            let asked = self.asked(&base.tensors, target)?;
            let back = base.tape.map(|tape| tape.pullback(own.into_iter().enumerate().collect()));
            Ok((back.transpose()?.unwrap_or_default(), asked))
        };
        let (ahead, behind) = (side(1.0)?, side(-1.0)?);
        let apart = |a: &[f32], b: &[f32]| -> Vec<f32> {
            let share = if scale > 0.0 { 0.5 / scale } else { 0.0 };
            a.iter().zip(b).map(|(a, b)| share * (a - b)).collect()
        };
        let on_target = ahead.1.iter().zip(&behind.1).map(|(a, b)| apart(a, b)).collect();
        Ok(Curvature { on_image: apart(&ahead.0, &behind.0), on_target })
    }

    /// ∂L/∂t at the image's own tensors.
    fn asked(&self, base: &[Tensor], target: &Target) -> Result<Vec<Cotangent>> {
        let one = |(map, level): (&Tensor, &Level)| {
            let form = map.extents("what views teach")?;
            Ok(match self.signal {
                Signal::Classes => scaled(&log_softmax(map.data(), form), level, 1.0 / in_sight(level)),
                Signal::Values => {
                    let far: Vec<f32> = map.data().iter().zip(&level.values).map(|(z, t)| z - t).collect();
                    scaled(&far, level, 1.0 / (in_sight(level) * form.channels as f64))
                }
                Signal::Features => turned(map.data(), level),
            })
        };
        base.iter().zip(&target.levels).map(one).collect()
    }

    /// From a cotangent on the target to the image whose views, drawn from `random`, gave it.
    ///
    /// # Errors
    /// If the network refuses the image or a view of it.
    pub(crate) fn pull_target(
        &self,
        network: &dyn Network,
        image: &Image,
        random: &Random,
        on_target: &[Cotangent],
    ) -> Result<Vec<f32>> {
        let passes = ViewPasses { network, feature: &self.tensors, image, want_gradient: false };
        let views: Vec<Placed> =
            self.views.draw(random).iter().map(|view| view.placed(image.size())).collect();
        let base = network.run_one(image, &self.tensors.list())?;
        let seen = passes.seen(views)?;
        let mut on_views: Vec<Vec<Cotangent>> = vec![Vec::new(); seen.len()];
        for (level, (map, on)) in base.iter().zip(on_target).enumerate() {
            let form = map.extents("what views teach")?;
            let says = self.says(level, form, &seen)?;
            let on_says = self.pull_mixed(&says, form, on);
            for ((one, on_say), on_view) in seen.iter().zip(on_says).zip(&mut on_views) {
                let (undo, extents, map) = undone(one, level, form)?;
                let flat = form.cells() == 1 && extents.cells() == 1;
                let on_own = if flat { on_say } else { undo.pullback(&on_say, extents.channels) };
                on_view.push(self.pull_said(map.data(), on_own, extents));
            }
        }
        let mut gradient = vec![0.0; image.pixels().len()];
        for (one, on_view) in seen.iter().zip(on_views) {
            let traced = network.trace_one(&one.view.apply(image), &self.tensors.list())?;
            let back = traced.tape.pullback(on_view.into_iter().enumerate().collect())?;
            let back = one.view.pull_apply(image, &back);
            gradient.iter_mut().zip(&back).for_each(|(g, b)| *g += b);
        }
        Ok(gradient)
    }

    /// From a cotangent on what a view teaches to one on its scores.
    fn pull_said(&self, scores: &[f32], on: Vec<f32>, form: Extents) -> Vec<f32> {
        if self.signal != Signal::Classes {
            return on;
        }
        let mut back = pull_softmax(&self.said(scores, form), &on, form);
        back.iter_mut().for_each(|b| *b /= self.temperature);
        back
    }

    /// From a cotangent on the target to one on each view's say: the pullback of `mixed`.
    fn pull_mixed(&self, says: &[Say], form: Extents, on: &[f32]) -> Vec<Vec<f32>> {
        let cells = form.cells();
        let weights = weigh(self.rule(), says, form);
        let mut total = vec![0.0f32; cells];
        weights.iter().for_each(|own| total.iter_mut().zip(own).for_each(|(t, w)| *t += w));
        total.iter_mut().for_each(|t| *t = t.max(1e-12));
        let mut mean = vec![0.0f32; form.len()];
        for (say, own) in says.iter().zip(&weights) {
            for (place, (o, v)) in mean.iter_mut().zip(&say.values).enumerate() {
                *o += own[place % cells] * v / total[place % cells];
            }
        }
        let on_mean = match self.signal {
            Signal::Classes => pull_scaled(&mean, on, cells),
            Signal::Values | Signal::Features => on.to_vec(),
        };
        let share = |own: &Vec<f32>| -> Vec<f32> {
            let one = |(place, on): (usize, &f32)| own[place % cells] / total[place % cells] * on;
            on_mean.iter().enumerate().map(one).collect()
        };
        let mut on_says: Vec<Vec<f32>> = weights.iter().map(share).collect();
        let by_weight = |say: &Say| {
            let mut all = vec![0.0f32; cells];
            for (place, on) in on_mean.iter().enumerate() {
                all[place % cells] += on * (say.values[place] - mean[place]) / total[place % cells];
            }
            all
        };
        let on_weights: Vec<Vec<f32>> = says.iter().map(by_weight).collect();
        pull_weigh(self.rule(), says, form, &on_weights, &mut on_says);
        on_says
    }
}

/// What a level asks for, where it is in sight.
fn scaled(values: &[f32], level: &Level, share: f64) -> Cotangent {
    let cells = level.mask.len();
    values.iter().enumerate().map(|(i, v)| share as f32 * level.mask[i % cells] * v).collect()
}

/// The derivative of the cosine of f and t by t.
fn turned(values: &[f32], level: &Level) -> Cotangent {
    let cells = level.mask.len();
    let (mut dot, mut own, mut taught) = (0.0f64, 0.0f64, 0.0f64);
    for (i, (f, t)) in values.iter().zip(&level.values).enumerate() {
        let m = f64::from(level.mask[i % cells]);
        dot += m * f64::from(f * t);
        own += m * f64::from(f * f);
        taught += m * f64::from(t * t);
    }
    let lengths = (own.sqrt() + 1e-10) * (taught.sqrt() + 1e-10);
    let (scale, shrink) = ((1.0 / lengths) as f32, (dot / lengths / taught.max(1e-20)) as f32);
    let one = |(i, (f, t)): (usize, (&f32, &f32))| level.mask[i % cells] * (scale * f - shrink * t);
    values.iter().zip(&level.values).enumerate().map(one).collect()
}

/// The pullback of scaling every cell to sum to one; nothing comes back where there was nothing to scale.
fn pull_scaled(values: &[f32], on: &[f32], cells: usize) -> Vec<f32> {
    let (mut sums, mut along) = (vec![0.0f32; cells], vec![0.0f32; cells]);
    for (place, (v, o)) in values.iter().zip(on).enumerate() {
        sums[place % cells] += v;
        along[place % cells] += v * o;
    }
    let one = |(place, o): (usize, &f32)| match sums[place % cells] {
        sum if sum > 1e-6 => (o - along[place % cells] / sum) / sum,
        _ => 0.0,
    };
    on.iter().enumerate().map(one).collect()
}
