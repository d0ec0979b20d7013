//! The register tile that the matrix product and the convolutions share: a few rows by two vectors of columns.
//!
//! The right side is packed in lines of sixteen columns, one for each step of the sum; the left side is read where it lies. Each
//! result is a chain of fused multiply-adds in the order of the steps, so a tile's shape never shows in its values.

use crate::buffer::Plain;
use crate::lanes::Lanes;

/// Columns of one panel: two vectors of eight or one of sixteen.
pub(crate) const PANEL: usize = 16;

/// One step of a panel, on a cache line of its own.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Line(pub(crate) [f32; PANEL]);
// SAFETY: floats, of which every bit pattern is one.
unsafe impl Plain for Line {}

/// Rows of the next tile when `left` rows are left and a tile has at most `most`: as few tiles as can be, and those even, because
/// a small one waits for its own sums.
#[inline]
pub(crate) fn block_rows(left: usize, most: usize) -> usize {
    left.div_ceil(left.div_ceil(most).max(1))
}

/// Where the vectors of a tile's columns begin in panels `pitch` elements apart.
///
/// # Safety
/// As many panels as the vectors fill are there.
#[inline(always)]
pub(crate) unsafe fn columns<L: Lanes, const V: usize>(lines: *const Line, pitch: usize) -> [*const f32; V] {
    let mut columns = [lines.cast::<f32>(); V];
    for (v, column) in columns.iter_mut().enumerate() {
        let lane = v * L::WIDTH;
        // SAFETY: promised by the caller.
        *column = unsafe { column.add(lane / PANEL * pitch + lane % PANEL) };
    }
    columns
}

/// Lines that will be wanted soon, in two panels `pitch` elements apart: each four steps of a sum ask for the next `per_turn`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    pub(crate) next: *const f32,
    pub(crate) pitch: usize,
    pub(crate) per_turn: usize,
}

impl Ahead {
    /// Nothing.
    pub(crate) const NONE: Ahead = Ahead { next: std::ptr::null(), pitch: 0, per_turn: 0 };
}

/// `acc[r][v] += sum over i of rows[r][i] * columns[v][16 * i ..]`, one chain of multiply-adds for each sum.
///
/// # Safety
/// Each row has `steps` values, and there is a vector at every sixteenth element of the columns for as many steps.
#[inline(always)]
pub(crate) unsafe fn multiply_add<L: Lanes, const R: usize, const V: usize>(
    l: L,
    acc: &mut [[L::Vector; V]; R],
    rows: [*const f32; R],
    columns: [*const f32; V],
    steps: usize,
    ahead: &mut Ahead,
) {
    // SAFETY: promised by the caller.
    unsafe {
        let mut i = 0;
        // Four steps a turn, which pays where there are many turns.
        while steps >= 64 && i + 4 <= steps {
            for j in i..i + 4 {
                step(l, acc, rows, columns, j);
            }
            i += 4;
            for line in 0..ahead.per_turn {
                l.prefetch(ahead.next.wrapping_add(line * PANEL));
                l.prefetch(ahead.next.wrapping_add(ahead.pitch + line * PANEL));
            }
            ahead.next = ahead.next.wrapping_add(ahead.per_turn * PANEL);
        }
        while i < steps {
            step(l, acc, rows, columns, i);
            i += 1;
        }
    }
}

/// Step `i` of [`multiply_add`].
///
/// # Safety
/// As there.
#[inline(always)]
pub(crate) unsafe fn step<L: Lanes, const R: usize, const V: usize>(
    l: L,
    acc: &mut [[L::Vector; V]; R],
    rows: [*const f32; R],
    columns: [*const f32; V],
    i: usize,
) {
    // SAFETY: promised by the caller.
    unsafe {
        let mut b = [l.splat(0.0); V];
        for v in 0..V {
            b[v] = l.load(columns[v].add(i * PANEL));
        }
        for r in 0..R {
            let a = l.splat(*rows[r].add(i));
            for v in 0..V {
                acc[r][v] = l.mul_add(a, b[v], acc[r][v]);
            }
        }
    }
}
