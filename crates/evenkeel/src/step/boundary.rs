//! FAB's step (Croce & Hein 2020): onto the linearised decision boundary, leaning back towards the image.
//!
//! The objective's value is z_other − z_label for the nearest other class (negative while the answer is right) and its gradient w. Both
//! the image now and the origin are projected onto {w·z = w·x − value} within the box; the two are mixed by how far each had to go,
//! and overshot by 1.05. Once across, the next image is pulled back 10 % of the way to the origin.

use super::{Step, gradient};
use crate::budget::Norm;
use crate::image::Image;
use crate::optimise::Iterate;

const OVERSHOOT: f32 = 1.05;
const LEAN: f64 = 0.1;
const PULL_BACK: f32 = 0.9;

/// FAB's step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Boundary;

impl Step for Boundary {
    fn next(&mut self, at: &Iterate<'_>) -> Image {
        let w = gradient(at);
        let mut next = at.image.clone();
        if at.evaluation.value > 0.0 {
            let pairs = next.pixels_mut().iter_mut().zip(at.origin.pixels());
            pairs.for_each(|(v, o)| *v = o + PULL_BACK * (*v - o));
            return next;
        }
        let dot = |image: &Image| {
            w.iter().zip(image.pixels()).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum::<f64>()
        };
        let here = dot(at.image);
        let level = here - at.evaluation.value;
        let norm = at.budget.norm;
        let from_here = project(at.image.pixels(), w, level - here, norm);
        let from_origin = project(at.origin.pixels(), w, level - dot(at.origin), norm);
        let (d1, d2) = (size(&from_here, norm), size(&from_origin, norm));
        let lean = if d1 + d2 > 0.0 { (d1 / (d1 + d2)).min(LEAN) } else { 0.0 } as f32;
        for (i, v) in next.pixels_mut().iter_mut().enumerate() {
            let near = *v + OVERSHOOT * from_here[i];
            let far = at.origin.pixels()[i] + OVERSHOOT * from_origin[i];
            *v = ((1.0 - lean) * near + lean * far).clamp(0.0, 1.0);
        }
        next
    }
}

fn size(v: &[f32], norm: Norm) -> f64 {
    match norm {
        Norm::Linf => v.iter().fold(0.0, |most, x| f64::from(x.abs()).max(most)),
        Norm::L2 => crate::budget::length(v),
    }
}

/// The smallest change d with w·d = rise and x + d in [0, 1], or the most the box allows.
///
/// d(λ) moves every value by λ·sign (L∞) or λ·w (L2), cut at the box; w·d(λ) grows with λ, which bisection finds.
fn project(x: &[f32], w: &[f32], rise: f64, norm: Norm) -> Vec<f32> {
    let toward = if rise >= 0.0 { 1.0 } else { -1.0 };
    let change = |i: usize, amount: f64| {
        let step = match norm {
            Norm::Linf => amount as f32 * super::sign(w[i]),
            Norm::L2 => amount as f32 * w[i],
        };
        (x[i] + toward * step).clamp(0.0, 1.0) - x[i]
    };
    let gained = |amount: f64| {
        (0..x.len()).map(|i| f64::from(w[i]) * f64::from(change(i, amount))).sum::<f64>() * f64::from(toward)
    };
    let wanted = rise.abs();
    let (mut low, mut high) = (0.0, 1e-3);
    while gained(high) < wanted && high < 1e9 {
        high *= 4.0;
    }
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if gained(middle) < wanted { low = middle } else { high = middle }
    }
    (0..x.len()).map(|i| change(i, high)).collect()
}
