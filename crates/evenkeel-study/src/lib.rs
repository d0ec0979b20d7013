//! Studies: the data sets of the field read where they lie, and scores that agree with the field's official tools.
//!
//! A data set gives samples (image and truth); the method turns an image into a verdict; metrics tally verdicts against
//! truths. `dataset` and `metric` meet in [`mask`], the run-length masks of COCO; the method's own instances meet those in
//! [`coco_instances`].

#![forbid(unsafe_code)]

pub mod coco_instances;
pub mod dataset;
mod error;
pub mod mask;
pub mod metric;

pub use error::{Error, Result};
