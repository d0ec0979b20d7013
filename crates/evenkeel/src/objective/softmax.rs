//! The softmax over the channels of every cell, and its pullback.
//!
//! p_j = exp(z_j − max z) / Σ exp(z_k − max z); dL/dz_j = p_j (c_j − Σ p_k c_k) for a cotangent c on p. Every cell's probabilities sum to one.

use crate::network::Extents;

/// The probabilities `[classes, h, w]` of scores of the same form.
pub(crate) fn softmax(scores: &[f32], extents: Extents) -> Vec<f32> {
    let cells = extents.cells();
    let mut top = vec![f32::NEG_INFINITY; cells];
    for plane in scores.chunks(cells) {
        top.iter_mut().zip(plane).for_each(|(top, v)| *top = top.max(*v));
    }
    let mut sum = vec![0.0; cells];
    let mut out = vec![0.0; scores.len()];
    for (to, from) in out.chunks_mut(cells).zip(scores.chunks(cells)) {
        for i in 0..from.len() {
            to[i] = (from[i] - top[i]).exp();
            sum[i] += to[i];
        }
    }
    out.chunks_mut(cells).for_each(|plane| plane.iter_mut().zip(&sum).for_each(|(o, sum)| *o /= sum));
    out
}

/// From a cotangent on the probabilities to one on the scores.
pub(crate) fn pull_softmax(probabilities: &[f32], cotangent: &[f32], extents: Extents) -> Vec<f32> {
    let cells = extents.cells();
    let mut along = vec![0.0f32; cells];
    for (p, c) in probabilities.chunks(cells).zip(cotangent.chunks(cells)) {
        along.iter_mut().zip(p.iter().zip(c)).for_each(|(sum, (p, c))| *sum += p * c);
    }
    let plane = |(p, c): (&[f32], &[f32])| {
        let one = |((p, c), along): ((&f32, &f32), &f32)| p * (c - along);
        p.iter().zip(c).zip(&along).map(one).collect::<Vec<f32>>()
    };
    probabilities.chunks(cells).zip(cotangent.chunks(cells)).flat_map(plane).collect()
}
