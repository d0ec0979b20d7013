//! Activations on flat slices of any length: the two-slope ones, whose tape is one bit an element, and the smooth ones, whose
//! pullback needs their input.
//!
//! Bit `i % 8` of byte `i / 8` belongs to element `i`; the last byte's spare bits are zero. Large slices are split over threads at whole
//! bytes.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod by_channel;
pub mod curves;
mod function;
mod reference;
mod smooth;
#[cfg(test)]
mod tests;

pub use by_channel::ByChannel;
pub use function::Function;
pub(crate) use smooth::apply_part;
pub use smooth::{apply, apply_in_place, apply_with_slopes, pull};

use crate::disjoint::Disjoint;
use crate::epilogue::{Activation, Mask};
use crate::layout::LANES;
use crate::parallel;

/// Elements below which splitting costs more than it gains.
const GRAIN: usize = 1 << 15;

/// Applies `activation` in place and writes its bits if they are asked for.
///
/// # Panics
/// If `bits` has not one byte for every eight elements (the last one rounded up).
pub fn two_slope(activation: Activation, values: &mut [f32], bits: Option<&mut [u8]>) {
    let bytes = values.len().div_ceil(LANES);
    if let Some(bits) = &bits {
        assert_eq!(bits.len(), bytes, "bits of {} elements", values.len());
    }
    let bits = bits.map(Disjoint::new);
    each_bytes(values, |range, part| {
        // SAFETY: tasks have different byte ranges.
        let bits = bits.as_ref().map(|bits| unsafe { bits.part(range) });
        two_slope_part(activation, part, bits);
    });
}

/// Multiplies each element by its slope.
///
/// # Panics
/// If the mask has fewer bits than there are elements.
pub fn apply_mask(mask: Mask<'_>, values: &mut [f32]) {
    assert!(mask.bits.len() * LANES >= values.len(), "{} bytes for {}", mask.bits.len(), values.len());
    each_bytes(values, |range, part| mask_part(Mask { bits: &mask.bits[range], ..mask }, part));
}

/// Runs `task(bytes, elements)` over matching ranges.
fn each_bytes(values: &mut [f32], task: impl Fn(std::ops::Range<usize>, &mut [f32]) + Sync + Send) {
    let len = values.len();
    let parts = Disjoint::new(values);
    parallel::ranges(len.div_ceil(LANES), GRAIN / LANES, |range| {
        let elements = range.start * LANES..(range.end * LANES).min(len);
        // SAFETY: tasks have different byte ranges.
        task(range, unsafe { parts.part(elements) });
    });
}

/// [`two_slope`] on this thread.
pub(crate) fn two_slope_part(activation: Activation, values: &mut [f32], bits: Option<&mut [u8]>) {
    if activation == Activation::None && bits.is_none() {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(proof) = crate::cpu::avx2() {
        return avx2::two_slope(proof, activation, values, bits);
    }
    reference::two_slope(activation, values, bits);
}

/// [`apply_mask`] on this thread.
pub(crate) fn mask_part(mask: Mask<'_>, values: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(proof) = crate::cpu::avx2() {
        return avx2::mask(proof, mask, values);
    }
    reference::mask(mask, values);
}
