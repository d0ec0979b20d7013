//! The pass: register tiles of a few pixels by one column group fill the ring, tiles of up to eight pixels by one vector of channels
//! empty it.
//!
//! A column group is two vectors of channels. Its ring has a row for each row of the depthwise kernel and stays in a near cache.

use std::cell::RefCell;
use std::ops::Range;

use super::Layer;
use crate::conv2d::Direction;
use crate::conv2d::finish::{activate, bend};
use crate::conv2d::weights::Panels;
use crate::disjoint::Disjoint;
use crate::gemm::tile::{Ahead, Line, PANEL, block_rows, columns, multiply_add};
use crate::lanes::{Kernel, Lanes};
use crate::layout::{LANES, stride};
use crate::parallel;

/// Pieces of work for each thread, so that the last to finish keeps nobody waiting for long.
const PIECES: usize = 5;
/// Output rows of the smallest piece: each piece makes its first few rows of the ring anew.
const FEWEST_ROWS: usize = 7;

pub(super) fn run<L: Lanes>(l: L, first: Layer<'_>, second: Layer<'_>, x: &[f32], out: &mut [f32]) {
    let g = second.geometry;
    let panels = &*first.weights.panels(Direction::Forward, g.batch * g.in_h * g.in_w);
    let job = PairJob {
        panels,
        taps: second.weights.depthwise().taps(),
        ring_pitch: 2 * L::WIDTH * (g.in_w + g.pads[1]).max((g.out_w() - 1) * g.stride[1] + g.kernel[1]),
        biases: [padded(first.bias), padded(second.bias)],
        first,
        second,
        x,
        out: Disjoint::new(out),
    };
    let (count, rows) = (panels.per_group().div_ceil(2 * L::WIDTH / PANEL), g.out_h());
    let threads = parallel::threads();
    let wanted = if threads == 1 { 1 } else { (PIECES * threads).div_ceil(g.batch * count) };
    let parts = wanted.clamp(1, (rows / FEWEST_ROWS).max(1));
    parallel::each(g.batch * parts * count, |i| {
        let (group, part, image) = (i % count, i / count % parts, i / count / parts);
        let rows = part * rows / parts..(part + 1) * rows / parts;
        // Pieces differ in image, rows or channels, as `Piece` asks.
        RING.with_borrow_mut(|ring| l.run(Piece { job: &job, image, rows, group, ring }));
    });
}

thread_local! {
    /// Rows of pointwise results, kept between calls.
    static RING: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

struct PairJob<'a> {
    first: Layer<'a>,
    second: Layer<'a>,
    biases: [Vec<f32>; 2],
    panels: &'a Panels,
    /// The depthwise weights: `[tap][stride(channels)]`.
    taps: &'a [f32],
    /// Elements from one row of the ring to the next: its pixels, and zeros where the kernel reaches over the sides.
    ring_pitch: usize,
    x: &'a [f32],
    out: Disjoint<'a, f32>,
}

/// The rows of the ring that one output row reads: where each begins, and its row of the kernel.
struct Window {
    rows: [(*const f32, usize); 5],
    count: usize,
}

/// Where a row of outputs goes, and the channels it has.
#[derive(Clone, Copy)]
struct Target {
    at: usize,
    channel: usize,
}

/// Output rows `rows` of the channels of column group `group`, which no other thread has.
struct Piece<'a> {
    job: &'a PairJob<'a>,
    image: usize,
    rows: Range<usize>,
    group: usize,
    ring: &'a mut Vec<Line>,
}

