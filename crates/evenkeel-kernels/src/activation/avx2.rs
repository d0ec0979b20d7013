//! Two-slope activations and their masks, eight elements and one byte at a time.

use std::arch::x86_64::*;

use super::reference;
use crate::cpu::Avx2;
use crate::epilogue::{Activation, Mask};
use crate::layout::LANES;

/// As [`reference::two_slope`].
pub(super) fn two_slope(_: Avx2, activation: Activation, values: &mut [f32], bits: Option<&mut [u8]>) {
    let whole = values.len() / LANES;
    let (body, rest) = values.split_at_mut(whole * LANES);
    let (head, epilogue) = match bits {
        Some(bits) => {
            assert_eq!(bits.len(), whole + usize::from(!rest.is_empty()));
            let (head, epilogue) = bits.split_at_mut(whole);
            (Some(head), Some(epilogue))
        }
        None => (None, None),
    };
    // SAFETY: the proof says that AVX2 is there.
    unsafe { whole_bytes(activation, body, head) };
    if !rest.is_empty() {
        reference::two_slope(activation, rest, epilogue);
    }
}

#[target_feature(enable = "avx2")]
fn whole_bytes(activation: Activation, values: &mut [f32], mut bits: Option<&mut [u8]>) {
    let (low, high, slope) = match activation {
        Activation::None => (f32::NEG_INFINITY, f32::INFINITY, 0.0),
        Activation::Relu => (0.0, f32::INFINITY, 0.0),
        Activation::LeakyRelu(slope) => (0.0, f32::INFINITY, slope),
        Activation::Clip(low, high) => (low, high, 0.0),
    };
    let (lows, highs, slopes) = (_mm256_set1_ps(low), _mm256_set1_ps(high), _mm256_set1_ps(slope));
    let clips = matches!(activation, Activation::Clip(..));
    for (i, lanes) in values.chunks_exact_mut(LANES).enumerate() {
        // SAFETY: eight elements.
        let x = unsafe { _mm256_loadu_ps(lanes.as_ptr()) };
        let above = _mm256_cmp_ps::<_CMP_GT_OQ>(x, lows);
        let set = if clips { _mm256_and_ps(above, _mm256_cmp_ps::<_CMP_LT_OQ>(x, highs)) } else { above };
        let y = match activation {
            Activation::None => x,
            Activation::Relu => _mm256_max_ps(x, lows),
            Activation::LeakyRelu(_) => _mm256_blendv_ps(_mm256_mul_ps(x, slopes), x, above),
            Activation::Clip(..) => _mm256_min_ps(_mm256_max_ps(x, lows), highs),
        };
        if let Some(bits) = bits.as_deref_mut() {
            bits[i] = if activation == Activation::None { 0xFF } else { _mm256_movemask_ps(set) as u8 };
        }
        // SAFETY: eight elements.
        unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), y) };
    }
}

/// As [`reference::mask`].
pub(super) fn mask(_: Avx2, mask: Mask<'_>, values: &mut [f32]) {
    let whole = values.len() / LANES;
    assert!(mask.bits.len() * LANES >= values.len());
    let (body, rest) = values.split_at_mut(whole * LANES);
    // SAFETY: the proof says that AVX2 is there.
    unsafe { whole_masks(mask, body) };
    reference::mask(Mask { bits: &mask.bits[whole..], ..mask }, rest);
}

#[target_feature(enable = "avx2")]
fn whole_masks(mask: Mask<'_>, values: &mut [f32]) {
    let lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    let (on, off) = (_mm256_set1_ps(mask.on), _mm256_set1_ps(mask.off));
    for (lanes, &byte) in values.chunks_exact_mut(LANES).zip(mask.bits) {
        let set = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(i32::from(byte)), lane), lane);
        let slope = _mm256_blendv_ps(off, on, _mm256_castsi256_ps(set));
        // SAFETY: eight elements.
        unsafe {
            let x = _mm256_loadu_ps(lanes.as_ptr());
            _mm256_storeu_ps(lanes.as_mut_ptr(), _mm256_mul_ps(x, slope));
        }
    }
}
