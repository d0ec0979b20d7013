//! Scores of label maps: one confusion matrix over the whole data set, and from it mIoU, per-class IoU, pixel accuracy.
//!
//! IoU_c = n_cc / (truth_c + predicted_c - n_cc); mIoU = mean over the classes present in truth or prediction. Pixels
//! whose true label is `ignore` count nowhere. A prediction outside the classes is wrong: it adds to the truth's count
//! and to no class. Scored against an attack's target instead of the truth, the same figures are "mIoU to the target".
//! Invariant: counts are integers, so order and splitting change nothing.

use super::bootstrap::{Bootstrap, Interval, Resampled, Tally};
use super::confusion::Confusion;
use super::table::{Metric, TaskTally};
use crate::{Error, Result};
pub use evenkeel::task::semantic::ClassOverlap;

/// The label of pixels that are left out, unless a data set says otherwise.
pub const IGNORE: u16 = 255;

const TASKS: &[&str] = &["semantic"];

fn overlap(tally: &TaskTally) -> Option<&ClassOverlap> {
    match tally {
        TaskTally::Pixels(overlap) => Some(overlap),
        _ => None,
    }
}

pub(super) const MIOU: Metric = Metric::share(
    TASKS,
    ("miou", "mIoU"),
    "mean over classes of intersection over union, from one confusion of all images (semantic)",
    |tally| overlap(tally)?.mean_iou(),
);
pub(super) const PIXEL_ACCURACY: Metric = Metric::share(
    TASKS,
    ("pixel-accuracy", "pixel accuracy"),
    "share of labelled pixels whose class is right (semantic)",
    |tally| overlap(tally)?.pixel_accuracy(),
);

impl Tally for ClassOverlap {
    fn add(&mut self, image: &Self, times: u64) {
        self.add_times(image, times);
    }
}

/// The running score of a semantic segmentation study.
#[derive(Clone, Debug)]
pub struct SegmentationScore {
    ignore: u16,
    confusion: Confusion,
    overlap: Resampled<ClassOverlap>,
    unlabelled: u64,
}

impl SegmentationScore {
    /// An empty score over `classes` classes.
    pub fn new(classes: usize, ignore: u16, plan: Bootstrap) -> Self {
        let overlap = Resampled::new(ClassOverlap::empty(classes), plan);
        Self { ignore, confusion: Confusion::empty(classes), overlap, unlabelled: 0 }
    }

    /// Takes in one image; one without a labelled pixel is left out and counted as such. Refuses maps of different sizes and true labels that are neither a
    /// class nor ignored.
    pub fn push(&mut self, key: u64, truth: &[u16], predicted: &[u16]) -> Result<()> {
        if truth.len() != predicted.len() {
            return Err(Error::Request(format!(
                "{} labels against {} predictions",
                truth.len(),
                predicted.len()
            )));
        }
        let classes = self.confusion.classes();
        let mut image = Confusion::empty(classes);
        for (&t, &p) in truth.iter().zip(predicted).filter(|(t, _)| **t != self.ignore) {
            if !image.count(t.into(), p.into()) {
                return Err(Error::Request(format!("label {t} is outside the {classes} classes")));
            }
        }
        if image.total() == 0 {
            self.unlabelled += 1;
            return Ok(());
        }
        self.confusion.merge(&image);
        self.overlap.push(key, &image.overlap());
        Ok(())
    }

    /// Takes in another part of the same study.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.ignore, other.ignore, "parts of one study ignore the same label");
        self.confusion.merge(&other.confusion);
        self.overlap.merge(&other.overlap);
        self.unlabelled += other.unlabelled;
    }

    /// The figures over all images.
    pub fn figures(&self) -> &ClassOverlap {
        self.overlap.whole()
    }

    /// The bootstrap interval of a figure.
    pub fn interval(
        &self,
        confidence: f64,
        figure: impl Fn(&ClassOverlap) -> Option<f64>,
    ) -> Option<Interval> {
        self.overlap.interval(confidence, figure)
    }

    /// Pixels of true class `truth` predicted as `predicted`; `predicted == classes` asks for those outside.
    pub fn confusion(&self, truth: usize, predicted: usize) -> u64 {
        self.confusion.at(truth, predicted)
    }

    /// Labelled pixels whose prediction was no class.
    pub fn outside(&self) -> u64 {
        self.confusion.outside()
    }

    /// Images counted.
    pub fn images(&self) -> u64 {
        self.overlap.images()
    }

    /// Images without a labelled pixel, which are left out.
    pub fn unlabelled(&self) -> u64 {
        self.unlabelled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_the_data_do_not_know_is_an_error_but_no_class() {
        // of four pixels of class 0 one is taken for class 1, one for a class 2 that no truth has
        let image = ClassOverlap::from_counts(vec![2, 3, 0], vec![4, 3, 0], vec![2, 4, 1]).unwrap();
        let mut sum = ClassOverlap::empty(2);
        sum.add(&image, 1);
        assert_eq!(sum.mean_iou(), Some((2.0 / 4.0 + 3.0 / 4.0) / 2.0));
        assert_eq!(image.mean_iou(), Some((2.0 / 4.0 + 3.0 / 4.0) / 3.0));
    }
}