impl<L: Lanes> Kernel<L> for Piece<'_> {
    #[inline(always)]
    fn run(self, l: L) {
        let Piece { job, image, rows, group, ring } = self;
        let g = job.second.geometry;
        let [height, _] = g.kernel;
        let (pitch, width) = (job.ring_pitch, 2 * L::WIDTH);
        ring.clear();
        ring.resize(height * pitch / PANEL, Line::default());
        let slots = ring.as_mut_ptr().cast::<f32>();
        let channels = group * width..stride(g.out_c).min((group + 1) * width);
        let mut next = (rows.start * g.stride[0]).saturating_sub(g.pads[0]);
        for y in rows {
            let below = y * g.stride[0] + height;
            while next < g.in_h && next + g.pads[0] < below {
                // SAFETY: the slot is inside the ring and the row inside the map.
                unsafe {
                    let slot = slots.add(next % height * pitch + g.pads[1] * width);
                    let row = [image * g.in_h + next, image * g.out_h() + y];
                    job.fill(l, row, channels.start, slot);
                }
                next += 1;
            }
            let mut window = Window { rows: [(slots.cast_const(), 0); 5], count: 0 };
            for tap in 0..height {
                let row = y * g.stride[0] + tap;
                if row >= g.pads[0] && row - g.pads[0] < g.in_h {
                    let slot = (row - g.pads[0]) % height * pitch;
                    window.rows[window.count] = (slots.wrapping_add(slot).cast_const(), tap);
                    window.count += 1;
                }
            }
            let at = (image * g.out_h() + y) * g.out_w() * stride(g.out_c);
            for channel in channels.clone().step_by(L::WIDTH) {
                // SAFETY: the window's rows are filled, and the outputs this piece's alone.
                unsafe { job.empty(l, &window, channel % width, Target { at: at + channel, channel }) };
            }
        }
    }
}

impl PairJob<'_> {
    /// Pointwise results of row `row` of the map, two vectors of channels from `channel` on, to `slot`; meanwhile the cache lines of
    /// row `next` of the output are asked for.
    ///
    /// # Safety
    /// The row is inside the map and `slot` has room for it.
    #[inline(always)]
    unsafe fn fill<L: Lanes>(&self, l: L, [row, next]: [usize; 2], channel: usize, slot: *mut f32) {
        let g = self.first.geometry;
        let step = stride(g.in_c);
        let from = self.x[row * g.in_w * step..(row + 1) * g.in_w * step].as_ptr();
        let vectors = (g.out_c - channel).div_ceil(L::WIDTH).min(2);
        let (out_w, out_step) = (self.second.geometry.out_w(), stride(g.out_c));
        let out = self.out.pointer(0..0).wrapping_add(next * out_w * out_step + channel);
        let mut x = 0;
        while x < g.in_w {
            let rows = block_rows(g.in_w - x, L::ROWS);
            for pixel in x..(x + rows).min(out_w) {
                let to = out.wrapping_add(pixel * out_step);
                l.prefetch_near(to);
                l.prefetch_near(to.wrapping_add(2 * L::WIDTH - 1));
            }
            let fill = Fill {
                layer: self.first,
                bias: &self.biases[0],
                panels: self.panels,
                channel,
                from: from.wrapping_add(x * step),
                slot: slot.wrapping_add(x * 2 * L::WIDTH),
            };
            // These pixels are in the row, and have their place in the slot, as `Fill` asks.
            match (rows, vectors) {
                (1, 2) => l.run(FillTile::<1, 2>(fill)),
                (2, 2) => l.run(FillTile::<2, 2>(fill)),
                (3, 2) => l.run(FillTile::<3, 2>(fill)),
                (4, 2) => l.run(FillTile::<4, 2>(fill)),
                (5, 2) => l.run(FillTile::<5, 2>(fill)),
                (6, 2) => l.run(FillTile::<6, 2>(fill)),
                (7, 2) => l.run(FillTile::<7, 2>(fill)),
                (_, 2) => l.run(FillTile::<8, 2>(fill)),
                (1, _) => l.run(FillTile::<1, 1>(fill)),
                (2, _) => l.run(FillTile::<2, 1>(fill)),
                (3, _) => l.run(FillTile::<3, 1>(fill)),
                (4, _) => l.run(FillTile::<4, 1>(fill)),
                (5, _) => l.run(FillTile::<5, 1>(fill)),
                (6, _) => l.run(FillTile::<6, 1>(fill)),
                (7, _) => l.run(FillTile::<7, 1>(fill)),
                _ => l.run(FillTile::<8, 1>(fill)),
            }
            x += rows;
        }
    }

    /// One row of outputs, one vector of channels from `lane` of the ring's on.
    ///
    /// # Safety
    /// The window's rows are filled; no other thread has these outputs.
    #[inline(always)]
    unsafe fn empty<L: Lanes>(&self, l: L, window: &Window, lane: usize, to: Target) {
        let g = self.second.geometry;
        let (columns, step) = (g.out_w(), g.stride[1]);
        let tiles = columns.div_ceil(8);
        for tile in 0..tiles {
            let (begin, end) = (tile * columns / tiles, (tile + 1) * columns / tiles);
            let from = begin * step * 2 * L::WIDTH + lane;
            let to = Target { at: to.at + begin * stride(g.out_c), ..to };
            let part = Empty { job: self, window, from, to };
            match (end - begin, g.kernel[1], step) {
                (8, 3, 1) => l.run(Slide::<3, 8>(part)),
                (7, 3, 1) => l.run(Slide::<3, 7>(part)),
                (6, 3, 1) => l.run(Slide::<3, 6>(part)),
                (8, 5, 1) => l.run(Slide::<5, 8>(part)),
                (7, 5, 1) => l.run(Slide::<5, 7>(part)),
                (6, 5, 1) => l.run(Slide::<5, 6>(part)),
                (8, ..) => l.run(Jump::<8>(part)),
                (7, ..) => l.run(Jump::<7>(part)),
                (6, ..) => l.run(Jump::<6>(part)),
                (5, ..) => l.run(Jump::<5>(part)),
                (4, ..) => l.run(Jump::<4>(part)),
                _ => unreachable!("tiles of five outputs or more, cut evenly, have four or more"),
            }
        }
    }
}

