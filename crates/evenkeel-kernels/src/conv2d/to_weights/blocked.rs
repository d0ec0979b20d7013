//! The blocked product: panels and planes are filled first, then every task makes the gradients of one kernel row for a few output channels and two
//! vectors of input channels, over the whole batch.

use std::cell::RefCell;
use std::ops::Range;

use crate::conv2d::Geometry;
use crate::disjoint::Disjoint;
use crate::gemm::tile::{Ahead, Line, PANEL, block_rows, columns, multiply_add};
use crate::lanes::{Kernel, Lanes};
use crate::{layout, parallel};

/// Pixels whose products are summed in registers.
const BLOCK: usize = 256;
/// Tasks below which output channels are divided among more of them.
const FEW_TASKS: usize = 12;
/// Columns of the widest tile: two vectors of sixteen.
const WIDEST: usize = 2 * PANEL;

/// Memory kept between calls.
#[derive(Default)]
struct Scratch {
    lines: Vec<Line>,
    planes: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

pub(super) fn run<L: Lanes>(l: L, g: &Geometry, x: &[f32], gy: &[f32], gw: &mut [f32]) {
    if gy.is_empty() || gw.is_empty() {
        return;
    }
    let mut scratch = SCRATCH.take();
    let job = Job::new(g, (2 * L::WIDTH).max(PANEL) / PANEL);
    job.fill_lines(x, &mut scratch.lines);
    job.fill_planes(gy, &mut scratch.planes);
    job.run(l, &scratch.lines, &scratch.planes, gw);
    SCRATCH.set(scratch);
}

/// The sizes of one gradient. Lines are `[panel][image][row][phase][column]`, planes `[image][out_c][pixel]`.
struct Job<'a> {
    g: &'a Geometry,
    /// Panels of a tile.
    wide: usize,
    panels: usize,
    out: (usize, usize),
    /// Rows of a padded image, and columns of one phase of a row.
    rows: usize,
    columns: usize,
}

impl<'a> Job<'a> {
    fn new(g: &'a Geometry, wide: usize) -> Self {
        let reach = |axis: usize, out: usize| {
            (out - 1) * g.stride[axis] + g.dilation[axis] * (g.kernel[axis] - 1) + 1
        };
        let out = (g.out_h(), g.out_w());
        let columns = reach(1, out.1).div_ceil(g.stride[1]);
        Job { g, wide, panels: g.in_c.div_ceil(PANEL), out, rows: reach(0, out.0), columns }
    }

    /// Lines of one image in one panel.
    fn image(&self) -> usize {
        self.rows * self.g.stride[1] * self.columns
    }

    /// Copies the input into panels, zeros around it.
    fn fill_lines(&self, x: &[f32], lines: &mut Vec<Line>) {
        let (g, image) = (self.g, self.image());
        lines.resize(self.panels * g.batch * image, Line::default());
        let stride = layout::stride(g.in_c);
        let phases = g.stride[1];
        parallel::rows(lines, self.columns * phases, 16, |first, lines| {
            for (k, row) in lines.chunks_exact_mut(self.columns * phases).enumerate() {
                let k = first + k;
                let (panel, n, y) = (k / self.rows / g.batch, k / self.rows % g.batch, k % self.rows);
                let y = y.wrapping_sub(g.pads[0]);
                if y >= g.in_h {
                    row.fill(Line::default());
                    continue;
                }
                let lanes = PANEL.min(stride - panel * PANEL);
                let from = &x[(n * g.in_h + y) * g.in_w * stride + panel * PANEL..];
                for (i, line) in row.iter_mut().enumerate() {
                    let column = (i % self.columns * phases + i / self.columns).wrapping_sub(g.pads[1]);
                    *line = Line::default();
                    if column < g.in_w {
                        line.0[..lanes].copy_from_slice(&from[column * stride..][..lanes]);
                    }
                }
            }
        });
    }

