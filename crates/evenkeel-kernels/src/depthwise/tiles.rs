//! Depthwise convolution by tiles of up to eight target pixels by one vector of channels, whose sums stay in registers while the
//! taps pass.
//!
//! Each sum is one chain over the taps in their order, whatever the tile. Taps that fall outside the map are passed over.

use super::runs::{self, Across, Run};
use super::{Packed, axes};
use crate::conv2d::Geometry;
use crate::conv2d::finish::Finish;
use crate::epilogue::Epilogue;
use crate::lanes::{Kernel, Lanes};
use crate::layout::{LANES, stride};
use crate::parallel;
use crate::taps::{Axis, Taps};

/// One direction of one convolution: what tasks share.
struct Plan<'a> {
    rows: Taps,
    runs: Vec<Run>,
    across: Option<Across>,
    weights: &'a Packed,
    source: &'a [f32],
    source_size: [usize; 2],
    target_size: [usize; 2],
    step: usize,
    bias: Vec<f32>, // one pixel, zero where there is none
    finish: Finish,
}

pub(super) fn forward<L: Lanes>(
    l: L,
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
        across: runs::across_forward(horizontal),
        weights,
        source: input,
        source_size: [vertical.input, horizontal.input],
        target_size: [vertical.output, horizontal.output],
        step: stride(g.out_c),
        bias: padded(epilogue.bias, g.out_c),
        finish: Finish::new(output, epilogue),
    };
    plan.run(l, g.batch);
}

pub(super) fn pullback<L: Lanes>(
    l: L,
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
        across: runs::across_pullback(horizontal),
        weights,
        source: grad_out,
        source_size: [vertical.output, horizontal.output],
        target_size: [vertical.input, horizontal.input],
        step: stride(g.in_c),
        bias: padded(epilogue.bias, g.in_c),
        finish: Finish::new(grad_in, epilogue),
    };
    plan.run(l, g.batch);
}

/// Sides of a window that slides over whole rows, and targets of a row from which on it does.
const SLIDING: [usize; 3] = [3, 5, 7];
const FEWEST_TARGETS: usize = 4;

/// Where one tap's vectors lie: element offsets from the row's sources (modulo the address space, where the first lies outside) and in
/// the weights.
struct Tap {
    source: usize,
    weight: usize,
}

/// The bias of one pixel, zeros where there is none.
fn padded(bias: Option<&[f32]>, channels: usize) -> Vec<f32> {
    let mut padded = vec![0.0; stride(channels)];
    if let Some(bias) = bias {
        padded[..channels].copy_from_slice(bias);
    }
    padded
}

/// Some rows, or channels of rows, of a plan, which no other task has.
struct Rows<'a> {
    plan: &'a Plan<'a>,
    range: std::ops::Range<usize>,
    /// Parts that the channels of a row are cut into.
    chunks: usize,
}

impl<L: Lanes> Kernel<L> for Rows<'_> {
    #[inline(always)]
    fn run(self, l: L) {
        let (plan, chunks) = (self.plan, self.chunks);
        let vectors = plan.step / LANES;
        let mut taps = Vec::new();
        for i in self.range {
            let (row, chunk) = (i / chunks, i % chunks);
            let channels = [chunk, chunk + 1].map(|edge| edge * vectors / chunks * LANES);
            plan.row(l, row, channels, &mut taps);
        }
    }
}

