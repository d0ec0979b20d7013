//! Cross-entropy over cells, with its gradient.
//!
//! `Σ w_y · (log Σ exp z − z_y) / Σ w_y` over labelled cells; the gradient to z is `w_y · (softmax z − 1_y) / Σ w_y`. Rare classes may
//! weigh more. Segmentation scores are enlarged to the labels' size first, and the gradient led back.

use crate::layer::resize::{enlarge, enlarge_back};
use crate::map::Map;
use rayon::prelude::*;

/// Cells of this label count for nothing.
pub const IGNORED: u8 = 255;

/// The loss and its gradient to the scores. `labels` holds `factor²` labels for each cell of `scores`, image by image.
///
/// # Panics
/// If the number of labels is another.
pub fn cross_entropy(scores: &Map, labels: &[u8], factor: usize, weights: &[f32]) -> (f64, Map) {
    assert_eq!(labels.len(), scores.pixels() * factor * factor, "one label a cell");
    let fine = if factor == 1 { scores.clone() } else { enlarge(scores, factor) };
    let weight = |label: u8| if label == IGNORED { 0.0 } else { weights[usize::from(label)] };
    let total: f64 = labels.iter().map(|&l| f64::from(weight(l))).sum::<f64>().max(1e-9);
    let mut gradient = Map::like(&fine);
    let stride = fine.stride();
    let line = fine.width;
    let losses: Vec<f64> = gradient
        .values
        .par_chunks_mut(line * stride)
        .enumerate()
        .map(|(row, out)| {
            let mut loss = 0.0;
            for x in 0..line {
                let label = labels[row * line + x];
                if label == IGNORED {
                    continue;
                }
                let z = &fine.values[(row * line + x) * stride..][..scores.channels];
                let share = f64::from(weight(label)) / total;
                loss += share * cell(z, usize::from(label), share as f32, &mut out[x * stride..]);
            }
            loss
        })
        .collect();
    let loss = losses.into_iter().sum();
    if factor == 1 {
        return (loss, gradient);
    }
    let mut coarse = Map::like(scores);
    enlarge_back(&gradient, factor, &mut coarse);
    (loss, coarse)
}

/// The loss of one cell; writes `share` times its gradient.
fn cell(z: &[f32], label: usize, share: f32, gradient: &mut [f32]) -> f64 {
    let top = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for (g, v) in gradient.iter_mut().zip(z) {
        *g = (v - top).exp();
        sum += *g;
    }
    for g in &mut gradient[..z.len()] {
        *g *= share / sum;
    }
    gradient[label] -= share;
    f64::from(sum.ln() + top - z[label])
}

/// The best class of every cell after enlargement.
pub fn best(scores: &Map, factor: usize) -> Vec<u8> {
    let fine = if factor == 1 { scores.clone() } else { enlarge(scores, factor) };
    let cells = fine.values.par_chunks_exact(fine.stride());
    cells.map(|z| evenkeel::task::argmax(&z[..scores.channels]) as u8).collect()
}
