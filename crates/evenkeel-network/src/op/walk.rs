//! Several operands read in step with one output that is written in storage order, row by row.
//!
//! Every operand is read through strides, zero where it repeats. Dimensions that all of them pass through alike are merged first, so
//! that tensors of one shape, and scalars, become one flat loop. Channels last, the loop skips padding lanes.

use evenkeel_kernels::layout::stride;
use evenkeel_kernels::parallel;

use crate::tensor::{Layout, Tensor};

/// Elements below which splitting costs more than it gains.
const GRAIN: usize = 1 << 15;

/// The strides of a plain tensor. Those of an empty one may be saturated: they are never followed.
pub(super) fn row_strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; dims.len()];
    for i in (1..dims.len()).rev() {
        strides[i - 1] = strides[i].saturating_mul(dims[i]);
    }
    strides
}

/// The strides at which `tensor` is read when the output has this shape and layout, in the order the output is stored.
pub(super) fn strides(tensor: &Tensor, shape: &[usize], layout: Layout) -> Vec<usize> {
    let dims = tensor.shape();
    let own: Vec<usize> = match (tensor.layout(), dims) {
        (Layout::ChannelsLast, &[_, c, h, w]) => {
            let step = stride(c);
            vec![h.saturating_mul(w).saturating_mul(step), 1, w.saturating_mul(step), step]
        }
        _ => row_strides(dims),
    };
    let missing = shape.len() - dims.len();
    let mut strides: Vec<usize> = vec![0; missing];
    strides.extend(own.iter().zip(dims).map(|(&stride, &dim)| if dim == 1 { 0 } else { stride }));
    in_storage_order(strides, layout)
}

fn in_storage_order(logical: Vec<usize>, layout: Layout) -> Vec<usize> {
    match (layout, &*logical) {
        (Layout::ChannelsLast, &[n, c, h, w]) => vec![n, h, w, c],
        _ => logical,
    }
}

/// What is done to a row of the output, given where each operand starts and how it moves.
type RowTask<'a, R, const N: usize> = dyn Fn(&mut [R], [usize; N], [usize; N]) + Sync + Send + 'a;

/// `N` operands read in step with one output. See the [module](self).
pub(super) struct Walk<const N: usize> {
    /// Merged dimensions, outermost first, without the innermost.
    outer: Vec<(usize, [usize; N])>,
    /// Elements of an output row, and how the operands move along it.
    inner: usize,
    steps: [usize; N],
    /// From one output row to the next.
    pitch: usize,
}

impl<const N: usize> Walk<N> {
    /// The walk over operands stored exactly as the output is, padding lanes included.
    pub(super) fn flat(len: usize) -> Walk<N> {
        Walk { outer: Vec::new(), inner: len, steps: [1; N], pitch: len }
    }

    /// The walk that writes an output of this shape and layout from operands with these strides.
    pub(super) fn new(shape: &[usize], layout: Layout, operands: [Vec<usize>; N]) -> Walk<N> {
        let lanes = match (layout, shape) {
            (Layout::ChannelsLast, &[_, c, ..]) => stride(c),
            _ => 0,
        };
        let dims = in_storage_order(shape.to_vec(), layout);
        let mut merged: Vec<(usize, [usize; N], usize)> = Vec::new(); // size, operands' strides, output's stride
        let mut next = 1;
        for (i, &dim) in dims.iter().enumerate().rev() {
            let out = next;
            next = if lanes > 0 && i + 1 == dims.len() { lanes } else { next.saturating_mul(dim) };
            if dim == 1 {
                continue;
            }
            let strides: [usize; N] = std::array::from_fn(|k| operands[k][i]);
            match merged.last_mut() {
                Some((size, inner, inner_out))
                    if out == inner_out.saturating_mul(*size)
                        && (0..N).all(|k| strides[k] == inner[k].saturating_mul(*size)) =>
                {
                    *size = size.saturating_mul(dim);
                }
                _ => merged.push((dim, strides, out)),
            }
        }
        let total = next;
        let mut merged = merged.into_iter();
        // The output's innermost stride is one: channels last, a single channel still occupies a whole vector.
        let (inner, steps) = match merged.as_slice().first() {
            Some(&(size, strides, 1)) => {
                merged.next();
                (size, strides)
            }
            _ => (1, [0; N]),
        };
        let pitch = merged.as_slice().first().map_or(total, |&(_, _, out)| out);
        let mut outer: Vec<(usize, [usize; N])> = merged.map(|(size, strides, _)| (size, strides)).collect();
        outer.reverse();
        Walk { outer, inner, steps, pitch }
    }

    /// Runs `row(output row, first element of each operand, how each moves)` for every row, in parallel.
    pub(super) fn each<R: Send>(
        &self,
        out: &mut [R],
        row: impl Fn(&mut [R], [usize; N], [usize; N]) + Sync + Send,
    ) {
        self.each_of(out, &row);
    }

    fn each_of<R: Send>(&self, out: &mut [R], row: &RowTask<'_, R, N>) {
        if out.is_empty() {
            return;
        }
        if self.outer.is_empty() && self.pitch == self.inner {
            return parallel::rows(out, 1, GRAIN, |first, part| {
                row(part, self.steps.map(|step| step * first), self.steps);
            });
        }
        parallel::rows(out, self.pitch, (GRAIN / self.pitch).max(1), |first, part| {
            let (mut index, mut starts) = self.seek(first);
            for chunk in part.chunks_exact_mut(self.pitch) {
                row(&mut chunk[..self.inner], starts, self.steps);
                self.advance(&mut index, &mut starts);
            }
        });
    }

    fn seek(&self, mut at: usize) -> (Vec<usize>, [usize; N]) {
        let mut index = vec![0; self.outer.len()];
        let mut starts = [0; N];
        for (i, (size, strides)) in self.outer.iter().enumerate().rev() {
            index[i] = at % size;
            at /= size;
            (0..N).for_each(|k| starts[k] += index[i] * strides[k]);
        }
        (index, starts)
    }

    fn advance(&self, index: &mut [usize], starts: &mut [usize; N]) {
        for (i, (size, strides)) in self.outer.iter().enumerate().rev() {
            index[i] += 1;
            (0..N).for_each(|k| starts[k] += strides[k]);
            if index[i] < *size {
                return;
            }
            (0..N).for_each(|k| starts[k] -= size * strides[k]);
            index[i] = 0;
        }
    }
}
