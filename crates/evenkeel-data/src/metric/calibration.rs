//! Calibration of a classifier: does it err as often as its confidence says?
//!
//! Images are put into 15 bins of equal width by the probability of the class that was said, bin k holding (k/15, (k+1)/15]. ECE = Σ (n_k / n) |right_k / n_k −
//! mean confidence_k| (Guo et al. 2017). Sums of confidences are exact, so order and splitting change nothing.

use super::bootstrap::Tally;
use super::exact_sum::ExactSum;
use super::table::{Better, Metric, TaskTally, Unit};
use std::collections::BTreeMap;

/// Bins of equal width.
const BINS: usize = 15;

pub(super) const CALIBRATION_ERROR: Metric = Metric {
    name: "calibration-error",
    title: "calibration error",
    about: "mean gap between confidence and accuracy over 15 bins of confidence, ECE (classification)",
    tasks: &["classification"],
    better: Better::Lower,
    unit: Unit::Share,
    figure: Some(|tally| match tally {
        TaskTally::Classes(all) => all.calibration.error(),
        _ => None,
    }),
};

/// Images, right answers and confidences by bin.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// Those that hold an image.
    bins: BTreeMap<usize, Bin>,
}

#[derive(Clone, Debug, Default)]
struct Bin {
    images: u64,
    right: u64,
    confidence: ExactSum,
}

impl Calibration {
    /// The tally of one image; `None` if the confidence is no probability.
    pub fn of(confidence: f64, right: bool) -> Option<Self> {
        if !(0.0..=1.0).contains(&confidence) {
            return None;
        }
        let mut all = Self::default();
        let place = ((confidence * BINS as f64).ceil() as usize).clamp(1, BINS) - 1;
        let bin = all.bins.entry(place).or_default();
        (bin.images, bin.right) = (1, u64::from(right));
        bin.confidence.add(confidence);
        Some(all)
    }

    /// Images counted.
    pub fn images(&self) -> u64 {
        self.bins.values().map(|bin| bin.images).sum()
    }

    /// The expected calibration error; `None` if nothing was counted.
    pub fn error(&self) -> Option<f64> {
        let images = self.images();
        let gap = |bin: &Bin| (bin.right as f64 - bin.confidence.value()).abs() / images as f64;
        (images > 0).then(|| self.bins.values().map(gap).sum())
    }
}

impl Tally for Calibration {
    fn add(&mut self, image: &Self, times: u64) {
        for (place, theirs) in &image.bins {
            let mine = self.bins.entry(*place).or_default();
            mine.images += theirs.images * times;
            mine.right += theirs.right * times;
            mine.confidence.add_sum(&theirs.confidence, times);
        }
    }
}
