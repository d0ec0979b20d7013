//! The pass for AVX2: tiles of six pixels by sixteen channels fill the ring, tiles of up to eight pixels by eight channels empty it.

use std::arch::x86_64::*;
use std::cell::RefCell;
use std::ops::Range;

use super::Layer;
use crate::conv2d::Direction;
use crate::conv2d::finish::activate;
use crate::conv2d::weights::Panels;
use crate::cpu::Avx2;
use crate::disjoint::Disjoint;
use crate::gemm::tile::{Line, PANEL, block_rows, multiply_add};
use crate::layout::{LANES, stride};
use crate::parallel;

/// Pieces of work for each thread, so that the last to finish keeps nobody waiting for long.
const PIECES: usize = 5;
/// Output rows of the smallest piece: each piece makes its first few rows of the ring anew.
const FEWEST_ROWS: usize = 7;

pub(super) fn run(_proof: Avx2, first: Layer<'_>, second: Layer<'_>, x: &[f32], out: &mut [f32]) {
    let g = second.geometry;
    let panels = first.weights.panels(Direction::Forward);
    let job = Job {
        panels,
        taps: second.weights.depthwise().taps(),
        ring_pitch: PANEL * (g.in_w + g.pads[1]).max((g.out_w() - 1) * g.stride[1] + g.kernel[1]),
        first,
        second,
        x,
        out: Disjoint::new(out),
    };
    let (count, rows) = (panels.per_group(), g.out_h());
    let threads = parallel::threads();
    let wanted = if threads == 1 { 1 } else { (PIECES * threads).div_ceil(g.batch * count) };
    let parts = wanted.clamp(1, (rows / FEWEST_ROWS).max(1));
    parallel::each(g.batch * parts * count, |i| {
        let (panel, part, image) = (i % count, i / count % parts, i / count / parts);
        let rows = part * rows / parts..(part + 1) * rows / parts;
        // SAFETY: `run` was given the proof; pieces differ in image, rows or channels.
        RING.with_borrow_mut(|ring| unsafe { job.piece(image, rows, panel, ring) });
    });
}

