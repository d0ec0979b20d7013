//! Data sets, in their official layouts.

pub mod coco_json;
mod offender;

pub use offender::Offender;
