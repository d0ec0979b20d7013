//! The softmax over the channels of every cell, and its pullback.
//!
//! p_j = exp(z_j − max z) / Σ exp(z_k − max z); dL/dz_j = p_j (c_j − Σ p_k c_k) for a cotangent c on p. Every cell's probabilities sum to one.

use evenkeel_kernels::layout::Along;
use evenkeel_kernels::softmax::{Kind, forward, pullback};

use super::Extents;

fn along(extents: Extents) -> Along {
    Along { outer: 1, length: extents.channels, inner: extents.cells() }
}

/// The probabilities `[classes, h, w]` of scores of the same form.
pub(crate) fn softmax(scores: &[f32], extents: Extents) -> Vec<f32> {
    let mut out = vec![0.0; scores.len()];
    forward(Kind::Softmax, along(extents), scores, &mut out);
    out
}

/// The logarithms of the probabilities.
pub(crate) fn log_softmax(scores: &[f32], extents: Extents) -> Vec<f32> {
    let mut out = vec![0.0; scores.len()];
    forward(Kind::LogSoftmax, along(extents), scores, &mut out);
    out
}

/// From a cotangent on the probabilities to one on the scores.
pub(crate) fn pull_softmax(probabilities: &[f32], cotangent: &[f32], extents: Extents) -> Vec<f32> {
    let mut out = vec![0.0; cotangent.len()];
    pullback(Kind::Softmax, along(extents), probabilities, cotangent, &mut out);
    out
}