impl Plan<'_> {
    /// Runs every row, in channel chunks where rows alone are too few to share out evenly.
    fn run<L: Lanes>(&self, l: L, batch: usize) {
        let rows = batch * self.target_size[0];
        let vectors = self.step / LANES;
        let chunks = if parallel::threads() > 1 && rows < 16 { vectors.div_ceil(8).clamp(1, 4) } else { 1 };
        let work = self.target_size[1] * self.step * self.weights.kernel.iter().product::<usize>() / chunks;
        parallel::ranges(rows * chunks, ((1 << 17) / work.max(1)).max(1), |range| {
            l.run(Rows { plan: self, range, chunks });
        });
    }

    #[inline(always)]
    fn row<L: Lanes>(&self, l: L, row: usize, channels: [usize; 2], taps: &mut Vec<Tap>) {
        assert!(channels[1] <= self.step);
        let wide = self.target_size[1] >= FEWEST_TARGETS;
        match &self.across {
            Some(across) if wide && SLIDING.contains(&across.taps.len()) => {
                self.slide(l, row, channels, across, taps);
            }
            _ => self.by_runs(l, row, channels, taps),
        }
    }

    /// A row whose targets all move on with their sources: what reaches over the sides is passed over.
    #[inline(always)]
    fn slide<L: Lanes>(&self, l: L, row: usize, channels: [usize; 2], across: &Across, taps: &mut Vec<Tap>) {
        let (image, y) = (row / self.target_size[0], row % self.target_size[0]);
        let ([rows, width], kernel) = (self.source_size, across.taps.len());
        taps.clear();
        for &(source_y, tap_y) in self.rows.of(y) {
            let line = (image * rows + source_y as usize) * width;
            assert!((line + width) * self.step <= self.source.len());
            for (i, &tap_x) in across.taps.iter().enumerate() {
                let pixel = line.wrapping_add_signed(across.lead + i as isize);
                let weight = (tap_y as usize * self.weights.kernel[1] + tap_x) * self.step;
                taps.push(Tap { source: pixel.wrapping_mul(self.step), weight });
            }
        }
        let count = self.target_size[1];
        let tiles = count.div_ceil(8);
        for tile in 0..tiles {
            let (begin, end) = (tile * count / tiles, (tile + 1) * count / tiles);
            let first = begin as isize + across.lead;
            // Of the columns that the tile reads, those inside the map.
            let inside = [(-first).max(0) as usize, (width as isize - first).max(0) as usize];
            let whole = inside[0] == 0 && inside[1] >= end - begin + kernel - 1;
            let at = (row * count + begin) * self.step;
            let (shift, steps) = (begin * self.step, [self.step; 2]);
            let tile = Tile { plan: self, taps, shift, at, steps, channels, inside };
            macro_rules! slide {
                ($($kernel:literal: $($targets:literal)*;)*) => {
                    // Columns outside are not read; otherwise as in `by_runs`.
                    match (kernel, end - begin, whole) {
                        $($(
                            ($kernel, $targets, true) => l.run(Sliding::<$kernel, $targets, false>(tile)),
                            ($kernel, $targets, false) => l.run(Sliding::<$kernel, $targets, true>(tile)),
                        )*)*
                        _ => unreachable!("four targets or more, cut evenly into tiles of up to eight"),
                    }
                };
            }
            slide!(3: 4 5 6 7 8; 5: 4 5 6 7 8; 7: 4 5 6 7 8;);
        }
    }

    #[inline(always)]
    fn by_runs<L: Lanes>(&self, l: L, row: usize, channels: [usize; 2], taps: &mut Vec<Tap>) {
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
            assert!(reach * self.step <= self.source.len());
            let tiles = run.count.div_ceil(8);
            for tile in 0..tiles {
                let (begin, end) = (tile * run.count / tiles, (tile + 1) * run.count / tiles);
                let at = (row * self.target_size[1] + run.first + begin * run.advance) * self.step;
                let shift = begin * run.source_advance * self.step;
                let steps = [run.source_advance * self.step, run.advance * self.step];
                let tile = Tile { plan: self, taps, shift, at, steps, channels, inside: [0; 2] };
                // What the taps read is in bounds by the assert, the weights have a pixel for every tap, and rows and channel
                // chunks keep tasks apart, as `Tile` asks.
                match end - begin {
                    1 => l.run(Apart::<1>(tile)),
                    2 => l.run(Apart::<2>(tile)),
                    3 => l.run(Apart::<3>(tile)),
                    4 => l.run(Apart::<4>(tile)),
                    5 => l.run(Apart::<5>(tile)),
                    6 => l.run(Apart::<6>(tile)),
                    7 => l.run(Apart::<7>(tile)),
                    _ => l.run(Apart::<8>(tile)),
                }
            }
        }
    }
}

