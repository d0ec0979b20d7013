//! How the direct kernel's work is cut: chunks of pixels that stay in the second-level cache, shares of the output channels, and where
//! each pixel of a chunk reads and writes.
//!
//! A panel's lines are walked in spans of at most [`SPAN`] steps. Each span is summed by itself and added to what waits in a small
//! buffer: short chains of additions round less than long ones. Spans follow from the geometry, so every result is always summed alike.

use std::cell::RefCell;

use super::tile::Chunk;
use super::{Pass, Tap, passes};
use crate::conv2d::finish::Finish;
use crate::conv2d::weights::{Panels, Weights};
use crate::conv2d::{Direction, Geometry};
use crate::epilogue::Epilogue;
use crate::gemm::tile::{Ahead, Line, PANEL, block_rows};
use crate::lanes::Lanes;
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
/// Bytes of weights from which on they are asked for before they are needed.
const FAR_WEIGHTS: usize = 512 << 10;
/// Multiplications below which a second thread costs more than it brings.
const SMALL: usize = 100_000;
/// What beginning a piece of work costs, in steps of one pixel and panel: about a cycle each.
const PIECE: usize = 1_500;
/// Pieces for each thread at most, where nothing but the threads asks for more.
const PIECES: usize = 12;

/// Runs the convolution in `direction`. `from` and `to` are the maps read and written, already checked against the geometry.
pub(crate) fn run<L: Lanes>(
    l: L,
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
    let panels = weights.panels(direction, g.batch * g.out_h() * g.out_w());
    for pass in passes(g, direction) {
        let job = DirectJob {
            spans: spans(&pass.taps, panels.steps),
            pass: &pass,
            panels: &panels,
            from: Map { start: from.as_ptr(), size: in_size, stride: layout::stride(in_c) },
            out_size,
            out_c,
            out_stride: layout::stride(out_c),
            finish,
            pixels: g.batch * pass.grid[0] * pass.grid[1],
            far: size_of_val(from) >= FAR_BYTES,
        };
        job.run(l);
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
pub(super) struct Span {
    pub(super) taps: std::ops::Range<usize>,
    pub(super) first: usize,
    pub(super) steps: usize,
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
pub(super) struct DirectJob<'a> {
    pub(super) pass: &'a Pass,
    pub(super) spans: Vec<Span>,
    pub(super) panels: &'a Panels,
    from: Map,
    out_size: [usize; 2],
    pub(super) out_c: usize,
    pub(super) out_stride: usize,
    pub(super) finish: Finish,
    pixels: usize,
    /// Whether the map read is too large for the caches.
    pub(super) far: bool,
}

/// What one thread needs beside the maps: small, and kept between calls.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) reads: Vec<*const f32>, // [block][tap][row]
    pub(super) inside: Vec<bool>,      // [block][tap]: whether any of its pixels reads the map
    pub(super) writes: Vec<usize>,     // [pixel]
    pub(super) blocks: Vec<usize>,     // rows of each block
    pub(super) sums: Vec<Line>,        // [pixel][two vectors]
    pub(super) stage: Vec<f32>,        // a block's results before their epilogue
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl DirectJob<'_> {
    /// Whether every panel's vectors begin on a multiple of eight channels and end on one or with the last channel.
    pub(super) fn aligned(&self) -> bool {
        self.panels.groups == 1 || self.panels.lanes.is_multiple_of(layout::LANES)
    }

    /// The lines that the first of the columns from panel `panel` on need for `span`, if weights are too many to be in a near
    /// cache; their number stands for what each turn asks for.
    pub(super) fn ahead<L: Lanes>(&self, panel: usize, span: &Span) -> Ahead {
        let all = self.panels;
        let bytes = all.groups * all.per_group() * all.taps * all.steps * size_of::<Line>();
        if bytes < FAR_WEIGHTS || span.taps.is_empty() {
            return Ahead::NONE;
        }
        let first = self.pass.taps[span.taps.start].index * all.steps + span.first;
        let lines = all.panel(panel / all.per_group(), panel % all.per_group());
        let pitch = if 2 * L::WIDTH > PANEL { all.taps * all.steps * PANEL } else { 0 };
        Ahead { next: lines[first..].as_ptr().cast(), pitch, per_turn: span.taps.len() * span.steps }
    }

    fn run<L: Lanes>(&self, l: L) {
        let panels = self.panels.groups * self.panels.per_group();
        if self.pixels == 0 || panels == 0 {
            return;
        }
        let taps = self.pass.taps.len();
        let rows = self.panels.steps * self.panels.groups * 4 * taps.isqrt().max(1);
        let most = CHUNK_BYTES * L::WIDTH / layout::LANES;
        let bytes = if rows <= SHORT_ROW { most / 8 } else { most };
        let least = self.pixels.div_ceil((bytes / rows.max(1)).clamp(4 * L::ROWS, 384));
        let work = self.pixels * panels * (taps * self.panels.steps + 8) * PANEL;
        let split =
            if work < SMALL { Split { chunks: least, shares: 1 } } else { self.split::<L>(least, panels) };
        let task = |i: usize| {
            let (c, s) = (i / split.shares, i % split.shares);
            let pixels = c * self.pixels / split.chunks..(c + 1) * self.pixels / split.chunks;
            let panels = s * panels / split.shares..(s + 1) * panels / split.shares;
            SCRATCH.with_borrow_mut(|scratch| {
                self.address::<L>(pixels, scratch);
                // The addresses are of this job's maps, and tasks differ in pixels or panels, as `Chunk` asks.
                l.run(Chunk { job: self, panels, scratch });
            });
        };
        let pieces = split.chunks * split.shares;
        if work < SMALL { (0..pieces).for_each(task) } else { parallel::each(pieces, task) }
    }

    /// The split into at least `least` chunks that should end first: pieces that come out even among the threads, small enough
    /// that the last to end keeps nobody waiting, large enough to be worth their beginning. Panels are shared out as well, unless
    /// two of them could meet in one byte of bits.
    fn split<L: Lanes>(&self, least: usize, panels: usize) -> Split {
        let threads = parallel::threads();
        let mut best = (usize::MAX, Split { chunks: least, shares: 1 });
        if threads == 1 {
            return best.1;
        }
        let steps = self.pass.taps.len() * self.panels.steps;
        let most = self.pixels.div_ceil(4 * L::ROWS).clamp(least, least.max(PIECES * threads));
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

    /// Fills in where each pixel of a chunk reads for each tap and where it writes, in blocks of up to `L::ROWS` pixels.
    fn address<L: Lanes>(&self, pixels: std::ops::Range<usize>, scratch: &mut Scratch) {
        let Scratch { reads, inside, writes, blocks, sums, .. } = scratch;
        let [rows, columns] = self.pass.grid;
        writes.clear();
        blocks.clear();
        reads.clear();
        inside.clear();
        sums.resize((pixels.len() * (2 * L::WIDTH / PANEL)).max(sums.len()), Line::default());
        let (mut n, within) = (pixels.start / (rows * columns), pixels.start % (rows * columns));
        let (mut y, mut x) = (within / columns, within % columns);
        let mut left = pixels.len();
        while left > 0 {
            let block = block_rows(left, L::ROWS);
            let base = reads.len();
            reads.resize(base + self.pass.taps.len() * L::ROWS, self.panels.zeros.as_ptr());
            let first = inside.len();
            // Zeros times weights that are no numbers would not be zeros.
            inside.resize(first + self.pass.taps.len(), !self.panels.finite);
            let mut row = 0;
            while row < block {
                let run = (block - row).min(columns - x);
                let (reads, inside) = (&mut reads[base..], &mut inside[first..]);
                self.address_run::<L>([n, y, x], row..row + run, reads, inside);
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
    fn address_run<L: Lanes>(
        &self,
        [n, y, x]: [usize; 3],
        block: std::ops::Range<usize>,
        reads: &mut [*const f32],
        inside: &mut [bool],
    ) {
        let [height, width] = self.from.size;
        let step = self.pass.in_step[1];
        let (y, x) = ((y * self.pass.in_step[0]) as isize, (x * step) as isize);
        for ((tap, reads), inside) in self.pass.taps.iter().zip(reads.chunks_exact_mut(L::ROWS)).zip(inside) {
            let (y, x) = ((y + tap.shift[0]) as usize, x + tap.shift[1]);
            if y >= height {
                continue;
            }
            let row = (n * height + y) * width;
            for (i, read) in reads[block.clone()].iter_mut().enumerate() {
                let x = (x + (i * step) as isize) as usize;
                if x < width {
                    *inside = true;
                    // SAFETY: the pixel is inside the map.
                    *read = unsafe { self.from.start.add((row + x) * self.from.stride) };
                }
            }
        }
    }
}
