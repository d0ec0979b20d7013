//! From records to the twelve numbers.
//!
//! In each category, going down the scores: recall = right / wanted, precision = right / (right + wrong), ignored
//! detections counting as neither. Precision is made non-increasing from the end and read at 101 recalls; AP is the
//! mean over categories, thresholds and recalls, AR the mean of the final recall over categories and thresholds.
//! Weights (how often an image was drawn) multiply both counts, so a bootstrap replicate is the same computation.

use super::{AREAS, CategoryRecords, Record, THRESHOLDS};

const RECALLS: usize = 101;

/// The twelve numbers in the official order.
pub const NAMES: [&str; 12] = [
    "AP",
    "AP50",
    "AP75",
    "AP_small",
    "AP_medium",
    "AP_large",
    "AR_1",
    "AR_10",
    "AR_100",
    "AR_small",
    "AR_medium",
    "AR_large",
];

/// The twelve numbers, in the order of [`NAMES`]; `None` (-1 in the official tool) where there is nothing to find.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstanceFigures(pub [Option<f64>; 12]);

impl InstanceFigures {
    /// Mean average precision over overlaps 0.50:0.95, the headline figure.
    pub fn ap(&self) -> Option<f64> {
        self.0[0]
    }
}

/// What one category gives for one area range and one limit of detections.
struct CategoryCurve {
    /// Sum of the 101 precisions, per threshold.
    precision: [f64; THRESHOLDS],
    recall: [f64; THRESHOLDS],
}

pub(super) fn figures(categories: &[CategoryRecords], weight: impl Fn(i64) -> u64) -> InstanceFigures {
    let settings = [(0, 100), (1, 100), (2, 100), (3, 100), (0, 1), (0, 10)];
    let curves = settings.map(|(area, limit)| -> Vec<CategoryCurve> {
        categories.iter().filter_map(|category| category_curve(category, area, limit, &weight)).collect()
    });
    let [all, small, medium, large, one, ten] = &curves;
    let precision = |curves: &[CategoryCurve], thresholds: std::ops::Range<usize>| {
        let cells = curves.len() * thresholds.len() * RECALLS;
        let sum: f64 = curves.iter().flat_map(|c| &c.precision[thresholds.clone()]).sum();
        (cells > 0).then(|| sum / cells as f64)
    };
    let recall = |curves: &[CategoryCurve]| {
        let sum: f64 = curves.iter().flat_map(|c| &c.recall).sum();
        (!curves.is_empty()).then(|| sum / (curves.len() * THRESHOLDS) as f64)
    };
    let every = 0..THRESHOLDS;
    InstanceFigures([
        precision(all, every.clone()),
        precision(all, 0..1),
        precision(all, 5..6),
        precision(small, every.clone()),
        precision(medium, every.clone()),
        precision(large, every),
        recall(one),
        recall(ten),
        recall(all),
        recall(small),
        recall(medium),
        recall(large),
    ])
}

/// `None` if the category has nothing to find in this area range.
fn category_curve(
    category: &CategoryRecords,
    area: usize,
    limit: usize,
    weight: &impl Fn(i64) -> u64,
) -> Option<CategoryCurve> {
    debug_assert!(area < AREAS.len());
    let wanted: u64 = category
        .wanted
        .iter()
        .filter(|w| w.truths[area] > 0)
        .map(|w| u64::from(w.truths[area]) * weight(w.image))
        .sum();
    if wanted == 0 {
        return None;
    }
    let drawn: Vec<(&Record, u64)> = category
        .records
        .iter()
        .filter(|r| usize::from(r.rank) < limit)
        .map(|r| (r, weight(r.image)))
        .filter(|&(_, times)| times > 0)
        .collect();
    let mut curve = CategoryCurve { precision: [0.0; THRESHOLDS], recall: [0.0; THRESHOLDS] };
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(drawn.len());
    for t in 0..THRESHOLDS {
        points.clear();
        let (mut right, mut wrong) = (0u64, 0u64);
        for &(record, times) in &drawn {
            if record.ignored[area] >> t & 1 == 0 {
                *if record.matched[area] >> t & 1 == 1 { &mut right } else { &mut wrong } += times;
            }
            let precision = right as f64 / (wrong as f64 + right as f64 + f64::EPSILON);
            points.push((right as f64 / wanted as f64, precision));
        }
        curve.recall[t] = right as f64 / wanted as f64;
        curve.precision[t] = interpolated_sum(&mut points);
    }
    Some(curve)
}

/// Sum over the 101 recalls of the best precision at that recall or beyond; zero where it is not reached.
fn interpolated_sum(points: &mut [(f64, f64)]) -> f64 {
    for k in (1..points.len()).rev() {
        points[k - 1].1 = points[k - 1].1.max(points[k].1);
    }
    let mut at = 0;
    (0..RECALLS)
        .map(|r| {
            let recall = if r + 1 == RECALLS { 1.0 } else { r as f64 * (1.0 / (RECALLS - 1) as f64) };
            at += points[at..].iter().take_while(|p| p.0 < recall).count();
            points.get(at).map_or(0.0, |p| p.1)
        })
        .sum()
}
