//! Matrix products in single precision: `c = alpha * a b + beta * c`, one or a batch, any strides.
//!
//! Each element of `a b` is one chain of multiply-adds over `k` in order, whatever `m`, `n`, the batch, the tiles and the threads,
//! so a row of a product is the same bytes alone and among others. A right side that stays the same is packed once.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod packed;
pub mod reference;
#[cfg(test)]
mod tests;
pub(crate) mod tile;

pub use packed::Packed;

/// The sizes of a batch of products: `a` is `[batch][m][k]`, `b` is `[batch][k][n]` and `c` is `[batch][m][n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Products.
    pub batch: usize,
    /// Rows of `a` and `c`.
    pub m: usize,
    /// Columns of `b` and `c`.
    pub n: usize,
    /// Columns of `a` and rows of `b`.
    pub k: usize,
}

/// One side of a batch of products: element `(i, row, column)` is
/// `values[i * batch_stride + row * row_stride + column * column_stride]`. A batch stride of zero repeats one matrix.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// The elements.
    pub values: &'a [f32],
    /// From one matrix to the next.
    pub batch_stride: usize,
    /// From one row to the next.
    pub row_stride: usize,
    /// From one column to the next.
    pub column_stride: usize,
}

impl<'a> Operand<'a> {
    /// Matrices of `rows` by `columns` elements, row by row, one after the other.
    pub fn row_major(values: &'a [f32], rows: usize, columns: usize) -> Operand<'a> {
        Operand { values, batch_stride: rows * columns, row_stride: columns, column_stride: 1 }
    }

    /// The same matrices with rows and columns exchanged.
    pub fn transposed(self) -> Operand<'a> {
        Operand { row_stride: self.column_stride, column_stride: self.row_stride, ..self }
    }

    /// The same matrix for every product.
    pub fn repeated(self) -> Operand<'a> {
        Operand { batch_stride: 0, ..self }
    }

    fn check(&self, batch: usize, rows: usize, columns: usize, what: &str) {
        if batch * rows * columns > 0 {
            let last = (batch - 1) * self.batch_stride
                + (rows - 1) * self.row_stride
                + (columns - 1) * self.column_stride;
            assert!(last < self.values.len(), "{what} ends before element {last}");
        }
    }
}

/// What the products are multiplied with, and what `c` held before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of what `c` held; at zero `c` is overwritten without being read.
    pub beta: f32,
}

impl Default for Scale {
    fn default() -> Scale {
        Scale { alpha: 1.0, beta: 0.0 }
    }
}

/// `c = alpha * a b + beta * c`, with `c` row by row.
///
/// # Panics
/// If an operand is too short for the shape, or `c` does not have its size.
pub fn gemm(shape: Shape, a: Operand<'_>, b: Operand<'_>, c: &mut [f32], scale: Scale) {
    a.check(shape.batch, shape.m, shape.k, "the left side");
    b.check(shape.batch, shape.k, shape.n, "the right side");
    assert_eq!(c.len(), shape.batch * shape.m * shape.n, "size of the product {shape:?}");
    #[cfg(target_arch = "x86_64")]
    if let Some(proof) = crate::cpu::avx2() {
        return avx2::run(proof, shape, a, avx2::Right::Plain(b), c, scale);
    }
    reference::gemm(shape, a, b, c, scale);
}

/// [`gemm`] with one right side for the whole batch, packed before.
///
/// # Panics
/// If `b` is not of the shape's size, `a` is too short for the shape, or `c` does not have its size.
pub fn gemm_packed(shape: Shape, a: Operand<'_>, b: &Packed, c: &mut [f32], scale: Scale) {
    assert_eq!((b.k(), b.n()), (shape.k, shape.n), "size of the packed side");
    a.check(shape.batch, shape.m, shape.k, "the left side");
    assert_eq!(c.len(), shape.batch * shape.m * shape.n, "size of the product {shape:?}");
    #[cfg(target_arch = "x86_64")]
    if let Some(proof) = crate::cpu::avx2() {
        return avx2::run(proof, shape, a, avx2::Right::Packed(b), c, scale);
    }
    reference::gemm_packed(shape, a, b, c, scale);
}
