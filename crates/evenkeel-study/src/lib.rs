//! Studies: what an experiment file asks for, run image by image, kept, and shown.
//!
//! [`experiment`] says what to run; [`run`] does it and keeps [`record`]s in a [`store`]; [`rows`] makes tables of them and [`report`] pages. Data
//! sets and metrics are `evenkeel-data`'s, attacks, defences and detectors `evenkeel`'s. Modules depend one way:
//! key <- experiment <- record <- store <- rows <- run <- report <- tune (`tests/order.rs` holds it).

#![forbid(unsafe_code)]

mod error;
pub mod experiment;
pub mod key;
pub mod record;
pub mod report;
pub mod rows;
pub mod run;
pub mod store;
pub mod tune;

pub use error::{Error, Result};
