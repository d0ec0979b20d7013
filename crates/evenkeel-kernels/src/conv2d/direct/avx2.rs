//! The direct kernel's loops for AVX2: chunks of pixels that stay in the second-level cache, panels of sixteen output channels
//! that stay in the first, blocks of six pixels in registers.
//!
//! A panel's lines are walked in spans of at most [`SPAN`] steps. Each span is summed by itself and added to what waits in a small
//! buffer: short chains of additions round less than long ones. Spans follow from the geometry, so every result is always summed alike.

use std::arch::x86_64::*;
use std::cell::RefCell;

use super::{Pass, Tap, passes};
use crate::conv2d::finish::Finish;
use crate::conv2d::weights::{Panels, Weights};
use crate::conv2d::{Direction, Geometry};
use crate::cpu::Avx2;
use crate::epilogue::Epilogue;
use crate::gemm::tile::{Line, PANEL, ROWS, block_rows, multiply_add};
use crate::layout;
use crate::parallel;

/// Steps of a panel that share the first-level cache with the pixels they meet.
const SPAN: usize = 256;
/// Bytes of the map read that one chunk of pixels may touch.
const CHUNK_BYTES: usize = 192 << 10;
/// Bytes of a pixel's row up to which a chunk of them may as well stay in the first-level cache.
const SHORT_ROW: usize = 512;
/// Bytes of the map read from which on pixels are asked for before they are needed; smaller maps are in a cache already.
const FAR_BYTES: usize = 4 << 20;
/// Multiplications below which a second thread costs more than it brings.
const SMALL: usize = 100_000;
/// What beginning a piece of work costs, in steps of one pixel and panel: about a cycle each.
const PIECE: usize = 1_500;
/// Pieces for each thread at most, where nothing but the threads asks for more.
const PIECES: usize = 12;

/// Runs the convolution in `direction`. `from` and `to` are the maps read and written, already checked against the geometry.
pub(crate) fn run(
    _proof: Avx2,
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
        let job = Job {
            spans: spans(&pass.taps, weights.panels(direction).steps),
            pass: &pass,
            panels: weights.panels(direction),
            from: Map { start: from.as_ptr(), size: in_size, stride: layout::stride(in_c) },
            out_size,
            out_c,
            out_stride: layout::stride(out_c),
            finish,
            pixels: g.batch * pass.grid[0] * pass.grid[1],
            far: size_of_val(from) >= FAR_BYTES,
        };
        job.run();
    }
}

/// The map read: batch of `[size[0]][size[1]][stride]`.
#[derive(Clone, Copy)]
struct Map {
    start: *const f32,
    size: [usize; 2],
    stride: usize,
}

// SAFETY: only read, through a slice borrowed for as long as the kernel runs.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

/// A run of taps, and of channels within each, small enough for the first-level cache.
struct Span {
    taps: std::ops::Range<usize>,
    first: usize,
    steps: usize,
}

fn spans(taps: &[Tap], steps: usize) -> Vec<Span> {
    if taps.is_empty() || steps <= SPAN {
        let together = (SPAN / steps.max(1)).max(1);
        let count = taps.len().div_ceil(together).max(1);
        let at = |i: usize| i * taps.len() / count;
        return (0..count).map(|i| Span { taps: at(i)..at(i + 1), first: 0, steps }).collect();
    }
    let pieces = steps.div_ceil(SPAN);
    let at = |i: usize| i * steps / pieces;
    (0..taps.len() * pieces)
        .map(|i| (i / pieces, i % pieces))
        .map(|(tap, i)| Span { taps: tap..tap + 1, first: at(i), steps: at(i + 1) - at(i) })
        .collect()
}

/// How many chunks of pixels the work is cut into, and how many shares of the panels each of those.
#[derive(Clone, Copy)]
struct Split {
    chunks: usize,
    shares: usize,
}

/// One pass over one batch.
struct Job<'a> {
    pass: &'a Pass,
    spans: Vec<Span>,
    panels: &'a Panels,
    from: Map,
    out_size: [usize; 2],
    out_c: usize,
    out_stride: usize,
    finish: Finish,
    pixels: usize,
    /// Whether the map read is too large for the caches.
    far: bool,
}

/// What one thread needs beside the maps: small, and kept between calls.
#[derive(Default)]
struct Scratch {
    reads: Vec<[*const f32; ROWS]>, // [block][tap]
    writes: Vec<usize>,             // [pixel]
    blocks: Vec<usize>,             // rows of each block
    sums: Vec<Line>,                // [pixel]
    stage: Vec<f32>,                // a block's results before their epilogue
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Job<'_> {
    /// Whether every panel's vectors begin on a multiple of eight channels and end on one or with the last channel.
    fn aligned(&self) -> bool {
        self.panels.groups == 1 || self.panels.lanes.is_multiple_of(layout::LANES)
    }

