//! Data sets, in their official layouts.

pub mod cityscapes_labels;
pub mod coco_json;
mod offender;
pub(crate) mod walk;

pub use offender::Offender;
