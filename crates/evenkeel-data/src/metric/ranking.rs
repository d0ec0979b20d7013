//! How well a score tells anomalous images from normal ones: AUROC, average precision, FPR95.
//!
//! The anomalous image is the positive one and larger scores mean more anomalous (the convention of OpenOOD 1.5):
//! - AUROC = P(score of an anomalous image > of a normal one), ties counting half;
//! - AP = sum over distinct scores, from the top, of (gain in recall) x precision;
//! - FPR95 = share of normal images at or above the highest threshold that catches 95 % of the anomalous, read off the
//!   ROC curve whose equal steps in a row are joined into one, as scikit-learn draws it and OpenOOD reads it.
//!
//! Exact ranks need the scores: 24 bytes per image are kept and nothing else. Invariant: everything is computed from
//! the sorted list in integers, so feeding order and splitting change nothing.

use super::bootstrap::{Bootstrap, Interval};
use super::table::{Better, Metric, Unit};
use crate::{Error, Result};

const fn metric(name: &'static str, title: &'static str, about: &'static str, better: Better) -> Metric {
    Metric { name, title, about, tasks: &[], better, unit: Unit::Share, figure: None }
}

pub(super) const AUROC: Metric = metric(
    "auroc",
    "AUROC",
    "area under the ROC curve of a detection score, by ranks with ties",
    Better::Higher,
);
pub(super) const AVERAGE_PRECISION: Metric =
    metric("ap", "AP", "average precision of a detection score", Better::Higher);
pub(super) const FPR95: Metric =
    metric("fpr95", "FPR95", "false alarms where 95 % of the anomalous images are found", Better::Lower);

/// Names the FPR95 convention wherever the figure is printed.
pub const FPR95_CONVENTION: &str = "FPR at 95 % TPR, anomalous = positive (OpenOOD 1.5)";

#[derive(Clone, Copy, Debug)]
struct Scored {
    score: f64,
    key: u64,
    anomalous: bool,
}

/// The running ranking of scored images.
#[derive(Clone, Debug)]
pub struct Ranking {
    plan: Bootstrap,
    scored: Vec<Scored>,
}

/// The three figures of a ranking.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct RankingFigures {
    /// Area under the ROC curve.
    pub auroc: f64,
    /// Average precision.
    pub average_precision: f64,
    /// False positive rate at 95 % true positive rate; see [`FPR95_CONVENTION`].
    pub fpr95: f64,
}

/// How many anomalous and normal images share one score.
#[derive(Clone, Copy, Default)]
struct Level {
    anomalous: u64,
    normal: u64,
}

impl Ranking {
    /// An empty ranking.
    pub fn new(plan: Bootstrap) -> Self {
        Self { plan, scored: Vec::new() }
    }

    /// Takes in one image; a score that is not a number has no rank and is refused.
    pub fn push(&mut self, key: u64, score: f64, anomalous: bool) -> Result<()> {
        if score.is_nan() {
            return Err(Error::Request("an anomaly score is not a number".into()));
        }
        // Adding zero makes -0 and 0 the one score they compare as.
        self.scored.push(Scored { score: score + 0.0, key, anomalous });
        Ok(())
    }

    /// Takes in another part of the same study.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.plan, other.plan, "parts of one study share their bootstrap plan");
        self.scored.extend_from_slice(&other.scored);
    }

    /// The figures; `None` unless both kinds of image are present.
    pub fn figures(&self) -> Option<RankingFigures> {
        figures(&levels(&self.sorted(), |_| 1))
    }

    /// The bootstrap interval of a figure. An image scored twice (clean and attacked) under one key is drawn as a pair.
    pub fn interval(&self, confidence: f64, figure: impl Fn(&RankingFigures) -> f64) -> Option<Interval> {
        let sorted = self.sorted();
        let values = (0..self.plan.replicates)
            .map(|b| figures(&levels(&sorted, |key| self.plan.weight(key, b))).map(|f| figure(&f)));
        Bootstrap::interval(values, confidence)
    }

    fn sorted(&self) -> Vec<Scored> {
        let mut sorted = self.scored.clone();
        sorted.sort_unstable_by(|a, b| b.score.total_cmp(&a.score));
        sorted
    }
}

/// Weighted counts per distinct score, highest first; scores nobody drew are left out.
fn levels(sorted: &[Scored], weight: impl Fn(u64) -> u64) -> Vec<Level> {
    sorted
        .chunk_by(|a, b| a.score == b.score)
        .map(|level| {
            level.iter().fold(Level::default(), |mut sum, image| {
                let side = if image.anomalous { &mut sum.anomalous } else { &mut sum.normal };
                *side += weight(image.key);
                sum
            })
        })
        .filter(|level| level.anomalous + level.normal > 0)
        .collect()
}

fn figures(levels: &[Level]) -> Option<RankingFigures> {
    let anomalous: u64 = levels.iter().map(|l| l.anomalous).sum();
    let normal: u64 = levels.iter().map(|l| l.normal).sum();
    if anomalous == 0 || normal == 0 {
        return None;
    }
    let (mut caught, mut alarms, mut twice_pairs, mut average_precision) = (0u64, 0u64, 0u128, 0.0);
    for level in levels {
        let below = normal - alarms - level.normal;
        twice_pairs += u128::from(level.anomalous) * (2 * u128::from(below) + u128::from(level.normal));
        caught += level.anomalous;
        alarms += level.normal;
        average_precision +=
            level.anomalous as f64 / anomalous as f64 * (caught as f64 / (caught + alarms) as f64);
    }
    let auroc = twice_pairs as f64 / 2.0 / (anomalous as f64 * normal as f64);
    Some(RankingFigures { auroc, average_precision, fpr95: false_alarms_at(levels, 0.95, anomalous, normal) })
}

fn false_alarms_at(levels: &[Level], recall: f64, anomalous: u64, normal: u64) -> f64 {
    let (mut caught, mut alarms) = (0u64, 0u64);
    for (k, level) in levels.iter().enumerate() {
        caught += level.anomalous;
        alarms += level.normal;
        let joined = levels
            .get(k + 1)
            .is_some_and(|next| k > 0 && (next.anomalous, next.normal) == (level.anomalous, level.normal));
        if !joined && caught as f64 / anomalous as f64 >= recall {
            return alarms as f64 / normal as f64;
        }
    }
    1.0
}