    fn run(&self) {
        let panels = self.panels.groups * self.panels.per_group();
        if self.pixels == 0 || panels == 0 {
            return;
        }
        let taps = self.pass.taps.len();
        let rows = self.panels.steps * self.panels.groups * 4 * taps.isqrt().max(1);
        let bytes = if rows <= SHORT_ROW { CHUNK_BYTES / 8 } else { CHUNK_BYTES };
        let least = self.pixels.div_ceil((bytes / rows.max(1)).clamp(4 * ROWS, 64 * ROWS));
        let work = self.pixels * panels * (taps * self.panels.steps + 8) * PANEL;
        let split = if work < SMALL { Split { chunks: least, shares: 1 } } else { self.split(least, panels) };
        let task = |i: usize| {
            let (c, s) = (i / split.shares, i % split.shares);
            let pixels = c * self.pixels / split.chunks..(c + 1) * self.pixels / split.chunks;
            let panels = s * panels / split.shares..(s + 1) * panels / split.shares;
            SCRATCH.with_borrow_mut(|scratch| {
                self.address(pixels, scratch);
                // SAFETY: `run` was given the proof; the addresses are of this job's maps.
                unsafe {
                    if self.aligned() { self.chunk(panels, scratch) } else { self.chunk_staged(scratch) }
                }
            });
        };
        let pieces = split.chunks * split.shares;
        if work < SMALL { (0..pieces).for_each(task) } else { parallel::each(pieces, task) }
    }

    /// The split into at least `least` chunks that should end first: pieces that come out even among the threads, small enough
    /// that the last to end keeps nobody waiting, large enough to be worth their beginning. Panels are shared out as well, unless
    /// two of them could meet in one byte of bits.
    fn split(&self, least: usize, panels: usize) -> Split {
        let threads = parallel::threads();
        let mut best = (usize::MAX, Split { chunks: least, shares: 1 });
        if threads == 1 {
            return best.1;
        }
        let steps = self.pass.taps.len() * self.panels.steps;
        let most = self.pixels.div_ceil(4 * ROWS).clamp(least, least.max(PIECES * threads));
        for chunks in least..=most {
            let most = if self.aligned() { (PIECES * threads).div_ceil(chunks).min(panels) } else { 1 };
            for shares in 1..=most {
                let piece = self.pixels.div_ceil(chunks) * panels.div_ceil(shares) * steps;
                let rounds = (chunks * shares).div_ceil(threads);
                let time = rounds * (piece + PIECE) + piece / 2;
                if time < best.0 {
                    best = (time, Split { chunks, shares });
                }
            }
        }
        best.1
    }

    /// Fills in where each pixel of a chunk reads for each tap and where it writes, in blocks of up to six pixels.
    fn address(&self, pixels: std::ops::Range<usize>, scratch: &mut Scratch) {
        let Scratch { reads, writes, blocks, sums, .. } = scratch;
        let [rows, columns] = self.pass.grid;
        writes.clear();
        blocks.clear();
        reads.clear();
        sums.resize(pixels.len().max(sums.len()), Line::default());
        let (mut n, within) = (pixels.start / (rows * columns), pixels.start % (rows * columns));
        let (mut y, mut x) = (within / columns, within % columns);
        let mut left = pixels.len();
        while left > 0 {
            let block = block_rows(left);
            let base = reads.len();
            reads.resize(base + self.pass.taps.len(), [self.panels.zeros.as_ptr(); ROWS]);
            let mut row = 0;
            while row < block {
                let run = (block - row).min(columns - x);
                self.address_run([n, y, x], row..row + run, &mut reads[base..]);
                let out_y = self.pass.first[0] + y * self.pass.step[0];
                let out_x = self.pass.first[1] + x * self.pass.step[1];
                let first = (n * self.out_size[0] + out_y) * self.out_size[1] + out_x;
                writes.extend((0..run).map(|i| (first + i * self.pass.step[1]) * self.out_stride));
                (row, x) = (row + run, x + run);
                if x == columns {
                    (x, y) = (0, y + 1);
                }
                if y == rows {
                    (y, n) = (0, n + 1);
                }
            }
            blocks.push(block);
            left -= block;
        }
    }

