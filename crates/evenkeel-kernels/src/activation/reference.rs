//! Two-slope activations and their masks, element by element.

use crate::epilogue::{Activation, Mask};
use crate::layout::LANES;

pub(super) fn two_slope(activation: Activation, values: &mut [f32], bits: Option<&mut [u8]>) {
    if let Some(bits) = bits {
        for (byte, lanes) in bits.iter_mut().zip(values.chunks(LANES)) {
            let set = |(lane, &x): (usize, &f32)| u8::from(activation.bit(x)) << lane;
            *byte = lanes.iter().enumerate().map(set).sum();
        }
    }
    for x in values {
        *x = activation.value(*x);
    }
}

pub(super) fn mask(mask: Mask<'_>, values: &mut [f32]) {
    for (i, x) in values.iter_mut().enumerate() {
        *x *= mask.slope(i);
    }
}
