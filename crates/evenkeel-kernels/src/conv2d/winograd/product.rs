//! The product at one point: `c[tile][o] = sum over k of a[tile][k] * u[k][o]`, for the tiles of a block and the output channels of
//! a chunk.
//!
//! Six tiles by sixteen channels are summed in registers. Each sum runs over `k` in order, a block of the depth at a time, whatever the rows around
//! it, so a tile's product does not depend on the block it is computed in.

use super::lanes::Lanes;
use super::packed::{DEPTH, PANEL};

/// Tiles summed at once.
pub(super) const ROWS: usize = 6;
/// Input channels summed between two looks ahead.
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
        for column in (0..by.columns).step_by(PANEL) {
            let mut row = 0;
            while row < by.rows {
                // SAFETY: row and column lie inside the operands, and at most `rows - row` rows are touched.
                unsafe {
                    let cell = Cell {
                        depth,
                        a: by.a.add(row * by.a_stride + first),
                        a_stride: by.a_stride,
                        u,
                        c: by.c.add(row * by.columns + column),
                        c_stride: by.columns,
                        ahead: u.wrapping_add(depth * PANEL + row / ROWS * (depth / UNROLL * PANEL)),
                        fresh: first == 0,
                    };
                    row += match by.rows - row {
                        1 => cell.sum::<L, 1>(l),
                        2 => cell.sum::<L, 2>(l),
                        3 => cell.sum::<L, 3>(l),
                        4 | 7 | 8 => cell.sum::<L, 4>(l),
                        5 | 9 => cell.sum::<L, 5>(l),
                        _ => cell.sum::<L, ROWS>(l),
                    };
                }
            }
            u = u.wrapping_add(depth * PANEL);
        }
    }
}

/// A few tiles by one panel.
struct Cell {
    depth: usize,
    a: *const f32,
    a_stride: usize,
    u: *const f32,
    c: *mut f32,
    c_stride: usize,
    /// What the next panel will want, an eighth of it.
    ahead: *const f32,
    fresh: bool,
}

impl Cell {
    /// Sums `R` rows and says how many they were.
    ///
    /// # Safety
    /// `R` rows must be there.
    #[inline(always)]
    unsafe fn sum<L: Lanes, const R: usize>(&self, l: L) -> usize {
        let mut sums = [[l.splat(0.0); 2]; R];
        // SAFETY: `R` rows of `depth` in a, `depth` rows of a panel in u, `R` rows of a panel in c.
        unsafe {
            let mut k = 0;
            while k + UNROLL <= self.depth {
                l.prefetch(self.ahead.wrapping_add(k / UNROLL * PANEL));
                for step in 0..UNROLL {
                    self.step(l, k + step, &mut sums);
                }
                k += UNROLL;
            }
            for k in k..self.depth {
                self.step(l, k, &mut sums);
            }
            for r in 0..R {
                let c = self.c.add(r * self.c_stride);
                if !self.fresh {
                    sums[r] = [l.add(l.load(c), sums[r][0]), l.add(l.load(c.add(8)), sums[r][1])];
                }
                l.store(c, sums[r][0]);
                l.store(c.add(8), sums[r][1]);
            }
        }
        R
    }

    /// Adds the products of one input channel.
    ///
    /// # Safety
    /// As for `sum`, and `k` must lie below the depth.
    #[inline(always)]
    unsafe fn step<L: Lanes, const R: usize>(&self, l: L, k: usize, sums: &mut [[L::Vector; 2]; R]) {
        // SAFETY: as the caller says.
        unsafe {
            let u = self.u.add(k * PANEL);
            let (u0, u1) = (l.load(u), l.load(u.add(8)));
            for r in 0..R {
                let a = l.splat(*self.a.add(r * self.a_stride + k));
                sums[r] = [l.mul_add(a, u0, sums[r][0]), l.mul_add(a, u1, sums[r][1])];
            }
        }
    }
}
