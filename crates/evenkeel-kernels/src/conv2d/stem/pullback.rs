//! The stem's pullback: the output's gradient, turned planar block by block with zeros around it, then sums along image rows.
//!
//! Image position `phase + stride * j` is read by output `j + shift` through the taps where that division is exact, so each phase
//! of the stride is a convolution of its own with stride one. Each result is one chain over output channels and taps. A register
//! tile is all image channels by a run of pixels of one phase.

use std::arch::x86_64::*;
use std::cell::RefCell;
use std::ops::Range;

use crate::conv2d::Geometry;
use crate::conv2d::weights::Weights;
use crate::disjoint::Disjoint;
use crate::lanes::{Kernel, Lanes};
use crate::layout::{self, LANES};
use crate::parallel;

/// Bytes of planar gradient a block may have.
const BLOCK_BYTES: usize = 192 << 10;
/// Bytes of it that are met again and again at once.
const CACHE_BYTES: usize = 16 << 10;
/// Image rows of one block.
const BLOCK_ROWS: usize = 16;
/// Pixels by which blocks are rounded: no tile is wider.
const WIDEST: usize = 64;
/// Lanes of the widest vector.
const MOST_LANES: usize = 16;

/// Runs the pullback. Sizes are checked.
pub(super) fn run<L: Lanes>(
    l: L,
    g: &Geometry,
    weights: &Weights,
    gy: &[f32],
    gx: &mut [f32],
    accumulate: bool,
) {
    if gx.is_empty() {
        return;
    }
    let spans = [0, 1].map(|axis| reach(g, axis));
    let grid = [g.in_h.div_ceil(g.stride[0]), g.in_w.div_ceil(g.stride[1])];
    let rows = BLOCK_ROWS.div_ceil(g.stride[0]).min(grid[0]);
    let halo = [0, 1].map(|axis| (spans[axis].1 - spans[axis].0) as usize);
    let affordable = BLOCK_BYTES / (4 * g.out_c.max(1) * (rows + halo[0]));
    let columns = affordable.saturating_sub(halo[1]).min(grid[1]).next_multiple_of(WIDEST);
    let pitch = (columns + halo[1]).next_multiple_of(LANES);
    let job = PullbackJob {
        g,
        weights: weights.stem_taps(),
        phases: phases(g, [spans[0].0, spans[1].0], pitch),
        low: [spans[0].0, spans[1].0],
        rows: rows + halo[0],
        pitch,
        gx: Disjoint::new(gx),
        accumulate,
    };
    let blocks = [grid[0].div_ceil(rows), grid[1].div_ceil(columns)];
    parallel::each(g.batch * blocks[0] * blocks[1], |task| {
        let (n, by, bx) = (task / (blocks[0] * blocks[1]), task / blocks[1] % blocks[0], task % blocks[1]);
        let rows = by * rows..((by + 1) * rows).min(grid[0]);
        let columns = bx * columns..((bx + 1) * columns).min(grid[1]);
        BLOCK.with_borrow_mut(|planar| {
            let map = g.out_h() * g.out_w() * layout::stride(g.out_c);
            job.turn(&gy[n * map..(n + 1) * map], [rows.start, columns.start], planar);
            // `planar` holds what the block reads, and blocks have pixels of their own, as `Block` asks.
            let block = Block { job: &job, n, rows, columns, planar };
            match (g.in_c, L::WIDTH) {
                (1, 8) => l.run(Channels::<1, 8>(block)),
                (1, _) => l.run(Channels::<1, 4>(block)),
                (2, _) => l.run(Channels::<2, 4>(block)),
                (3, _) => l.run(Channels::<3, 4>(block)),
                _ => l.run(Channels::<4, 2>(block)),
            }
        });
    });
}

