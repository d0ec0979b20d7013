//! Steps that use every gradient they were given, where the published loop lets noise drown all but the last.
//!
//! [`Averaged`]: m ← decay·m + ĝ, a small step along m. [`Corners`]: the ĝ at random corners of the budget are summed, and the last step goes
//! from the image itself along the sum. ĝ = g/(‖g‖₂ + 1e-10).

use super::{Step, gradient, moved};
use crate::budget::length;
use crate::image::Image;
use crate::optimise::Iterate;
use crate::random::Random;

fn add_normalised(sum: &mut Vec<f32>, keep: f32, gradient: &[f32]) {
    sum.resize(gradient.len(), 0.0);
    let scale = (1.0 / (length(gradient) + 1e-10)) as f32;
    sum.iter_mut().zip(gradient).for_each(|(s, g)| *s = keep * *s + scale * g);
}

/// A small step along the decaying sum of normalised gradients.
#[derive(Clone, Debug)]
pub struct Averaged {
    /// The size.
    pub size: f32,
    /// How much of the past is kept.
    pub decay: f32,
    sum: Vec<f32>,
}

impl Averaged {
    /// From rest.
    pub fn new(size: f32, decay: f32) -> Self {
        Self { size, decay, sum: Vec::new() }
    }
}

impl Step for Averaged {
    fn next(&mut self, at: &Iterate<'_>) -> Image {
        add_normalised(&mut self.sum, self.decay, gradient(at));
        moved(at.image, &self.sum, self.size, at.budget.norm)
    }
}

/// From corner to corner, and at last from the image itself along the sum of what was seen.
#[derive(Clone, Debug)]
pub struct Corners {
    /// The size of the last step, and of the way to a corner.
    pub size: f32,
    sum: Vec<f32>,
}

impl Corners {
    /// Before the first gradient.
    pub fn new(size: f32) -> Self {
        Self { size, sum: Vec::new() }
    }
}

impl Step for Corners {
    fn next(&mut self, at: &Iterate<'_>) -> Image {
        add_normalised(&mut self.sum, 1.0, gradient(at));
        if at.progress.step + 1 >= at.progress.steps {
            return moved(at.origin, &self.sum, self.size, at.budget.norm);
        }
        let mut stream: Random = at.random.fork(u64::from(u32::MAX));
        let direction: Vec<f32> = self.sum.iter().map(|_| stream.normal()).collect();
        moved(at.origin, &direction, self.size, at.budget.norm)
    }
}
