//! The table of metrics. Adding one is a file with its [`Metric`] and a line in [`METRICS`]; records, reports, `evenkeel score` and `evenkeel list metrics` have it from here.
//!
//! What an image's answer comes to is tallied once for its task ([`TaskTally`]); tallies add up over images, and every figure of the task is read off the sum.

use super::accuracy::{ACCURACY, Accuracy, TOP5};
use super::bootstrap::{Bootstrap, Interval, Resampled, Tally, key_of};
use super::calibration::{CALIBRATION_ERROR, Calibration};
use super::instance::{InstanceScore, MASK_AP, MASK_AP50};
use super::mean::{MEAN_SCORE, Mean};
use super::regression::{ABS_REL, DELTA, MAE, MAX_F, RMSE, ValueTally};
use super::segmentation::{ClassOverlap, MIOU, PIXEL_ACCURACY};
use super::{corruption_error, ranking};
use std::collections::BTreeMap;

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in settings, records and lists.
    pub name: &'static str,
    /// As reports print it.
    pub title: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The tasks whose answers it measures; none for what measures detectors or whole studies, and for what measures any task.
    pub tasks: &'static [&'static str],
    /// Which way is good.
    pub better: Better,
    /// What its figure is in.
    pub unit: Unit,
    /// The figure of summed tallies; `None` if it is no figure of a task's answers. The figure itself is `None` where there is nothing to measure.
    pub figure: Option<fn(&TaskTally) -> Option<f64>>,
}

impl Metric {
    /// A share of one task's answers, the more the better.
    pub(super) const fn share(
        tasks: &'static [&'static str],
        (name, title): (&'static str, &'static str),
        about: &'static str,
        figure: fn(&TaskTally) -> Option<f64>,
    ) -> Self {
        Self { name, title, about, tasks, better: Better::Higher, unit: Unit::Share, figure: Some(figure) }
    }
}

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More.
    Higher,
    /// Less.
    Lower,
}

/// What a figure is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A share, which reports print in %.
    Share,
    /// The unit of the network's output.
    Value,
}

impl Unit {
    /// A figure as reports print it.
    pub fn words(self, value: f64) -> String {
        match self {
            Self::Share => format!("{:.1}", 100.0 * value),
            Self::Value => format!("{value:.4}"),
        }
    }

    /// A difference of two figures as reports print it, with its sign.
    pub fn change(self, difference: f64) -> String {
        match self {
            Self::Share => format!("{:+.1}", 100.0 * difference),
            Self::Value => format!("{difference:+.4}"),
        }
    }
}

/// Every metric; of a task's the first is the one that sums it up.
pub static METRICS: [Metric; 17] = [
    ACCURACY,
    TOP5,
    CALIBRATION_ERROR,
    MIOU,
    PIXEL_ACCURACY,
    MASK_AP,
    MASK_AP50,
    MAE,
    RMSE,
    ABS_REL,
    DELTA,
    MAX_F,
    MEAN_SCORE,
    ranking::AUROC,
    ranking::AVERAGE_PRECISION,
    ranking::FPR95,
    corruption_error::MCE,
];

impl Metric {
    /// The metric of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// The metrics of a task, the one that sums it up first; of one without metrics of its own the mean score.
    pub fn of_task(task: &str) -> impl Iterator<Item = &'static Self> {
        let own: Vec<&Self> = METRICS.iter().filter(|metric| metric.tasks.contains(&task)).collect();
        let any = own.is_empty().then(|| Self::named(MEAN_SCORE.name)).flatten();
        own.into_iter().chain(any)
    }

    /// The figure of a tally.
    pub fn value(&self, tally: &TaskTally) -> Option<f64> {
        self.figure.and_then(|figure| figure(tally))
    }

    /// The figure over images with its 95 % interval, each image (by name) drawn with all its tallies. `None` if there is nothing to measure.
    pub fn over<'t>(
        &self,
        tallies: impl Iterator<Item = (&'t str, TaskTally)>,
        plan: Bootstrap,
    ) -> Option<Summary> {
        let mut by_image: BTreeMap<&str, TaskTally> = BTreeMap::new();
        let mut unlabelled = std::collections::BTreeSet::new();
        for (id, tally) in tallies.map(|(id, tally)| (id, tally.numbered(key_of(id)))) {
            if !tally.is_labelled() {
                unlabelled.insert(id);
                continue;
            }
            match by_image.get_mut(id) {
                Some(sum) => sum.add(&tally, 1),
                None => drop(by_image.insert(id, tally)),
            }
        }
        let images = by_image.len();
        let (_, first) = by_image.first_key_value()?;
        let mut sum =
            Resampled::new(first.empty(), if images > 1 { first.plan(plan) } else { Bootstrap::NONE });
        by_image.iter().for_each(|(id, tally)| sum.push(key_of(id), tally));
        let value = self.value(sum.whole())?;
        let interval = match sum.whole() {
            // objects are ranked over all images: each draw ranks them anew
            TaskTally::Objects(all) if images > 1 => all.interval_of(plan, 0.95, self.name == MASK_AP50.name),
            TaskTally::Objects(_) => None,
            _ => sum.interval(0.95, |tally| self.value(tally)),
        };
        Some(Summary { value, interval, images, unlabelled: unlabelled.len() })
    }
}