thread_local! {
    static BLOCK: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// The output that reads image position `phase + stride * j` through tap `k` is `j + shift`, if there is one.
fn shift(g: &Geometry, axis: usize, phase: usize, k: usize) -> Option<isize> {
    let from = (phase + g.pads[axis]) as isize - (k * g.dilation[axis]) as isize;
    let stride = g.stride[axis] as isize;
    (from.rem_euclid(stride) == 0).then_some(from.div_euclid(stride))
}

/// The least and the greatest shift along an axis.
fn reach(g: &Geometry, axis: usize) -> (isize, isize) {
    let all = (0..g.stride[axis])
        .flat_map(|phase| (0..g.kernel[axis]).filter_map(move |k| shift(g, axis, phase, k)));
    all.fold((0, 0), |(low, high), shift| (low.min(shift), high.max(shift)))
}

/// One phase of the stride: its first image position, and for each tap the offset into the block and into the weights.
struct Phase {
    first: [usize; 2],
    taps: Vec<(usize, usize)>,
}

fn phases(g: &Geometry, low: [isize; 2], pitch: usize) -> Vec<Phase> {
    let phase = |i: usize| {
        let first = [i / g.stride[1], i % g.stride[1]];
        let taps = (0..g.kernel[0] * g.kernel[1]).filter_map(|tap| {
            let y = shift(g, 0, first[0], tap / g.kernel[1])? - low[0];
            let x = shift(g, 1, first[1], tap % g.kernel[1])? - low[1];
            Some((y as usize * pitch + x as usize, tap * g.in_c))
        });
        Phase { first, taps: taps.collect() }
    };
    (0..g.stride[0] * g.stride[1]).map(phase).collect()
}

struct PullbackJob<'a> {
    g: &'a Geometry,
    weights: &'a [f32], // [out_c][tap][in_c]
    phases: Vec<Phase>,
    low: [isize; 2],
    rows: usize,
    pitch: usize,
    gx: Disjoint<'a, f32>,
    accumulate: bool,
}

/// Some lattice points of an image, and the planar gradient they read. No other thread writes their pixels.
struct Block<'a> {
    job: &'a PullbackJob<'a>,
    n: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    planar: &'a [f32],
}

/// A block of an image of `C` channels, in tiles of `V` vectors.
struct Channels<'a, const C: usize, const V: usize>(Block<'a>);

impl<L: Lanes, const C: usize, const V: usize> Kernel<L> for Channels<'_, C, V> {
    #[inline(always)]
    fn run(self, l: L) {
        let Block { job, n, rows, columns, planar } = self.0;
        let (g, width) = (job.g, V * L::WIDTH);
        // Output channels whose part under one column of tiles stays in the first-level cache.
        let together = (CACHE_BYTES / (4 * job.rows * (width + job.pitch.min(16)))).max(1);
        let mut sums = vec![[[[0.0f32; MOST_LANES]; V]; C]; rows.len() * job.phases.len()];
        for j in columns.clone().step_by(width) {
            sums.fill([[[0.0; MOST_LANES]; V]; C]);
            for first in (0..g.out_c).step_by(together) {
                let channels = first..(first + together).min(g.out_c);
                for (i, sums) in sums.chunks_mut(job.phases.len()).enumerate() {
                    let start = i * job.pitch + (j - columns.start);
                    for (phase, sums) in job.phases.iter().zip(sums) {
                        // SAFETY: tiles are no wider than the rounding of the block's columns.
                        unsafe {
                            job.tile::<L, C, V>(l, &phase.taps, &planar[start..], channels.clone(), sums)
                        };
                    }
                }
            }
            for (i, sums) in rows.clone().zip(sums.chunks(job.phases.len())) {
                for (phase, sums) in job.phases.iter().zip(sums) {
                    // SAFETY: no other thread writes these pixels.
                    unsafe { job.store::<L, C, V>(phase.first, [n, i, j], columns.end, sums) };
                }
            }
        }
    }
}