thread_local! {
    /// Rows of pointwise results, kept between calls.
    static RING: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

struct Job<'a> {
    first: Layer<'a>,
    second: Layer<'a>,
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

impl Job<'_> {
    /// Output rows `rows` of the sixteen channels of `panel`.
    ///
    /// # Safety
    /// The machine has AVX2 and FMA; no other thread has these outputs.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn piece(&self, image: usize, rows: Range<usize>, panel: usize, ring: &mut Vec<Line>) {
        let g = self.second.geometry;
        let [height, _] = g.kernel;
        let pitch = self.ring_pitch;
        ring.clear();
        ring.resize(height * pitch / PANEL, Line::default());
        let slots = ring.as_mut_ptr().cast::<f32>();
        let bias = lanes(self.first.bias, panel * PANEL);
        let mut next = (rows.start * g.stride[0]).saturating_sub(g.pads[0]);
        for y in rows {
            let below = y * g.stride[0] + height;
            while next < g.in_h && next + g.pads[0] < below {
                // SAFETY: the slot is inside the ring and the row inside the map.
                unsafe {
                    let slot = slots.add(next % height * pitch + g.pads[1] * PANEL);
                    self.fill(image * g.in_h + next, panel, &bias, slot);
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
            for channel in (panel * PANEL..stride(g.out_c).min((panel + 1) * PANEL)).step_by(LANES) {
                // SAFETY: promised by the caller; the window's rows are filled.
                unsafe { self.empty(&window, channel % PANEL, Target { at: at + channel, channel }) };
            }
        }
    }

    /// Pointwise results of one row of the map, to `slot`.
    ///
    /// # Safety
    /// The machine has AVX2 and FMA; the row is inside the map and `slot` has room for it.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn fill(&self, row: usize, panel: usize, bias: &[f32; PANEL], slot: *mut f32) {
        let g = self.first.geometry;
        let step = stride(g.in_c);
        let from = self.x[row * g.in_w * step..(row + 1) * g.in_w * step].as_ptr();
        let lines = self.panels.panel(0, panel).as_ptr();
        let mut x = 0;
        while x < g.in_w {
            let rows = block_rows(g.in_w - x);
            // SAFETY: these pixels are in the row, and have their place in the slot.
            unsafe {
                let (from, slot) = (from.add(x * step), slot.add(x * PANEL));
                match rows {
                    6 => self.tile::<6>(from, lines, bias, slot),
                    5 => self.tile::<5>(from, lines, bias, slot),
                    4 => self.tile::<4>(from, lines, bias, slot),
                    3 => self.tile::<3>(from, lines, bias, slot),
                    2 => self.tile::<2>(from, lines, bias, slot),
                    _ => self.tile::<1>(from, lines, bias, slot),
                }
            }
            x += rows;
        }
    }

    /// # Safety
    /// As for `fill`, with `R` pixels from `from` on.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tile<const R: usize>(
        &self,
        from: *const f32,
        lines: *const Line,
        bias: &[f32; PANEL],
        slot: *mut f32,
    ) {
        let g = self.first.geometry;
        // SAFETY: promised by the caller.
        unsafe {
            let mut acc = [[_mm256_setzero_ps(); 2]; R];
            let mut rows = [from; R];
            for r in 0..R {
                rows[r] = from.add(r * stride(g.in_c));
            }
            multiply_add::<R, 2>(&mut acc, rows, lines, g.in_c);
            let bias = [_mm256_loadu_ps(bias.as_ptr()), _mm256_loadu_ps(bias.as_ptr().add(LANES))];
            for r in 0..R {
                for v in 0..2 {
                    acc[r][v] = _mm256_add_ps(acc[r][v], bias[v]);
                }
            }
            activate(&mut acc, self.first.activation);
            for r in 0..R {
                for v in 0..2 {
                    _mm256_store_ps(slot.add(r * PANEL + v * LANES), acc[r][v]);
                }
            }
        }
    }

    /// One row of outputs, eight channels from `lane` of the ring's on.
    ///
    /// # Safety
    /// As for `piece`, with the window's rows filled.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn empty(&self, window: &Window, lane: usize, to: Target) {
        let g = self.second.geometry;
        let (columns, step) = (g.out_w(), g.stride[1]);
        let tiles = columns.div_ceil(8);
        for tile in 0..tiles {
            let (begin, end) = (tile * columns / tiles, (tile + 1) * columns / tiles);
            let from = begin * step * PANEL + lane;
            let to = Target { at: to.at + begin * stride(g.out_c), ..to };
            // SAFETY: promised by the caller.
            unsafe {
                match (end - begin, g.kernel[1], step) {
                    (8, 3, 1) => self.slide::<3, 8>(window, from, to),
                    (7, 3, 1) => self.slide::<3, 7>(window, from, to),
                    (6, 3, 1) => self.slide::<3, 6>(window, from, to),
                    (8, 5, 1) => self.slide::<5, 8>(window, from, to),
                    (7, 5, 1) => self.slide::<5, 7>(window, from, to),
                    (6, 5, 1) => self.slide::<5, 6>(window, from, to),
                    (8, ..) => self.jump::<8>(window, from, to),
                    (7, ..) => self.jump::<7>(window, from, to),
                    (6, ..) => self.jump::<6>(window, from, to),
                    (5, ..) => self.jump::<5>(window, from, to),
                    (4, ..) => self.jump::<4>(window, from, to),
                    _ => unreachable!("tiles of five outputs or more, cut evenly, have four or more"),
                }
            }
        }
    }

    /// `P` outputs that move on by one pixel: each source is loaded once a row and serves `K` sums.
    ///
    /// # Safety
    /// As for `empty`.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn slide<const K: usize, const P: usize>(&self, window: &Window, from: usize, to: Target) {
        let mut sums = [_mm256_setzero_ps(); P];
        for &(row, tap) in &window.rows[..window.count] {
            // SAFETY: inside the ring and the weights.
            unsafe {
                let mut weights = [_mm256_setzero_ps(); K];
                for t in 0..K {
                    weights[t] = self.weight(tap * K + t, to.channel);
                }
                for i in 0..P + K - 1 {
                    let x = _mm256_load_ps(row.add(from + i * PANEL));
                    for t in 0..K {
                        if i >= t && i - t < P {
                            sums[i - t] = _mm256_fmadd_ps(weights[t], x, sums[i - t]);
                        }
                    }
                }
            }
        }
        // SAFETY: promised by the caller.
        unsafe { self.store(sums, to) };
    }

    /// `P` outputs that move on by the stride.
    ///
    /// # Safety
    /// As for `empty`.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn jump<const P: usize>(&self, window: &Window, from: usize, to: Target) {
        let (width, step) = (self.second.geometry.kernel[1], self.second.geometry.stride[1] * PANEL);
        let mut sums = [_mm256_setzero_ps(); P];
        for &(row, tap) in &window.rows[..window.count] {
            for t in 0..width {
                // SAFETY: inside the ring and the weights.
                unsafe {
                    let weight = self.weight(tap * width + t, to.channel);
                    let source = row.add(from + t * PANEL);
                    for p in 0..P {
                        sums[p] = _mm256_fmadd_ps(weight, _mm256_load_ps(source.add(p * step)), sums[p]);
                    }
                }
            }
        }
        // SAFETY: promised by the caller.
        unsafe { self.store(sums, to) };
    }

    /// # Safety
    /// The machine has AVX2; tap and channel are the weights'.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn weight(&self, tap: usize, channel: usize) -> __m256 {
        let at = tap * stride(self.second.geometry.out_c) + channel;
        debug_assert!(at + LANES <= self.taps.len());
        // SAFETY: promised by the caller.
        unsafe { _mm256_loadu_ps(self.taps.as_ptr().add(at)) }
    }

    /// # Safety
    /// The machine has AVX2; no other thread has these outputs.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn store<const P: usize>(&self, sums: [__m256; P], to: Target) {
        let step = stride(self.second.geometry.out_c);
        let out = self.out.pointer(to.at..to.at + (P - 1) * step + LANES);
        let bias: [f32; LANES] = lanes(self.second.bias, to.channel);
        // SAFETY: promised by the caller.
        unsafe {
            let bias = _mm256_loadu_ps(bias.as_ptr());
            let mut tile = [sums];
            for p in 0..P {
                tile[0][p] = _mm256_add_ps(tile[0][p], bias);
            }
            activate(&mut tile, self.second.activation);
            for p in 0..P {
                _mm256_storeu_ps(out.add(p * step), tile[0][p]);
            }
        }
    }
}

/// `N` values from `first` on, zeros past the last.
#[inline]
fn lanes<const N: usize>(values: &[f32], first: usize) -> [f32; N] {
    let mut lanes = [0.0; N];
    let count = N.min(values.len() - first);
    lanes[..count].copy_from_slice(&values[first..first + count]);
    lanes
}