/// Some pixels of a row, their pointwise results from `channel` on, and the place for these in the ring. All must be there.
struct Fill<'a> {
    layer: Layer<'a>,
    bias: &'a [f32],
    panels: &'a Panels,
    channel: usize,
    from: *const f32,
    slot: *mut f32,
}

/// `R` pixels by `V` vectors of a [`Fill`].
struct FillTile<'a, const R: usize, const V: usize>(Fill<'a>);

impl<L: Lanes, const R: usize, const V: usize> Kernel<L> for FillTile<'_, R, V> {
    #[inline(always)]
    fn run(self, l: L) {
        let Fill { layer, bias, panels, channel, from, slot } = self.0;
        let g = layer.geometry;
        // SAFETY: whoever makes a `Fill` promises it.
        unsafe {
            let mut acc = [[l.splat(0.0); V]; R];
            let mut rows = [from; R];
            for r in 0..R {
                rows[r] = from.add(r * stride(g.in_c));
            }
            let lines = panels.panel(0, channel / PANEL).as_ptr();
            multiply_add(l, &mut acc, rows, columns::<L, V>(lines, g.in_c * PANEL), g.in_c, &mut {
                Ahead::NONE
            });
            for v in 0..V {
                let bias = l.load(bias.as_ptr().add(channel + v * L::WIDTH));
                for r in 0..R {
                    acc[r][v] = l.add(acc[r][v], bias);
                }
            }
            activate(l, layer.activation, acc.as_flattened_mut());
            if let Some(function) = layer.smooth {
                bend(l, function, acc.as_flattened_mut());
            }
            for r in 0..R {
                for v in 0..V {
                    l.store(slot.add((2 * r + v) * L::WIDTH), acc[r][v]);
                }
            }
        }
    }
}

