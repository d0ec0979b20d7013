//! Batch norm with what follows it: `y = relu(gain · (x − mean) / √(variance + ε) + shift + skip)`.
//!
//! With g the gradient after the ReLU's cut, and x̂ the normalised input over N values of a channel:
//! `g_shift = Σ g`, `g_gain = Σ g·x̂`, `gx = gain / √(variance + ε) · (g − g_shift/N − x̂ · g_gain/N)`, and the skip gets g.
//! Sums are over fixed pieces of the batch, added in order, so they do not depend on the threads.

use crate::map::Map;
use rayon::prelude::*;

pub(crate) const EPSILON: f32 = 1e-5;
/// Pixels whose sums are taken in one go.
const PIECE: usize = 2048;

/// Mean and 1/√(variance + ε) of each channel, and the variance itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moments {
    pub(crate) mean: Vec<f32>,
    pub(crate) inverse: Vec<f32>,
    pub(crate) variance: Vec<f32>,
}

impl Moments {
    pub(crate) fn of(x: &Map) -> Self {
        let count = x.pixels() as f64;
        let sums = summed(x, 2, |at, sums| {
            let (first, second) = sums.split_at_mut(x.stride());
            for pixel in x.values[at.0..at.1].chunks_exact(x.stride()) {
                for ((v, a), b) in pixel.iter().zip(first.iter_mut()).zip(second.iter_mut()) {
                    *a += v;
                    *b += v * v;
                }
            }
        });
        let mean: Vec<f64> = sums[..x.stride()].iter().map(|s| s / count).collect();
        let square = sums[x.stride()..].iter().map(|s| s / count);
        let variance: Vec<f32> = square.zip(&mean).map(|(s, m)| (s - m * m).max(0.0) as f32).collect();
        Self::known(mean.iter().map(|&m| m as f32).collect(), variance)
    }

    pub(crate) fn known(mean: Vec<f32>, variance: Vec<f32>) -> Self {
        let inverse = variance.iter().map(|v| 1.0 / (v + EPSILON).sqrt()).collect();
        Self { mean, inverse, variance }
    }
}

/// `rows` sums a channel over the whole batch; `add` takes in the elements of one piece.
fn summed(x: &Map, rows: usize, add: impl Fn((usize, usize), &mut [f32]) + Sync) -> Vec<f64> {
    let (stride, len) = (x.stride(), x.values.len());
    let pieces = x.pixels().div_ceil(PIECE);
    let parts: Vec<Vec<f32>> = (0..pieces)
        .into_par_iter()
        .map(|k| {
            let mut sums = vec![0.0; rows * stride];
            add((k * PIECE * stride, ((k + 1) * PIECE * stride).min(len)), &mut sums);
            sums
        })
        .collect();
    let mut total = vec![0.0; rows * stride];
    for part in parts {
        total.iter_mut().zip(part).for_each(|(t, p)| *t += f64::from(p));
    }
    total
}

/// A value for each lane of a pixel, zero past the last channel.
fn lanes(values: &[f32], stride: usize) -> Vec<f32> {
    let mut lanes = values.to_vec();
    lanes.resize(stride, 0.0);
    lanes
}

pub(crate) fn forward(
    x: &Map,
    moments: &Moments,
    (gain, shift): (&[f32], &[f32]),
    skip: Option<&Map>,
    relu: bool,
) -> Map {
    let stride = x.stride();
    let gain = lanes(gain, stride);
    let scale: Vec<f32> = gain.iter().zip(lanes(&moments.inverse, stride)).map(|(g, i)| g * i).collect();
    let mean = lanes(&moments.mean, stride);
    let offset: Vec<f32> =
        lanes(shift, stride).iter().zip(mean.iter().zip(&scale)).map(|(s, (m, k))| s - m * k).collect();
    let low = if relu { 0.0 } else { f32::NEG_INFINITY };
    let mut y = Map::like(x);
    y.values.par_chunks_mut(PIECE * stride).enumerate().for_each(|(k, out)| {
        let from = k * PIECE * stride;
        let inputs = x.values[from..].chunks_exact(stride);
        match skip {
            None => {
                for (out, x) in out.chunks_exact_mut(stride).zip(inputs) {
                    for c in 0..stride {
                        out[c] = (x[c] * scale[c] + offset[c]).max(low);
                    }
                }
            }
            Some(skip) => {
                let skips = skip.values[from..].chunks_exact(stride);
                for ((out, x), s) in out.chunks_exact_mut(stride).zip(inputs).zip(skips) {
                    for c in 0..stride {
                        out[c] = (x[c] * scale[c] + offset[c] + s[c]).max(low);
                    }
                }
            }
        }
    });
    y
}

/// Sets `gy` to zero where the ReLU was cut.
pub(crate) fn cut(y: &Map, gy: &mut Map) {
    let pieces = gy.values.par_chunks_mut(PIECE * 8).zip(y.values.par_chunks(PIECE * 8));
    pieces.for_each(|(g, y)| g.iter_mut().zip(y).for_each(|(g, y)| *g = if *y > 0.0 { *g } else { 0.0 }));
}

/// The gradient to the input, from one already cut; adds those of gain and shift. `fixed` is set where the moments were not the
/// batch's own.
pub(crate) fn backward(
    x: &Map,
    moments: &Moments,
    gain: &[f32],
    gy: &Map,
    (g_gain, g_shift): (&mut [f32], &mut [f32]),
    fixed: bool,
) -> Map {
    let stride = x.stride();
    let (mean, inverse) = (lanes(&moments.mean, stride), lanes(&moments.inverse, stride));
    let sums = summed(x, 2, |at, sums| {
        let (first, second) = sums.split_at_mut(stride);
        let pixels =
            x.values[at.0..at.1].chunks_exact(stride).zip(gy.values[at.0..at.1].chunks_exact(stride));
        for (x, g) in pixels {
            for c in 0..stride {
                first[c] += g[c];
                second[c] += g[c] * (x[c] - mean[c]);
            }
        }
    });
    for c in 0..x.channels {
        g_shift[c] += sums[c] as f32;
        g_gain[c] += sums[stride + c] as f32 * inverse[c];
    }
    let count = if fixed { f64::INFINITY } else { x.pixels() as f64 };
    let scale: Vec<f32> = lanes(gain, stride).iter().zip(&inverse).map(|(g, i)| g * i).collect();
    let level: Vec<f32> = (0..stride).map(|c| (sums[c] / count) as f32).collect();
    let tilt: Vec<f32> =
        (0..stride).map(|c| (sums[stride + c] / count) as f32 * inverse[c] * inverse[c]).collect();
    let mut gx = Map::like(x);
    gx.values.par_chunks_mut(PIECE * stride).enumerate().for_each(|(k, out)| {
        let from = k * PIECE * stride;
        let rest = x.values[from..].chunks_exact(stride).zip(gy.values[from..].chunks_exact(stride));
        for (out, (x, g)) in out.chunks_exact_mut(stride).zip(rest) {
            for c in 0..stride {
                out[c] = scale[c] * (g[c] - level[c] - (x[c] - mean[c]) * tilt[c]);
            }
        }
    });
    gx
}
