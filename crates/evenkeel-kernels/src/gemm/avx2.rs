//! The product for AVX2: rows that stay in the second-level cache, panels of sixteen columns, spans of `k` that stay in the
//! first, register tiles of six rows.
//!
//! Each span is summed by itself and added to what waits in a small buffer: short chains of additions round less than long ones. Up to
//! three rows are done one at a time against several panels at once, because one row's two sums would wait for each other; they are
//! summed in the same spans.

use std::arch::x86_64::*;
use std::cell::RefCell;
use std::ops::Range;

use super::packed::pack_panel;
use super::tile::{Ahead, Line, PANEL, block_rows, columns, multiply_add};
use super::{Operand, Packed, Scale, Shape};
use crate::cpu::Avx2;
use crate::disjoint::Disjoint;
use crate::parallel;

/// Steps of a panel that share the first-level cache with the rows they meet.
const SPAN: usize = 256;
/// Bytes of the left side in one chunk of rows, and of the right side that one task packs.
const CHUNK_BYTES: usize = 192 << 10;
/// Rows done one at a time.
const FEW: usize = 3;
/// Panels a single row meets at once.
const ABREAST: usize = 4;
/// Multiplications below which a second thread costs more than it brings.
const SMALL: usize = 100_000;

/// How many spans a sum of `k` steps is made of.
fn spans(k: usize) -> usize {
    k.div_ceil(SPAN).max(1)
}

