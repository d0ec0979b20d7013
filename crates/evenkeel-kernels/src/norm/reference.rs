//! The normalisation and its pullback as their formulas, in either precision.

use super::Affine;
use crate::real::Real;

fn entry<R: Real>(affine: Option<Affine<'_>>, i: usize) -> (R, R) {
    affine.map_or((R::ONE, R::ZERO), |affine| {
        let entry = i / affine.run % affine.scale.len();
        (R::of(affine.scale[entry].into()), R::of(affine.bias.map_or(0.0, |bias| bias[entry].into())))
    })
}

fn moments<R: Real>(x: &[R], epsilon: R) -> (R, R) {
    let count = R::of(x.len() as f64);
    let mean = x.iter().fold(R::ZERO, |sum, &x| sum + x) / count;
    let variance = x.iter().fold(R::ZERO, |sum, &x| sum + (x - mean) * (x - mean)) / count;
    (mean, R::ONE / (variance + epsilon).sqrt())
}

pub(super) fn forward<R: Real>(row: usize, epsilon: R, affine: Option<Affine<'_>>, input: &[R]) -> Vec<R> {
    let mut output = Vec::new();
    for x in input.chunks(row) {
        let (mean, rate) = moments(x, epsilon);
        for &x in x {
            let (scale, bias) = entry(affine, output.len());
            output.push((x - mean) * rate * scale + bias);
        }
    }
    output
}

pub(super) fn pullback<R: Real>(
    row: usize,
    epsilon: R,
    affine: Option<Affine<'_>>,
    input: &[R],
    grad_out: &[R],
) -> Vec<R> {
    let mut grad_in = Vec::new();
    for (x, g) in input.chunks(row).zip(grad_out.chunks(row)) {
        let (mean, rate) = moments(x, epsilon);
        let first = grad_in.len();
        let t = |i: usize| g[i] * entry::<R>(affine, first + i).0;
        let h = |i: usize| (x[i] - mean) * rate;
        let count = R::of(row as f64);
        let level = (0..row).fold(R::ZERO, |sum, i| sum + t(i)) / count;
        let tilt = (0..row).fold(R::ZERO, |sum, i| sum + t(i) * h(i)) / count;
        for i in 0..row {
            grad_in.push(rate * (t(i) - level - h(i) * tilt));
        }
    }
    grad_in
}
