//! COCO average precision and recall for masks and boxes, the twelve numbers, as the official tool computes them.
//!
//! Per image and category, detections (best 100 by score) are matched to truths at ten overlaps (`matching`); what is
//! kept is a record per detection: score and, per area range, two bits per overlap. From the records come
//! precision-recall curves and the twelve numbers (`curve`). Masks are dropped as soon as an image is in.
//! Invariant: records are sorted by (score, image, rank) before use, so feeding order and splitting change nothing, as
//! long as each image is fed whole and once.

mod curve;
mod files;
mod matching;

pub use curve::{InstanceFigures, NAMES};
pub use files::{FileComparison, Regions};

use super::bootstrap::{Bootstrap, Interval};
use super::table::{Metric, TaskTally};
use crate::mask::{BoxXywh, Rle, box_overlap};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const TASKS: &[&str] = &["instance"];

fn average_precision(tally: &TaskTally, place: usize) -> Option<f64> {
    match tally {
        TaskTally::Objects(score) => score.figures().0[place],
        _ => None,
    }
}

pub(super) const MASK_AP: Metric = Metric::share(
    TASKS,
    ("mask-ap", "mask AP"),
    "COCO's average precision of masks, IoU 0.50 to 0.95 (instance)",
    |tally| average_precision(tally, 0),
);
pub(super) const MASK_AP50: Metric =
    Metric::share(TASKS, ("mask-ap50", "mask AP50"), "the same at IoU 0.50 (instance)", |tally| {
        average_precision(tally, 1)
    });

/// Overlap thresholds 0.50, 0.55 … 0.95.
pub(crate) const THRESHOLDS: usize = 10;
/// Area ranges in pixels: all, small, medium, large; both ends belong to a range.
pub(crate) const AREAS: [(f64, f64); 4] = [(0.0, 1e10), (0.0, 1024.0), (1024.0, 9216.0), (9216.0, 1e10)];
/// Detections per image and category that are looked at.
pub(crate) const MOST_DETECTIONS: usize = 100;

/// Where an object is.
#[derive(Clone, Debug, PartialEq)]
pub enum Region {
    /// A box.
    Box(BoxXywh),
    /// A mask.
    Mask(Rle),
}

impl Region {
    /// Overlap of this detection with a truth; regions of different kinds do not overlap.
    fn overlap(&self, truth: &Self, crowd: bool) -> f64 {
        match (self, truth) {
            (Self::Box(d), Self::Box(t)) => box_overlap(d, t, crowd),
            (Self::Mask(d), Self::Mask(t)) => d.overlap(t, crowd),
            _ => 0.0,
        }
    }
}

/// A true object.
#[derive(Clone, Debug, PartialEq)]
pub struct TrueInstance {
    /// Its category.
    pub category: i64,
    /// A region of many objects: matching it is neither right nor wrong.
    pub crowd: bool,
    /// Its area as the data set states it; decides the area range.
    pub area: f64,
    /// Where it is.
    pub region: Region,
    /// False for an annotation with id 0, which the official tool matches but never counts as found.
    pub countable: bool,
}

/// A detected object.
#[derive(Clone, Debug, PartialEq)]
pub struct DetectedInstance {
    /// Its category.
    pub category: i64,
    /// Confidence.
    pub score: f64,
    /// Its area; decides the area range.
    pub area: f64,
    /// Where it is.
    pub region: Region,
}

/// What remains of a detection: for each area range, one bit per overlap threshold. A stored score leaves the image's number to whoever
/// keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) score: f64,
    #[serde(skip)]
    pub(crate) image: i64,
    pub(crate) rank: u8,
    pub(crate) matched: [u16; AREAS.len()],
    pub(crate) ignored: [u16; AREAS.len()],
}

/// What remains of a category in an image: truths to be found, per area range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    #[serde(skip)]
    pub(crate) image: i64,
    pub(crate) truths: [u32; AREAS.len()],
}

/// The records of one category.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CategoryRecords {
    pub(crate) records: Vec<Record>,
    pub(crate) wanted: Vec<Wanted>,
}

/// The running score of an instance segmentation or detection study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceScore {
    categories: BTreeMap<i64, CategoryRecords>,
}

impl InstanceScore {
    /// An empty score.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in one image, whole. A detection whose score is not a number is refused.
    pub fn push(
        &mut self,
        image: i64,
        truths: &[TrueInstance],
        detections: &[DetectedInstance],
    ) -> Result<()> {
        if detections.iter().any(|d| d.score.is_nan()) {
            return Err(Error::Request(format!("image {image} has a detection whose score is not a number")));
        }
        let mut categories: Vec<i64> =
            truths.iter().map(|t| t.category).chain(detections.iter().map(|d| d.category)).collect();
        categories.sort_unstable();
        categories.dedup();
        for category in categories {
            let truths: Vec<&TrueInstance> = truths.iter().filter(|t| t.category == category).collect();
            let mut found: Vec<&DetectedInstance> =
                detections.iter().filter(|d| d.category == category).collect();
            found.sort_by(|a, b| b.score.total_cmp(&a.score));
            found.truncate(MOST_DETECTIONS);
            let entry = self.categories.entry(category).or_default();
            matching::match_image(image, &truths, &found, entry);
        }
        Ok(())
    }