/// The right side.
#[derive(Clone, Copy)]
pub(super) enum Right<'a> {
    Plain(Operand<'a>),
    Packed(&'a Packed),
}

/// Runs the products. Sizes are checked.
pub(super) fn run(proof: Avx2, shape: Shape, a: Operand<'_>, b: Right<'_>, c: &mut [f32], scale: Scale) {
    if c.is_empty() {
        return;
    }
    let panels = shape.n.div_ceil(PANEL);
    let chunk = (CHUNK_BYTES / (4 * shape.k.max(1))).clamp(24, 192).min(shape.m);
    let work = shape.batch * shape.m * shape.n * (shape.k + 8);
    let wanted = if work < SMALL { 1 } else { 6 * parallel::threads() };
    // A task that packs its part of the right side should meet many rows with it.
    let (rows, columns) = match b {
        Right::Packed(_) => (chunk, panels),
        Right::Plain(_) => (2 * chunk, (CHUNK_BYTES / (64 * shape.k.max(1))).clamp(1, panels)),
    };
    let mut split = [shape.m.div_ceil(rows), panels.div_ceil(columns)];
    let tasks = shape.batch * split[0] * split[1];
    if tasks < wanted {
        split[1] = (split[1] * wanted.div_ceil(tasks)).min(panels);
    }
    let job = GemmJob { proof, shape, a, b, c: Disjoint::new(c), scale, chunk };
    let task = |i: usize| {
        let (batch, row, column) = (i / (split[0] * split[1]), i / split[1] % split[0], i % split[1]);
        let rows = row * shape.m / split[0]..(row + 1) * shape.m / split[0];
        let panels = column * panels / split[1]..(column + 1) * panels / split[1];
        SCRATCH.with_borrow_mut(|scratch| {
            // SAFETY: `run` was given the proof; tasks have rows and panels of their own.
            unsafe { job.part(batch, rows, panels, scratch) }
        });
    };
    let count = shape.batch * split[0] * split[1];
    if wanted == 1 { (0..count).for_each(task) } else { parallel::each(count, task) }
}

/// What one thread needs beside the operands: small, and kept between calls.
#[derive(Default)]
struct Scratch {
    lines: Vec<Line>, // packed panels
    rows: Vec<f32>,   // rows of a left side whose columns lie apart
    sums: Vec<Line>,  // of a chunk between spans
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

struct GemmJob<'a> {
    proof: Avx2,
    shape: Shape,
    a: Operand<'a>,
    b: Right<'a>,
    c: Disjoint<'a, f32>,
    scale: Scale,
    chunk: usize,
}

/// Where a panel's lines are: the first, and elements from one to the next.
#[derive(Clone, Copy)]
struct Lines {
    start: *const f32,
    pitch: usize,
}

impl GemmJob<'_> {
    /// # Safety
    /// The machine has AVX2 and FMA; no other thread works on the same rows and panels.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn part(&self, batch: usize, rows: Range<usize>, panels: Range<usize>, scratch: &mut Scratch) {
        let Scratch { lines, rows: gathered, sums } = scratch;
        let k = self.shape.k;
        let few = rows.len() <= FEW;
        let mut place = Vec::with_capacity(panels.len());
        lines.clear();
        for panel in panels.clone() {
            place.push(match self.b {
                Right::Packed(b) => (Some(b.panel(panel).as_ptr().cast::<f32>()), PANEL),
                Right::Plain(b) if few && b.column_stride == 1 && (panel + 1) * PANEL <= self.shape.n => {
                    let at = batch * b.batch_stride + panel * PANEL;
                    (Some(b.values[at.min(b.values.len())..].as_ptr()), b.row_stride)
                }
                Right::Plain(b) => {
                    pack_panel(k, self.shape.n, b, batch * b.batch_stride, panel, lines);
                    (None, PANEL)
                }
            });
        }
        // Packed lines are addressed only now that the vector has stopped moving.
        let mut packed = 0;
        let place: Vec<Lines> = place
            .into_iter()
            .map(|(start, pitch)| match start {
                Some(start) => Lines { start, pitch },
                None => {
                    packed += k;
                    Lines { start: lines[packed - k..packed].as_ptr().cast(), pitch }
                }
            })
            .collect();
        for first in rows.clone().step_by(self.chunk) {
            let chunk = first..(first + self.chunk).min(rows.end);
            let (start, stride) = self.left(batch, &chunk, gathered);
            // SAFETY: `start` has the chunk's rows, `stride` elements apart, `place` the panels' lines.
            unsafe {
                if few {
                    for (i, row) in chunk.enumerate() {
                        self.row(batch, row, start.add(i * stride), panels.clone(), &place);
                    }
                } else {
                    for (panel, lines) in panels.clone().zip(&place) {
                        self.tiles(batch, chunk.clone(), (start, stride), panel, lines.start.cast(), sums);
                    }
                }
            }
        }
    }

    /// A chunk of rows of the left side with columns side by side: where it lies, or gathered. The first row, and elements
    /// from one row to the next.
    fn left(&self, batch: usize, rows: &Range<usize>, gathered: &mut Vec<f32>) -> (*const f32, usize) {
        let (a, k) = (self.a, self.shape.k);
        let start = batch * a.batch_stride + rows.start * a.row_stride;
        if a.column_stride == 1 || k == 0 {
            return (a.values[start.min(a.values.len())..].as_ptr(), a.row_stride);
        }
        gathered.clear();
        gathered.resize(rows.len() * k, 0.0);
        for column in 0..k {
            for row in 0..rows.len() {
                gathered[row * k + column] = a.values[start + row * a.row_stride + column * a.column_stride];
            }
        }
        (gathered.as_ptr(), k)
    }

    /// One panel for a chunk of rows.
    ///
    /// # Safety
    /// As for `part`; `(a, stride)` are the chunk's rows and `lines` the panel's.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tiles(
        &self,
        batch: usize,
        rows: Range<usize>,
        (a, stride): (*const f32, usize),
        panel: usize,
        lines: *const Line,
        sums: &mut Vec<Line>,
    ) {
        let k = self.shape.k;
        sums.resize(rows.len().max(sums.len()), Line::default());
        let spans = spans(k);
        for span in 0..spans {
            let steps = span * k / spans..(span + 1) * k / spans;
            let mut row = 0;
            while row < rows.len() {
                let block = block_rows(rows.len() - row, 6);
                let tile = Tile {
                    lines: lines.wrapping_add(steps.start),
                    steps: steps.len(),
                    starts: span == 0,
                    ends: span + 1 == spans,
                    at: (batch * self.shape.m + rows.start + row) * self.shape.n + panel * PANEL,
                    columns: PANEL.min(self.shape.n - panel * PANEL),
                };
                let sums = &mut sums[row..row + block];
                // SAFETY: promised by the caller.
                unsafe {
                    let a = a.add(row * stride + steps.start);
                    match block {
                        6 => self.tile::<6>(a, stride, tile, sums),
                        5 => self.tile::<5>(a, stride, tile, sums),
                        4 => self.tile::<4>(a, stride, tile, sums),
                        3 => self.tile::<3>(a, stride, tile, sums),
                        2 => self.tile::<2>(a, stride, tile, sums),
                        _ => self.tile::<1>(a, stride, tile, sums),
                    }
                }
                row += block;
            }
        }
    }

    /// # Safety
    /// As for `part`; `R` rows from `a` on, and the tile's lines and elements, are in range.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tile<const R: usize>(&self, a: *const f32, stride: usize, tile: Tile, sums: &mut [Line]) {
        // SAFETY: promised by the caller; sums has `R` lines.
        unsafe {
            let mut acc = [[_mm256_setzero_ps(); 2]; R];
            let mut rows = [a; R];
            for r in 0..R {
                rows[r] = a.add(r * stride);
            }
            multiply_add(self.proof, &mut acc, rows, columns::<Avx2, 2>(tile.lines, 0), tile.steps, &mut {
                Ahead::NONE
            });
            for r in 0..R {
                if !tile.starts {
                    for v in 0..2 {
                        acc[r][v] = _mm256_add_ps(_mm256_load_ps(sums[r].0.as_ptr().add(8 * v)), acc[r][v]);
                    }
                }
                if tile.ends {
                    self.store(acc[r], tile.at + r * self.shape.n, tile.columns);
                } else {
                    _mm256_store_ps(sums[r].0.as_mut_ptr(), acc[r][0]);
                    _mm256_store_ps(sums[r].0.as_mut_ptr().add(8), acc[r][1]);
                }
            }
        }
    }

    /// One row against several panels at once.
    ///
    /// # Safety
    /// As for `part`; `a` is the row, `lines` the panels' lines.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn row(&self, batch: usize, row: usize, a: *const f32, panels: Range<usize>, lines: &[Lines]) {
        for (group, first) in lines.chunks(ABREAST).zip(panels.step_by(ABREAST)) {
            let mut total = [[_mm256_setzero_ps(); 2]; ABREAST];
            let mut from = [group[0]; ABREAST];
            from[..group.len()].copy_from_slice(group);
            let (k, spans) = (self.shape.k, spans(self.shape.k));
            // SAFETY: promised by the caller.
            unsafe {
                for span in 0..spans {
                    let mut acc = [[_mm256_setzero_ps(); 2]; ABREAST];
                    for i in span * k / spans..(span + 1) * k / spans {
                        let value = _mm256_broadcast_ss(&*a.add(i));
                        for p in 0..ABREAST {
                            let line = from[p].start.add(i * from[p].pitch);
                            acc[p][0] = _mm256_fmadd_ps(value, _mm256_loadu_ps(line), acc[p][0]);
                            acc[p][1] = _mm256_fmadd_ps(value, _mm256_loadu_ps(line.add(8)), acc[p][1]);
                        }
                    }
                    for p in 0..ABREAST {
                        for v in 0..2 {
                            total[p][v] =
                                if span == 0 { acc[p][v] } else { _mm256_add_ps(total[p][v], acc[p][v]) };
                        }
                    }
                }
                for (p, acc) in total.into_iter().enumerate().take(group.len()) {
                    let column = (first + p) * PANEL;
                    let at = (batch * self.shape.m + row) * self.shape.n + column;
                    self.store(acc, at, PANEL.min(self.shape.n - column));
                }
            }
        }
    }

    /// Scales `columns` sums into elements `at ..`.
    ///
    /// # Safety
    /// As for `part`, whose elements these are.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn store(&self, acc: [__m256; 2], at: usize, columns: usize) {
        // SAFETY: promised by the caller.
        let c = unsafe { self.c.part(at..at + columns) };
        let Scale { alpha, beta } = self.scale;
        let mut line = Line::default();
        if columns < PANEL && beta != 0.0 {
            line.0[..columns].copy_from_slice(c);
        }
        for v in 0..2 {
            // SAFETY: the line has two vectors, and so has `c` if it has all columns.
            unsafe {
                let to = if columns < PANEL { line.0.as_mut_ptr() } else { c.as_mut_ptr() }.add(8 * v);
                let mut value = _mm256_mul_ps(acc[v], _mm256_set1_ps(alpha));
                if beta != 0.0 {
                    value = _mm256_add_ps(value, _mm256_mul_ps(_mm256_set1_ps(beta), _mm256_loadu_ps(to)));
                }
                _mm256_storeu_ps(to, value);
            }
        }
        if columns < PANEL {
            c.copy_from_slice(&line.0[..columns]);
        }
    }
}

/// A register tile's part in a span.
#[derive(Clone, Copy)]
struct Tile {
    lines: *const Line,
    steps: usize,
    /// Whether the sums start, and end, with this span.
    starts: bool,
    ends: bool,
    at: usize,
    columns: usize,
}
