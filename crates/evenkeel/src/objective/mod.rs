//! Objectives: numbers to be raised, and their cotangents on the tensors they are made of.
//!
//! Two kinds. A [`Loss`] reads the scores of one pass; a [`ViewObjective`] compares the features of several views. An
//! [`TermSum`] sums any of them with weights, sharing the pass over the image itself, and leads everything back to the image.

mod cell;
mod evaluate;
pub mod head;
mod learned;
mod loss;
mod pooled;
mod views;

#[cfg(test)]
pub(crate) mod tests;

pub use evaluate::{TermSum, Terms, ViewTerm};
pub use learned::{Bank, Contrastive, Rotation};
pub use loss::{Loss, LossKind};
pub use pooled::Pooled;
pub use views::{Equivariance, Invariance, Pairing};

use crate::error::Result;
use crate::network::Tensor;
use crate::random::Random;
use crate::view::DrawnView as View;

/// Where a loop is: some objectives change with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The step, from 0.
    pub step: usize,
    /// How many there will be.
    pub steps: usize,
}

impl Progress {
    /// A single look.
    pub const ONCE: Self = Self { step: 0, steps: 1 };
}

/// The value of a view objective and its cotangents.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The value.
    pub value: f64,
    /// The cotangent on the features of the image itself.
    pub base: Vec<f32>,
    /// The cotangents on the features of each view.
    pub seen: Vec<Vec<f32>>,
}

/// An objective that compares features of the image with features of its views.
pub trait ViewObjective: Send + Sync {
    /// The views of one look.
    fn draw(&self, random: &Random) -> Vec<View>;

    /// The value, to be raised, and its cotangents. `size` is the image's; `seen[i]` are the features of view i.
    ///
    /// # Errors
    /// If features have a form the objective cannot use.
    fn compare(&self, size: (usize, usize), base: &Tensor, seen: &[(View, Tensor)]) -> Result<Compared>;
}
