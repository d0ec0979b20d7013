//! Metrics: what a study measures, from per-image tallies to figures with confidence intervals.
//!
//! All of them stream (an image goes in and is forgotten), merge (two halves give the whole, bit for bit) and do not
//! depend on order, because counts are integers, sums are exact, and what needs ranks is sorted before it is read.

mod accuracy;
mod bootstrap;
mod calibration;
mod classification;
mod confusion;
mod corruption_error;
mod exact_sum;
pub mod fano;
pub mod instance;
mod mean;
mod ranking;
mod regression;
mod segmentation;
mod segmentation_files;
mod table;
mod value_files;

pub use accuracy::Accuracy;
pub use bootstrap::{Bootstrap, Interval, Resampled, Tally, key_of};
pub use calibration::Calibration;
pub use classification::{ClassAnswers, ClassComparison, ClassLabels, ClassScore};
pub use confusion::Confusion;
pub use corruption_error::{ALEXNET, CorruptionError, SEVERITIES};
pub use exact_sum::ExactSum;
pub use mean::Mean;
pub use ranking::{FPR95_CONVENTION, Ranking, RankingFigures};
pub use regression::ValueTally;
pub use segmentation::{ClassOverlap, IGNORE, SegmentationScore};
pub use segmentation_files::FolderComparison;
pub use table::{Better, ClassTally, METRICS, Metric, Summary, TaskTally, Unit};
pub use value_files::{ValueComparison, ValueScore};
