//! Executors: what runs a network's graph, on input that is prepared already.
//!
//! An executor knows nothing of pixels: it gets one tensor `[1, 3, h, w]` (or `[1, h, w, 3]`) per image and gives named tensors and a
//! tape back to that input. Our engine is one; a framework's module is another. [`super::Preprocessed`] stands in front of each.

use super::{ComparedThere, Comparison, Tensor, Traced, TracedBatch, makes_none};
use crate::error::Result;

/// What runs a network on prepared input.
pub trait Executor: Send + Sync {
    /// The declared dimensions of the only input, `None` for those that are free; `None` if nothing is declared.
    fn input_dims(&self) -> Option<Vec<Option<usize>>>;

    /// Refuses names that the network does not have.
    ///
    /// # Errors
    /// Naming the first that is missing.
    fn check_tensors(&self, names: &[&str]) -> Result<()>;

    /// For each input, the named tensors, one for each name. No tape is kept.
    ///
    /// # Errors
    /// If there is no such tensor or the network refuses an input.
    fn run(&self, inputs: Vec<Tensor>, tensors: &[&str]) -> Result<Vec<Vec<Tensor>>>;

    /// For each input, the named tensors, and the way back to it.
    ///
    /// # Errors
    /// As [`Executor::run`].
    fn trace(&self, inputs: Vec<Tensor>, tensors: &[&str]) -> Result<Vec<Traced<'_>>>;

    /// Whether one call with several inputs costs much less than a call for each; see [`super::Network::prefers_batches`].
    fn prefers_batches(&self) -> bool {
        false
    }

    /// For each input, the named tensors, and one way back for all.
    ///
    /// # Errors
    /// As [`Executor::run`].
    fn trace_batch(&self, inputs: Vec<Tensor>, tensors: &[&str]) -> Result<TracedBatch<'_>> {
        Ok(self.trace(inputs, tensors)?.into())
    }

    /// See [`super::Network::compares`].
    fn compares(&self) -> bool {
        false
    }

    /// See [`super::Network::compare`].
    ///
    /// # Errors
    /// As [`Executor::run`], and if it makes none.
    fn compare(&self, _: Vec<Tensor>, _: &[&str], _: &Comparison) -> Result<ComparedThere<'_>> {
        Err(makes_none())
    }
}
