//! Depthwise convolution by tiles of up to eight target pixels by eight channels, whose sums stay in registers while the taps
//! pass.

use std::arch::x86_64::*;

use super::finish::Finish;
use super::runs::{self, Run};
use super::{Packed, axes};
use crate::conv2d::Geometry;
use crate::cpu::Avx2;
use crate::epilogue::Epilogue;
use crate::layout::{LANES, stride};
use crate::parallel;
use crate::taps::{Axis, Taps};

/// One direction of one convolution: what tasks share.
struct Plan<'a> {
    rows: Taps,
    runs: Vec<Run>,
    weights: &'a Packed,
    source: &'a [f32],
    source_size: [usize; 2],
    target_size: [usize; 2],
    step: usize,
    finish: Finish<'a>,
}

pub(super) fn forward(
    proof: Avx2,
    g: &Geometry,
    weights: &Packed,
    input: &[f32],
    output: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    let [vertical, horizontal] = axes(g);
    let plan = Plan {
        rows: Taps::forward(vertical),
        runs: runs::forward(horizontal),
        weights,
        source: input,
        source_size: [vertical.input, horizontal.input],
        target_size: [vertical.output, horizontal.output],
        step: stride(g.out_c),
        finish: Finish::new(epilogue, g.out_c, output),
    };
    plan.run(proof, g.batch);
}

pub(super) fn pullback(
    proof: Avx2,
    g: &Geometry,
    weights: &Packed,
    grad_out: &[f32],
    grad_in: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    let [vertical, horizontal]: [Axis; 2] = axes(g);
    let plan = Plan {
        rows: Taps::pullback(vertical),
        runs: runs::pullback(horizontal),
        weights,
        source: grad_out,
        source_size: [vertical.output, horizontal.output],
        target_size: [vertical.input, horizontal.input],
        step: stride(g.in_c),
        finish: Finish::new(epilogue, g.in_c, grad_in),
    };
    plan.run(proof, g.batch);
}

/// Where one tap's vectors lie: element offsets from the row's sources and in the weights.
struct Tap {
    source: usize,
    weight: usize,
}

