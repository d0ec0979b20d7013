//! The Open Inference Protocol v2, apart from any transport: requests with JSON or binary tensors in, responses out.
//!
//! Tensors lie in row order; binary ones follow the JSON, little-endian, in the order of the inputs. Nothing is allocated for a tensor before its shape and
//! its bytes were found to agree ([`count`] multiplies with care), and a NaN or an infinity is refused.

mod binary;
mod data;
mod datatype;
mod parameters;
mod request;
mod response;

#[cfg(test)]
mod tests;

pub use data::{InputData, OutputData};
pub use datatype::Datatype;
pub use request::{InferRequest, Input, Parameters, WantedOutput, parse, parse_input};
pub(crate) use response::VERSION;
pub use response::{InferResponse, Output, Written};

/// The most that a request may hold, for the parser.
#[derive(Clone, Copy, Debug)]
pub struct TensorLimits {
    /// Images.
    pub batch: usize,
    /// Pixels of all images together.
    pub pixels: usize,
}

/// The number of values of a shape; `None` if it is beyond what a machine can count.
pub fn count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |product, &side| product.checked_mul(side))
}
