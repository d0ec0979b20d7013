//! APGD's step (Croce & Hein 2020): momentum of three quarters, and a size that halves when progress stalls.
//!
//! Sizes start at 2ε. Checkpoints come after 22 % of the steps, then at gaps that shrink by 3 % to no less than 6 %. At one, the
//! size halves and the ascent restarts from the best image if fewer than 75 % of the steps since the last one rose, or if neither size nor
//! best changed since.

use super::{Step, gradient, moved};
use crate::image::Image;
use crate::optimise::Iterate;

/// APGD's step.
#[derive(Clone, Debug, Default)]
pub struct Adaptive {
    size: f32,
    previous: Option<Image>,
    best: Option<(f64, Image, Vec<f32>)>,
    last_value: f64,
    rises: usize,
    checkpoint: usize,
    since: usize,
    gap: usize,
    best_at_checkpoint: f64,
    halved: bool,
}

impl Adaptive {
    /// A fresh step.
    pub fn new() -> Self {
        Self::default()
    }

    fn begin(&mut self, at: &Iterate<'_>) {
        let steps = at.progress.steps;
        self.size = 2.0 * at.budget.radius;
        self.gap = (0.22 * steps as f64).ceil().max(1.0) as usize;
        self.checkpoint = self.gap;
        self.best_at_checkpoint = at.evaluation.value;
        self.halved = true;
        self.last_value = at.evaluation.value;
    }

    /// Notes what was seen, and decides about the size; true if the ascent restarts from the best image.
    fn judge(&mut self, at: &Iterate<'_>) -> bool {
        let value = at.evaluation.value;
        self.rises += usize::from(value > self.last_value);
        self.last_value = value;
        self.since += 1;
        if self.since < self.gap {
            return false;
        }
        let best = self.best.as_ref().map_or(value, |b| b.0);
        let few = (self.rises as f64) < 0.75 * self.since as f64;
        let stuck = !self.halved && self.best_at_checkpoint >= best;
        self.best_at_checkpoint = best;
        self.halved = few || stuck;
        (self.rises, self.since) = (0, 0);
        let steps = at.progress.steps as f64;
        let shrink = (0.03 * steps).ceil().max(1.0) as usize;
        self.gap = self.gap.saturating_sub(shrink).max((0.06 * steps).ceil().max(1.0) as usize);
        if self.halved {
            self.size /= 2.0;
        }
        self.halved
    }
}

impl Step for Adaptive {
    fn next(&mut self, at: &Iterate<'_>) -> Image {
        let restart = if at.progress.step == 0 {
            self.begin(at);
            false
        } else {
            self.judge(at)
        };
        if self.best.as_ref().is_none_or(|b| at.evaluation.value > b.0) {
            self.best = Some((at.evaluation.value, at.image.clone(), gradient(at).to_vec()));
        }
        let (image, slope) = match &self.best {
            Some((_, image, slope)) if restart => (image.clone(), slope.clone()),
            _ => (at.image.clone(), gradient(at).to_vec()),
        };
        let mut ahead = moved(&image, &slope, self.size, at.budget.norm);
        at.budget.project(at.origin, &mut ahead);
        let previous = self.previous.as_ref().unwrap_or(&image);
        let weight = if at.progress.step == 0 { 1.0 } else { 0.75 };
        let mut next = image.clone();
        for (i, v) in next.pixels_mut().iter_mut().enumerate() {
            let (here, before) = (image.pixels()[i], previous.pixels()[i]);
            *v = here + weight * (ahead.pixels()[i] - here) + (1.0 - weight) * (here - before);
        }
        self.previous = Some(image);
        next
    }
}
