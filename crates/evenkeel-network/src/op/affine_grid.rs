//! AffineGrid: the grid of places that an affine map of the output's coordinates names, for GridSample to read.
//!
//! `grid[n, p] = theta[n] (x, y, [z,] 1)` for every place `p`, coordinates going from -1 to 1.

use super::registry::{Entry, entry};
use super::shape::sizes;
use super::strided::{Real, for_real};
use super::{Answer, Call, Definition, Operator};
use crate::error::Fault;

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("AffineGrid", true, build)];

/// See the [module](self).
#[derive(Debug)]
struct AffineGrid {
    align_corners: bool,
}

fn build(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(AffineGrid { align_corners: definition.attributes.flag("align_corners", false)? }))
}

/// The output's places.
struct Places {
    spatial: Vec<usize>,
    align_corners: bool,
}

impl Places {
    fn count(&self) -> usize {
        self.spatial.iter().product()
    }

    /// The coordinates of a place, the last axis first, and one.
    fn of(&self, mut place: usize) -> [f64; 4] {
        let mut coordinates = [1.0; 4];
        for (i, &size) in self.spatial.iter().rev().enumerate() {
            let (at, size) = ((place % size) as f64, size as f64);
            place /= size as usize;
            coordinates[i] = match self.align_corners {
                true if size > 1.0 => 2.0 * at / (size - 1.0) - 1.0,
                true => 0.0,
                false => (2.0 * at + 1.0) / size - 1.0,
            };
        }
        coordinates
    }

    /// The grid of some maps.
    fn map<T: Real>(&self, dims: usize, theta: &[T], grid: &mut [T]) {
        let count = self.count();
        for (i, out) in grid.chunks_exact_mut(dims).enumerate() {
            let (n, at) = (i / count, self.of(i % count));
            for (row, out) in out.iter_mut().enumerate() {
                let weights = &theta[(n * dims + row) * (dims + 1)..][..=dims];
                *out = T::of(weights.iter().zip(at).map(|(w, x)| w.f64() * x).sum());
            }
        }
    }

    /// The pullback of [`Places::map`].
    fn pull<T: Real>(&self, dims: usize, cotangent: &[T], grad: &mut [T]) {
        let count = self.count();
        let mut sums = vec![0.0; grad.len()];
        for (i, g) in cotangent.chunks_exact(dims).enumerate() {
            let (n, at) = (i / count, self.of(i % count));
            for (row, g) in g.iter().enumerate() {
                let first = (n * dims + row) * (dims + 1);
                (0..=dims).for_each(|j| sums[first + j] += g.f64() * at[j]);
            }
        }
        grad.iter_mut().zip(sums).for_each(|(grad, sum)| *grad = T::of(sum));
    }
}

impl Operator for AffineGrid {
    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (theta, size) = (call.input(0)?, sizes(&call, 1)?);
        let dims = size.len().saturating_sub(2);
        let old = theta.shape().to_vec();
        if !(2..=3).contains(&dims) || old != [size[0], dims, dims + 1] {
            return Err(Fault::Mismatch { left: old, right: size, verb: "give a map and a size" });
        }
        let places = Places { spatial: size[2..].to_vec(), align_corners: self.align_corners };
        let shape = [&size[..1], &size[2..], &[dims]].concat();
        call.room.len_of(&shape)?;
        let grid = for_real!(theta, theta => call.room.tensor(&shape, |grid| places.map(dims, theta, grid)))?;
        Ok(Answer::one(grid).with(call.wants(0), move |back| {
            let Some(cotangent) = back.take(0) else { return Ok(()) };
            let grad =
                for_real!(cotangent, g => back.room().tensor(&old, |grad| places.pull(dims, g, grad)))?;
            back.give(0, grad)
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::proof::{Numbers, build, outputs, prove_gradient};
    use super::super::{Attribute, Operator};
    use crate::tensor::Tensor;

    #[test]
    fn the_identity_names_every_centre() {
        let theta = Some(Tensor::new(&[1, 2, 3], vec![1.0f32, 0.0, 0.0, 0.0, 1.0, 0.0]));
        let size = Some(Tensor::new(&[4], vec![1i64, 1, 1, 2]));
        let op: Arc<dyn Operator> = build("AffineGrid", 20, &[], 2).into();
        let y = outputs(&op, &[theta, size], 1);
        assert_eq!(y[0].values::<f32>(), Some(&[-0.5, 0.0, 0.5, 0.0][..]));
    }

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(52);
        for align in [0, 1] {
            for (dims, size) in [(2, vec![2i64, 1, 3, 4]), (3, vec![2, 3, 2, 1, 3])] {
                let theta = Some(numbers.tensor(&[2, dims, dims + 1], -1.0, 1.0));
                let size = Some(Tensor::new(&[size.len()], size));
                let op = build("AffineGrid", 20, &[("align_corners", Attribute::Int(align))], 2);
                prove_gradient(op, &[theta, size], 1, 1e-5);
            }
        }
    }
}
