//! Steps: from what was seen at an image to the image to try next. The loop projects what a step proposes.

mod adam;
mod adaptive;
mod boundary;
mod gathered;
mod square;

pub use adam::AdamTanh;
pub use adaptive::Adaptive;
pub use boundary::Boundary;
pub use gathered::{Averaged, Corners};
pub use square::Square;

use crate::budget::{Budget, Norm, length};
use crate::image::Image;
use crate::optimise::Iterate;
use crate::random::Random;

/// A rule for the next image. It may remember what it saw on this start.
pub trait Step {
    /// The image to try next, before projection.
    fn next(&mut self, at: &Iterate<'_>) -> Image;

    /// Whether it needs to know which way is up.
    fn needs_gradient(&self) -> bool {
        true
    }

    /// A starting image of its own, if it insists.
    fn start(&mut self, _origin: &Image, _budget: &Budget, _random: &Random) -> Option<Image> {
        None
    }
}

fn gradient<'a>(at: &'a Iterate<'_>) -> &'a [f32] {
    at.evaluation.gradient.as_deref().expect("the loop gives a gradient to steps that need one")
}

/// sign(g), with sign(0) = 0.
pub(crate) fn sign(v: f32) -> f32 {
    if v > 0.0 {
        1.0
    } else if v < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// image + size · sign(direction) in L∞, image + size · direction/‖direction‖ in L2.
fn moved(image: &Image, direction: &[f32], size: f32, norm: Norm) -> Image {
    let mut next = image.clone();
    let pairs = next.pixels_mut().iter_mut().zip(direction);
    match norm {
        Norm::Linf => pairs.for_each(|(v, d)| *v += size * sign(*d)),
        Norm::L2 => {
            // a saturated loss has a tiny gradient, whose direction is as good as any
            let scale = f64::from(size) / length(direction).max(1e-60);
            pairs.for_each(|(v, d)| *v += (scale * f64::from(*d)) as f32);
        }
    }
    next
}

/// A step of fixed size along the gradient: its sign in L∞, its direction in L2.
#[derive(Clone, Debug)]
pub struct Plain {
    /// The size.
    pub size: f32,
}

impl Step for Plain {
    fn next(&mut self, at: &Iterate<'_>) -> Image {
        moved(at.image, gradient(at), self.size, at.budget.norm)
    }
}

/// MIM: m ← decay · m + g/‖g‖₁ (the mean absolute value), then a step along m.
#[derive(Clone, Debug)]
pub struct Momentum {
    /// The size.
    pub size: f32,
    /// How much of the past is kept.
    pub decay: f32,
    memory: Vec<f32>,
}

impl Momentum {
    /// From rest.
    pub fn new(size: f32, decay: f32) -> Self {
        Self { size, decay, memory: Vec::new() }
    }
}

impl Step for Momentum {
    fn next(&mut self, at: &Iterate<'_>) -> Image {
        let gradient = gradient(at);
        self.memory.resize(gradient.len(), 0.0);
        let mean = gradient.iter().map(|g| f64::from(g.abs())).sum::<f64>() / gradient.len() as f64;
        let scale = (1.0 / mean.max(1e-12)) as f32;
        self.memory.iter_mut().zip(gradient).for_each(|(m, g)| *m = self.decay * *m + scale * g);
        moved(at.image, &self.memory, self.size, at.budget.norm)
    }
}

/// Stochastic gradient Langevin dynamics as the defence uses it: ĝ = g/(‖g‖₂ + 1e-10), plus noise N(0,1)·(T−1−t)/T, then a step
/// of `size` along the sign (L∞) or the direction (L2) of the sum. Without noise it is plain ascent.
#[derive(Clone, Debug)]
pub struct Langevin {
    /// The size.
    pub size: f32,
    /// Whether there is noise.
    pub noise: bool,
}

impl Langevin {
    /// ĝ + n at a step, from the step's own stream.
    pub(crate) fn direction(
        &self,
        gradient: &[f32],
        progress: crate::objective::Progress,
        random: &Random,
    ) -> Vec<f32> {
        let scale = (1.0 / (length(gradient) + 1e-10)) as f32;
        let left = (progress.steps - 1).saturating_sub(progress.step) as f32 / progress.steps.max(1) as f32;
        let mut stream = random.fork(u64::from(u32::MAX));
        let noise = |stream: &mut Random| if self.noise && left > 0.0 { left * stream.normal() } else { 0.0 };
        gradient.iter().map(|g| scale * g + noise(&mut stream)).collect()
    }
}

impl Step for Langevin {
    fn next(&mut self, at: &Iterate<'_>) -> Image {
        let direction = self.direction(gradient(at), at.progress, at.random);
        moved(at.image, &direction, self.size, at.budget.norm)
    }
}
