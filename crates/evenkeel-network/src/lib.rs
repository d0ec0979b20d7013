//! Frozen vision networks: loaded once, then asked thousands of times for named tensors and for the gradient of
//! something with respect to the image.

pub mod error;
pub mod format;
pub mod graph;
mod network;
pub mod op;
pub mod plan;
pub mod profile;
pub mod run;
pub mod tensor;

pub use error::{Error, Fault, Offender, Result};
pub use network::{Network, Trace};
pub use tensor::{DType, Limits, Tensor};
