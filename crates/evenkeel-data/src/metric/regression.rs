//! Scores of maps of values: MAE, RMSE, absolute relative error, δ < 1.25; for maps in [0, 1] also the maximal F-measure.
//!
//! Over all cells of all images whose truth is finite: MAE = mean |p − t|, RMSE = √mean (p − t)²; over those with t > 0: abs rel = mean |p − t| / t and the share with
//! max(p/t, t/p) < 1.25 (a prediction that is not above 0 is not within). F_β with β² = 0.3 of the cells at or above each threshold k/255 against those whose truth
//! is at least one half, F = 1.3 TP / (0.3 (TP + FN) + TP + FP), counted over all images; its maximum over k. Sums are exact: order and splitting change nothing.

use super::bootstrap::Tally;
use super::exact_sum::ExactSum;
use super::table::{Better, Metric, TaskTally, Unit};
use serde::{Deserialize, Serialize};

/// Thresholds of the F-measure: k/255.
const LEVELS: usize = 256;
/// β² of the F-measure, as the field has it.
const BETA_SQUARED: f64 = 0.3;

const fn metric(
    name: &'static str,
    title: &'static str,
    about: &'static str,
    (better, unit): (Better, Unit),
    figure: fn(&TaskTally) -> Option<f64>,
) -> Metric {
    Metric { name, title, about, tasks: &["regression"], better, unit, figure: Some(figure) }
}

fn values(tally: &TaskTally) -> Option<&ValueTally> {
    match tally {
        TaskTally::Values(values) => Some(values),
        _ => None,
    }
}

pub(super) const MAE: Metric = metric(
    "mae",
    "MAE",
    "mean absolute error over all labelled cells (regression)",
    (Better::Lower, Unit::Value),
    |tally| values(tally)?.mae(),
);
pub(super) const RMSE: Metric = metric(
    "rmse",
    "RMSE",
    "root of the mean squared error over all labelled cells (regression)",
    (Better::Lower, Unit::Value),
    |tally| values(tally)?.rmse(),
);
pub(super) const ABS_REL: Metric = metric(
    "abs-rel",
    "abs rel",
    "mean absolute error relative to the truth, where that is above 0 (regression)",
    (Better::Lower, Unit::Share),
    |tally| values(tally)?.abs_rel(),
);
pub(super) const DELTA: Metric = metric(
    "delta-1.25",
    "δ < 1.25",
    "share of cells within a factor of 1.25 of the truth, where that is above 0 (regression)",
    (Better::Higher, Unit::Share),
    |tally| values(tally)?.delta(),
);
pub(super) const MAX_F: Metric = metric(
    "max-f",
    "max F",
    "largest F-measure (β² = 0.3) over 256 thresholds, for maps in [0, 1] (regression)",
    (Better::Higher, Unit::Share),
    |tally| values(tally)?.max_f(),
);

/// What the values of images add up to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct ValueTally {
    cells: u64,
    /// Labelled cells that have no answer, which count for nothing else.
    unanswered: u64,
    absolute: ExactSum,
    squared: ExactSum,
    positive: u64,
    relative: ExactSum,
    within: u64,
    /// Predictions by level, of cells whose truth is below one half and at least that; empty if something was outside [0, 1].
    levels: Option<Box<[[u64; LEVELS]; 2]>>,
}

/// The tally as files hold it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Stored {
    cells: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    unanswered: u64,
    absolute: f64,
    squared: f64,
    positive: u64,
    relative: f64,
    within: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    levels: Option<[Vec<u64>; 2]>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl ValueTally {
    /// The tally of one image: a prediction for each cell, and what is true; cells whose truth is not finite count for nothing, and of those without an answer
    /// (NaN: what a network that crops was not shown) only their number is kept.
    /// `None` if the lengths differ, a prediction is infinite, or no labelled cell has an answer.
    pub fn of(predicted: &[f64], truth: &[f64]) -> Option<Self> {
        if predicted.len() != truth.len() {
            return None;
        }
        let mut all = Self { levels: Some(Box::new([[0; LEVELS]; 2])), ..Self::default() };
        for (&p, &t) in predicted.iter().zip(truth).filter(|(_, t)| t.is_finite()) {
            match p {
                _ if p.is_nan() => all.unanswered += 1,
                _ if p.is_infinite() => return None,
                _ => all.push(p, t),
            }
        }
        (all.cells > 0 || all.unanswered == 0).then_some(all)
    }

    fn push(&mut self, predicted: f64, truth: f64) {
        let off = (predicted - truth).abs();
        self.cells += 1;
        self.absolute.add(off);
        self.squared.add(off * off);
        if truth > 0.0 {
            self.positive += 1;
            self.relative.add(off / truth);
            let ratio = (predicted / truth).max(truth / predicted);
            self.within += u64::from(predicted > 0.0 && ratio < 1.25);
        }
        let unit = (0.0..=1.0).contains(&predicted) && (0.0..=1.0).contains(&truth);
        match &mut self.levels {
            Some(levels) if unit => levels[usize::from(truth >= 0.5)][(predicted * 255.0) as usize] += 1,
            levels => *levels = None,
        }
    }

    /// Labelled cells.
    pub fn cells(&self) -> u64 {
        self.cells
    }

    /// Labelled cells without an answer, which are left out of every figure.
    pub fn unanswered(&self) -> u64 {
        self.unanswered
    }

    /// Mean absolute error.
    pub fn mae(&self) -> Option<f64> {
        (self.cells > 0).then(|| self.absolute.value() / self.cells as f64)
    }

    /// Root of the mean squared error.
    pub fn rmse(&self) -> Option<f64> {
        (self.cells > 0).then(|| (self.squared.value() / self.cells as f64).sqrt())
    }

    /// Mean absolute error relative to the truth.
    pub fn abs_rel(&self) -> Option<f64> {
        (self.positive > 0).then(|| self.relative.value() / self.positive as f64)
    }

    /// Share within a factor of 1.25.
    pub fn delta(&self) -> Option<f64> {
        (self.positive > 0).then(|| self.within as f64 / self.positive as f64)
    }

    /// The largest F-measure; `None` if a value was outside [0, 1] or no truth is one half or more.
    pub fn max_f(&self) -> Option<f64> {
        let [below, above] = &**self.levels.as_ref()?;
        let positive: u64 = above.iter().sum();
        let (mut hits, mut alarms, mut best) = (0u64, 0u64, 0.0f64);
        for level in (0..LEVELS).rev() {
            hits += above[level];
            alarms += below[level];
            let total = BETA_SQUARED * positive as f64 + (hits + alarms) as f64;
            if hits + alarms > 0 {
                best = best.max((1.0 + BETA_SQUARED) * hits as f64 / total);
            }
        }
        (positive > 0).then_some(best)
    }
}

