//! A block of neighbouring columns of a softmax along a strided axis, and of its pullback: each lane is a column of its own.

use super::{Columns, Kind};
use crate::activation::curves::{exp, ln};
use crate::vectorised::vectorised;

/// The most columns in a block.
pub(super) const WIDTH: usize = 64;

/// `input` begins at the block's first element, as rows `part.inner` apart; `row(i)` is where row `i` goes.
pub(super) fn forward<'a>(
    kind: Kind,
    part: &Columns<'_>,
    input: &[f32],
    row: impl Fn(usize) -> &'a mut [f32],
) {
    let at = |i: usize| &input[i * part.inner..][..part.width];
    let (mut most, mut sum) = ([f32::NEG_INFINITY; WIDTH], [0.0; WIDTH]);
    let (most, sum) = (&mut most[..part.width], &mut sum[..part.width]);
    for i in 0..part.length {
        take_larger(at(i), most);
    }
    for i in 0..part.length {
        add_powers(at(i), most, row(i), sum);
    }
    for i in 0..part.length {
        if kind == Kind::Softmax {
            divide(row(i), sum);
        } else {
            lower(at(i), most, sum, row(i));
        }
    }
}

/// As [`forward`], for the gradient.
pub(super) fn pullback<'a>(
    kind: Kind,
    part: &Columns<'_>,
    output: &[f32],
    grad_out: &[f32],
    row: impl Fn(usize) -> &'a mut [f32],
) {
    let at = |from: &'_ [f32], i: usize| -> std::ops::Range<usize> {
        debug_assert!(from.len() >= i * part.inner + part.width);
        i * part.inner..i * part.inner + part.width
    };
    let mut sum = [0.0; WIDTH];
    let sum = &mut sum[..part.width];
    for i in 0..part.length {
        let range = at(output, i);
        add_products(kind, &output[range.clone()], &grad_out[range], sum);
    }
    for i in 0..part.length {
        let range = at(output, i);
        send_back(kind, &output[range.clone()], &grad_out[range], sum, row(i));
    }
}

vectorised! {
    fn take_larger(x: &[f32], most: &mut [f32]) {
        for (&x, most) in x.iter().zip(most) {
            *most = if x > *most { x } else { *most };
        }
    }
}

vectorised! {
    fn add_powers(x: &[f32], most: &[f32], y: &mut [f32], sum: &mut [f32]) {
        for (((&x, &most), y), sum) in x.iter().zip(most).zip(y).zip(sum) {
            *y = exp(x - most);
            *sum += *y;
        }
    }
}

vectorised! {
    fn divide(y: &mut [f32], sum: &[f32]) {
        for (y, &sum) in y.iter_mut().zip(sum) {
            *y /= sum;
        }
    }
}

vectorised! {
    fn lower(x: &[f32], most: &[f32], sum: &[f32], y: &mut [f32]) {
        for (((&x, &most), &sum), y) in x.iter().zip(most).zip(sum).zip(y) {
            *y = x - most - ln(sum);
        }
    }
}

vectorised! {
    fn add_products(kind: Kind, y: &[f32], g: &[f32], sum: &mut [f32]) {
        let softmax = kind == Kind::Softmax;
        for ((&y, &g), sum) in y.iter().zip(g).zip(sum) {
            *sum += if softmax { g * y } else { g };
        }
    }
}

vectorised! {
    fn send_back(kind: Kind, y: &[f32], g: &[f32], sum: &[f32], into: &mut [f32]) {
        if kind == Kind::Softmax {
            for (((&y, &g), &sum), into) in y.iter().zip(g).zip(sum).zip(into) {
                *into = y * (g - sum);
            }
        } else {
            for (((&y, &g), &sum), into) in y.iter().zip(g).zip(sum).zip(into) {
                *into = g - exp(y) * sum;
            }
        }
    }
}