/// Up to eight targets. The taps' sources and weights lie inside their slices for all of them (of a sliding tile, those of the columns
/// `inside`), and no other task has these targets.
struct Tile<'a> {
    plan: &'a Plan<'a>,
    taps: &'a [Tap],
    /// Elements from the run's first source to the tile's.
    shift: usize,
    /// The first target's first element.
    at: usize,
    /// Elements from one source, and one target, to the next.
    steps: [usize; 2],
    channels: [usize; 2],
    /// Of a sliding tile, the columns inside the map, counted from the first one it would read.
    inside: [usize; 2],
}

impl Tile<'_> {
    /// # Safety
    /// These targets are this task's alone.
    #[inline(always)]
    unsafe fn finish<L: Lanes, const P: usize>(
        &self,
        l: L,
        channel: usize,
        sums: [[L::Vector; 1]; P],
        part: L::Part,
    ) {
        let mut at = [self.at + channel; P];
        for p in 0..P {
            at[p] += p * self.steps[1];
        }
        // SAFETY: promised by the caller; the bias has a pixel's channels.
        unsafe {
            let bias = l.load_part(self.plan.bias.as_ptr().add(channel), part);
            self.plan.finish.tile(l, sums, [bias], at, part);
        }
    }
}

/// A tile of `P` targets, for taps that come in rows of `K` neighbouring sources while targets move on by one: each source is
/// loaded once a row and serves `K` sums. With `EDGE` some columns lie outside the map.
struct Sliding<'a, const K: usize, const P: usize, const EDGE: bool>(Tile<'a>);

impl<L: Lanes, const K: usize, const P: usize, const EDGE: bool> Kernel<L> for Sliding<'_, K, P, EDGE> {
    #[inline(always)]
    fn run(self, l: L) {
        let tile = self.0;
        let (weights, sources) = (tile.plan.weights.taps.as_ptr(), tile.plan.source.as_ptr());
        let step = tile.plan.step;
        for channel in (tile.channels[0]..tile.channels[1]).step_by(L::WIDTH) {
            let part = l.part(tile.channels[1] - channel);
            let mut sums = [[l.splat(0.0)]; P];
            // SAFETY: inside both slices, and these targets are this task's alone, by the tile's contract.
            unsafe {
                for row in tile.taps.chunks_exact(K) {
                    let mut w = [l.splat(0.0); K];
                    for t in 0..K {
                        w[t] = l.load_part(weights.add(row[t].weight + channel), part);
                    }
                    let source = sources.wrapping_add(row[0].source.wrapping_add(tile.shift + channel));
                    for i in 0..P + K - 1 {
                        if EDGE && !(tile.inside[0] <= i && i < tile.inside[1]) {
                            continue;
                        }
                        let x = l.load_part(source.wrapping_add(i * step), part);
                        for t in 0..K {
                            if i >= t && i - t < P {
                                sums[i - t][0] = l.mul_add(w[t], x, sums[i - t][0]);
                            }
                        }
                    }
                }
                tile.finish(l, channel, sums, part);
            }
        }
    }
}

/// A tile of `P` targets and any taps.
struct Apart<'a, const P: usize>(Tile<'a>);

impl<L: Lanes, const P: usize> Kernel<L> for Apart<'_, P> {
    #[inline(always)]
    fn run(self, l: L) {
        let tile = self.0;
        let (weights, sources) = (tile.plan.weights.taps.as_ptr(), tile.plan.source.as_ptr());
        for channel in (tile.channels[0]..tile.channels[1]).step_by(L::WIDTH) {
            let part = l.part(tile.channels[1] - channel);
            let mut sums = [[l.splat(0.0)]; P];
            // SAFETY: inside both slices, and these targets are this task's alone, by the tile's contract.
            unsafe {
                for tap in tile.taps {
                    let w = l.load_part(weights.add(tap.weight + channel), part);
                    let source = sources.add(tap.source + tile.shift + channel);
                    for p in 0..P {
                        sums[p][0] =
                            l.mul_add(w, l.load_part(source.add(p * tile.steps[0]), part), sums[p][0]);
                    }
                }
                tile.finish(l, channel, sums, part);
            }
        }
    }
}
