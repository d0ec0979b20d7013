//! Batches of matrix products for MatMul, Gemm and Einsum: f32 by the kernels, f64 by plain loops.

use evenkeel_kernels::gemm::{Operand, Scale, Shape, gemm};

use super::number::Float;
use crate::tensor::DType;

/// One side of a batch of products. See [`Operand`], whose strides these are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'a, T> {
    pub(super) values: &'a [T],
    pub(super) batch: usize,
    pub(super) row: usize,
    pub(super) column: usize,
}

impl<'a, T: Float> Side<'a, T> {
    /// Matrices of this many rows and columns, one after the other.
    pub(super) fn new(values: &'a [T], rows: usize, columns: usize) -> Self {
        Side { values, batch: rows.saturating_mul(columns), row: columns, column: 1 }
    }

    /// With rows and columns exchanged, if so.
    pub(super) fn transposed(self, so: bool) -> Self {
        if so { Side { row: self.column, column: self.row, ..self } } else { self }
    }
}

/// `c = alpha a b` for every matrix of the batch, `c` row by row.
pub(super) fn multiply<T: Float>(shape: Shape, a: Side<'_, T>, b: Side<'_, T>, alpha: f64, c: &mut [T]) {
    if c.is_empty() {
        return;
    }
    if shape.k == 0 {
        return c.fill(T::of(0.0));
    }
    if let (Some(a), Some(b), Some(c)) = (single(a), single(b), T::singles_mut(c)) {
        return gemm(shape, a, b, c, Scale { alpha: alpha as f32, beta: 0.0 });
    }
    debug_assert_eq!(T::DTYPE, DType::F64);
    for (i, c) in c.iter_mut().enumerate() {
        let (batch, row, column) = (i / shape.n / shape.m, i / shape.n % shape.m, i % shape.n);
        let (a0, b0) = (batch * a.batch + row * a.row, batch * b.batch + column * b.column);
        let sum = (0..shape.k)
            .fold(0.0, |sum, k| sum + a.values[a0 + k * a.column].wide() * b.values[b0 + k * b.row].wide());
        *c = T::of(alpha * sum);
    }
}

fn single<T: Float>(side: Side<'_, T>) -> Option<Operand<'_>> {
    let values = T::singles(side.values)?;
    Some(Operand { values, batch_stride: side.batch, row_stride: side.row, column_stride: side.column })
}