/// A figure over images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The figure.
    pub value: f64,
    /// Its 95 % interval, of more than one image.
    pub interval: Option<Interval>,
    /// Images behind it.
    pub images: usize,
    /// Images of which nothing is known, which are left out.
    pub unlabelled: usize,
}

/// What the answers for images of one task add up to.
#[derive(Clone, Debug)]
pub enum TaskTally {
    /// Of classes of whole images.
    Classes(Box<ClassTally>),
    /// Of label maps.
    Pixels(ClassOverlap),
    /// Of objects.
    Objects(InstanceScore),
    /// Of maps of values.
    Values(Box<ValueTally>),
    /// Of scores alone, for tasks that tally nothing else.
    Scores(Box<Mean>),
}

/// What the answers of a classifier add up to.
#[derive(Clone, Debug, Default)]
pub struct ClassTally {
    /// Right at 1 and at 5.
    pub accuracy: Accuracy,
    /// Confidences; of images whose probabilities are known.
    pub calibration: Calibration,
}

impl TaskTally {
    /// Whether anything is known of what it counts: a label map may have no labelled pixel.
    pub fn is_labelled(&self) -> bool {
        match self {
            Self::Pixels(overlap) => overlap.counts()[1].iter().any(|pixels| *pixels > 0),
            Self::Values(values) => values.cells() > 0,
            Self::Classes(_) | Self::Objects(_) | Self::Scores(_) => true,
        }
    }

    /// Nothing of the same kind.
    fn empty(&self) -> Self {
        match self {
            Self::Classes(_) => Self::Classes(Box::default()),
            Self::Pixels(overlap) => Self::Pixels(ClassOverlap::empty(overlap.counts()[0].len())),
            Self::Objects(_) => Self::Objects(InstanceScore::new()),
            Self::Values(_) => Self::Values(Box::default()),
            Self::Scores(_) => Self::Scores(Box::default()),
        }
    }

    /// Objects keep the number of their image, by which draws weigh them.
    fn numbered(self, key: u64) -> Self {
        match self {
            Self::Objects(score) => Self::Objects(score.numbered(key as i64)),
            other => other,
        }
    }

    /// Replicates beside the sum; objects need none.
    fn plan(&self, plan: Bootstrap) -> Bootstrap {
        if matches!(self, Self::Objects(_)) { Bootstrap::NONE } else { plan }
    }
}

impl Tally for TaskTally {
    fn add(&mut self, image: &Self, times: u64) {
        match (self, image) {
            (Self::Classes(mine), Self::Classes(theirs)) => {
                mine.accuracy.add(&theirs.accuracy, times);
                mine.calibration.add(&theirs.calibration, times);
            }
            (Self::Pixels(mine), Self::Pixels(theirs)) => mine.add(theirs, times),
            (Self::Values(mine), Self::Values(theirs)) => mine.add(theirs, times),
            (Self::Scores(mine), Self::Scores(theirs)) => mine.add(theirs, times),
            (Self::Objects(mine), Self::Objects(theirs)) => {
                (0..times).for_each(|_| mine.merge(theirs.clone()))
            }
            _ => panic!("tallies of one task are added"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_has_a_metric_and_no_name_comes_twice() {
        let mut names: Vec<&str> = METRICS.iter().map(|m| m.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
        for task in evenkeel::task::TASKS {
            let own: Vec<&Metric> = Metric::of_task(task.name).collect();
            assert!(own.len() > 1 && own.iter().all(|metric| metric.figure.is_some()), "{}", task.name);
            assert_eq!(own[0].name, task.figure, "the metric that sums a task up stands first");
        }
        let every = Metric::of_task("counting").map(|metric| metric.name);
        assert_eq!(every.collect::<Vec<_>>(), ["mean-score"], "a task without metrics of its own");
        let any = |m: &Metric| m.figure.is_some() && m.tasks.is_empty();
        assert_eq!(METRICS.iter().filter(|m| any(m)).count(), 1);
    }

    #[test]
    fn an_image_without_a_labelled_pixel_is_left_out_and_counted() {
        let overlap = |right, truth, said| ClassOverlap::from_counts(right, truth, said).unwrap();
        let seen = TaskTally::Pixels(overlap(vec![1, 1], vec![2, 2], vec![2, 2]));
        let blank = TaskTally::Pixels(overlap(vec![0, 0], vec![0, 0], vec![0, 0]));
        let plan = Bootstrap { seed: 1, replicates: 10 };
        let all = [("a", seen.clone()), ("blank", blank.clone()), ("b", seen)];
        let summary = MIOU.over(all.into_iter(), plan).unwrap();
        assert_eq!((summary.value, summary.images, summary.unlabelled), (1.0 / 3.0, 2, 1));
        assert_eq!(MIOU.over([("blank", blank)].into_iter(), plan), None);
    }
}
