//! The product at one point: `c[tile][o] = sum over k of a[tile][k] * u[k][o]`, for the tiles of a block and the output channels of
//! a chunk.
//!
//! A few tiles by two vectors of channels are summed in registers. Each sum runs over `k` in order, a block of the depth at a time, whatever the rows around
//! it, so a tile's product does not depend on the block it is computed in.

use super::packed::{DEPTH, PANEL};
use crate::gemm::tile::{block_rows, columns, step};
use crate::lanes::{Kernel, Lanes};

/// Input channels summed between two prefetches.
const UNROLL: usize = 8;

/// The operands of one product.
pub(super) struct Operands {
    /// Tiles.
    pub rows: usize,
    /// Output channels, whole panels.
    pub columns: usize,
    /// Input channels.
    pub depth: usize,
    /// `[rows][a_stride]`.
    pub a: *const f32,
    /// Elements from one tile to the next in `a`.
    pub a_stride: usize,
    /// `[depth block][panel][k][16]`.
    pub u: *const f32,
    /// `[rows][columns]`.
    pub c: *mut f32,
}

/// Multiplies. What comes after `u` in memory is fetched ahead of its use.
///
/// # Safety
/// The pointers must be valid for the sizes given, and nothing else may touch `c` meanwhile.
#[inline(always)]
pub(super) unsafe fn product<L: Lanes>(l: L, by: &Operands) {
    let mut u = by.u;
    for first in (0..by.depth).step_by(DEPTH) {
        let depth = DEPTH.min(by.depth - first);
        let mut column = 0;
        while column < by.columns {
            let vectors = ((by.columns - column) / L::WIDTH).min(2);
            let mut row = 0;
            while row < by.rows {
                let rows = block_rows(by.rows - row, L::ROWS);
                // SAFETY: row and column lie inside the operands.
                let (a, c) =
                    unsafe { (by.a.add(row * by.a_stride + first), by.c.add(row * by.columns + column)) };
                let ahead =
                    u.wrapping_add(vectors * L::WIDTH * depth + row / L::ROWS * (depth / UNROLL * PANEL));
                let fresh = first == 0;
                let cell = Cell { depth, a, a_stride: by.a_stride, u, c, c_stride: by.columns, ahead, fresh };
                // SAFETY: as many rows and vectors are there.
                unsafe { cell.dispatch(l, rows, vectors) };
                row += rows;
            }
            u = u.wrapping_add(vectors * L::WIDTH * depth);
            column += vectors * L::WIDTH;
        }
    }
}

/// A few tiles by one or two vectors.
#[derive(Clone, Copy)]
struct Cell {
    depth: usize,
    a: *const f32,
    a_stride: usize,
    u: *const f32,
    c: *mut f32,
    c_stride: usize,
    /// What the next columns will want, an eighth of it.
    ahead: *const f32,
    fresh: bool,
}

/// A cell of `R` tiles by `V` vectors, which must be there.
struct Sum<const R: usize, const V: usize>(Cell);

impl<L: Lanes, const R: usize, const V: usize> Kernel<L> for Sum<R, V> {
    #[inline(always)]
    fn run(self, l: L) {
        // SAFETY: whoever makes a `Sum` promises it.
        unsafe { self.0.sum::<L, R, V>(l) }
    }
}

impl Cell {
    /// Sums `rows` rows of `vectors` vectors.
    ///
    /// # Safety
    /// They must be there.
    #[inline(always)]
    unsafe fn dispatch<L: Lanes>(self, l: L, rows: usize, vectors: usize) {
        match (rows, vectors) {
            (1, 2) => l.run(Sum::<1, 2>(self)),
            (2, 2) => l.run(Sum::<2, 2>(self)),
            (3, 2) => l.run(Sum::<3, 2>(self)),
            (4, 2) => l.run(Sum::<4, 2>(self)),
            (5, 2) => l.run(Sum::<5, 2>(self)),
            (6, 2) => l.run(Sum::<6, 2>(self)),
            (7, 2) => l.run(Sum::<7, 2>(self)),
            (_, 2) => l.run(Sum::<8, 2>(self)),
            (1, _) => l.run(Sum::<1, 1>(self)),
            (2, _) => l.run(Sum::<2, 1>(self)),
            (3, _) => l.run(Sum::<3, 1>(self)),
            (4, _) => l.run(Sum::<4, 1>(self)),
            (5, _) => l.run(Sum::<5, 1>(self)),
            (6, _) => l.run(Sum::<6, 1>(self)),
            (7, _) => l.run(Sum::<7, 1>(self)),
            _ => l.run(Sum::<8, 1>(self)),
        }
    }

    /// # Safety
    /// `R` rows of `V` vectors must be there.
    #[inline(always)]
    unsafe fn sum<L: Lanes, const R: usize, const V: usize>(&self, l: L) {
        let mut sums = [[l.splat(0.0); V]; R];
        // SAFETY: `R` rows of `depth` in a, `depth` lines of each panel in u, `R` rows of `V` vectors in c.
        unsafe {
            let u = columns::<L, V>(self.u.cast(), self.depth * PANEL);
            let mut a = [self.a; R];
            for r in 0..R {
                a[r] = self.a.add(r * self.a_stride);
            }
            let mut k = 0;
            while k + UNROLL <= self.depth {
                l.prefetch(self.ahead.wrapping_add(k / UNROLL * PANEL));
                for j in k..k + UNROLL {
                    step(l, &mut sums, a, u, j);
                }
                k += UNROLL;
            }
            for k in k..self.depth {
                step(l, &mut sums, a, u, k);
            }
            for r in 0..R {
                for v in 0..V {
                    let c = self.c.add(r * self.c_stride + v * L::WIDTH);
                    let sum = if self.fresh { sums[r][v] } else { l.add(l.load(c), sums[r][v]) };
                    l.store(c, sum);
                }
            }
        }
    }
}
