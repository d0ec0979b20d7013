//! Weights carried to the points of a tile, in the order in which the product reads them.
//!
//! `u[chunk][point][depth block][panel][k][16]`: a chunk is a run of output channels whose products stay in cache together, a panel
//! is sixteen of them, and `k` counts input channels. Channels past the last are zero.

use super::{Direction, Tile, transform};
use crate::buffer::{Buffer, Pool};
use crate::conv2d::weights::Source;
use crate::disjoint::Disjoint;
use crate::lanes::{Kernel, Lanes, Portable};
use crate::{cpu, parallel};

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
        Packed::pack(tile, &oihw.to_vec().into(), [out_c, in_c], direction, Pool::of_weights())
    }

    /// The same from a source of `out_c` rows, into memory of `pool`.
    pub(in crate::conv2d) fn pack(
        tile: Tile,
        source: &Source,
        [out_c, in_c]: [usize; 2],
        direction: Direction,
        pool: &Pool,
    ) -> Packed {
        let (from_c, to_c) = match direction {
            Direction::Forward => (in_c, out_c),
            Direction::Pullback => (out_c, in_c),
        };
        let len = to_c.next_multiple_of(PANEL) * from_c * tile.points();
        let mut u = pool.take(len).expect("memory for the packed weights");
        let job = Packing { source, direction, from_c, to_c, u: Disjoint::new(&mut u) };
        // A panel is one task's own.
        let task = |panel| match tile {
            Tile::F2 => on_lanes(Panel::<4> { job: &job, panel }),
            Tile::F4 => on_lanes(Panel::<6> { job: &job, panel }),
        };
        parallel::each(to_c.div_ceil(PANEL), task);
        Packed { tile, direction, from_c, to_c, u }
    }

    /// The size that the transformed weights `[out_c][in_c][3][3]` would have.
    pub(in crate::conv2d) fn bytes_of(tile: Tile, [out_c, in_c]: [usize; 2], direction: Direction) -> usize {
        let (from_c, to_c) = if direction == Direction::Forward { (in_c, out_c) } else { (out_c, in_c) };
        to_c.next_multiple_of(PANEL) * from_c * tile.points() * size_of::<f32>()
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

/// Weights being transformed.
struct Packing<'a> {
    source: &'a Source,
    direction: Direction,
    from_c: usize,
    to_c: usize,
    u: Disjoint<'a, f32>,
}

/// Runs a panel with the instructions in use.
fn on_lanes<const N: usize>(panel: Panel<'_, N>) {
    #[cfg(target_arch = "x86_64")]
    match (cpu::avx512(), cpu::avx2()) {
        (Some(l), _) => return l.run(panel),
        (_, Some(l)) => return l.run(panel),
        _ => {}
    }
    Portable.run(panel);
}

/// One panel of the packing, of `N * N` points; no other task may work on it.
struct Panel<'a, const N: usize> {
    job: &'a Packing<'a>,
    panel: usize,
}

/// Input channels transformed at a time.
const STAGE: usize = 16;

impl<L: Lanes, const N: usize> Kernel<L> for Panel<'_, N> {
    #[inline(always)]
    fn run(self, _: L) {
        let job = self.job;
        let (chunk, column) = (self.panel * PANEL / CHUNK, self.panel * PANEL % CHUNK);
        let width = (job.to_c - chunk * CHUNK).min(CHUNK).next_multiple_of(PANEL);
        let (points, depth) = (N * N, job.from_c);
        let mut kernels = [[0.0; 9 * PANEL]; STAGE];
        let mut staged = [[[0.0; PANEL]; STAGE]; 36];
        for first in (0..depth).step_by(DEPTH) {
            let block = DEPTH.min(depth - first);
            let panel = chunk * CHUNK * depth * points + first * width + column * block;
            for k in (0..block).step_by(STAGE) {
                let some = STAGE.min(block - k);
                job.gather(self.panel * PANEL, first + k, &mut kernels[..some]);
                for (j, kernel) in kernels[..some].iter().enumerate() {
                    transform::weights::<N>(kernel, |point, lanes| staged[point][j] = lanes);
                }
                for (point, staged) in staged[..points].iter().enumerate() {
                    let start = point * width * depth + panel + k * PANEL;
                    // SAFETY: this panel's own lines.
                    let into = unsafe { job.u.part(start..start + some * PANEL) };
                    into.copy_from_slice(staged[..some].as_flattened());
                }
            }
        }
    }
}

impl Packing<'_> {
    /// The 3x3 kernels of sixteen channels produced and a few summed over, from `column` and `first` on, as `[tap][lane]`.
    #[inline(always)]
    fn gather(&self, column: usize, first: usize, kernels: &mut [[f32; 9 * PANEL]]) {
        let here = PANEL.min(self.to_c - column);
        match self.direction {
            Direction::Forward => {
                let mut row = [0.0; 9 * STAGE];
                for lane in 0..here {
                    let row = &mut row[..9 * kernels.len()];
                    self.source.copy(self.to_c, column + lane, first * 9, row);
                    for (kernel, taps) in kernels.iter_mut().zip(row.as_chunks::<9>().0) {
                        for (tap, &weight) in taps.iter().enumerate() {
                            kernel[tap * PANEL + lane] = weight;
                        }
                    }
                }
            }
            Direction::Pullback => {
                let mut row = [0.0; 9 * PANEL];
                for (k, kernel) in kernels.iter_mut().enumerate() {
                    self.source.copy(self.from_c, first + k, column * 9, &mut row[..9 * here]);
                    for (lane, taps) in row.as_chunks::<9>().0.iter().enumerate().take(here) {
                        for (tap, &weight) in taps.iter().enumerate() {
                            kernel[(8 - tap) * PANEL + lane] = weight;
                        }
                    }
                }
            }
        }
    }
}
