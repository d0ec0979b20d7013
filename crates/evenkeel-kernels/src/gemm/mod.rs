//! Matrix products in single precision.

pub(crate) mod tile;
