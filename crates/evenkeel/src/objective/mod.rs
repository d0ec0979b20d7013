//! Objectives: numbers to be raised, and their cotangents on the tensors they are made of.
//!
//! Two kinds. A [`Loss`] reads the scores of one pass; a [`ViewObjective`] compares the features of several views. [`Terms`] sums any of
//! them with weights, sharing the pass over the image itself, and leads everything back to the image. An objective that is a sum over
//! views once the image's own features are known gives a [`ViewSum`], so that one view at a time is traced, led back and dropped.

mod agreement;
mod anchor;
mod batches;
mod cell;
mod consensus;
mod evaluate;
pub mod head;
mod learned;
mod loss;
mod passes;
mod pooled;
mod teach;
mod there;
mod unteach;
mod views;

#[cfg(test)]
mod taught_tests;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use crate::network::{pull_softmax, softmax};
pub use consensus::{Consensus, Learned, Signal, Target};
pub use evaluate::{TermSum, Terms, ViewTerm};
pub use learned::{Bank, Contrastive, Rotation};
pub use loss::{Loss, LossKind};
pub use pooled::Pooled;
pub use teach::Taught;
pub(crate) use unteach::Curvature;
pub use views::{Equivariance, Invariance, Pairing};

use crate::error::Result;
use crate::network::{CosineRule, Tensor, TensorNames};
use crate::random::Random;
use crate::view::{DrawnView, Placed};

/// Where a loop is: some objectives change with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The step, from 0.
    pub step: usize,
    /// How many there will be.
    pub steps: usize,
}

impl Progress {
    /// A single evaluation.
    pub const ONCE: Self = Self { step: 0, steps: 1 };
}

/// The cotangent on the values of one tensor.
pub type Cotangent = Vec<f32>;

/// A view, and the features seen through it: one tensor for each name.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The view, placed for the image.
    pub view: Placed,
    /// The features.
    pub features: Vec<Tensor>,
}

/// The value of a view objective and its cotangents, one for each tensor of features.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The value.
    pub value: f64,
    /// The cotangents on the features of the image itself.
    pub base: Vec<Cotangent>,
    /// The cotangents on the features of each view.
    pub seen: Vec<Vec<Cotangent>>,
}

/// What one view adds to a [`ViewSum`].
pub struct ViewShare {
    /// The cotangents on the view's features.
    pub cotangents: Vec<Cotangent>,
    /// What the sum needs when the view's turn comes.
    rest: Rest,
}

enum Rest {
    /// A value that only concerns the view.
    Value(f64),
    /// Cosines with the image's own features, one for each tensor.
    Pairs(Vec<anchor::Pair>),
}

/// An objective that is a sum over views, the image's own features being known.
pub trait ViewSum: Send + Sync {
    /// What view number `place` adds; the cotangents are left out unless they are wanted.
    ///
    /// # Errors
    /// If features have a form the objective cannot use.
    fn share(&self, place: usize, seen: &Seen, want_cotangents: bool) -> Result<ViewShare>;

    /// Adds a view's share. Shares are added in the order of the views.
    fn add(&mut self, share: ViewShare);

    /// The value, and the cotangents on the image's own features.
    ///
    /// # Errors
    /// If a share was not of this sum.
    fn finish(self: Box<Self>) -> Result<(f64, Vec<Cotangent>)>;
}

/// An objective that compares features of the image with features of its views.
pub trait ViewObjective: Send + Sync {
    /// The views of one evaluation.
    fn draw(&self, random: &Random) -> Vec<DrawnView>;

    /// The tensors that it compares, where they are not the model's features.
    fn tensors(&self) -> Option<&TensorNames> {
        None
    }

    /// The objective as consensus, if the views give the signal: their side is held fixed, so they are seen without tapes.
    fn teacher(&self) -> Option<&Consensus> {
        None
    }

    /// The objective as cosines of features, if it is a sum of them: what a network may compare where its tensors are.
    fn cosines(&self) -> Option<CosineRule> {
        None
    }

    /// The objective as a sum over views, if it is one.
    ///
    /// # Errors
    /// If features have a form the objective cannot use.
    fn over_views<'a>(&'a self, base: &'a [Tensor]) -> Result<Option<Box<dyn ViewSum + 'a>>> {
        let _ = base;
        Ok(None)
    }

    /// The value, to be raised, and its cotangents, all views at once; none on the views where they teach.
    ///
    /// # Errors
    /// If features have a form the objective cannot use.
    fn compare(&self, base: &[Tensor], seen: &[Seen]) -> Result<Compared>;
}

/// A sum over views that are all there.
fn compare_in_turn(mut sum: Box<dyn ViewSum + '_>, seen: &[Seen]) -> Result<Compared> {
    let mut on_views = Vec::with_capacity(seen.len());
    for (place, one) in seen.iter().enumerate() {
        let mut share = sum.share(place, one, true)?;
        on_views.push(std::mem::take(&mut share.cotangents));
        sum.add(share);
    }
    let (value, base) = sum.finish()?;
    Ok(Compared { value, base, seen: on_views })
}
