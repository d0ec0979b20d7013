//! YOLO-seg heads: two tensors, joined in the contract as `"predictions + prototypes"`.
//!
//! Predictions are `[1, 4 + classes + k, n]`: for each of n anchors the box (centre x, centre y, width, height in pixels of the
//! network's input), a probability per class, and k coefficients. Prototypes are `[1, k, h, w]`. The mask of an anchor is where
//! Σ coefficient · prototype, brought bilinearly to the image, is above zero, inside its box. No suppression is in the network.

use rayon::prelude::*;

use super::suppress::{Candidate, suppressed};
use super::{Instance, InstanceHead, InstanceRule, Mask, yolo_loss};
use crate::error::{Error, Result};
use crate::network::Tensor;

/// The head of YOLOv8-seg, YOLO11-seg and their kin.
#[derive(Clone, Copy, Debug)]
pub struct YoloSeg;

/// The two tensors of such a head.
pub(super) struct Outputs<'a> {
    pub(super) anchors: usize,
    pub(super) classes: usize,
    pub(super) coefficients: usize,
    /// `[4 + classes + coefficients, anchors]`
    pub(super) predictions: &'a [f32],
    /// (height, width) of a prototype.
    pub(super) grid: (usize, usize),
    /// `[coefficients, height, width]`
    pub(super) prototypes: &'a [f32],
}

impl<'a> Outputs<'a> {
    pub(super) fn of(scores: &'a Tensor) -> Result<Self> {
        let parts = scores.parts();
        let fail = || {
            let got: Vec<_> = parts.iter().map(|(shape, _)| format!("{shape:?}")).collect();
            let expected = "predictions [1, 4 + classes + k, n] + prototypes [1, k, h, w]";
            Error::mismatch("scores of a YOLO-seg head", expected, got.join(" + "))
        };
        let [first, second] = parts.as_slice() else { return Err(fail()) };
        let ((first, predictions), (second, prototypes)) = (*first, *second);
        match (first, second) {
            ([1, rows, anchors], [1, coefficients, height, width])
                if *rows > 4 + coefficients && height * width > 0 =>
            {
                Ok(Self {
                    anchors: *anchors,
                    classes: rows - 4 - coefficients,
                    coefficients: *coefficients,
                    predictions,
                    grid: (*height, *width),
                    prototypes,
                })
            }
            _ => Err(fail()),
        }
    }

    pub(super) fn value(&self, row: usize, anchor: usize) -> f32 {
        self.predictions[row * self.anchors + anchor]
    }

    /// Left, top, right, bottom of an anchor's box.
    pub(super) fn corners(&self, anchor: usize) -> [f32; 4] {
        let [x, y, w, h] = [0, 1, 2, 3].map(|row| self.value(row, anchor));
        [x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0]
    }

    fn candidates(&self, confidence: f32) -> Vec<Candidate> {
        let (mut class, mut score) = (vec![0; self.anchors], vec![f32::NEG_INFINITY; self.anchors]);
        for c in 0..self.classes {
            for (anchor, &p) in self.predictions[(4 + c) * self.anchors..][..self.anchors].iter().enumerate()
            {
                if p > score[anchor] {
                    (class[anchor], score[anchor]) = (c, p);
                }
            }
        }
        (0..self.anchors)
            .filter(|&anchor| score[anchor] > confidence)
            .map(|place| Candidate {
                place,
                class: class[place],
                score: score[place],
                corners: self.corners(place),
            })
            .collect()
    }

    /// The mask of an anchor on an image of this size.
    fn mask(&self, candidate: &Candidate, size: (usize, usize)) -> Result<Mask> {
        let [left, top, right, bottom] = candidate.corners;
        let range = |low: f32, high: f32, side: usize| {
            let start = low.ceil().clamp(0.0, side as f32) as usize;
            start..(high.ceil().clamp(0.0, side as f32) as usize).max(start)
        };
        let (rows, columns) = (range(top, bottom, size.0), range(left, right, size.1));
        let down: Vec<Tap> = rows.clone().map(|y| Tap::at(y, size.0, self.grid.0)).collect();
        let across: Vec<Tap> = columns.clone().map(|x| Tap::at(x, size.1, self.grid.1)).collect();
        let (Some(first), Some(last)) = (down.first(), down.last()) else {
            return Mask::new(size, (rows.start, columns.start), (0, 0), Vec::new());
        };
        let lines = self.mask_lines(candidate.place, first.low, last.high);
        let inside = down
            .iter()
            .flat_map(|y| {
                let line = |row: usize| &lines[(row - first.low) * self.grid.1..][..self.grid.1];
                let (upper, lower) = (line(y.low), line(y.high));
                across.iter().map(move |x| {
                    let at = |line: &[f32]| line[x.low] + x.share * (line[x.high] - line[x.low]);
                    at(upper) + y.share * (at(lower) - at(upper)) > 0.0
                })
            })
            .collect();
        Mask::new(size, (rows.start, columns.start), (rows.len(), columns.len()), inside)
    }

    /// Σ coefficient · prototype on the prototype rows `first..=last`.
    fn mask_lines(&self, anchor: usize, first: usize, last: usize) -> Vec<f32> {
        let (cells, width) = (self.grid.0 * self.grid.1, self.grid.1);
        let mut lines = vec![0.0; (last + 1 - first) * width];
        for k in 0..self.coefficients {
            let coefficient = self.value(4 + self.classes + k, anchor);
            let prototype = &self.prototypes[k * cells + first * width..][..lines.len()];
            lines.iter_mut().zip(prototype).for_each(|(sum, p)| *sum += coefficient * p);
        }
        lines
    }
}

/// Where a pixel lies between two cells of a coarser grid, centres aligned, edges held.
struct Tap {
    low: usize,
    high: usize,
    share: f32,
}

impl Tap {
    fn at(pixel: usize, pixels: usize, cells: usize) -> Self {
        let place =
            ((pixel as f32 + 0.5) * cells as f32 / pixels as f32 - 0.5).clamp(0.0, (cells - 1) as f32);
        let low = place as usize;
        Self { low, high: (low + 1).min(cells - 1), share: place - low as f32 }
    }
}

impl InstanceHead for YoloSeg {
    fn classes(&self, scores: &Tensor, _: &InstanceRule) -> Result<usize> {
        Ok(Outputs::of(scores)?.classes)
    }

    fn instances(&self, scores: &Tensor, size: (usize, usize), rule: &InstanceRule) -> Result<Vec<Instance>> {
        let outputs = Outputs::of(scores)?;
        suppressed(outputs.candidates(rule.confidence), rule.overlap, rule.most)
            .into_par_iter()
            .map(|candidate| {
                let mask = outputs.mask(&candidate, size)?;
                let Candidate { class, score, corners, .. } = candidate;
                Ok(Instance { class, score, corners, mask })
            })
            .collect()
    }

    fn loss(&self, scores: &Tensor, truth: &[Instance]) -> Result<(f64, Vec<f32>)> {
        yolo_loss::loss(&Outputs::of(scores)?, truth)
    }
}
