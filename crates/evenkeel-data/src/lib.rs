//! Data: the data sets of the field read where they lie, and scores that agree with the field's official tools.
//!
//! A data set ([`dataset`]) gives samples, image and truth; the method (crate `evenkeel`) turns an image into a
//! prediction; a [`metric`] tallies predictions against truths. The two meet in [`mask`], the run-length masks of COCO; the method's own instances meet those
//! in [`coco_instances`]. Nothing here knows of experiments: a trainer or a script needs this crate and no more.
//!
//! Two scenes drawn from a seed, and the score of a prediction that is the truth:
//!
//! ```
//! use evenkeel_data::dataset::{Dataset, Request, Truth};
//! use evenkeel_data::metric::{Bootstrap, IGNORE, SegmentationScore, key_of};
//!
//! # fn main() -> evenkeel_data::Result<()> {
//! let scenes = Dataset::open("scenes", "2@64x32".as_ref(), &Request::default())?.ready(false)?;
//! let mut score = SegmentationScore::new(scenes.classes().len(), IGNORE, Bootstrap { seed: 0, replicates: 0 });
//! for sample in scenes.samples() {
//!     let sample = sample?;
//!     let Truth::Labels(labels) = &sample.truth else { unreachable!("scenes have label maps") };
//!     score.push(key_of(&sample.id), labels.labels(), labels.labels())?;
//! }
//! assert_eq!(score.figures().mean_iou(), Some(1.0));
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod coco_instances;
pub mod dataset;
mod error;
pub mod mask;
pub mod metric;
pub mod objects;

pub use error::{Error, Result};
