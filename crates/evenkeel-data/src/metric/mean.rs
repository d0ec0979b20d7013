//! The mean of one number per image: equivariance scores, seconds, any figure that is averaged.
//!
//! mean = (sum of values) / images, the sum exact, so halves give the whole to the last bit.

use super::bootstrap::Tally;
use super::exact_sum::ExactSum;
use super::table::{Better, Metric, TaskTally, Unit};

/// What sums up a task that has no metric of its own.
pub(super) const MEAN_SCORE: Metric = Metric {
    name: "mean-score",
    title: "mean score",
    about: "mean over images of how right the answer is, from 0 to 1 (tasks without a metric of their own)",
    tasks: &[],
    better: Better::Higher,
    unit: Unit::Share,
    figure: Some(|tally| match tally {
        TaskTally::Scores(scores) => scores.value(),
        _ => None,
    }),
};

/// Running mean of finite values.
#[derive(Clone, Debug, Default)]
pub struct Mean {
    sum: ExactSum,
    count: u64,
}

impl Mean {
    /// The tally of a single value; `None` if it is not finite.
    pub fn of(value: f64) -> Option<Self> {
        value.is_finite().then(|| {
            let mut mean = Self { count: 1, ..Self::default() };
            mean.sum.add(value);
            mean
        })
    }

    /// The mean, if anything was counted.
    pub fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.value() / self.count as f64)
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl Tally for Mean {
    fn add(&mut self, image: &Self, times: u64) {
        self.sum.add_sum(&image.sum, times);
        self.count += image.count * times;
    }
}