impl PullbackJob<'_> {
    /// Turns the part of one image's gradient that a block starting at lattice point `first` reads into `[out_c][rows][pitch]`.
    fn turn(&self, gy: &[f32], first: [usize; 2], planar: &mut Vec<f32>) {
        let g = self.g;
        let plane = self.rows * self.pitch;
        planar.clear();
        planar.resize(g.out_c * plane, 0.0);
        let (out_h, out_w, stride) = (g.out_h(), g.out_w(), layout::stride(g.out_c));
        let x0 = first[1] as isize + self.low[1];
        // Columns of the block that are columns of the map.
        let from = (-x0).clamp(0, self.pitch as isize) as usize;
        let until = (out_w as isize - x0).clamp(from as isize, self.pitch as isize) as usize;
        for row in 0..self.rows {
            let y = first[0] as isize + self.low[0] + row as isize;
            if y < 0 || y >= out_h as isize || from == until {
                continue;
            }
            let start = y as usize * out_w + (x0 + from as isize) as usize;
            let source = &gy[start * stride..(start + until - from) * stride];
            for channel in (0..g.out_c).step_by(LANES) {
                let real = LANES.min(g.out_c - channel);
                let target = &mut planar[channel * plane + row * self.pitch + from..];
                // SAFETY: the machine has AVX2, or no `PullbackJob` would be; `target` has `real` planes of which the last has at least
                // `until - from` columns from here on.
                unsafe { turn_row(&source[channel..], stride, until - from, target, plane, real) };
            }
        }
    }

    /// Writes the sums of one phase from lattice point `(i, j)` of image `n` on, as far as column `end`.
    ///
    /// # Safety
    /// No other thread writes these pixels.
    unsafe fn store<L: Lanes, const C: usize, const V: usize>(
        &self,
        phase: [usize; 2],
        [n, i, j]: [usize; 3],
        end: usize,
        sums: &[[[f32; MOST_LANES]; V]; C],
    ) {
        let g = self.g;
        let [y, x] = [i * g.stride[0] + phase[0], j * g.stride[1] + phase[1]];
        if y >= g.in_h || x >= g.in_w {
            return;
        }
        let count = (g.in_w - x).div_ceil(g.stride[1]).min(end - j).min(V * L::WIDTH);
        for (c, sums) in sums.iter().enumerate() {
            let row = ((n * C + c) * g.in_h + y) * g.in_w + x;
            // SAFETY: promised by the caller.
            let gx = unsafe { self.gx.part(row..row + (count - 1) * g.stride[1] + 1) };
            let sums = sums.iter().flat_map(|vector| &vector[..L::WIDTH]);
            let places = gx.iter_mut().step_by(g.stride[1]).zip(sums);
            match self.accumulate {
                true => places.for_each(|(to, sum)| *to += sum),
                false => places.for_each(|(to, sum)| *to = *sum),
            }
        }
    }

    /// Adds to `sums` what some output channels bring to a tile that starts where `planar` does.
    ///
    /// # Safety
    /// `V` vectors are in the block for every tap and channel.
    #[inline(always)]
    unsafe fn tile<L: Lanes, const C: usize, const V: usize>(
        &self,
        l: L,
        taps: &[(usize, usize)],
        planar: &[f32],
        channels: Range<usize>,
        sums: &mut [[[f32; MOST_LANES]; V]; C],
    ) {
        let plane = self.rows * self.pitch;
        let per_channel = self.g.kernel[0] * self.g.kernel[1] * C;
        let mut acc = [[l.splat(0.0); V]; C];
        // SAFETY: promised by the caller; the weights have `per_channel` values for each output channel.
        unsafe {
            for c in 0..C {
                for v in 0..V {
                    acc[c][v] = l.load(sums[c][v].as_ptr());
                }
            }
            for o in channels {
                let source = planar.as_ptr().add(o * plane);
                let weights = self.weights.as_ptr().add(o * per_channel);
                for &(offset, weight) in taps {
                    let (from, w) = (source.add(offset), weights.add(weight));
                    let mut b = [l.splat(0.0); C];
                    for c in 0..C {
                        b[c] = l.splat(*w.add(c));
                    }
                    for v in 0..V {
                        let values = l.load(from.add(L::WIDTH * v));
                        for c in 0..C {
                            acc[c][v] = l.mul_add(b[c], values, acc[c][v]);
                        }
                    }
                }
            }
            for c in 0..C {
                for v in 0..V {
                    l.store(sums[c][v].as_mut_ptr(), acc[c][v]);
                }
            }
        }
    }
}

/// Turns `count` pixels of eight channels, `stride` elements apart, into rows `plane` elements apart, of which `real` are kept.
///
/// # Safety
/// The machine has AVX2; `target` reaches `count` elements into the last row kept.
#[target_feature(enable = "avx2")]
unsafe fn turn_row(
    source: &[f32],
    stride: usize,
    count: usize,
    target: &mut [f32],
    plane: usize,
    real: usize,
) {
    assert!(source.len() >= (count - 1) * stride + LANES && target.len() >= (real - 1) * plane + count);
    let whole = count / LANES * LANES;
    for x in (0..whole).step_by(LANES) {
        let mut pixels = [_mm256_setzero_ps(); LANES];
        for (i, pixel) in pixels.iter_mut().enumerate() {
            // SAFETY: pixel x + i < count has eight channels in the slice.
            *pixel = unsafe { _mm256_loadu_ps(source.as_ptr().add((x + i) * stride)) };
        }
        for (i, row) in layout::transpose(pixels).into_iter().enumerate().take(real) {
            // SAFETY: x + 8 <= count elements of row i < real are in the slice.
            unsafe { _mm256_storeu_ps(target.as_mut_ptr().add(i * plane + x), row) };
        }
    }
    for x in whole..count {
        for i in 0..real {
            target[i * plane + x] = source[x * stride + i];
        }
    }
}
