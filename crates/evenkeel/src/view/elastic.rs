//! `elastic`: a smooth random warp of the canvas onto itself; its rim stays where it is, so everything remains visible.
//!
//! In coordinates from 0 to 1 on both axes, image = seen + d(seen) with d(u, v) = amplitude · Σ c_mn sin(mπu) sin(nπv) on each axis, m and
//! n up to 3, Σ |c_mn| = 1. Each partial derivative of d is at most amplitude · 3π, so up to an amplitude of 0.05 the rows of its Jacobian
//! sum to less than 1: the warp is one to one, and seen ← image − d(seen) converges to its inverse, which undoes it at any resolution.

use std::f64::consts::PI;
use std::sync::Arc;

use super::key::{Bounds, Form, Key, Value};
use super::{Canvas, Edge, Placement, Sampler, View, ViewKind, ViewRule};
use crate::random::Random;

/// Half waves along each axis.
const WAVES: usize = 3;
/// Where the iteration for the inverse ends, in sides of the image: far below what a weight in f32 resolves.
const CONVERGED: f64 = 1e-10;
/// And the most steps it takes: enough for the largest amplitude, at which an error shrinks by 0.94 or more a step.
const STEPS: usize = 400;

const AMPLITUDE: Key = Key {
    name: "amplitude",
    help: "bound on how far a pixel moves along each axis, as a share of the side",
    form: Form::Number(Bounds::closed(0.0, 0.05)),
    default: Some(Value::Number(0.04)),
};

pub(super) const KIND: ViewKind = ViewKind {
    name: "elastic",
    about: "smoothly warped, with the rim kept in place",
    keys: &[AMPLITUDE],
    draw,
};

/// A smooth displacement of the unit square that vanishes on its rim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elastic {
    /// The bound on the displacement, in sides.
    pub amplitude: f32,
    /// For each axis, the coefficient of sin((m + 1)πu) sin((n + 1)πv) at `[m][n]`; absolute values add up to at most 1.
    pub coefficients: [[[f32; WAVES]; WAVES]; 2],
}

fn draw(rule: &ViewRule, random: &mut Random) -> Arc<dyn View> {
    let mut coefficients = [[[0.0; WAVES]; WAVES]; 2];
    for axis in &mut coefficients {
        for (m, row) in axis.iter_mut().enumerate() {
            // longer waves are stronger, which keeps the warp smooth
            row.iter_mut().enumerate().for_each(|(n, c)| *c = random.uniform(-1.0, 1.0) / (m + n + 1) as f32);
        }
        let total = axis.iter().flatten().map(|c| c.abs()).sum::<f32>().max(f32::MIN_POSITIVE);
        axis.iter_mut().flatten().for_each(|c| *c /= total);
    }
    Arc::new(Elastic { amplitude: rule.number(&AMPLITUDE), coefficients })
}

/// sin(kπu) for k = 1, 2, 3 by the recurrence sin((k + 1)x) = 2 cos x sin kx − sin((k − 1)x).
fn sines(u: f64) -> [f64; WAVES] {
    let (first, cosine) = (PI * u).sin_cos();
    let (mut before, mut now) = (0.0, first);
    std::array::from_fn(|_| {
        let this = now;
        (before, now) = (now, 2.0 * cosine * now - before);
        this
    })
}

impl Elastic {
    /// How far the point moves.
    fn displacement(&self, point: [f64; 2]) -> [f64; 2] {
        let [down, right] = point.map(sines);
        self.coefficients.map(|axis| {
            let row = |(row, d): (&[f32; WAVES], f64)| {
                d * row.iter().zip(right).map(|(c, r)| f64::from(*c) * r).sum::<f64>()
            };
            f64::from(self.amplitude) * axis.iter().zip(down).map(row).sum::<f64>()
        })
    }

    fn warped(&self, seen: [f64; 2]) -> [f64; 2] {
        let moved = self.displacement(seen);
        [0, 1].map(|a| seen[a] + moved[a])
    }

    /// The point that is warped to this one.
    fn unwarped(&self, image: [f64; 2]) -> [f64; 2] {
        let mut seen = image;
        for _ in 0..STEPS {
            let moved = self.displacement(seen);
            let next = [0, 1].map(|a| image[a] - moved[a]);
            let change = (0..2).map(|a| (next[a] - seen[a]).abs()).fold(0.0, f64::max);
            seen = next;
            if change < CONVERGED {
                break;
            }
        }
        seen
    }
}

impl View for Elastic {
    fn caption(&self) -> String {
        format!("elastic, up to {:.1} %", 100.0 * self.amplitude)
    }

    fn place(&self, size: (usize, usize), _: Canvas) -> Arc<dyn Placement> {
        Arc::new(Warp { size, elastic: *self })
    }
}

/// A warp of a canvas of this size.
#[derive(Clone, Copy, Debug)]
struct Warp {
    size: (usize, usize),
    elastic: Elastic,
}

/// Samples where a map of the unit square leads the centre of each cell.
fn sampler(from: (usize, usize), to: (usize, usize), map: impl Fn([f64; 2]) -> [f64; 2] + Sync) -> Sampler {
    let cell = |i: usize, count: usize| (i as f64 + 0.5) / count as f64;
    Sampler::along(from, to, Edge::Nearest, |y, x| {
        let [down, right] = map([cell(y, to.0), cell(x, to.1)]);
        [down * from.0 as f64 - 0.5, right * from.1 as f64 - 0.5]
    })
}

impl Placement for Warp {
    fn seen_size(&self) -> (usize, usize) {
        self.size
    }

    fn is_identity(&self) -> bool {
        self.elastic.amplitude == 0.0
    }

    fn sampler(&self, from: (usize, usize), to: (usize, usize)) -> Sampler {
        sampler(from, to, |seen| self.elastic.warped(seen))
    }

    fn undoing(&self, seen: (usize, usize), to: (usize, usize)) -> Sampler {
        sampler(seen, to, |image| self.elastic.unwarped(image))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::VIEWS;

    #[test]
    fn the_strongest_warp_is_inverted_everywhere_and_keeps_the_rim() {
        let kind = VIEWS.iter().find(|kind| kind.name == "elastic").unwrap();
        let Form::Number(bounds) = kind.keys[0].form else { panic!("amplitude is a number") };
        assert!(2.0 * f64::from(bounds.high) * WAVES as f64 * PI < 1.0, "a contraction");
        let mut random = Random::new(3);
        for trial in 0..20 {
            let mut coefficients = [[[0.0f32; WAVES]; WAVES]; 2];
            // the first is the steepest there is, the others random
            coefficients.iter_mut().for_each(|axis| match trial {
                0 => axis[WAVES - 1][WAVES - 1] = 1.0,
                _ => axis.iter_mut().flatten().for_each(|c| *c = random.uniform(-1.0, 1.0) / 9.0),
            });
            let elastic = Elastic { amplitude: bounds.high, coefficients };
            for i in 0..=400 {
                let point = [f64::from(i % 21) / 20.0, f64::from(i / 21) / 19.0].map(|v: f64| v.min(1.0));
                let back = elastic.warped(elastic.unwarped(point));
                assert!((0..2).all(|a| (back[a] - point[a]).abs() < 1e-8), "{point:?} {back:?}");
                let moved = elastic.displacement(point);
                assert!(moved.iter().all(|m| m.abs() <= f64::from(bounds.high)), "{moved:?}");
                let rim = point.iter().any(|&v| v == 0.0 || v == 1.0);
                assert!(!rim || moved.iter().all(|m| m.abs() < 1e-12), "{point:?} {moved:?}");
            }
        }
    }
}
