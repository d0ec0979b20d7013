//! A product with a constant matrix that is mostly zeros, as the linear map along an axis that it is: exporters write interpolation so.
//!
//! `y[.., o, ..] = sum over the o-th list of w x[.., i, ..]`. What a dense product adds besides is zeros, and both sum in ascending order, so
//! finite inputs give the same values; an infinity or NaN does not spread to outputs whose weight for it is zero. A channels-last map
//! stays so. The pullback is the transposed map.

use std::sync::Arc;

use evenkeel_kernels::resample::AxisMap;

use super::concat::storage_axis;
use super::original::run_original;
use super::resize::mapped;
use super::{Answer, Call, Layouts, Operator};
use crate::error::Fault;
use crate::plan::Plan;
use crate::tensor::{DType, Layout, Tensor};

/// Which axis the matrix multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Along {
    /// The last but one: the matrix is on the left.
    Rows,
    /// The last: the matrix is on the right.
    Columns,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct SparseProduct {
    pub(crate) map: AxisMap,
    pub(crate) transposed: Arc<AxisMap>,
    pub(crate) along: Along,
    pub(crate) original: Arc<Plan>,
}

impl SparseProduct {
    /// The product with this matrix of `[rows, columns]`, if it is sparse enough to gain from it.
    pub(crate) fn map_of(matrix: &Tensor, along: Along) -> Option<AxisMap> {
        let &[rows, columns] = matrix.shape() else { return None };
        let values = matrix.values::<f32>()?;
        let full = values.iter().filter(|&&v| v != 0.0).count();
        if rows == 0 || columns == 0 || full * 4 > values.len() || values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let (input, output) = match along {
            Along::Rows => (columns, rows),
            Along::Columns => (rows, columns),
        };
        let weight = |o: usize, i: usize| match along {
            Along::Rows => values[o * columns + i],
            Along::Columns => values[i * columns + o],
        };
        // An output of zeros only still has a source, with weight zero.
        let list = |o: usize| -> Vec<(usize, f64)> {
            let full: Vec<_> =
                (0..input).map(|i| (i, f64::from(weight(o, i)))).filter(|&(_, w)| w != 0.0).collect();
            if full.is_empty() { vec![(0, 0.0)] } else { full }
        };
        Some(AxisMap::from_lists(input, (0..output).map(list)))
    }

    fn axis(&self, rank: usize) -> Option<usize> {
        rank.checked_sub(if self.along == Along::Rows { 2 } else { 1 }).filter(|_| rank >= 2)
    }
}

impl Operator for SparseProduct {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let axis = self.axis(x.rank()).filter(|&axis| x.shape()[axis] == self.map.input());
        let Some(axis) = axis.filter(|_| x.dtype() == DType::F32 && !x.is_empty()) else {
            return run_original(&self.original, call);
        };
        let (x, wanted) = (call.take(0)?, call.wants_any());
        let channels = (x.layout() == Layout::ChannelsLast).then(|| x.shape()[1]);
        let at = if channels.is_some() { storage_axis(axis) } else { Some(axis) };
        let Some(at) = at else { return Err(Fault::Value("the channels are no axis of a matrix".into())) };
        let in_layout = move |tensor: Tensor| match channels {
            Some(channels) => tensor.as_map_of(channels),
            None => Ok(tensor),
        };
        let y = in_layout(mapped(&self.map, &x.storage(), at, call.room)?)?;
        let back_map = self.transposed.clone();
        Ok(Answer::one(y).with(wanted, move |back| {
            let Some(g) = back.take(0) else { return Ok(()) };
            let own = in_layout(mapped(&back_map, &g.storage(), at, back.room())?)?;
            back.give(0, own)
        }))
    }

    fn flops(&self, inputs: &[Option<&Tensor>]) -> f64 {
        let Some(Some(x)) = inputs.first() else { return 0.0 };
        let pairs: usize = (0..self.map.output()).map(|o| self.map.list(o).len()).sum();
        2.0 * pairs as f64 * (x.len() / self.map.input().max(1)) as f64
    }
}
