//! One contiguous row of a softmax and of its pullback, in eight lanes.

use super::Kind;
use crate::activation::curves::{exp, ln};
use crate::layout::LANES;
use crate::vectorised::vectorised;

/// Combines `value(i)` over `0..len` in eight lanes: lane `i % 8` takes `i`, then the lanes fold in halves.
#[inline(always)]
fn lanes(len: usize, start: f32, value: impl Fn(usize) -> f32, join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut parts = [start; LANES];
    let whole = len / LANES * LANES;
    for i in (0..whole).step_by(LANES) {
        for lane in 0..LANES {
            parts[lane] = join(parts[lane], value(i + lane));
        }
    }
    for i in whole..len {
        parts[i - whole] = join(parts[i - whole], value(i));
    }
    for half in [4, 2, 1] {
        for lane in 0..half {
            parts[lane] = join(parts[lane], parts[lane + half]);
        }
    }
    parts[0]
}

vectorised! {
    pub(super) widest fn forward(kind: Kind, x: &[f32], y: &mut [f32]) {
        let y = &mut y[..x.len()];
        let most = lanes(x.len(), f32::NEG_INFINITY, #[inline(always)] |i| x[i], #[inline(always)] |a, b| if b > a { b } else { a });
        if kind == Kind::Softmax {
            for i in 0..x.len() {
                y[i] = exp(x[i] - most);
            }
            let share = 1.0 / lanes(x.len(), 0.0, #[inline(always)] |i| y[i], #[inline(always)] |a, b| a + b);
            for value in y {
                *value *= share;
            }
        } else {
            let sum = lanes(x.len(), 0.0, #[inline(always)] |i| exp(x[i] - most), #[inline(always)] |a, b| a + b);
            let log = ln(sum);
            for i in 0..x.len() {
                y[i] = x[i] - most - log;
            }
        }
    }
}

vectorised! {
    pub(super) fn pullback(kind: Kind, y: &[f32], g: &[f32], into: &mut [f32]) {
        let (g, into) = (&g[..y.len()], &mut into[..y.len()]);
        if kind == Kind::Softmax {
            let sum = lanes(y.len(), 0.0, #[inline(always)] |i| g[i] * y[i], #[inline(always)] |a, b| a + b);
            for i in 0..y.len() {
                into[i] = y[i] * (g[i] - sum);
            }
        } else {
            let sum = lanes(y.len(), 0.0, #[inline(always)] |i| g[i], #[inline(always)] |a, b| a + b);
            for i in 0..y.len() {
                into[i] = g[i] - exp(y[i]) * sum;
            }
        }
    }
}
