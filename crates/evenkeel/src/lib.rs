//! Robust perception at test time: the method.
//!
//! The flow, which is also the module order: an image is looked at through several views; a frozen network gives features for
//! each; an objective compares them; its gradient with respect to the image (never the weights) drives a step; a budget
//! projects it; a verdict comes out. Attack and defence are the same loop with another objective and another sign.

#![forbid(unsafe_code)]

pub mod attack;
pub mod budget;
pub mod corrupt;
pub mod defence;
pub mod detect;
pub mod error;
pub mod image;
pub mod model;
pub mod network;
pub mod objective;
pub mod optimise;
pub mod random;
pub mod step;
pub mod task;
#[cfg(test)]
mod toy;
pub mod verdict;
pub mod view;

pub use error::{Error, Result};
pub use image::{Image, LabelMap, Palette};
pub use random::Random;
