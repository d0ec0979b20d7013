//! Training: the small networks of the scenes, fitted on the kernels that later run them.
//!
//! The engine has frozen weights and gradients to the image. Training adds what is missing, the gradient to the weights, batch
//! statistics and an optimiser, over the same channels-last maps and the same convolutions. What comes out is an ONNX
//! file with the batch norms folded in, and the contract beside it. Same seed, same weights, for any number of threads.

#![forbid(unsafe_code)]

pub mod adversary;
pub mod augment;
pub mod batch;
mod card;
pub mod checkpoint;
pub mod command;
pub mod curve;
pub mod data;
pub mod error;
pub mod export;
pub mod goal;
pub mod heads;
pub mod import;
pub mod instance;
mod instance_loss;
pub mod layer;
pub mod loss;
pub mod map;
pub mod net;
pub mod networks;
pub mod optimiser;
mod picture;
pub mod score;
pub mod train;

pub use error::{Error, Result};
pub use map::Map;
pub use net::Net;
