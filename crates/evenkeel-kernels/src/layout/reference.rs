//! The two layout changes as plain loops, on one range of one image's pixels.

use std::ops::Range;

use super::{LANES, stride};

/// Writes the pixels of `range` (all channels, padding zero) from one planar image.
pub(super) fn from_planar(
    channels: usize,
    pixels: usize,
    source: &[f32],
    range: Range<usize>,
    target: &mut [f32],
) {
    let step = stride(channels);
    for (pixel, out) in range.zip(target.chunks_exact_mut(step)) {
        for c in 0..channels {
            out[c] = source[c * pixels + pixel];
        }
        out[channels..].fill(0.0);
    }
}

/// Writes up to eight planar rows from the lanes of `source`, whose first element is the first pixel's first lane. Rows past
/// the last channel are empty.
pub(super) fn to_planar(step: usize, source: &[f32], rows: [&mut [f32]; LANES]) {
    for (lane, row) in rows.into_iter().enumerate() {
        for (pixel, out) in row.iter_mut().enumerate() {
            *out = source[pixel * step + lane];
        }
    }
}
