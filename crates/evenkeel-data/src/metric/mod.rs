//! Metrics: what a study measures, from per-image tallies to figures with confidence intervals.
//!
//! All of them stream (an image goes in and is forgotten), merge (two halves give the whole, bit for bit) and do not
//! depend on order, because counts are integers, sums are exact, and what needs ranks is sorted before it is read.

mod accuracy;
mod bootstrap;
mod corruption_error;
mod exact_sum;
pub mod instance;
mod mean;
mod ranking;
mod segmentation;
mod segmentation_files;

pub use accuracy::Accuracy;
pub use bootstrap::{Bootstrap, Interval, Resampled, Tally, key_of};
pub use corruption_error::{ALEXNET, CorruptionError, SEVERITIES};
pub use exact_sum::ExactSum;
pub use mean::Mean;
pub use ranking::{FPR95_CONVENTION, Ranking, RankingFigures};
pub use segmentation::{ClassOverlap, IGNORE, SegmentationScore};
pub use segmentation_files::FolderComparison;

/// A metric by name.
pub struct Metric {
    /// Its name in records and reports.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
}

/// Every metric.
pub static METRICS: [Metric; 9] = [
    metric("accuracy", "share of images whose class is right (classification)"),
    metric(
        "miou",
        "mean over classes of intersection over union, from one confusion of all images (semantic)",
    ),
    metric("pixel-accuracy", "share of labelled pixels whose class is right (semantic)"),
    metric("mask-ap", "COCO's average precision of masks, IoU 0.50 to 0.95 (instance)"),
    metric("mask-ap50", "the same at IoU 0.50 (instance)"),
    metric("auroc", "area under the ROC curve of a detection score, by ranks with ties"),
    metric("ap", "average precision of a detection score"),
    metric("fpr95", "false alarms where 95 % of the anomalous images are found"),
    metric("mce", "mean corruption error relative to AlexNet's"),
];

const fn metric(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about }
}
