//! Weights carried to the points of a tile, in the order in which the product reads them.
//!
//! `u[chunk][point][depth block][panel][k][16]`: a chunk is a run of output channels whose products stay in cache together, a panel
//! is sixteen of them, and `k` counts input channels. Channels past the last are zero.

use super::{Direction, Tile, transform};
use crate::buffer::{Buffer, Pool};
use crate::disjoint::Disjoint;
use crate::parallel;

/// Output channels of one panel: two vectors.
pub(super) const PANEL: usize = 16;
/// Input channels of one pass over a panel: 16 KB of weights, half a first-level cache.
pub(super) const DEPTH: usize = 256;
/// Output channels of one chunk, at most.
pub(super) const CHUNK: usize = 128;

/// The weights of one 3x3 convolution in one direction, transformed and packed once.
#[derive(Debug)]
pub struct Packed {
    pub(super) tile: Tile,
    pub(super) direction: Direction,
    /// Channels summed over.
    pub(super) from_c: usize,
    /// Channels produced.
    pub(super) to_c: usize,
    u: Buffer<f32>,
}

impl Packed {
    /// Transforms `oihw`, weights `[out_c][in_c][3][3]`. The pullback's are the same weights, flipped and transposed.
    ///
    /// # Panics
    /// If `oihw` does not hold `out_c * in_c * 9` values.
    pub fn new(tile: Tile, oihw: &[f32], out_c: usize, in_c: usize, direction: Direction) -> Packed {
        assert_eq!(oihw.len(), out_c * in_c * 9, "weights for {out_c} x {in_c} x 3 x 3");
        let (from_c, to_c) = match direction {
            Direction::Forward => (in_c, out_c),
            Direction::Pullback => (out_c, in_c),
        };
        let kernel = |o: usize, i: usize| match direction {
            Direction::Forward => three_by_three(&oihw[(o * in_c + i) * 9..], false),
            Direction::Pullback => three_by_three(&oihw[(i * in_c + o) * 9..], true),
        };
        let len = to_c.next_multiple_of(PANEL) * from_c * tile.points();
        let mut u = Pool::of_weights().take(len).expect("memory for the packed weights");
        let chunk_len = (CHUNK * from_c * tile.points()).max(1);
        let parts = Disjoint::new(&mut u);
        parallel::each(len.div_ceil(chunk_len), |chunk| {
            // SAFETY: chunks are consecutive and do not overlap.
            let u = unsafe { parts.part(chunk * chunk_len..len.min((chunk + 1) * chunk_len)) };
            let kernel = |o: usize, i: usize| {
                if chunk * CHUNK + o < to_c { kernel(chunk * CHUNK + o, i) } else { [[0.0; 3]; 3] }
            };
            match tile {
                Tile::F2 => pack_chunk::<4>(u, from_c, kernel),
                Tile::F4 => pack_chunk::<6>(u, from_c, kernel),
            }
        });
        Packed { tile, direction, from_c, to_c, u }
    }

    /// The size of the transformed weights.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.u)
    }

    /// Runs of output channels that are computed together.
    pub(super) fn chunks(&self) -> usize {
        self.to_c.div_ceil(CHUNK)
    }

    /// The weights of one chunk, `[point][depth block][panel][k][16]`.
    pub(super) fn chunk(&self, chunk: usize) -> &[f32] {
        let len = CHUNK * self.from_c * self.tile.points();
        &self.u[chunk * len..self.u.len().min((chunk + 1) * len)]
    }

    /// Output channels of one chunk, in whole panels.
    pub(super) fn chunk_width(&self, chunk: usize) -> usize {
        (self.to_c - chunk * CHUNK).min(CHUNK).next_multiple_of(PANEL)
    }
}

fn three_by_three(w: &[f32], flip: bool) -> [[f64; 3]; 3] {
    std::array::from_fn(|y| {
        std::array::from_fn(|x| f64::from(if flip { w[8 - (y * 3 + x)] } else { w[y * 3 + x] }))
    })
}

fn pack_chunk<const N: usize>(u: &mut [f32], depth: usize, kernel: impl Fn(usize, usize) -> [[f64; 3]; 3]) {
    let point_len = u.len() / (N * N);
    let width = point_len / depth.max(1);
    for first in (0..depth).step_by(DEPTH) {
        let block = DEPTH.min(depth - first);
        for column in (0..width).step_by(PANEL) {
            let panel = first * width + column * block;
            for k in 0..block {
                for lane in 0..PANEL {
                    let points = transform::weights::<N>(kernel(column + lane, first + k));
                    for (p, value) in points.as_flattened().iter().enumerate() {
                        u[p * point_len + panel + k * PANEL + lane] = *value as f32;
                    }
                }
            }
        }
    }
}
