//! The direct kernel's loops over one chunk: one or two vectors of output channels at a time, whose weights stay in the first-level
//! cache, by blocks of a few pixels in registers.
//!
//! Each result is one chain of multiply-adds a span, whatever the block it falls into.

use std::ops::Range;

use super::Tap;
use super::job::{DirectJob, Scratch, Span};
use crate::conv2d::finish::Finish;
use crate::gemm::tile::{Ahead, Line, PANEL, columns, multiply_add};
use crate::lanes::{Kernel, Lanes};
use crate::layout::LANES;

/// Some panels of the chunk of pixels that `scratch` holds the addresses of. No other thread may work on the same pixels and panels.
pub(super) struct Chunk<'a, 'b> {
    pub(super) job: &'a DirectJob<'b>,
    pub(super) panels: Range<usize>,
    pub(super) scratch: &'a mut Scratch,
}

impl<L: Lanes> Kernel<L> for Chunk<'_, '_> {
    #[inline(always)]
    fn run(self, l: L) {
        // SAFETY: whoever makes a `Chunk` promises it.
        unsafe {
            if self.job.aligned() {
                self.direct(l);
            } else {
                self.staged(l);
            }
        }
    }
}

impl Chunk<'_, '_> {
    /// # Safety
    /// As for the chunk; the panels are aligned.
    #[inline(always)]
    unsafe fn direct<L: Lanes>(self, l: L) {
        let Chunk { job, panels, scratch } = self;
        let mut panel = panels.start;
        while panel < panels.end {
            let place = Columns::new::<L>(job, panel, panels.end);
            let fresh = job.far && panel == panels.start;
            // SAFETY: these channels are the output's.
            let bias = unsafe { job.finish.bias(place.channel, place.lanes) };
            for (i, span) in job.spans.iter().enumerate() {
                let columns = Columns {
                    shift: place.shift + span.first,
                    starts: i == 0,
                    ends: i + 1 == job.spans.len(),
                    bias,
                    fresh,
                    ..place
                };
                let (next, after) = match job.spans.get(i + 1) {
                    Some(span) => (panel, span),
                    None => (panel + place.panels, &job.spans[0]),
                };
                let ahead = if next < panels.end { job.ahead::<L>(next, after) } else { Ahead::NONE };
                // SAFETY: promised by the caller.
                unsafe { walk(l, job, &columns, span, ahead, scratch) };
            }
            panel += place.panels;
        }
    }

    /// As `direct` for groups that begin anywhere: a block's results are gathered, group after group, and finished together.
    ///
    /// # Safety
    /// As for the chunk, with no other thread at work on the same pixels.
    #[inline(always)]
    unsafe fn staged<L: Lanes>(self, l: L) {
        let Chunk { job, scratch, .. } = self;
        let Scratch { reads, inside, writes, blocks, sums, stage } = scratch;
        // Columns are written in whole vectors; what passes the last lane is overwritten by the next columns or is padding.
        let pitch = job.out_stride + 2 * PANEL;
        stage.resize(L::ROWS * pitch, 0.0);
        let taps = job.pass.taps.len();
        let panels = job.panels.groups * job.panels.per_group();
        let (mut pixel, mut read) = (0, 0);
        for &rows in &*blocks {
            let block = Block {
                reads: &reads[read * L::ROWS..(read + taps) * L::ROWS],
                inside: &inside[read..read + taps],
                taps: &job.pass.taps,
                steps: job.panels.steps,
                tap_lines: job.panels.steps,
                first: 0,
                writes: &writes[pixel..pixel + rows],
                sums: sums.as_mut_ptr().cast(),
                ahead: Ahead::NONE,
            };
            let mut panel = 0;
            while panel < panels {
                let place = Columns::new::<L>(job, panel, panels);
                let columns = Columns { stage: Some((stage.as_mut_ptr(), pitch)), ..place };
                // SAFETY: promised by the caller; one span needs no sums.
                unsafe { block.dispatch(l, &columns, &job.finish) };
                panel += place.panels;
            }
            for channel in (0..job.out_c).step_by(L::WIDTH) {
                let part = l.part(job.out_stride - channel);
                // SAFETY: the stage holds these rows' results, and these channels are the output's.
                unsafe {
                    let bias: [f32; PANEL] = job.finish.bias(channel, L::WIDTH.min(job.out_c - channel));
                    let bias = l.load(bias.as_ptr());
                    for (row, &at) in block.writes.iter().enumerate() {
                        let result = l.load(stage.as_ptr().add(row * pitch + channel));
                        job.finish.tile(l, [[result]], [bias], [at + channel], part);
                    }
                }
            }
            pixel += rows;
            read += taps;
        }
    }
}

