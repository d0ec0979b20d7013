//! Frozen vision networks: loaded once, then asked thousands of times for named tensors and for the gradient of
//! something with respect to the image.
//!
//! ```
//! # fn main() -> Result<(), evenkeel_network::Error> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/networks/resnet.onnx");
//! use evenkeel_network::{Network, Tensor};
//!
//! let network = Network::load(path)?;
//! let image = Tensor::new(&[1, 3, 32, 32], vec![0.5f32; 3 * 32 * 32]);
//! let trace = network.trace(&[("x", image)], &["y"])?;
//! let scores = trace.tensors()[0].clone();
//! let gradient = trace.pullback(&[("y", scores)])?; // of half the squared scores
//! assert_eq!(gradient[0].1.shape(), [1, 3, 32, 32]);
//! # Ok(())
//! # }
//! ```
//!
//! [`Network::run`] keeps no tape. Any tensor of the graph can be asked for by name and can carry a cotangent; batch and
//! spatial sizes may change from call to call if the graph allows it. Results do not depend on the number of threads or on the other
//! images of a batch.

pub mod error;
mod file;
pub mod format;
pub mod graph;
mod network;
pub mod op;
pub mod plan;
pub mod profile;
pub mod run;
mod shapes;
pub mod tensor;
pub mod zoo;

pub use error::{Error, Fault, Offender, Result};
pub use file::{NetworkFile, Opened};
pub use network::{Network, Trace};
pub use shapes::Made;
pub use tensor::{DType, Limits, Tensor};
