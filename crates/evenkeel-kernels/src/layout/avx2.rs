//! The two layout changes by 8x8 transposes in registers.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{LANES, reference, stride};
use crate::cpu::Avx2;

/// Transposes eight vectors of eight.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn transpose(rows: [__m256; LANES]) -> [__m256; LANES] {
    let [a, b, c, d, e, f, g, h] = rows;
    let (ab0, ab1) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    let (cd0, cd1) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    let (ef0, ef1) = (_mm256_unpacklo_ps(e, f), _mm256_unpackhi_ps(e, f));
    let (gh0, gh1) = (_mm256_unpacklo_ps(g, h), _mm256_unpackhi_ps(g, h));
    let quads = [
        (_mm256_shuffle_ps::<0x44>(ab0, cd0), _mm256_shuffle_ps::<0x44>(ef0, gh0)),
        (_mm256_shuffle_ps::<0xEE>(ab0, cd0), _mm256_shuffle_ps::<0xEE>(ef0, gh0)),
        (_mm256_shuffle_ps::<0x44>(ab1, cd1), _mm256_shuffle_ps::<0x44>(ef1, gh1)),
        (_mm256_shuffle_ps::<0xEE>(ab1, cd1), _mm256_shuffle_ps::<0xEE>(ef1, gh1)),
    ];
    std::array::from_fn(|i| {
        let (top, bottom) = quads[i % 4];
        if i < 4 {
            _mm256_permute2f128_ps::<0x20>(top, bottom)
        } else {
            _mm256_permute2f128_ps::<0x31>(top, bottom)
        }
    })
}

/// As [`reference::from_planar`].
pub(super) fn from_planar(
    _: Avx2,
    channels: usize,
    pixels: usize,
    source: &[f32],
    range: Range<usize>,
    target: &mut [f32],
) {
    assert!(source.len() >= channels * pixels && range.end <= pixels);
    assert!(target.len() >= range.len() * stride(channels));
    // SAFETY: the proof says that AVX2 is there; the asserts are the inner function's bounds.
    unsafe { from_planar_tiles(channels, pixels, source, range, target) }
}

/// # Safety
/// `source` holds `channels * pixels` elements, `range` ends within `pixels`, `target` holds the range's pixels.
#[target_feature(enable = "avx2")]
unsafe fn from_planar_tiles(
    channels: usize,
    pixels: usize,
    source: &[f32],
    range: Range<usize>,
    target: &mut [f32],
) {
    let step = stride(channels);
    let whole = range.len() / LANES * LANES;
    for group in (0..channels).step_by(LANES) {
        let real = (channels - group).min(LANES);
        for pixel in (0..whole).step_by(LANES) {
            let mut rows = [_mm256_setzero_ps(); LANES];
            for (i, row) in rows.iter_mut().enumerate().take(real) {
                // SAFETY: channel group + i < channels, and eight pixels from here lie inside the range.
                *row = unsafe {
                    _mm256_loadu_ps(source.as_ptr().add((group + i) * pixels + range.start + pixel))
                };
            }
            for (i, row) in transpose(rows).into_iter().enumerate() {
                // SAFETY: pixel + i is inside the range, and group + 8 <= step.
                unsafe { _mm256_storeu_ps(target.as_mut_ptr().add((pixel + i) * step + group), row) };
            }
        }
    }
    reference::from_planar(
        channels,
        pixels,
        source,
        range.start + whole..range.end,
        &mut target[whole * step..],
    );
}

/// As [`reference::to_planar`]; `real` rows (at most eight) are not empty.
pub(super) fn to_planar(_: Avx2, step: usize, source: &[f32], rows: [&mut [f32]; LANES], real: usize) {
    let real = real.min(LANES);
    let pixels = rows[0].len();
    assert!(rows[..real].iter().all(|row| row.len() == pixels));
    assert!(pixels == 0 || source.len() >= (pixels - 1) * step + LANES);
    // SAFETY: the proof says that AVX2 is there; the asserts are the inner function's bounds.
    unsafe { to_planar_tiles(step, source, rows, real) }
}

/// # Safety
/// The first `real` rows are equally long, and `source` holds eight lanes for each of their pixels.
#[target_feature(enable = "avx2")]
unsafe fn to_planar_tiles(step: usize, source: &[f32], rows: [&mut [f32]; LANES], real: usize) {
    let pixels = rows[0].len();
    let whole = pixels / LANES * LANES;
    let mut rows = rows;
    for pixel in (0..whole).step_by(LANES) {
        let mut lanes = [_mm256_setzero_ps(); LANES];
        for (i, lane) in lanes.iter_mut().enumerate() {
            // SAFETY: pixel + i < pixels.
            *lane = unsafe { _mm256_loadu_ps(source.as_ptr().add((pixel + i) * step)) };
        }
        for (row, lane) in rows.iter_mut().zip(transpose(lanes)).take(real) {
            // SAFETY: eight pixels from here lie inside the row.
            unsafe { _mm256_storeu_ps(row.as_mut_ptr().add(pixel), lane) };
        }
    }
    if whole < pixels {
        let rest = rows.map(|row| if row.is_empty() { row } else { &mut row[whole..] });
        reference::to_planar(step, &source[whole * step..], rest);
    }
}