    /// Copies the output's gradient into planes.
    fn fill_planes(&self, gy: &[f32], planes: &mut Vec<f32>) {
        let (g, stride) = (self.g, layout::stride(self.g.out_c));
        let cells = self.out.0 * self.out.1;
        planes.resize(g.batch * g.out_c * cells, 0.0);
        // eight planes at a time, so that a cache line read serves more than one of its elements
        let groups = g.out_c.div_ceil(layout::LANES);
        let all = Disjoint::new(planes);
        parallel::each(g.batch * groups, |task| {
            let (n, group) = (task / groups, task % groups);
            let channels = group * layout::LANES..((group + 1) * layout::LANES).min(g.out_c);
            let first = n * g.out_c + channels.start;
            // SAFETY: tasks have planes of their own.
            let to = unsafe { all.part(first * cells..(first + channels.len()) * cells) };
            let from = &gy[n * cells * stride + channels.start..];
            for cell in 0..cells {
                let pixel = &from[cell * stride..][..channels.len()];
                for (c, value) in pixel.iter().enumerate() {
                    to[c * cells + cell] = *value;
                }
            }
        });
    }

    fn run<L: Lanes>(&self, l: L, lines: &[Line], planes: &[f32], gw: &mut [f32]) {
        let g = self.g;
        let wides = self.panels.div_ceil(self.wide);
        let tasks = wides * g.kernel[0];
        let shares = FEW_TASKS.div_ceil(tasks).min(g.out_c.div_ceil(L::ROWS)).max(1);
        let gw = Disjoint::new(gw);
        parallel::each(tasks * shares, |task| {
            let (share, rest) = (task % shares, task / shares);
            let at = |share: usize| (share * g.out_c / shares / L::ROWS * L::ROWS).min(g.out_c);
            let end = if share + 1 == shares { g.out_c } else { at(share + 1) };
            let panel = rest % wides * self.wide;
            l.run(Part {
                job: self,
                lines,
                planes,
                gw: &gw,
                panels: panel..(panel + self.wide).min(self.panels),
                row: rest / wides,
                channels: at(share)..end,
            });
        });
    }
}

/// The gradients of one row of the kernel for some output channels and the input channels of one tile.
struct Part<'a, 'b> {
    job: &'a Job<'b>,
    lines: &'a [Line],
    planes: &'a [f32],
    gw: &'a Disjoint<'a, f32>,
    panels: Range<usize>,
    row: usize,
    channels: Range<usize>,
}

impl<L: Lanes> Kernel<L> for Part<'_, '_> {
    #[inline(always)]
    fn run(self, l: L) {
        if self.panels.len() * PANEL > L::WIDTH {
            self.walk::<L, 2>(l);
        } else {
            self.walk::<L, 1>(l);
        }
    }
}

impl Part<'_, '_> {
    #[inline(always)]
    fn walk<L: Lanes, const V: usize>(&self, l: L) {
        let (job, g) = (self.job, self.job.g);
        let taps = g.kernel[1];
        // sums over the blocks so far: [channel][tap][lane]
        let mut sums = vec![0.0f32; self.channels.len() * taps * WIDEST];
        let rows = (BLOCK / job.out.1).clamp(1, job.out.0);
        for n in 0..g.batch {
            let mut first = 0;
            while first < job.out.0 {
                let block = first..(first + rows).min(job.out.0);
                let mut channel = self.channels.start;
                while channel < self.channels.end {
                    let count = block_rows(self.channels.end - channel, L::ROWS);
                    for tap in 0..taps {
                        let at = ((channel - self.channels.start) * taps + tap) * WIDEST;
                        let tile = Tile { n, rows: block.clone(), channel, tap, pitch: taps * WIDEST };
                        // SAFETY: a tile of `count` channels lies inside planes, lines and sums.
                        unsafe { self.tile::<L, V>(l, count, &tile, &mut sums[at..]) };
                    }
                    channel += count;
                }
                first = block.end;
            }
        }
        self.write(&sums);
    }

