//! Binary masks as run lengths, the form in which COCO files carry them and in which they are compared.
//!
//! A mask of `height` x `width` is read column by column; `counts` alternates lengths of zeros and ones, zeros first.
//! Areas, boxes, unions and overlaps are computed on the runs and agree bit for bit with the official COCO tools.
//! Invariant: the counts of an [`Rle`] add up to `height * width`.

mod polygon;
mod text;

use crate::{Error, Result};

/// A binary mask in column-major run lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rle {
    height: u32,
    width: u32,
    counts: Vec<u32>,
}

/// A box as COCO writes it: left, top, width, height.
pub type BoxXywh = [f64; 4];

impl Rle {
    /// Takes run lengths as they stand, zeros first; refuses counts that do not cover the mask exactly.
    pub fn from_counts(height: u32, width: u32, counts: Vec<u32>) -> Result<Self> {
        let covered: u64 = counts.iter().map(|&c| u64::from(c)).sum();
        let pixels = u64::from(height) * u64::from(width);
        if pixels > u64::from(u32::MAX) {
            return Err(Error::Mask(format!(
                "a mask of {height}x{width} has more pixels than 32 bits count"
            )));
        }
        if covered != pixels || counts.is_empty() {
            return Err(Error::Mask(format!(
                "its runs cover {covered} pixels of a {height}x{width} mask ({pixels})"
            )));
        }
        Ok(Self { height, width, counts })
    }

    /// Encodes a row-major mask, one byte per pixel, nonzero inside.
    pub fn encode(height: u32, width: u32, mask: &[u8]) -> Result<Self> {
        let (h, w) = (height as usize, width as usize);
        if mask.len() != h * w {
            return Err(Error::Mask(format!("{} bytes given for a {height}x{width} mask", mask.len())));
        }
        let (mut counts, mut inside, mut run) = (Vec::new(), false, 0u32);
        for x in 0..w {
            for y in 0..h {
                let here = mask[y * w + x] != 0;
                if here != inside {
                    counts.push(run);
                    (run, inside) = (0, here);
                }
                run += 1;
            }
        }
        counts.push(run);
        Self::from_counts(height, width, counts)
    }

    /// The mask as row-major bytes, 1 inside.
    pub fn decode(&self) -> Vec<u8> {
        let (h, w) = (self.height as usize, self.width as usize);
        let mut mask = vec![0u8; h * w];
        self.for_each_inside(|y, x| mask[y * w + x] = 1);
        mask
    }

    /// Calls `visit(row, column)` for every pixel inside, column by column.
    pub fn for_each_inside(&self, mut visit: impl FnMut(usize, usize)) {
        let h = self.height as usize;
        let mut at = 0usize;
        for (k, &run) in self.counts.iter().enumerate() {
            if k % 2 == 1 {
                (at..at + run as usize).for_each(|p| visit(p % h, p / h));
            }
            at += run as usize;
        }
    }

    /// Rows of the mask.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Columns of the mask.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Run lengths, zeros first.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Pixels inside.
    pub fn area(&self) -> u32 {
        self.counts.iter().skip(1).step_by(2).sum()
    }

    /// The tight box around the mask; all zero for an empty one.
    pub fn bounding_box(&self) -> BoxXywh {
        let h = self.height;
        let (mut left, mut top, mut right, mut bottom) = (self.width, h, 0u32, 0u32);
        let mut at = 0u32;
        let mut seen = false;
        for run in self.counts.chunks_exact(2) {
            let start = at + run[0];
            at = start + run[1];
            if run[1] == 0 {
                continue;
            }
            seen = true;
            let (first, last) = ((start / h, start % h), ((at - 1) / h, (at - 1) % h));
            left = left.min(first.0);
            right = right.max(last.0);
            if first.0 < last.0 {
                (top, bottom) = (0, h - 1);
            }
            top = top.min(first.1).min(last.1);
            bottom = bottom.max(first.1).max(last.1);
        }
        if !seen {
            return [0.0; 4];
        }
        [f64::from(left), f64::from(top), f64::from(right - left + 1), f64::from(bottom - top + 1)]
    }

    /// The union (or, with `intersect`, the intersection) of masks of one size.
    pub fn merge(masks: &[Self], intersect: bool) -> Result<Self> {
        let Some((first, rest)) = masks.split_first() else {
            return Err(Error::Mask("no parts to merge".into()));
        };
        let mut merged = first.clone();
        for mask in rest {
            if (mask.height, mask.width) != (merged.height, merged.width) {
                return Err(Error::Mask("parts of different sizes cannot be merged".into()));
            }
            let (mut counts, mut inside, mut run) = (Vec::new(), false, 0);
            walk_together(&merged.counts, &mask.counts, |length, a, b| {
                let here = if intersect { a && b } else { a || b };
                if here != inside {
                    counts.push(run);
                    (run, inside) = (0, here);
                }
                run += length;
            });
            counts.push(run);
            merged.counts = counts;
        }
        Ok(merged)
    }

    /// Overlap with a ground truth: intersection over union, or over this mask's own area if `crowd`.
    ///
    /// Masks of different sizes have no overlap to speak of: -1, as the official tool answers.
    pub fn overlap(&self, truth: &Self, crowd: bool) -> f64 {
        if box_overlap(&self.bounding_box(), &truth.bounding_box(), crowd) <= 0.0 {
            return 0.0;
        }
        if (self.height, self.width) != (truth.height, truth.width) {
            return -1.0;
        }
        let (mut both, mut either) = (0u32, 0u32);
        walk_together(&self.counts, &truth.counts, |length, a, b| {
            both += if a && b { length } else { 0 };
            either += if a || b { length } else { 0 };
        });
        match (both, crowd) {
            (0, _) => 0.0,
            (_, true) => f64::from(both) / f64::from(self.area()),
            (_, false) => f64::from(both) / f64::from(either),
        }
    }
}

/// Overlap of a detected box with a true one: intersection over union, or over the detected area if `crowd`.
pub fn box_overlap(detected: &BoxXywh, truth: &BoxXywh, crowd: bool) -> f64 {
    let w = (detected[2] + detected[0]).min(truth[2] + truth[0]) - detected[0].max(truth[0]);
    let h = (detected[3] + detected[1]).min(truth[3] + truth[1]) - detected[1].max(truth[1]);
    if w <= 0.0 || h <= 0.0 {
        return 0.0;
    }
    let (both, area) = (w * h, detected[2] * detected[3]);
    both / if crowd { area } else { area + truth[2] * truth[3] - both }
}

/// Walks two run lists of one length side by side: `visit(length, in_a, in_b)` for each stretch where neither changes.
fn walk_together(a: &[u32], b: &[u32], mut visit: impl FnMut(u32, bool, bool)) {
    let (mut ia, mut ib) = (0, 0);
    let (mut left_a, mut left_b) = (a[0], b[0]);
    loop {
        while left_a == 0 && ia + 1 < a.len() {
            ia += 1;
            left_a = a[ia];
        }
        while left_b == 0 && ib + 1 < b.len() {
            ib += 1;
            left_b = b[ib];
        }
        let length = left_a.min(left_b);
        if length == 0 {
            return;
        }
        visit(length, ia % 2 == 1, ib % 2 == 1);
        left_a -= length;
        left_b -= length;
    }
}
