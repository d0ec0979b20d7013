//! The mean of one number per image: equivariance scores, seconds, any figure that is averaged.
//!
//! mean = (sum of values) / images, the sum exact, so halves give the whole to the last bit.

use super::bootstrap::Tally;
use super::exact_sum::ExactSum;

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