    /// Where the pixels of `block`, a run of lattice row `y` of image `n` that starts at column `x`, read for each tap.
    #[inline]
    fn address_run(
        &self,
        [n, y, x]: [usize; 3],
        block: std::ops::Range<usize>,
        reads: &mut [[*const f32; ROWS]],
    ) {
        let [height, width] = self.from.size;
        let step = self.pass.in_step[1];
        let (y, x) = ((y * self.pass.in_step[0]) as isize, (x * step) as isize);
        for (tap, reads) in self.pass.taps.iter().zip(reads) {
            let (y, x) = ((y + tap.shift[0]) as usize, x + tap.shift[1]);
            if y >= height {
                continue;
            }
            let row = (n * height + y) * width;
            for (i, read) in reads[block.clone()].iter_mut().enumerate() {
                let x = (x + (i * step) as isize) as usize;
                if x < width {
                    // SAFETY: the pixel is inside the map.
                    *read = unsafe { self.from.start.add((row + x) * self.from.stride) };
                }
            }
        }
    }

    /// # Safety
    /// The machine has AVX2 and FMA; `scratch` holds addresses of this job's maps; no other thread works on the same pixels and
    /// panels; the panels are aligned.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn chunk(&self, panels: std::ops::Range<usize>, scratch: &mut Scratch) {
        let first = panels.start;
        for panel in panels {
            let fresh = self.far && panel == first;
            let place = self.place(panel);
            // SAFETY: these channels are the output's.
            let bias = unsafe { self.finish.bias(place.channel, place.lanes) };
            for (i, span) in self.spans.iter().enumerate() {
                let panel = Panel {
                    shift: place.shift + span.first,
                    starts: i == 0,
                    ends: i + 1 == self.spans.len(),
                    bias,
                    fresh,
                    ..place
                };
                // SAFETY: promised by the caller.
                unsafe { self.span(&panel, span, scratch) };
            }
        }
    }

    /// Where panel `panel` is and what it makes.
    fn place(&self, panel: usize) -> Panel {
        let (group, panel) = (panel / self.panels.per_group(), panel % self.panels.per_group());
        Panel {
            lines: self.panels.panel(group, panel).as_ptr(),
            shift: group * self.panels.steps,
            starts: true,
            ends: true,
            channel: group * self.panels.lanes + panel * PANEL,
            lanes: PANEL.min(self.panels.lanes - panel * PANEL),
            bias: [0.0; PANEL],
            stage: None,
            fresh: false,
        }
    }

    /// As `chunk` for groups that begin anywhere: a block's results are gathered, group after group, and finished together.
    ///
    /// # Safety
    /// As for `chunk`, with no other thread at work on the same pixels.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn chunk_staged(&self, scratch: &mut Scratch) {
        let Scratch { reads, writes, blocks, sums, stage } = scratch;
        // A panel writes whole vectors; what passes its last lane is overwritten by the next panel or is padding.
        let pitch = self.out_stride + PANEL;
        stage.resize(ROWS * pitch, 0.0);
        let taps = self.pass.taps.len();
        let (mut pixel, mut read) = (0, 0);
        for &rows in &*blocks {
            let block = Block {
                reads: &reads[read..read + taps],
                taps: &self.pass.taps,
                steps: self.panels.steps,
                tap_lines: self.panels.steps,
                first: 0,
                writes: &writes[pixel..pixel + rows],
            };
            for panel in 0..self.panels.groups * self.panels.per_group() {
                let panel = Panel { stage: Some((stage.as_mut_ptr(), pitch)), ..self.place(panel) };
                // SAFETY: promised by the caller.
                unsafe { block.dispatch(&panel, &self.finish, &mut sums[pixel..pixel + rows]) };
            }
            for channel in (0..self.out_c).step_by(layout::LANES) {
                let lanes = layout::LANES.min(self.out_c - channel);
                for (row, &at) in block.writes.iter().enumerate() {
                    // SAFETY: the stage holds this row's results, and these channels are the output's.
                    unsafe {
                        let bias: [f32; layout::LANES] = self.finish.bias(channel, lanes);
                        let result = _mm256_loadu_ps(stage.as_ptr().add(row * pitch + channel));
                        self.finish.tile([[result]], [_mm256_loadu_ps(bias.as_ptr())], [at + channel]);
                    }
                }
            }
            pixel += rows;
            read += taps;
        }
    }

    /// # Safety
    /// As for `chunk`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn span(&self, panel: &Panel, span: &Span, scratch: &mut Scratch) {
        let (mut pixel, mut reads) = (0, 0);
        for &rows in &scratch.blocks {
            let block = Block {
                reads: &scratch.reads[reads + span.taps.start..reads + span.taps.end],
                taps: &self.pass.taps[span.taps.clone()],
                steps: span.steps,
                tap_lines: self.panels.steps,
                first: span.first,
                writes: &scratch.writes[pixel..pixel + rows],
            };
            let sums = &mut scratch.sums[pixel..pixel + rows];
            pixel += rows;
            reads += self.pass.taps.len();
            if let (true, Some(next)) =
                (panel.fresh, scratch.reads.get(reads + span.taps.end.wrapping_sub(1)))
            {
                expect(next, panel.shift, span.steps);
            }
            // SAFETY: promised by the caller.
            unsafe { block.dispatch(panel, &self.finish, sums) };
        }
    }
}

