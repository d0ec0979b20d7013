//! Top-1 and top-5 accuracy of a classifier.
//!
//! An image is right at k if fewer than k classes score above the true one; among equal scores the lower class index
//! goes first, as an argmax does. Invariant: right at 1 implies right at 5.

use super::bootstrap::Tally;
use super::table::{Metric, TaskTally};

const TASKS: &[&str] = &["classification"];

fn counts(tally: &TaskTally) -> Option<&Accuracy> {
    match tally {
        TaskTally::Classes(all) => Some(&all.accuracy),
        _ => None,
    }
}

pub(super) const ACCURACY: Metric = Metric::share(
    TASKS,
    ("accuracy", "accuracy"),
    "share of images whose class is right (classification)",
    |tally| counts(tally)?.top1(),
);
pub(super) const TOP5: Metric = Metric::share(
    TASKS,
    ("top5", "top-5"),
    "share of images whose class is among the five most probable (classification)",
    |tally| counts(tally)?.top5(),
);

/// Counts of images right at 1 and at 5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accuracy {
    top1: u64,
    top5: u64,
    images: u64,
    /// Images whose scores of all classes were known.
    ranked: u64,
}

impl Accuracy {
    /// The tally of one image from its class scores; a true class out of range, or a score that is not a number, is wrong.
    pub fn of(scores: &[f32], truth: usize) -> Self {
        let rank = match scores.get(truth) {
            Some(own) if !own.is_nan() => scores
                .iter()
                .enumerate()
                .filter(|&(class, score)| score.is_nan() || score > own || (score == own && class < truth))
                .count(),
            _ => usize::MAX,
        };
        Self { top1: u64::from(rank < 1), top5: u64::from(rank < 5), images: 1, ranked: 1 }
    }

    /// The tally of one image from the class that was said alone: of the best five nothing is known.
    pub fn of_class(said: usize, truth: usize) -> Self {
        Self { top1: u64::from(said == truth), top5: 0, images: 1, ranked: 0 }
    }

    /// The tally of one image from the class that was said and the place of the true class among all, 0 the most probable.
    pub fn of_rank(said: usize, truth: usize, rank: usize) -> Self {
        Self { top1: u64::from(said == truth), top5: u64::from(rank < 5), images: 1, ranked: 1 }
    }

    /// Share of images whose best class is the true one.
    pub fn top1(&self) -> Option<f64> {
        (self.images > 0).then(|| self.top1 as f64 / self.images as f64)
    }

    /// Share of images whose true class is among the best five; `None` unless all scores were known.
    pub fn top5(&self) -> Option<f64> {
        (self.images > 0 && self.ranked == self.images).then(|| self.top5 as f64 / self.images as f64)
    }

    /// Share of images whose best class is not the true one.
    pub fn error(&self) -> Option<f64> {
        (self.images > 0).then(|| (self.images - self.top1) as f64 / self.images as f64)
    }

    /// Images counted.
    pub fn images(&self) -> u64 {
        self.images
    }
}

impl Tally for Accuracy {
    fn add(&mut self, image: &Self, times: u64) {
        self.top1 += image.top1 * times;
        self.top5 += image.top5 * times;
        self.images += image.images * times;
        self.ranked += image.ranked * times;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_lower_class() {
        let scores = [0.5, 0.9, 0.9, 0.1, 0.9, 0.9, 0.9];
        assert_eq!(Accuracy::of(&scores, 1).top1(), Some(1.0));
        assert_eq!(Accuracy::of(&scores, 2).top1(), Some(0.0));
        assert_eq!(Accuracy::of(&scores, 6).top5(), Some(1.0));
        assert_eq!(Accuracy::of(&scores, 0).top5(), Some(0.0));
        assert_eq!(Accuracy::of(&scores, 99).top5(), Some(0.0));
        assert_eq!(Accuracy::of(&[f32::NAN, 0.2], 1).top1(), Some(0.0));
        let said = Accuracy::of_class(3, 3);
        assert_eq!((said.top1(), said.top5()), (Some(1.0), None));
    }
}
