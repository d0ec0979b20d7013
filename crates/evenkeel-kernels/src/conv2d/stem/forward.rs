//! The stem forwards: bands of output rows, whose image rows are copied once with their padding; then register tiles of a
//! few pixels by two vectors of output channels.
//!
//! Each result is one chain over input channels, kernel rows and kernel columns.

use std::cell::RefCell;
use std::ops::Range;

use crate::conv2d::Geometry;
use crate::conv2d::finish::Finish;
use crate::conv2d::weights::{Panels, Weights};
use crate::epilogue::Epilogue;
use crate::gemm::tile::{Ahead, Line, PANEL, block_rows, columns, multiply_add};
use crate::lanes::{Kernel, Lanes};
use crate::layout::LANES;
use crate::{layout, parallel};

/// Bytes of padded image rows a band may have.
const BAND_BYTES: usize = 128 << 10;

/// Runs the stem. Sizes are checked.
pub(super) fn run<L: Lanes>(
    l: L,
    g: &Geometry,
    weights: &Weights,
    x: &[f32],
    out: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    let (out_h, out_w) = (g.out_h(), g.out_w());
    if g.batch * out_h * out_w == 0 {
        return;
    }
    let pitch = (g.in_w + g.pads[1] + g.pads[3]).next_multiple_of(16);
    let affordable = BAND_BYTES / (4 * pitch * g.in_c);
    let reach = g.dilation[0] * (g.kernel[0] - 1);
    let rows = (affordable.saturating_sub(reach) / g.stride[0]).clamp(1, 16).min(out_h);
    let bands = out_h.div_ceil(rows);
    let job = ForwardJob {
        g,
        panels: weights.stem_panels(),
        runs: runs(g, pitch, (rows - 1) * g.stride[0] + reach + 1),
        finish: Finish::new(out, epilogue),
        pitch,
        band_rows: (rows - 1) * g.stride[0] + reach + 1,
    };
    parallel::each(g.batch * bands, |task| {
        let (n, band) = (task / bands, task % bands);
        let rows = band * rows..((band + 1) * rows).min(out_h);
        BAND.with_borrow_mut(|scratch| {
            let image = g.in_c * g.in_h * g.in_w;
            job.pad(&x[n * image..(n + 1) * image], rows.start * g.stride[0], scratch);
            // The scratch holds the band, and bands have rows of their own, as `Band` asks.
            l.run(Band { job: &job, n, rows, scratch });
        });
    });
}

thread_local! {
    static BAND: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Consecutive image values that meet consecutive lines of a panel.
struct Run {
    offset: usize,
    line: usize,
    steps: usize,
}

/// The runs of one pixel's sum in a band of `rows` padded rows a channel.
fn runs(g: &Geometry, pitch: usize, rows: usize) -> Vec<Run> {
    let [kh, kw] = g.kernel;
    let (steps, pieces) = if g.dilation[1] == 1 { (kw, 1) } else { (1, kw) };
    let place = |i: usize| (i / pieces / kh, i / pieces % kh, i % pieces);
    (0..g.in_c * kh * pieces)
        .map(|i| {
            let (c, ky, kx) = place(i);
            let offset = (c * rows + ky * g.dilation[0]) * pitch + kx * g.dilation[1];
            Run { offset, line: i * steps, steps }
        })
        .collect()
}

struct ForwardJob<'a> {
    g: &'a Geometry,
    panels: &'a Panels,
    runs: Vec<Run>,
    finish: Finish,
    pitch: usize,
    band_rows: usize,
}

impl ForwardJob<'_> {
    /// Copies the rows of `image` from padded row `first` on, zeros around them: `[c][band_rows][pitch]`.
    fn pad(&self, image: &[f32], first: usize, scratch: &mut Vec<f32>) {
        let g = self.g;
        scratch.clear();
        scratch.resize(g.in_c * self.band_rows * self.pitch, 0.0);
        for (i, row) in scratch.chunks_exact_mut(self.pitch).enumerate() {
            let (c, padded) = (i / self.band_rows, first + i % self.band_rows);
            if let Some(y) = padded.checked_sub(g.pads[0]).filter(|&y| y < g.in_h) {
                let from = (c * g.in_h + y) * g.in_w;
                row[g.pads[1]..g.pads[1] + g.in_w].copy_from_slice(&image[from..from + g.in_w]);
            }
        }
    }
}