    /// Takes in another part of the same study, of other images.
    pub fn merge(&mut self, other: Self) {
        for (category, theirs) in other.categories {
            let mine = self.categories.entry(category).or_default();
            mine.records.extend(theirs.records);
            mine.wanted.extend(theirs.wanted);
        }
    }

    /// The score of one image as that of the image of this number.
    #[must_use]
    pub fn numbered(mut self, image: i64) -> Self {
        for category in self.categories.values_mut() {
            category.records.iter_mut().for_each(|record| record.image = image);
            category.wanted.iter_mut().for_each(|wanted| wanted.image = image);
        }
        self
    }

    /// Objects to be found, detections looked at, and detections that match an object by half.
    pub fn counts(&self) -> [u64; 3] {
        let mut counts = [0; 3];
        for category in self.categories.values() {
            counts[0] += category.wanted.iter().map(|w| u64::from(w.truths[0])).sum::<u64>();
            let judged = category.records.iter().filter(|r| r.ignored[0] & 1 == 0);
            for record in judged {
                counts[1] += 1;
                counts[2] += u64::from(record.matched[0] & 1);
            }
        }
        counts
    }

    /// The twelve numbers.
    pub fn figures(&self) -> InstanceFigures {
        curve::figures(&self.sorted(), |_| 1)
    }

    /// The twelve numbers of each category by itself.
    pub fn by_category(&self) -> BTreeMap<i64, InstanceFigures> {
        let alone = |(category, records): (&i64, CategoryRecords)| {
            (*category, curve::figures(std::slice::from_ref(&records), |_| 1))
        };
        self.categories.keys().zip(self.sorted()).map(alone).collect()
    }

    /// The bootstrap intervals of the twelve numbers, images resampled.
    pub fn intervals(&self, plan: Bootstrap, confidence: f64) -> [Option<Interval>; 12] {
        let sorted = self.sorted();
        let replicates: Vec<InstanceFigures> = (0..plan.replicates)
            .map(|b| curve::figures(&sorted, |image| plan.weight(image as u64, b)))
            .collect();
        std::array::from_fn(|k| Bootstrap::interval(replicates.iter().map(|f| f.0[k]), confidence))
    }

    /// The bootstrap interval of the mean over thresholds, or of that at IoU 0.50.
    pub(super) fn interval_of(&self, plan: Bootstrap, confidence: f64, at_half: bool) -> Option<Interval> {
        self.intervals(plan, confidence)[usize::from(at_half)]
    }

    fn sorted(&self) -> Vec<CategoryRecords> {
        let mut sorted: Vec<CategoryRecords> = self.categories.values().cloned().collect();
        for category in &mut sorted {
            category.records.sort_unstable_by(|a, b| {
                b.score.total_cmp(&a.score).then((a.image, a.rank).cmp(&(b.image, b.rank)))
            });
        }
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(at: usize, side: usize) -> Region {
        let inside = |i: usize| (at..at + side).contains(&(i / 16)) && (at..at + side).contains(&(i % 16));
        Region::Mask(Rle::encode(16, 16, &(0..256).map(|i| u8::from(inside(i))).collect::<Vec<_>>()).unwrap())
    }

    fn truth(category: i64, at: usize) -> TrueInstance {
        TrueInstance { category, crowd: false, area: 36.0, region: square(at, 6), countable: true }
    }

    fn found(category: i64, score: f64, at: usize) -> DetectedInstance {
        DetectedInstance { category, score, area: 36.0, region: square(at, 6) }
    }

    #[test]
    fn images_scored_and_stored_one_by_one_give_the_figures_of_all() {
        let images = [
            (vec![truth(1, 0), truth(2, 8)], vec![found(1, 0.9, 1), found(2, 0.4, 8), found(2, 0.6, 0)]),
            (vec![truth(1, 9)], vec![found(1, 0.5, 0)]),
        ];
        let (mut whole, mut joined) = (InstanceScore::new(), InstanceScore::new());
        for (number, (truths, found)) in images.iter().enumerate() {
            whole.push(number as i64, truths, found).unwrap();
            let mut alone = InstanceScore::new();
            alone.push(0, truths, found).unwrap();
            let text = serde_json::to_string(&alone).unwrap();
            let stored: InstanceScore = serde_json::from_str(&text).unwrap();
            assert_eq!(stored, alone);
            joined.merge(stored.numbered(number as i64));
        }
        assert_eq!(joined.figures().0, whole.figures().0);
        let plan = Bootstrap { seed: 3, replicates: 20 };
        assert_eq!(joined.intervals(plan, 0.95), whole.intervals(plan, 0.95));
        assert_eq!(whole.counts(), [3, 4, 2]);
    }
}
