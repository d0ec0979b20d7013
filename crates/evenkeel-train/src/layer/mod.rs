//! Layers with their gradients: to the input, and to the weights.

pub mod conv;
pub(crate) mod norm;
pub(crate) mod pool;
pub(crate) mod resize;

#[cfg(test)]
mod tests;