/// Some outputs of a row: the window they read, where they begin in it, and where they go. The window's rows are filled, and the
/// outputs are this thread's alone.
#[derive(Clone, Copy)]
struct Empty<'a> {
    job: &'a PairJob<'a>,
    window: &'a Window,
    from: usize,
    to: Target,
}

/// `P` outputs that move on by one pixel: each source is loaded once a row and serves `K` sums.
struct Slide<'a, const K: usize, const P: usize>(Empty<'a>);

impl<L: Lanes, const K: usize, const P: usize> Kernel<L> for Slide<'_, K, P> {
    #[inline(always)]
    fn run(self, l: L) {
        let Empty { window, from, .. } = self.0;
        let mut sums = [l.splat(0.0); P];
        for &(row, tap) in &window.rows[..window.count] {
            let mut weights = [l.splat(0.0); K];
            for t in 0..K {
                weights[t] = self.0.weight(l, tap * K + t);
            }
            for i in 0..P + K - 1 {
                // SAFETY: inside the ring.
                let x = unsafe { l.load(row.add(from + i * 2 * L::WIDTH)) };
                for t in 0..K {
                    if i >= t && i - t < P {
                        sums[i - t] = l.mul_add(weights[t], x, sums[i - t]);
                    }
                }
            }
        }
        self.0.store(l, sums);
    }
}

/// `P` outputs that move on by the stride.
struct Jump<'a, const P: usize>(Empty<'a>);

impl<L: Lanes, const P: usize> Kernel<L> for Jump<'_, P> {
    #[inline(always)]
    fn run(self, l: L) {
        let Empty { job, window, from, .. } = self.0;
        let (width, step) = (job.second.geometry.kernel[1], job.second.geometry.stride[1] * 2 * L::WIDTH);
        let mut sums = [l.splat(0.0); P];
        for &(row, tap) in &window.rows[..window.count] {
            for t in 0..width {
                let weight = self.0.weight(l, tap * width + t);
                for p in 0..P {
                    // SAFETY: inside the ring.
                    let x = unsafe { l.load(row.add(from + t * 2 * L::WIDTH + p * step)) };
                    sums[p] = l.mul_add(weight, x, sums[p]);
                }
            }
        }
        self.0.store(l, sums);
    }
}

impl Empty<'_> {
    /// The lanes of the vector of channels that are there.
    #[inline(always)]
    fn part<L: Lanes>(&self, l: L) -> L::Part {
        l.part(stride(self.job.second.geometry.out_c) - self.to.channel)
    }

    #[inline(always)]
    fn weight<L: Lanes>(&self, l: L, tap: usize) -> L::Vector {
        let at = tap * stride(self.job.second.geometry.out_c) + self.to.channel;
        debug_assert!(at + LANES <= self.job.taps.len());
        // SAFETY: tap and channel are the weights'.
        unsafe { l.load_part(self.job.taps.as_ptr().add(at), self.part(l)) }
    }

    #[inline(always)]
    fn store<L: Lanes, const P: usize>(&self, l: L, mut sums: [L::Vector; P]) {
        let (second, to) = (self.job.second, self.to);
        let step = stride(second.geometry.out_c);
        let out = self.job.out.pointer(to.at..to.at + (P - 1) * step + LANES);
        // SAFETY: the bias has whole column groups.
        let bias = unsafe { l.load(self.job.biases[1].as_ptr().add(to.channel)) };
        for p in 0..P {
            sums[p] = l.add(sums[p], bias);
        }
        activate(l, second.activation, &mut sums);
        if let Some(function) = second.smooth {
            bend(l, function, &mut sums);
        }
        for p in 0..P {
            // SAFETY: these outputs are this thread's alone.
            unsafe { l.store_part(out.add(p * step), sums[p], self.part(l)) };
        }
    }
}

/// A bias with zeros to fill its last column group.
fn padded(bias: &[f32]) -> Vec<f32> {
    let mut padded = bias.to_vec();
    padded.resize(bias.len().next_multiple_of(2 * PANEL), 0.0);
    padded
}