/// One span of some columns, over every block of the chunk.
///
/// # Safety
/// As for `Chunk::direct`.
#[inline(always)]
unsafe fn walk<L: Lanes>(
    l: L,
    job: &DirectJob<'_>,
    columns: &Columns,
    span: &Span,
    ahead: Ahead,
    scratch: &mut Scratch,
) {
    let (mut pixel, mut reads) = (0, 0);
    let sums = scratch.sums.as_mut_ptr().cast::<f32>();
    for (i, &rows) in scratch.blocks.iter().enumerate() {
        let block = Block {
            reads: &scratch.reads[(reads + span.taps.start) * L::ROWS..(reads + span.taps.end) * L::ROWS],
            inside: &scratch.inside[reads + span.taps.start..reads + span.taps.end],
            taps: &job.pass.taps[span.taps.clone()],
            steps: span.steps,
            tap_lines: job.panels.steps,
            first: span.first,
            writes: &scratch.writes[pixel..pixel + rows],
            sums: sums.wrapping_add(pixel * 2 * L::WIDTH),
            ahead: share(ahead, i, scratch.blocks.len(), span),
        };
        pixel += rows;
        reads += job.pass.taps.len();
        if columns.fresh && !span.taps.is_empty() {
            let last = (reads + span.taps.end - 1) * L::ROWS;
            expect(l, scratch.reads.get(last..last + L::ROWS).unwrap_or(&[]), columns.shift, span.steps);
        }
        // What reads nothing of the map adds nothing.
        if columns.starts || columns.ends || block.inside.contains(&true) {
            // SAFETY: promised by the caller.
            unsafe { block.dispatch(l, columns, &job.finish) };
        }
    }
}

/// What block `i` of `blocks` asks for of the lines ahead, whose number `lines.per_turn` is: the blocks share them evenly.
#[inline(always)]
fn share(lines: Ahead, i: usize, blocks: usize, span: &Span) -> Ahead {
    let turns = span.taps.len() * (span.steps / 4);
    let per_turn = lines.per_turn.div_ceil((turns * blocks).max(1));
    let done = i * turns * per_turn;
    if done >= lines.per_turn {
        Ahead::NONE
    } else {
        Ahead { next: lines.next.wrapping_add(done * PANEL), per_turn, ..lines }
    }
}

/// Asks for the pixels that the next block reads for its last tap; those of its other taps were read before. A row of pixels is read a
/// few bytes of each at a time, which the hardware does not foresee.
#[inline(always)]
fn expect<L: Lanes>(l: L, pixels: &[*const f32], shift: usize, steps: usize) {
    for pixel in pixels {
        for line in (shift..shift + steps).step_by(16) {
            l.prefetch_near(pixel.wrapping_add(line));
        }
    }
}

/// One or two vectors of output channels, and their part in a span.
#[derive(Clone, Copy)]
struct Columns {
    /// The first panel's lines, elements from one panel to the next, and panels.
    lines: *const Line,
    pitch: usize,
    panels: usize,
    /// Channels before the first one read, in the pixel.
    shift: usize,
    /// Whether the sums start, and end, with this span.
    starts: bool,
    ends: bool,
    /// The first channel made, and how many.
    channel: usize,
    lanes: usize,
    bias: [f32; 2 * PANEL],
    /// Whether they are the first to read the chunk's pixels, and these are far away.
    fresh: bool,
    /// Where results wait for their epilogue, and elements from one row to the next; none if they get it at once.
    stage: Option<(*mut f32, usize)>,
}

impl Columns {
    /// The columns from panel `panel` on: as many panels before `end`, of its group, as two vectors hold.
    #[inline(always)]
    fn new<L: Lanes>(job: &DirectJob<'_>, panel: usize, end: usize) -> Columns {
        let all = job.panels;
        let (group, panel, end) = (panel / all.per_group(), panel % all.per_group(), end - panel);
        let panels = (2 * L::WIDTH / PANEL).min(all.per_group() - panel).min(end);
        Columns {
            lines: all.panel(group, panel).as_ptr(),
            pitch: all.taps * all.steps * PANEL,
            panels,
            shift: group * all.steps,
            starts: true,
            ends: true,
            channel: group * all.lanes + panel * PANEL,
            lanes: (panels * PANEL).min(all.lanes - panel * PANEL),
            bias: [0.0; 2 * PANEL],
            stage: None,
            fresh: false,
        }
    }
}

