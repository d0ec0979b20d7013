//! The stem forwards: bands of output rows, whose image rows are copied once with their padding; then register tiles of six
//! pixels by sixteen output channels.
//!
//! Each result is one chain over input channels, kernel rows and kernel columns.

use std::arch::x86_64::*;
use std::cell::RefCell;
use std::ops::Range;

use crate::conv2d::Geometry;
use crate::conv2d::finish::Finish;
use crate::conv2d::weights::{Panels, Weights};
use crate::cpu::Avx2;
use crate::epilogue::Epilogue;
use crate::gemm::tile::{Line, PANEL, block_rows, columns, multiply_add};
use crate::{layout, parallel};

/// Bytes of padded image rows a band may have.
const BAND_BYTES: usize = 128 << 10;

/// Runs the stem. Sizes are checked.
pub(super) fn run(
    proof: Avx2,
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
    let job = Job {
        proof,
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
            // SAFETY: `run` was given the proof; bands have rows of their own.
            unsafe { job.band(n, rows, scratch) }
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

struct Job<'a> {
    proof: Avx2,
    g: &'a Geometry,
    panels: &'a Panels,
    runs: Vec<Run>,
    finish: Finish,
    pitch: usize,
    band_rows: usize,
}

impl Job<'_> {
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

    /// # Safety
    /// The machine has AVX2 and FMA; `scratch` holds the band; no other thread works on these rows.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn band(&self, n: usize, rows: Range<usize>, scratch: &[f32]) {
        let g = self.g;
        let stride = layout::stride(g.out_c);
        for panel in 0..self.panels.per_group() {
            let channel = panel * PANEL;
            let lanes = PANEL.min(g.out_c - channel);
            let lines = self.panels.panel(0, panel).as_ptr();
            // SAFETY: these channels are the output's.
            let bias = unsafe { self.finish.bias::<PANEL>(channel, lanes) };
            for y in rows.clone() {
                let start = (y - rows.start) * g.stride[0] * self.pitch;
                let out = ((n * g.out_h() + y) * g.out_w()) * stride + channel;
                let mut x = 0;
                while x < g.out_w() {
                    let block = block_rows(g.out_w() - x, 6);
                    let tile = Tile { lines, bias: &bias, out: out + x * stride, stride };
                    // SAFETY: the padded rows reach as far as the last pixel's last tap.
                    unsafe {
                        let from = scratch.as_ptr().add(start + x * g.stride[1]);
                        match (lanes > 8, block) {
                            (true, 6) => self.tile::<6, 2>(from, tile),
                            (true, 5) => self.tile::<5, 2>(from, tile),
                            (true, 4) => self.tile::<4, 2>(from, tile),
                            (true, 3) => self.tile::<3, 2>(from, tile),
                            (true, 2) => self.tile::<2, 2>(from, tile),
                            (true, _) => self.tile::<1, 2>(from, tile),
                            (false, 6) => self.tile::<6, 1>(from, tile),
                            (false, 5) => self.tile::<5, 1>(from, tile),
                            (false, 4) => self.tile::<4, 1>(from, tile),
                            (false, 3) => self.tile::<3, 1>(from, tile),
                            (false, 2) => self.tile::<2, 1>(from, tile),
                            (false, _) => self.tile::<1, 1>(from, tile),
                        }
                    }
                    x += block;
                }
            }
        }
    }

    /// # Safety
    /// The machine has AVX2 and FMA; the runs of `R` pixels from `from` on are in the band, and their results in the output.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tile<const R: usize, const V: usize>(&self, from: *const f32, tile: Tile<'_>) {
        // SAFETY: promised by the caller.
        unsafe {
            let mut acc = [[_mm256_setzero_ps(); V]; R];
            for run in &self.runs {
                let mut rows = [std::ptr::null(); R];
                for r in 0..R {
                    rows[r] = from.add(run.offset + r * self.g.stride[1]);
                }
                let columns = columns::<Avx2, V>(tile.lines.add(run.line), 0);
                multiply_add(self.proof, &mut acc, rows, columns, run.steps);
            }
            let (mut bias, mut at) = ([_mm256_setzero_ps(); V], [0; R]);
            for v in 0..V {
                bias[v] = _mm256_loadu_ps(tile.bias.as_ptr().add(8 * v));
            }
            for r in 0..R {
                at[r] = tile.out + r * tile.stride;
            }
            self.finish.tile(self.proof, acc, bias, at, ());
        }
    }
}

/// A panel's weights and where its results go.
#[derive(Clone, Copy)]
struct Tile<'a> {
    lines: *const Line,
    bias: &'a [f32; PANEL],
    out: usize,
    stride: usize,
}