/// Asks for the pixels that the next block reads for its last tap; those of its other taps were read before. A row of pixels is read a few bytes of each at
/// a time, which the hardware does not foresee.
#[inline]
fn expect(pixels: &[*const f32; ROWS], shift: usize, steps: usize) {
    for pixel in pixels {
        for line in (shift..shift + steps).step_by(16) {
            // SAFETY: a prefetch of any address is harmless.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(pixel.wrapping_add(line).cast()) };
        }
    }
}

/// A panel's place and its part in this span.
struct Panel {
    lines: *const Line,
    /// Channels before the first one read, in the pixel.
    shift: usize,
    /// Whether the sums start, and end, with this span.
    starts: bool,
    ends: bool,
    channel: usize,
    lanes: usize,
    bias: [f32; PANEL],
    /// Whether it is the first to read the chunk's pixels, and these are far away.
    fresh: bool,
    /// Where results wait for their epilogue, and elements from one row to the next; none if they get it at once.
    stage: Option<(*mut f32, usize)>,
}

/// Up to six pixels and the taps of one span.
struct Block<'a> {
    reads: &'a [[*const f32; ROWS]],
    taps: &'a [Tap],
    steps: usize,
    tap_lines: usize,
    first: usize,
    writes: &'a [usize],
}

impl Block<'_> {
    /// Runs the tile of the block's rows and the panel's vectors.
    ///
    /// # Safety
    /// As for `run`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn dispatch(&self, panel: &Panel, finish: &Finish, sums: &mut [Line]) {
        // SAFETY: promised by the caller.
        unsafe {
            match (panel.lanes > 8, self.writes.len()) {
                (true, 6) => self.run::<6, 2>(panel, finish, sums),
                (true, 5) => self.run::<5, 2>(panel, finish, sums),
                (true, 4) => self.run::<4, 2>(panel, finish, sums),
                (true, 3) => self.run::<3, 2>(panel, finish, sums),
                (true, 2) => self.run::<2, 2>(panel, finish, sums),
                (true, _) => self.run::<1, 2>(panel, finish, sums),
                (false, 6) => self.run::<6, 1>(panel, finish, sums),
                (false, 5) => self.run::<5, 1>(panel, finish, sums),
                (false, 4) => self.run::<4, 1>(panel, finish, sums),
                (false, 3) => self.run::<3, 1>(panel, finish, sums),
                (false, 2) => self.run::<2, 1>(panel, finish, sums),
                (false, _) => self.run::<1, 1>(panel, finish, sums),
            }
        }
    }

    /// # Safety
    /// The machine has AVX2 and FMA; `R` pixels and `V` vectors of the panel are in range.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn run<const R: usize, const V: usize>(&self, panel: &Panel, finish: &Finish, sums: &mut [Line]) {
        // SAFETY: the addresses are of whole pixels, the panel has `tap_lines` lines for each tap, and `writes` are places of
        // whole pixels in the map written.
        unsafe {
            let mut acc = [[_mm256_setzero_ps(); V]; R];
            if panel.ends && panel.stage.is_none() {
                for r in 0..R {
                    finish.expect::<V>(self.writes[r] + panel.channel);
                }
            }
            for (tap, reads) in self.taps.iter().zip(self.reads) {
                let mut rows = [std::ptr::null(); R];
                for r in 0..R {
                    rows[r] = reads[r].add(panel.shift);
                }
                let lines = panel.lines.add(tap.index * self.tap_lines + self.first);
                multiply_add::<R, V>(&mut acc, rows, lines, self.steps);
            }
            if !panel.starts {
                for r in 0..R {
                    for v in 0..V {
                        acc[r][v] = _mm256_add_ps(_mm256_load_ps(sums[r].0.as_ptr().add(8 * v)), acc[r][v]);
                    }
                }
            }
            if !panel.ends {
                for r in 0..R {
                    for v in 0..V {
                        _mm256_store_ps(sums[r].0.as_mut_ptr().add(8 * v), acc[r][v]);
                    }
                }
            } else if let Some((stage, pitch)) = panel.stage {
                for r in 0..R {
                    for v in 0..V {
                        _mm256_storeu_ps(stage.add(r * pitch + panel.channel + 8 * v), acc[r][v]);
                    }
                }
            } else {
                let (mut bias, mut at) = ([_mm256_setzero_ps(); V], [0; R]);
                for v in 0..V {
                    bias[v] = _mm256_loadu_ps(panel.bias.as_ptr().add(8 * v));
                }
                for r in 0..R {
                    at[r] = self.writes[r] + panel.channel;
                }
                finish.tile(acc, bias, at);
            }
        }
    }
}
