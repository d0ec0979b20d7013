//! Studies: what an experiment file asks for, run image by image, kept, and shown.
//!
//! [`experiment`] says what to run, [`run`] does it into a [`store`], [`record`] and [`report`] show it. Data sets and
//! metrics are `evenkeel-data`'s, attacks, defences and detectors `evenkeel`'s.

#![forbid(unsafe_code)]

mod error;
pub mod experiment;
pub mod record;
pub mod report;
pub mod run;
pub mod store;

pub use error::{Error, Result};