    /// # Safety
    /// The tile's channels and rows are there; `sums` has a row of `WIDEST` values for each channel, `pitch` apart.
    #[inline(always)]
    unsafe fn tile<L: Lanes, const V: usize>(&self, l: L, count: usize, tile: &Tile, sums: &mut [f32]) {
        // SAFETY: promised by the caller.
        unsafe {
            match count {
                1 => self.block::<L, 1, V>(l, tile, sums),
                2 => self.block::<L, 2, V>(l, tile, sums),
                3 => self.block::<L, 3, V>(l, tile, sums),
                4 => self.block::<L, 4, V>(l, tile, sums),
                5 => self.block::<L, 5, V>(l, tile, sums),
                6 => self.block::<L, 6, V>(l, tile, sums),
                7 => self.block::<L, 7, V>(l, tile, sums),
                _ => self.block::<L, 8, V>(l, tile, sums),
            }
        }
    }

    /// # Safety
    /// As [`Part::tile`].
    #[inline(always)]
    unsafe fn block<L: Lanes, const R: usize, const V: usize>(&self, l: L, tile: &Tile, sums: &mut [f32]) {
        let (job, g) = (self.job, self.job.g);
        let (width, cells) = (job.out.1, job.out.0 * job.out.1);
        let image = job.image();
        let pitch = g.batch * image * PANEL;
        let phases = g.stride[1];
        let shift = tile.tap * g.dilation[1];
        let along = shift % phases * job.columns + shift / phases;
        let lines = &self.lines[(self.panels.start * g.batch + tile.n) * image..];
        let planes = &self.planes[(tile.n * g.out_c + tile.channel) * cells..];
        assert!(planes.len() >= R * cells && sums.len() >= (R - 1) * tile.pitch + V * L::WIDTH);
        // SAFETY: rows of planes and lines are there by the sizes of the job; sums by the assertion.
        unsafe {
            let mut acc = [[l.splat(0.0); V]; R];
            for row in tile.rows.clone() {
                let line = (row * g.stride[0] + self.row * g.dilation[0]) * phases * job.columns + along;
                let columns = columns::<L, V>(lines.as_ptr().add(line), pitch);
                let mut rows = [planes.as_ptr().add(row * width); R];
                for (r, place) in rows.iter_mut().enumerate() {
                    *place = place.add(r * cells);
                }
                let mut ahead = Ahead::NONE;
                multiply_add(l, &mut acc, rows, columns, width, &mut ahead);
            }
            for (r, acc) in acc.iter().enumerate() {
                for (v, acc) in acc.iter().enumerate() {
                    let at = sums.as_mut_ptr().add(r * tile.pitch + v * L::WIDTH);
                    l.store(at, l.add(l.load(at), *acc));
                }
            }
        }
    }

    /// Adds the sums to the gradient.
    #[inline(always)]
    fn write(&self, sums: &[f32]) {
        let g = self.job.g;
        let taps = g.kernel[1];
        let first = self.panels.start * PANEL;
        let lanes = (self.panels.len() * PANEL).min(g.in_c - first);
        for (k, o) in self.channels.clone().enumerate() {
            for c in 0..lanes {
                let at = ((o * g.in_c + first + c) * g.kernel[0] + self.row) * taps;
                // SAFETY: no other task has this row of the kernel for these channels.
                let to = unsafe { self.gw.part(at..at + taps) };
                for (tap, to) in to.iter_mut().enumerate() {
                    *to += sums[(k * taps + tap) * WIDEST + c];
                }
            }
        }
    }
}

/// Rows of an image, a few output channels and one tap.
struct Tile {
    n: usize,
    rows: Range<usize>,
    channel: usize,
    tap: usize,
    /// From the sums of one channel to those of the next.
    pitch: usize,
}
