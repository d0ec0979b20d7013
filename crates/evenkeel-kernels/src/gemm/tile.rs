//! The register tile that the matrix product and the convolutions share: six rows by sixteen columns.
//!
//! The right side is packed in lines of sixteen columns, one for each step of the sum; the left side is read where it lies. Each
//! result is a chain of fused multiply-adds in the order of the steps, so a tile's shape never shows in its values.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Columns of one panel: two vectors of eight.
pub(crate) const PANEL: usize = 16;
/// Rows of the largest tile.
#[cfg(target_arch = "x86_64")]
pub(crate) const ROWS: usize = 6;

/// One step of a panel, on a cache line of its own.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Line(pub(crate) [f32; PANEL]);

/// Rows of the next tile when `left` rows are left. Tiles of four to six rows keep the multipliers busy, smaller ones wait for
/// their own sums.
#[cfg(target_arch = "x86_64")]
pub(crate) fn block_rows(left: usize) -> usize {
    match left {
        0..=6 => left,
        7..=9 => left.div_ceil(2),
        _ if left % 6 == 1 => 5,
        _ => 6,
    }
}

/// `acc[r] += sum over i of rows[r][i] * lines[i]`, one chain of multiply-adds for each sum.
///
/// # Safety
/// The machine has AVX2 and FMA; each row has `steps` values and there are as many lines.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn multiply_add<const R: usize, const V: usize>(
    acc: &mut [[__m256; V]; R],
    rows: [*const f32; R],
    lines: *const Line,
    steps: usize,
) {
    // SAFETY: promised by the caller.
    unsafe {
        let mut i = 0;
        // Four steps a turn, which pays where there are many turns.
        while steps >= 64 && i + 4 <= steps {
            for j in i..i + 4 {
                step(acc, rows, lines, j);
            }
            i += 4;
        }
        while i < steps {
            step(acc, rows, lines, i);
            i += 1;
        }
    }
}

/// Step `i` of [`multiply_add`].
///
/// # Safety
/// As there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn step<const R: usize, const V: usize>(
    acc: &mut [[__m256; V]; R],
    rows: [*const f32; R],
    lines: *const Line,
    i: usize,
) {
    // SAFETY: promised by the caller.
    unsafe {
        let line = lines.add(i).cast::<f32>();
        let mut b = [_mm256_setzero_ps(); V];
        for v in 0..V {
            b[v] = _mm256_load_ps(line.add(8 * v));
        }
        for r in 0..R {
            let a = _mm256_broadcast_ss(&*rows[r].add(i));
            for v in 0..V {
                acc[r][v] = _mm256_fmadd_ps(a, b[v], acc[r][v]);
            }
        }
    }
}