/// Up to `L::ROWS` pixels and the taps of one span.
#[derive(Clone, Copy)]
struct Block<'a> {
    reads: &'a [*const f32], // [tap][row]
    inside: &'a [bool],      // [tap]
    taps: &'a [Tap],
    steps: usize,
    tap_lines: usize,
    first: usize,
    writes: &'a [usize],
    sums: *mut f32, // [row][two vectors]
    ahead: Ahead,
}

/// A tile of `R` pixels and `V` vectors, which must be in range.
struct Tile<'a, const R: usize, const V: usize> {
    block: Block<'a>,
    columns: &'a Columns,
    finish: &'a Finish,
}

impl<L: Lanes, const R: usize, const V: usize> Kernel<L> for Tile<'_, R, V> {
    #[inline(always)]
    fn run(self, l: L) {
        // SAFETY: whoever makes a `Tile` promises it.
        unsafe { self.block.sum::<L, R, V>(l, self.columns, self.finish) }
    }
}

impl Block<'_> {
    /// Runs the tile of the block's rows and the columns' vectors.
    ///
    /// # Safety
    /// As for `sum`.
    #[inline(always)]
    unsafe fn dispatch<L: Lanes>(self, l: L, columns: &Columns, finish: &Finish) {
        macro_rules! tile {
            ($rows:literal, $vectors:literal) => {
                l.run(Tile::<$rows, $vectors> { block: self, columns, finish })
            };
        }
        match (columns.lanes > L::WIDTH, self.writes.len()) {
            (true, 1) => tile!(1, 2),
            (true, 2) => tile!(2, 2),
            (true, 3) => tile!(3, 2),
            (true, 4) => tile!(4, 2),
            (true, 5) => tile!(5, 2),
            (true, 6) => tile!(6, 2),
            (true, 7) => tile!(7, 2),
            (true, _) => tile!(8, 2),
            (false, 1) => tile!(1, 1),
            (false, 2) => tile!(2, 1),
            (false, 3) => tile!(3, 1),
            (false, 4) => tile!(4, 1),
            (false, 5) => tile!(5, 1),
            (false, 6) => tile!(6, 1),
            (false, 7) => tile!(7, 1),
            (false, _) => tile!(8, 1),
        }
    }

    /// # Safety
    /// `R` pixels and `V` vectors of the columns are in range.
    #[inline(always)]
    unsafe fn sum<L: Lanes, const R: usize, const V: usize>(&self, l: L, at: &Columns, finish: &Finish) {
        // SAFETY: the addresses are of whole pixels, a panel has `tap_lines` lines for each tap, and `writes` are places of
        // whole pixels in the map written.
        unsafe {
            let mut acc = [[l.splat(0.0); V]; R];
            if at.ends && at.stage.is_none() {
                for r in 0..R {
                    finish.expect::<L, V>(l, self.writes[r] + at.channel);
                }
            }
            let mut ahead = self.ahead;
            for (t, tap) in self.taps.iter().enumerate() {
                if !self.inside[t] {
                    continue;
                }
                let reads = &self.reads[t * L::ROWS..(t + 1) * L::ROWS];
                let mut rows = [std::ptr::null(); R];
                for r in 0..R {
                    rows[r] = reads.get_unchecked(r).add(at.shift);
                }
                let lines = at.lines.add(tap.index * self.tap_lines + self.first);
                multiply_add(l, &mut acc, rows, columns::<L, V>(lines, at.pitch), self.steps, &mut ahead);
            }
            if !at.starts {
                for r in 0..R {
                    for v in 0..V {
                        acc[r][v] = l.add(l.load(self.sums.add((2 * r + v) * L::WIDTH)), acc[r][v]);
                    }
                }
            }
            if !at.ends {
                for r in 0..R {
                    for v in 0..V {
                        l.store(self.sums.add((2 * r + v) * L::WIDTH), acc[r][v]);
                    }
                }
            } else if let Some((stage, pitch)) = at.stage {
                for r in 0..R {
                    for v in 0..V {
                        l.store(stage.add(r * pitch + at.channel + L::WIDTH * v), acc[r][v]);
                    }
                }
            } else {
                let (mut bias, mut to) = ([l.splat(0.0); V], [0; R]);
                for v in 0..V {
                    bias[v] = l.load(at.bias.as_ptr().add(L::WIDTH * v));
                }
                for r in 0..R {
                    to[r] = self.writes[r] + at.channel;
                }
                let left = at.lanes.next_multiple_of(LANES) - (V - 1) * L::WIDTH;
                finish.tile(l, acc, bias, to, l.part(left));
            }
        }
    }
}
