//! Comparisons that a network makes where its tensors are: features of the image and of its views stay on their device, and the value and the gradient on images
//! come back.
//!
//! With f0 the image's features of one name, f_i those of view i brought back to f0's grid, n = ‖f‖ + 1e-10 and m the cells in sight that are kept, a pair adds
//! Σ m_i m_j f_i f_j / (n_i n_j): each view with f0, or every two. Features averaged over space first have no grid and no mask. What is brought
//! over is an [`Undo`]'s taps, four cells and weights for each cell, whatever the number of channels.

use super::{BatchTape, Tensor};
use crate::random::Random;
use crate::view::{Placed, Undo};

/// Which features an objective compares, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CosineRule {
    /// Whether features are averaged over space first.
    pub pooled: bool,
    /// Whether every two are compared, or each view with the image.
    pub all_pairs: bool,
    /// Each cell of a map is kept with this probability.
    pub cells: f32,
    /// What decides which.
    pub cell_seed: u64,
}

impl CosineRule {
    /// 1 for each cell that takes part, else 0; nothing where all do.
    pub fn kept_cells(&self, count: usize) -> Option<Vec<f32>> {
        let mut random = Random::new(self.cell_seed);
        let keep = |_| if random.chance(self.cells) { 1.0 } else { 0.0 };
        (self.cells < 1.0).then(|| (0..count).map(keep).collect())
    }
}

/// A comparison to be made: the first image of the call with the views that the others show.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The tensors of features.
    pub features: Vec<String>,
    /// How they are compared.
    pub rule: CosineRule,
    /// The views, in the order of the images behind the first.
    pub views: Vec<Placed>,
    /// What the value is multiplied by on the way back.
    pub weight: f64,
    /// Whether a way back is wanted.
    pub want_gradient: bool,
}

impl Comparison {
    /// The way back of a view's map of `seen` (height, width) to the image's own, of `to`.
    pub fn undo(&self, view: usize, seen: (usize, usize), to: (usize, usize)) -> Option<Undo> {
        Some(self.views.get(view)?.undo_onto(seen, to))
    }
}

/// What a comparison came to.
pub struct ComparedThere<'n> {
    /// The tensors asked for, of the first image.
    pub tensors: Vec<Tensor>,
    /// The value, unweighted.
    pub value: f64,
    /// For each image, the gradient of the weighted value and of the products of its tensors with their cotangents; those of views have no tensors.
    pub tape: Option<Box<dyn BatchTape + 'n>>,
}
