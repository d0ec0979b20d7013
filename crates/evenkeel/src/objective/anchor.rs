//! Cosines of each view's features with the image's own: the anchor pairing, one view at a time.
//!
//! With f0 = F(x), f the view's features on f0's grid, n = ‖·‖ + 1e-10 and w the cells in sight that are kept, a view adds
//! Σ w f0 f / (n0 n). On f: w f0/(n0 n) − c f/(n ‖f‖), c the view's cosine; on f0: Σ over views of w f/(n0 n), less Σc f0/(n0 ‖f0‖).
//! Sums run in the order of the views, so they are those of all views at once, bit by bit.

use std::borrow::Cow;

use super::Cotangent;

/// The image's own vector of one level `[channels, cells]`, and the sums over views so far.
pub(super) struct Anchor<'a> {
    own: Cow<'a, [f32]>,
    cells: usize,
    /// 1 for each cell that takes part; none where all do.
    kept: Option<Vec<f32>>,
    norm: f64,
    value: f64,
    cotangent: Vec<f32>,
}

/// What a view adds to one level.
pub(super) struct Pair {
    pub(super) value: f64,
    /// The view's features on the image's grid.
    features: Vec<f32>,
    /// w / (n0 n) of each cell.
    weights: Vec<f32>,
    /// What is left of the view's features in its own cotangent.
    shrink: f32,
}

fn length(norm: f64) -> f64 {
    norm + 1e-10
}

fn norm(values: &[f32]) -> f64 {
    values.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt()
}

fn shrink(value: f64, norm: f64) -> f32 {
    if norm > 0.0 { (value / (length(norm) * norm)) as f32 } else { 0.0 }
}

impl<'a> Anchor<'a> {
    pub(super) fn new(own: Cow<'a, [f32]>, cells: usize, kept: Option<Vec<f32>>) -> Self {
        let norm = norm(&own);
        Self { own, cells, kept, norm, value: 0.0, cotangent: Vec::new() }
    }

    /// What a view of these features adds; `mask` holds the cells in sight, all if there is none.
    pub(super) fn pair(&self, features: Vec<f32>, mask: Option<&[f32]>) -> Pair {
        let weights: Vec<f32> = match (&self.kept, mask) {
            (Some(kept), Some(mask)) => kept.iter().zip(mask).map(|(k, m)| k * m).collect(),
            (Some(only), None) => only.clone(),
            (None, Some(only)) => only.to_vec(),
            (None, None) => vec![1.0; self.cells],
        };
        let dot = || {
            let channel = |(a, b): (&[f32], &[f32])| {
                let cells = a.iter().zip(b).zip(&weights);
                cells.map(|((a, b), w)| f64::from(a * w) * f64::from(*b)).sum::<f64>()
            };
            self.own.chunks(self.cells).zip(features.chunks(self.cells)).map(channel).sum::<f64>()
        };
        let (dot, norm) = rayon::join(dot, || norm(&features));
        let lengths = length(self.norm) * length(norm);
        let (value, scale) = (dot / lengths, (1.0 / lengths) as f32);
        let weights = weights.iter().map(|w| w * scale).collect();
        Pair { value, features, weights, shrink: shrink(value, norm) }
    }

    /// The cotangent on the view's features, on the image's grid.
    pub(super) fn on_view(&self, pair: &Pair) -> Vec<f32> {
        let channels = self.own.chunks(self.cells).zip(pair.features.chunks(self.cells));
        let mut out = Vec::with_capacity(pair.features.len());
        for (own, seen) in channels {
            let cells = own.iter().zip(seen).zip(&pair.weights);
            out.extend(cells.map(|((own, seen), w)| (0.0 + own * w) - pair.shrink * seen));
        }
        out
    }

    /// Adds a view, whose turn it must be.
    pub(super) fn add(&mut self, pair: &Pair) {
        self.value += pair.value;
        self.cotangent.resize(self.own.len(), 0.0);
        let channels = self.cotangent.chunks_mut(self.cells).zip(pair.features.chunks(self.cells));
        for (sum, seen) in channels {
            sum.iter_mut().zip(seen).zip(&pair.weights).for_each(|((sum, seen), w)| *sum += seen * w);
        }
    }

    /// The sum of the cosines, and its cotangent on the image's own vector.
    pub(super) fn finish(mut self) -> (f64, Cotangent) {
        let shrink = shrink(self.value, self.norm);
        self.cotangent.resize(self.own.len(), 0.0);
        self.cotangent.iter_mut().zip(&*self.own).for_each(|(sum, own)| *sum -= shrink * own);
        (self.value, self.cotangent)
    }
}
