//! The product as its formula says, over `f32` or `f64`.

use super::tile::PANEL;
use super::{Operand, Packed, Scale, Shape};
pub use crate::conv2d::reference::Real;

/// `c = alpha * a b + beta * c`, as [`super::gemm`].
pub fn gemm(shape: Shape, a: Operand<'_>, b: Operand<'_>, c: &mut [f32], scale: Scale) {
    product(
        shape,
        |i, row, k| a.values[i * a.batch_stride + row * a.row_stride + k * a.column_stride],
        |i, k, column| b.values[i * b.batch_stride + k * b.row_stride + column * b.column_stride],
        c,
        (scale.alpha, scale.beta),
    );
}

/// `c = alpha * a b + beta * c`, as [`super::gemm_packed`].
pub fn gemm_packed(shape: Shape, a: Operand<'_>, b: &Packed, c: &mut [f32], scale: Scale) {
    product(
        shape,
        |i, row, k| a.values[i * a.batch_stride + row * a.row_stride + k * a.column_stride],
        |_, k, column| b.panel(column / PANEL)[k].0[column % PANEL],
        c,
        (scale.alpha, scale.beta),
    );
}

/// `c = alpha * a b + beta * c` for sides given as functions of `(product, row, column)`.
pub fn product<T: Real>(
    shape: Shape,
    a: impl Fn(usize, usize, usize) -> T,
    b: impl Fn(usize, usize, usize) -> T,
    c: &mut [T],
    (alpha, beta): (T, T),
) {
    for i in 0..shape.batch {
        for row in 0..shape.m {
            for column in 0..shape.n {
                let mut sum = T::default();
                for k in 0..shape.k {
                    sum = sum + a(i, row, k) * b(i, k, column);
                }
                let to = &mut c[(i * shape.m + row) * shape.n + column];
                let kept = if beta == T::default() { T::default() } else { beta * *to };
                *to = alpha * sum + kept;
            }
        }
    }
}
