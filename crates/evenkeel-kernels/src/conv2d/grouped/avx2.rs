//! Small groups for AVX2: blocks of the output whose spread input stays in the second-level cache, register tiles of eight
//! pixels by one vector of channels.

use std::arch::x86_64::*;
use std::cell::RefCell;
use std::ops::Range;

use super::{Pick, Spread};
use crate::conv2d::direct::{Pass, passes};
use crate::conv2d::finish::Finish;
use crate::conv2d::weights::Weights;
use crate::conv2d::{Direction, Geometry};
use crate::cpu::Avx2;
use crate::epilogue::Epilogue;
use crate::layout::{self, LANES};
use crate::parallel;

/// Bytes of spread input of one block and one vector of channels.
const BLOCK_BYTES: usize = 64 << 10;
/// Output columns of one block, and the most rows.
const BLOCK: [usize; 2] = [8, 32];

/// Runs the convolution in `direction`. `from` and `to` are the maps read and written, already checked against the geometry.
pub(crate) fn run(
    proof: Avx2,
    (geometry, direction): (&Geometry, Direction),
    weights: &Weights,
    from: &[f32],
    to: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    let g = geometry;
    let (in_size, in_c, out_size, out_c) = match direction {
        Direction::Forward => ([g.in_h, g.in_w], g.in_c, [g.out_h(), g.out_w()], g.out_c),
        Direction::Pullback => ([g.out_h(), g.out_w()], g.out_c, [g.in_h, g.in_w], g.in_c),
    };
    let finish = Finish::new(to, epilogue);
    for pass in passes(g, direction) {
        let [low, high] = [isize::min, isize::max].map(|pick| {
            [0, 1].map(|axis| pass.taps.iter().map(|tap| tap.shift[axis]).reduce(pick).unwrap_or(0))
        });
        let job = GroupedJob {
            proof,
            spread: weights.spread(direction),
            halo: [0, 1].map(|axis| (high[axis] - low[axis]) as usize + 1),
            low,
            pass: &pass,
            from,
            in_size,
            in_stride: layout::stride(in_c),
            out_size,
            out_c,
            finish,
        };
        job.run(g.batch);
    }
}

/// One pass over one batch.
struct GroupedJob<'a> {
    proof: Avx2,
    pass: &'a Pass,
    spread: &'a Spread,
    /// The least shift of a tap, and how many pixels the taps reach over.
    low: [isize; 2],
    halo: [usize; 2],
    from: &'a [f32],
    in_size: [usize; 2],
    in_stride: usize,
    out_size: [usize; 2],
    out_c: usize,
    finish: Finish,
}

