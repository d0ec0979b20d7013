//! One pixel of a max pool and of its pullback, eight channels at a time with the window in the inner loop.

use std::arch::x86_64::*;

use crate::cpu::Avx2;
use crate::layout::LANES;

/// As `reference::max_pixel` with byte-sized winners or none.
pub(super) fn max_pixel(
    _: Avx2,
    image: &[f32],
    cells: &[(usize, usize)],
    out: &mut [f32],
    winners: Option<&mut [u8]>,
) {
    assert_eq!(out.len() % LANES, 0);
    assert!(cells.iter().all(|&(pixel, _)| (pixel + 1) * out.len() <= image.len()));
    // SAFETY: the proof says that AVX2 is there; the asserts are the inner functions' bounds.
    match winners {
        Some(winners) => {
            assert_eq!(winners.len(), out.len());
            // SAFETY: as above.
            unsafe { max_tracked(image, cells, out, winners) }
        }
        // SAFETY: as above.
        None => unsafe { max_plain(image, cells, out) },
    }
}

/// # Safety
/// `out` is whole vectors, every cell's pixel lies inside `image`.
#[target_feature(enable = "avx2")]
unsafe fn max_plain(image: &[f32], cells: &[(usize, usize)], out: &mut [f32]) {
    let step = out.len();
    for (group, out) in out.chunks_exact_mut(LANES).enumerate() {
        let mut best = _mm256_set1_ps(f32::NEG_INFINITY);
        for &(pixel, _) in cells {
            // SAFETY: inside the image, by contract.
            let x = unsafe { _mm256_loadu_ps(image.as_ptr().add(pixel * step + group * LANES)) };
            let wins =
                _mm256_or_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(x, best), _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
            best = _mm256_blendv_ps(best, x, wins);
        }
        // SAFETY: eight elements.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), best) };
    }
}

/// # Safety
/// `out` is whole vectors, `winners` as long, every cell's pixel lies inside `image`.
#[target_feature(enable = "avx2")]
unsafe fn max_tracked(image: &[f32], cells: &[(usize, usize)], out: &mut [f32], winners: &mut [u8]) {
    let step = out.len();
    let first = cells.first().map_or(0, |&(_, place)| place as i32);
    for (group, out) in out.chunks_exact_mut(LANES).enumerate() {
        let mut best = _mm256_set1_ps(f32::NEG_INFINITY);
        let mut winner = _mm256_set1_epi32(first);
        for &(pixel, place) in cells {
            // SAFETY: inside the image, by contract.
            let x = unsafe { _mm256_loadu_ps(image.as_ptr().add(pixel * step + group * LANES)) };
            let wins =
                _mm256_or_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(x, best), _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
            best = _mm256_blendv_ps(best, x, wins);
            winner = _mm256_blendv_epi8(winner, _mm256_set1_epi32(place as i32), _mm256_castps_si256(wins));
        }
        let pairs = _mm_packus_epi32(_mm256_castsi256_si128(winner), _mm256_extracti128_si256::<1>(winner));
        // SAFETY: eight elements here and eight bytes there.
        unsafe {
            _mm256_storeu_ps(out.as_mut_ptr(), best);
            _mm_storel_epi64(winners.as_mut_ptr().add(group * LANES).cast(), _mm_packus_epi16(pairs, pairs));
        }
    }
}

/// As `reference::max_readers` for byte-sized winners.
pub(super) fn max_readers(
    _: Avx2,
    winners: &[u8],
    grads: &[f32],
    readers: &[(usize, usize)],
    sums: &mut [f32],
) {
    assert!(sums.len().is_multiple_of(LANES) && winners.len() == grads.len());
    assert!(readers.iter().all(|&(pixel, _)| (pixel + 1) * sums.len() <= grads.len()));
    // SAFETY: the proof says that AVX2 is there; the asserts are the inner function's bounds.
    unsafe { max_readers_groups(winners, grads, readers, sums) }
}

/// # Safety
/// `sums` is whole vectors, `winners` and `grads` are equally long, every reader's pixel lies inside them.
#[target_feature(enable = "avx2")]
unsafe fn max_readers_groups(winners: &[u8], grads: &[f32], readers: &[(usize, usize)], sums: &mut [f32]) {
    let step = sums.len();
    for (group, out) in sums.chunks_exact_mut(LANES).enumerate() {
        let mut sum = _mm256_setzero_ps();
        for &(pixel, place) in readers {
            let at = pixel * step + group * LANES;
            // SAFETY: inside both slices, by contract.
            let (winner, grad) = unsafe {
                (_mm_loadl_epi64(winners.as_ptr().add(at).cast()), _mm256_loadu_ps(grads.as_ptr().add(at)))
            };
            let won = _mm256_cmpeq_epi32(_mm256_cvtepu8_epi32(winner), _mm256_set1_epi32(place as i32));
            sum = _mm256_add_ps(sum, _mm256_and_ps(grad, _mm256_castsi256_ps(won)));
        }
        // SAFETY: eight elements.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), sum) };
    }
}
