//! Cross-entropy over cells, with its gradient.
//!
//! `Σ w_y · (log Σ exp z − z_y) / Σ w_y` over labelled cells; the gradient to z is `w_y · (softmax z − 1_y) / Σ w_y`. Rare classes may
//! weigh more. Segmentation scores are enlarged to the labels' size first, and the gradient led back, one image after the other, so that an
//! image's scores at full size stay in a cache.

use crate::layer::resize::{enlarge, enlarge_back};
use crate::map::Map;
use evenkeel_kernels::softmax::{Kind, forward_channels};
use rayon::prelude::*;

/// Cells of this label count for nothing.
pub const IGNORED: u16 = u16::MAX;

/// The loss and its gradient to the scores. `labels` holds `factor²` labels for each cell of `scores`, image by image.
///
/// # Panics
/// If the number of labels is another.
pub fn cross_entropy(scores: &Map, labels: &[u16], factor: usize, weights: &[f32]) -> (f64, Map) {
    assert_eq!(labels.len(), scores.pixels() * factor * factor, "one label a cell");
    let weight = |label: u16| if label == IGNORED { 0.0 } else { weights[usize::from(label)] };
    let total: f64 = labels.iter().map(|&l| f64::from(weight(l))).sum::<f64>().max(1e-9);
    let mut gradient = Map::like(scores);
    let (len, per) = (scores.image_len().max(1), (labels.len() / scores.batch.max(1)).max(1));
    let images =
        gradient.values.par_chunks_mut(len).zip(scores.values.par_chunks(len)).zip(labels.par_chunks(per));
    let losses: Vec<f64> = images
        .map(|((out, from), labels)| {
            let mut scores = Map::zeros(1, scores.height, scores.width, scores.channels);
            scores.values.copy_from_slice(from);
            let fine = if factor == 1 { scores } else { enlarge(&scores, factor) };
            let (loss, coarse) = image(&fine, labels, |label| (f64::from(weight(label)) / total) as f32);
            match factor {
                1 => out.copy_from_slice(&coarse.values),
                _ => {
                    let mut back = Map::zeros(1, fine.height / factor, fine.width / factor, fine.channels);
                    enlarge_back(&coarse, factor, &mut back);
                    out.copy_from_slice(&back.values);
                }
            }
            loss
        })
        .collect();
    (losses.into_iter().sum(), gradient)
}

/// The loss of one image's scores and its gradient to them.
fn image(scores: &Map, labels: &[u16], share: impl Fn(u16) -> f32) -> (f64, Map) {
    let mut gradient = Map::like(scores);
    forward_channels(Kind::Softmax, scores.channels, &scores.values, &mut gradient.values);
    let (mut loss, stride) = (0.0, scores.stride());
    for (out, &label) in gradient.values.chunks_exact_mut(stride).zip(labels) {
        let share = share(label);
        if share == 0.0 {
            out.fill(0.0);
            continue;
        }
        let chance = out[usize::from(label)].max(f32::MIN_POSITIVE);
        loss -= f64::from(share) * f64::from(chance.ln());
        out.iter_mut().for_each(|p| *p *= share);
        out[usize::from(label)] -= share;
    }
    (loss, gradient)
}

/// The best class of every cell after enlargement.
pub fn best(scores: &Map, factor: usize) -> Vec<u16> {
    let fine = if factor == 1 { scores.clone() } else { enlarge(scores, factor) };
    let cells = fine.values.par_chunks_exact(fine.stride());
    cells.map(|z| evenkeel::task::argmax(&z[..scores.channels]) as u16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel::Random;

    #[test]
    fn the_gradient_agrees_with_differences_and_ignores_what_is_unknown() {
        let mut random = Random::new(5);
        let mut scores = Map::zeros(2, 2, 3, 5);
        scores.values.iter_mut().for_each(|v| *v = random.normal());
        let mut labels: Vec<u16> = (0..2 * 4 * 6).map(|_| random.below(5) as u16).collect();
        labels[7] = IGNORED;
        let weights = [1.0, 2.0, 0.5, 0.0, 1.5];
        let (loss, gradient) = cross_entropy(&scores, &labels, 2, &weights);
        assert!(loss > 0.0);
        for i in [0, 3, 4, 8 * 5 + 1, 8 * 9 + 2] {
            let at = |by: f32| {
                let mut moved = scores.clone();
                moved.values[i] += by;
                cross_entropy(&moved, &labels, 2, &weights).0
            };
            let expected = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!(
                (f64::from(gradient.values[i]) - expected).abs() < 1e-4,
                "{i}: {} {expected}",
                gradient.values[i]
            );
        }
        let unknown = vec![IGNORED; labels.len()];
        let (loss, gradient) = cross_entropy(&scores, &unknown, 2, &weights);
        assert!(loss == 0.0 && gradient.values.iter().all(|&g| g == 0.0));
    }
}
