//! Studies: the data sets of the field read where they lie, and scores that agree with the field's official tools.
//!
//! A data set gives samples (image and truth); the method turns an image into a verdict; metrics tally verdicts against
//! truths. [`experiment`] says what to run, [`run`] does it into a [`store`], [`record`] and [`report`] show it. `dataset` and `metric` meet in [`mask`], the run-length masks of COCO; the method's own instances meet those in
//! [`coco_instances`].

#![forbid(unsafe_code)]

pub mod coco_instances;
pub mod dataset;
mod error;
pub mod experiment;
pub mod mask;
pub mod metric;
pub mod record;
pub mod report;
pub mod run;
pub mod store;

pub use error::{Error, Result};