thread_local! {
    static SPREAD: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

impl GroupedJob<'_> {
    fn run(&self, batch: usize) {
        let [rows, columns] = self.pass.grid;
        if batch * rows * columns == 0 {
            return;
        }
        let width = self.extent(1, BLOCK[1].min(columns));
        let affordable = BLOCK_BYTES / (4 * LANES * width * self.spread.steps);
        let tall = (affordable.saturating_sub(self.halo[0]) / self.pass.in_step[0]).clamp(1, BLOCK[0]);
        let blocks = [rows.div_ceil(tall), columns.div_ceil(BLOCK[1])];
        parallel::each(batch * blocks[0] * blocks[1], |task| {
            let (n, y, x) = (task / (blocks[0] * blocks[1]), task / blocks[1] % blocks[0], task % blocks[1]);
            let rows = y * tall..((y + 1) * tall).min(rows);
            let columns = x * BLOCK[1]..((x + 1) * BLOCK[1]).min(columns);
            SPREAD.with_borrow_mut(|spread| {
                // SAFETY: `run` was given the proof; blocks have pixels of their own.
                unsafe {
                    for channel in (0..self.out_c).step_by(LANES) {
                        self.spread(n, &rows, &columns, channel, spread);
                        self.block(n, &rows, &columns, channel, spread);
                    }
                }
            });
        });
    }

    /// Pixels of the map read that `count` lattice points reach over.
    fn extent(&self, axis: usize, count: usize) -> usize {
        (count - 1) * self.pass.in_step[axis] + self.halo[axis]
    }

    /// Spreads what a block reads for eight channels from `channel` on: `[row][column][step][8]`, zeros outside the map.
    ///
    /// # Safety
    /// The machine has AVX2.
    #[target_feature(enable = "avx2")]
    unsafe fn spread(
        &self,
        n: usize,
        rows: &Range<usize>,
        columns: &Range<usize>,
        channel: usize,
        spread: &mut Vec<f32>,
    ) {
        let steps = self.spread.steps;
        let picks = &self.spread.picks[channel / LANES * steps..(channel / LANES + 1) * steps];
        let pixel = steps * LANES;
        let [height, width] = [self.extent(0, rows.len()), self.extent(1, columns.len())];
        spread.resize((height * width * pixel).max(spread.len()), 0.0);
        let first = [
            (rows.start * self.pass.in_step[0]) as isize + self.low[0],
            (columns.start * self.pass.in_step[1]) as isize + self.low[1],
        ];
        for (i, target) in spread.chunks_exact_mut(pixel).take(height * width).enumerate() {
            let (y, x) = (first[0] + (i / width) as isize, first[1] + (i % width) as isize);
            let [h, w] = self.in_size;
            if y < 0 || y >= h as isize || x < 0 || x >= w as isize {
                target.fill(0.0);
                continue;
            }
            let start = ((n * h + y as usize) * w + x as usize) * self.in_stride;
            let source = &self.from[start..start + self.in_stride];
            for (to, pick) in target.chunks_exact_mut(LANES).zip(picks) {
                // SAFETY: picks start at least eight values before the pixel's end.
                unsafe { self::pick(pick, source, to) };
            }
        }
    }

    /// # Safety
    /// The machine has AVX2 and FMA; `spread` holds the block; no other thread writes its pixels.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn block(
        &self,
        n: usize,
        rows: &Range<usize>,
        columns: &Range<usize>,
        channel: usize,
        spread: &[f32],
    ) {
        let width = self.extent(1, columns.len());
        let pixel = self.spread.steps * LANES;
        // SAFETY: these channels are the output's.
        let bias: [f32; LANES] = unsafe { self.finish.bias(channel, LANES.min(self.out_c - channel)) };
        for row in rows.clone() {
            let y = self.pass.first[0] + row * self.pass.step[0];
            let line = (row - rows.start) * self.pass.in_step[0] * width;
            let mut column = columns.start;
            while column < columns.end {
                let x = self.pass.first[1] + column * self.pass.step[1];
                let at = (line + (column - columns.start) * self.pass.in_step[1]) * pixel;
                let tile = Tile {
                    from: &spread[at..],
                    channel,
                    to: ((n * self.out_size[0] + y) * self.out_size[1] + x) * self.spread.stride + channel,
                    bias: &bias,
                    row: width * pixel,
                };
                // SAFETY: the tile's pixels are the block's.
                column += unsafe {
                    match columns.end - column {
                        8.. => self.tile::<8>(tile),
                        4.. => self.tile::<4>(tile),
                        2.. => self.tile::<2>(tile),
                        _ => self.tile::<1>(tile),
                    }
                };
            }
        }
    }

    /// `P` pixels of one vector of channels; answers `P`.
    ///
    /// # Safety
    /// The machine has AVX2 and FMA; the block holds what the pixels read; no other thread writes them.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tile<const P: usize>(&self, tile: Tile<'_>) -> usize {
        let Spread { steps, stride, taps, .. } = *self.spread;
        let apart = self.pass.in_step[1] * steps * LANES;
        let mut acc = [[_mm256_setzero_ps()]; P];
        // SAFETY: a tap's shift is at least `low` and within the halo, so its pixels are in the block; the weights have `steps`
        // vectors for each tap.
        unsafe {
            let weights = self.spread.weights.as_ptr().add(tile.channel / LANES * taps * steps);
            for tap in &self.pass.taps {
                let [y, x] =
                    [tap.shift[0] - self.low[0], tap.shift[1] - self.low[1]].map(|shift| shift as usize);
                let from = tile.from.as_ptr().add(y * tile.row + x * steps * LANES);
                let weights = weights.add(tap.index * steps);
                for step in 0..steps {
                    let weight = _mm256_loadu_ps(weights.add(step).cast());
                    for p in 0..P {
                        let value = _mm256_loadu_ps(from.add(p * apart + step * LANES));
                        acc[p][0] = _mm256_fmadd_ps(value, weight, acc[p][0]);
                    }
                }
            }
            let mut at = [tile.to; P];
            for p in 0..P {
                at[p] += p * self.pass.step[1] * stride;
            }
            self.finish.tile(self.proof, acc, [_mm256_loadu_ps(tile.bias.as_ptr())], at, ());
        }
        P
    }
}

/// Makes one vector of a spread pixel.
///
/// # Safety
/// The machine has AVX2; `pick` was made for pixels of `source.len()` values, and `to` has eight.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn pick(pick: &Pick, source: &[f32], to: &mut [f32]) {
    // SAFETY: promised by the caller.
    unsafe {
        let near = |start: usize, lanes: &[i32; LANES]| {
            let lanes = _mm256_loadu_si256(lanes.as_ptr().cast());
            _mm256_permutevar8x32_ps(_mm256_loadu_ps(source.as_ptr().add(start)), lanes)
        };
        match pick {
            Pick::Near { start, lanes } => _mm256_storeu_ps(to.as_mut_ptr(), near(*start, lanes)),
            Pick::Split { starts, lanes, second } => {
                let second = _mm256_loadu_ps(second.as_ptr().cast());
                let [a, b] = [near(starts[0], &lanes[0]), near(starts[1], &lanes[1])];
                _mm256_storeu_ps(to.as_mut_ptr(), _mm256_blendv_ps(a, b, second));
            }
            Pick::Far { channels, count } => {
                for (to, &channel) in to.iter_mut().zip(&channels[..*count]) {
                    *to = *source.get_unchecked(channel);
                }
            }
        }
    }
}

/// Where a tile reads and writes.
#[derive(Clone, Copy)]
struct Tile<'a> {
    from: &'a [f32],
    channel: usize,
    to: usize,
    bias: &'a [f32; LANES],
    /// Elements from one row of the block to the next.
    row: usize,
}
