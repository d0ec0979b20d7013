//! Pooling by plain loops over plain tensors of any type and number of axes: what the fast kernels answer to, and what runs where
//! they do not reach.

use super::super::strided::Real;
use super::reach::{Axis, each_window};
use crate::tensor::Element;

/// Values with an order.
pub(super) trait Ordered: Element + PartialOrd {
    /// What every other value beats.
    const LOWEST: Self;
}

macro_rules! ordered {
    ($($type:ty: $lowest:expr),*) => {
        $(impl Ordered for $type {
            const LOWEST: $type = $lowest;
        })*
    };
}
ordered!(f32: f32::NEG_INFINITY, f64: f64::NEG_INFINITY, i32: i32::MIN, i64: i64::MIN, u8: 0, i8: i8::MIN);

/// The winner of a window that reaches nothing.
pub(super) const NOBODY: u32 = u32::MAX;

fn planes(axes: &[Axis], outputs: usize) -> (usize, usize, usize) {
    let (from, to) =
        (axes.iter().map(|a| a.input).product(), axes.iter().map(|a| a.output).product::<usize>());
    (outputs / to.max(1), from, to)
}

/// Whether a value is not even comparable to itself.
fn nan<T: PartialOrd>(value: T) -> bool {
    value.partial_cmp(&value).is_none()
}

/// Maxima, and each winner's place in its plane: the first of equals, or a NaN.
pub(super) fn max<T: Ordered>(axes: &[Axis], x: &[T], y: &mut [T], winners: &mut [u32]) {
    let (count, from, to) = planes(axes, y.len());
    each_window(axes, |o, cells, _| {
        for plane in 0..count {
            let (mut best, mut winner) = (T::LOWEST, NOBODY);
            for &cell in cells {
                let value = x[plane * from + cell];
                let beats = winner == NOBODY || value > best || (nan(value) && !nan(best));
                if beats {
                    (best, winner) = (value, cell as u32);
                }
            }
            (y[plane * to + o], winners[plane * to + o]) = (best, winner);
        }
    });
}

/// The pullback of [`max`], added to `gx`.
pub(super) fn max_back<T: Real>(axes: &[Axis], winners: &[u32], gy: &[T], gx: &mut [T]) {
    let (_, from, to) = planes(axes, gy.len());
    for (i, (&winner, &g)) in winners.iter().zip(gy).enumerate() {
        if winner != NOBODY {
            gx[i / to * from + winner as usize] += g;
        }
    }
}

/// Means over the counted cells.
pub(super) fn average<T: Real>(axes: &[Axis], count_padding: bool, x: &[T], y: &mut [T]) {
    let (count, from, to) = planes(axes, y.len());
    each_window(axes, |o, cells, padded| {
        let counted = if count_padding { padded } else { cells.len() } as f64;
        for plane in 0..count {
            let sum: f64 = cells.iter().map(|&cell| x[plane * from + cell].f64()).sum();
            y[plane * to + o] = T::of(sum / counted);
        }
    });
}

/// The pullback of [`average`], added to `gx`.
pub(super) fn average_back<T: Real>(axes: &[Axis], count_padding: bool, gy: &[T], gx: &mut [T]) {
    let (count, from, to) = planes(axes, gy.len());
    each_window(axes, |o, cells, padded| {
        let counted = if count_padding { padded } else { cells.len() } as f64;
        for plane in 0..count {
            let share = T::of(gy[plane * to + o].f64() / counted);
            cells.iter().for_each(|&cell| gx[plane * from + cell] += share);
        }
    });
}

/// `(sum of |x|^p)^(1/p)`.
pub(super) fn lp<T: Real>(axes: &[Axis], p: f64, x: &[T], y: &mut [T]) {
    let (count, from, to) = planes(axes, y.len());
    each_window(axes, |o, cells, _| {
        for plane in 0..count {
            let sum: f64 = cells.iter().map(|&cell| x[plane * from + cell].f64().abs().powf(p)).sum();
            y[plane * to + o] = T::of(sum.powf(1.0 / p));
        }
    });
}

/// The pullback of [`lp`], added to `gx`; zero where the output is.
pub(super) fn lp_back<T: Real>(axes: &[Axis], p: f64, (x, y): (&[T], &[T]), gy: &[T], gx: &mut [T]) {
    let (count, from, to) = planes(axes, gy.len());
    each_window(axes, |o, cells, _| {
        for plane in 0..count {
            let (y, g) = (y[plane * to + o].f64(), gy[plane * to + o].f64());
            for &cell in cells.iter().filter(|_| y > 0.0) {
                let x = x[plane * from + cell].f64();
                if x != 0.0 {
                    gx[plane * from + cell] += T::of(g * x.signum() * (x.abs() / y).powf(p - 1.0));
                }
            }
        }
    });
}