impl Plan<'_> {
    /// Runs every row, in channel chunks where rows alone are too few to share out evenly.
    fn run(&self, proof: Avx2, batch: usize) {
        let rows = batch * self.target_size[0];
        let vectors = self.step / LANES;
        let chunks = if parallel::threads() > 1 && rows < 16 { vectors.div_ceil(8).clamp(1, 4) } else { 1 };
        let work = self.target_size[1] * self.step * self.weights.kernel.iter().product::<usize>() / chunks;
        parallel::ranges(rows * chunks, ((1 << 17) / work.max(1)).max(1), |range| {
            let mut taps = Vec::new();
            for i in range {
                let (row, chunk) = (i / chunks, i % chunks);
                let channels = [chunk, chunk + 1].map(|edge| edge * vectors / chunks * LANES);
                self.row(proof, row, channels, &mut taps);
            }
        });
    }

    fn row(&self, _: Avx2, row: usize, channels: [usize; 2], taps: &mut Vec<Tap>) {
        let (image, y) = (row / self.target_size[0], row % self.target_size[0]);
        let image = image * self.source_size[0] * self.source_size[1];
        for run in &self.runs {
            taps.clear();
            let mut reach = 0;
            for &(source_y, tap_y) in self.rows.of(y) {
                for &(source_x, tap_x) in &run.taps {
                    let pixel = image + source_y as usize * self.source_size[1] + source_x as usize;
                    let tap = tap_y as usize * self.weights.kernel[1] + tap_x as usize;
                    taps.push(Tap { source: pixel * self.step, weight: tap * self.step });
                    reach = reach.max(pixel + (run.count - 1) * run.source_advance + 1);
                }
            }
            assert!(reach * self.step <= self.source.len() && channels[1] <= self.step);
            let tiles = run.count.div_ceil(8);
            for tile in 0..tiles {
                let (begin, end) = (tile * run.count / tiles, (tile + 1) * run.count / tiles);
                let at = (row * self.target_size[1] + run.first + begin * run.advance) * self.step;
                let shift = begin * run.source_advance * self.step;
                let steps = [run.source_advance * self.step, run.advance * self.step];
                let tile = Tile { taps, shift, at, steps, channels };
                // SAFETY: the proof says that AVX2 and FMA are there; the assert bounds what the taps read, the
                // weights have a pixel for every tap, and rows and channel chunks keep tasks apart.
                unsafe {
                    match (end - begin, run.sliding()) {
                        (8, Some(3)) => self.sliding::<3, 8>(tile),
                        (7, Some(3)) => self.sliding::<3, 7>(tile),
                        (6, Some(3)) => self.sliding::<3, 6>(tile),
                        (5, Some(3)) => self.sliding::<3, 5>(tile),
                        (4, Some(3)) => self.sliding::<3, 4>(tile),
                        (8, Some(5)) => self.sliding::<5, 8>(tile),
                        (6, Some(5)) => self.sliding::<5, 6>(tile),
                        (4, Some(5)) => self.sliding::<5, 4>(tile),
                        (1, _) => self.tile::<1>(tile),
                        (2, _) => self.tile::<2>(tile),
                        (3, _) => self.tile::<3>(tile),
                        (4, _) => self.tile::<4>(tile),
                        (5, _) => self.tile::<5>(tile),
                        (6, _) => self.tile::<6>(tile),
                        (7, _) => self.tile::<7>(tile),
                        _ => self.tile::<8>(tile),
                    }
                }
            }
        }
    }

    /// As `tile`, for taps that come in rows of `K` neighbouring sources while targets move on by one: each source is
    /// loaded once a row and serves `K` sums.
    ///
    /// # Safety
    /// As for `tile`.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn sliding<const K: usize, const P: usize>(&self, tile: Tile<'_>) {
        for channel in (tile.channels[0]..tile.channels[1]).step_by(LANES) {
            let mut sums = [_mm256_setzero_ps(); P];
            for row in tile.taps.chunks_exact(K) {
                // SAFETY: inside both slices, by contract.
                unsafe {
                    let mut weights = [_mm256_setzero_ps(); K];
                    for t in 0..K {
                        weights[t] = _mm256_loadu_ps(self.weights.taps.as_ptr().add(row[t].weight + channel));
                    }
                    let source = self.source.as_ptr().add(row[0].source + tile.shift + channel);
                    for i in 0..P + K - 1 {
                        let x = _mm256_loadu_ps(source.add(i * self.step));
                        for t in 0..K {
                            if i >= t && i - t < P {
                                sums[i - t] = _mm256_fmadd_ps(weights[t], x, sums[i - t]);
                            }
                        }
                    }
                }
            }
            // SAFETY: these targets are this task's alone.
            unsafe { self.finish.tile(tile.at + channel, tile.steps[1], channel, sums) };
        }
    }

    /// # Safety
    /// The taps' sources and weights lie inside their slices for all `P` targets; no other task has these targets.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tile<const P: usize>(&self, tile: Tile<'_>) {
        let [source_step, target_step] = tile.steps;
        for channel in (tile.channels[0]..tile.channels[1]).step_by(LANES) {
            let mut sums = [_mm256_setzero_ps(); P];
            for tap in tile.taps {
                // SAFETY: inside both slices, by contract.
                unsafe {
                    let weight = _mm256_loadu_ps(self.weights.taps.as_ptr().add(tap.weight + channel));
                    let source = self.source.as_ptr().add(tap.source + tile.shift + channel);
                    for (p, sum) in sums.iter_mut().enumerate() {
                        *sum = _mm256_fmadd_ps(weight, _mm256_loadu_ps(source.add(p * source_step)), *sum);
                    }
                }
            }
            // SAFETY: these targets are this task's alone.
            unsafe { self.finish.tile(tile.at + channel, target_step, channel, sums) };
        }
    }
}

/// Up to eight targets of one run.
struct Tile<'a> {
    taps: &'a [Tap],
    /// Elements from the run's first source to the tile's.
    shift: usize,
    /// The first target's first element.
    at: usize,
    /// Elements from one source, and one target, to the next.
    steps: [usize; 2],
    channels: [usize; 2],
}