impl Tally for ValueTally {
    fn add(&mut self, image: &Self, times: u64) {
        // an empty tally has seen nothing outside [0, 1]
        if self.cells == 0 && self.levels.is_none() {
            self.levels = Some(Box::new([[0; LEVELS]; 2]));
        }
        self.cells += image.cells * times;
        self.unanswered += image.unanswered * times;
        self.positive += image.positive * times;
        self.within += image.within * times;
        self.absolute.add_sum(&image.absolute, times);
        self.squared.add_sum(&image.squared, times);
        self.relative.add_sum(&image.relative, times);
        match (&mut self.levels, &image.levels) {
            (Some(mine), Some(theirs)) => {
                let pairs = mine.iter_mut().flatten().zip(theirs.iter().flatten());
                pairs.for_each(|(mine, theirs)| *mine += theirs * times);
            }
            (levels, None) if image.cells > 0 => *levels = None,
            _ => {}
        }
    }
}

impl PartialEq for ValueTally {
    fn eq(&self, other: &Self) -> bool {
        Stored::from(self.clone()) == Stored::from(other.clone())
    }
}

impl From<ValueTally> for Stored {
    fn from(tally: ValueTally) -> Self {
        Self {
            cells: tally.cells,
            unanswered: tally.unanswered,
            absolute: tally.absolute.value(),
            squared: tally.squared.value(),
            positive: tally.positive,
            relative: tally.relative.value(),
            within: tally.within,
            levels: tally.levels.map(|levels| levels.map(|side| side.to_vec())),
        }
    }
}

impl From<Stored> for ValueTally {
    fn from(stored: Stored) -> Self {
        let sum = |value: f64| {
            let mut sum = ExactSum::default();
            if value.is_finite() {
                sum.add(value);
            }
            sum
        };
        let levels = stored
            .levels
            .and_then(|[below, above]| Some(Box::new([below.try_into().ok()?, above.try_into().ok()?])));
        Self {
            cells: stored.cells,
            unanswered: stored.unanswered,
            absolute: sum(stored.absolute),
            squared: sum(stored.squared),
            positive: stored.positive,
            relative: sum(stored.relative),
            within: stored.within,
            levels,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_hand_computes() {
        let nan = f64::NAN;
        let tally = ValueTally::of(&[1.0, 2.0, 5.0, 3.0], &[1.0, 4.0, nan, 0.0]).unwrap();
        assert_eq!((tally.cells(), tally.mae(), tally.abs_rel()), (3, Some(5.0 / 3.0), Some(0.25)));
        assert_eq!((tally.rmse(), tally.delta()), (Some((13.0f64 / 3.0).sqrt()), Some(0.5)));
        assert_eq!(tally.max_f(), None, "4 is not in [0, 1]");
        let perfect = ValueTally::of(&[0.0, 1.0, 0.9], &[0.0, 1.0, 1.0]).unwrap();
        assert_eq!(perfect.max_f(), Some(1.0));
        assert_eq!(ValueTally::of(&[nan], &[1.0]), None, "nothing is answered");
        assert_eq!(ValueTally::of(&[f64::INFINITY, 1.0], &[1.0, 1.0]), None);
        let half = ValueTally::of(&[nan, 3.0], &[1.0, 1.0]).unwrap();
        assert_eq!((half.cells(), half.unanswered(), half.mae()), (1, 1, Some(2.0)));
        assert_eq!(ValueTally::of(&[nan], &[nan]).unwrap().mae(), None, "nothing labelled, nothing scored");
    }

    #[test]
    fn halves_give_the_whole_and_files_keep_it() {
        let p: Vec<f64> = (0..97).map(|i| f64::from(i * 37 % 101) / 101.0).collect();
        let t: Vec<f64> = (0..97).map(|i| f64::from(i * 53 % 89) / 89.0).collect();
        let whole = ValueTally::of(&p, &t).unwrap();
        let mut joined = ValueTally::default();
        for part in [0..40, 40..97] {
            let own = ValueTally::of(&p[part.clone()], &t[part]).unwrap();
            joined.add(&serde_json::from_str(&serde_json::to_string(&own).unwrap()).unwrap(), 1);
        }
        assert!((joined.mae().unwrap() - whole.mae().unwrap()).abs() < 1e-15);
        assert_eq!((joined.max_f(), joined.delta()), (whole.max_f(), whole.delta()));
        joined.add(&ValueTally::of(&[7.0], &[7.0]).unwrap(), 1);
        assert_eq!(joined.max_f(), None);
    }
}