/// Some output rows and the padded image rows they read. No other thread works on these rows.
struct Band<'a> {
    job: &'a ForwardJob<'a>,
    n: usize,
    rows: Range<usize>,
    scratch: &'a [f32],
}

impl<L: Lanes> Kernel<L> for Band<'_> {
    #[inline(always)]
    fn run(self, l: L) {
        let Band { job, n, rows, scratch } = self;
        let g = job.g;
        let stride = layout::stride(g.out_c);
        for channel in (0..g.out_c).step_by(2 * L::WIDTH) {
            let lanes = (2 * L::WIDTH).min(g.out_c - channel);
            let lines = job.panels.panel(0, channel / PANEL).as_ptr();
            // SAFETY: these channels are the output's.
            let bias = unsafe { job.finish.bias::<{ 2 * PANEL }>(channel, lanes) };
            for y in rows.clone() {
                let start = (y - rows.start) * g.stride[0] * job.pitch;
                let out = ((n * g.out_h() + y) * g.out_w()) * stride + channel;
                let mut x = 0;
                while x < g.out_w() {
                    let block = block_rows(g.out_w() - x, L::ROWS);
                    let from = scratch[start + x * g.stride[1]..].as_ptr();
                    let part = Part { job, from, lines, bias: &bias, lanes, out: out + x * stride, stride };
                    // The padded rows reach as far as the last pixel's last tap, as `Part` asks.
                    match (lanes > L::WIDTH, block) {
                        (true, 1) => l.run(Tile::<1, 2>(part)),
                        (true, 2) => l.run(Tile::<2, 2>(part)),
                        (true, 3) => l.run(Tile::<3, 2>(part)),
                        (true, 4) => l.run(Tile::<4, 2>(part)),
                        (true, 5) => l.run(Tile::<5, 2>(part)),
                        (true, 6) => l.run(Tile::<6, 2>(part)),
                        (true, 7) => l.run(Tile::<7, 2>(part)),
                        (true, _) => l.run(Tile::<8, 2>(part)),
                        (false, 1) => l.run(Tile::<1, 1>(part)),
                        (false, 2) => l.run(Tile::<2, 1>(part)),
                        (false, 3) => l.run(Tile::<3, 1>(part)),
                        (false, 4) => l.run(Tile::<4, 1>(part)),
                        (false, 5) => l.run(Tile::<5, 1>(part)),
                        (false, 6) => l.run(Tile::<6, 1>(part)),
                        (false, 7) => l.run(Tile::<7, 1>(part)),
                        (false, _) => l.run(Tile::<8, 1>(part)),
                    }
                    x += block;
                }
            }
        }
    }
}

/// Some pixels of a row: where their runs begin in the band, their weights, and where their results go. All must be there.
#[derive(Clone, Copy)]
struct Part<'a> {
    job: &'a ForwardJob<'a>,
    from: *const f32,
    lines: *const Line,
    bias: &'a [f32; 2 * PANEL],
    lanes: usize,
    out: usize,
    stride: usize,
}

/// `R` pixels by `V` vectors of channels.
struct Tile<'a, const R: usize, const V: usize>(Part<'a>);

impl<L: Lanes, const R: usize, const V: usize> Kernel<L> for Tile<'_, R, V> {
    #[inline(always)]
    fn run(self, l: L) {
        let Part { job, from, lines, bias: all, lanes, out, stride } = self.0;
        let pitch = job.panels.taps * job.panels.steps * PANEL;
        // SAFETY: whoever makes a `Part` promises it.
        unsafe {
            let mut acc = [[l.splat(0.0); V]; R];
            for run in &job.runs {
                let mut rows = [std::ptr::null(); R];
                for r in 0..R {
                    rows[r] = from.add(run.offset + r * job.g.stride[1]);
                }
                let columns = columns::<L, V>(lines.add(run.line), pitch);
                multiply_add(l, &mut acc, rows, columns, run.steps, &mut { Ahead::NONE });
            }
            let (mut bias, mut at) = ([l.splat(0.0); V], [0; R]);
            for v in 0..V {
                bias[v] = l.load(all.as_ptr().add(L::WIDTH * v));
            }
            for r in 0..R {
                at[r] = out + r * stride;
            }
            let left = lanes.next_multiple_of(LANES) - (V - 1) * L::WIDTH;
            job.finish.tile(l, acc, bias, at, l.part(left));
        }
    }
}
