//! What happens to a result on its way out of a convolution: bias, residual, activation and its bits in the forward
//! direction; accumulation and the mask of the activation below in the pullback.
//!
//! `out = smooth(mask(activation(result + bias + residual [+ out])))`, element by element, in this order. Both directions take the same
//! [`Epilogue`], because a transposed convolution runs forwards with the pullback's kernel.

use crate::activation::Function;

/// An activation whose derivative is one of two constants, so that its tape is one bit an element.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// The identity.
    #[default]
    None,
    /// `max(x, 0)`; the bit is `x > 0`.
    Relu,
    /// `x` where `x > 0`, else `slope * x`; the bit is `x > 0`.
    LeakyRelu(f32),
    /// `min(max(x, low), high)`; the bit is `low < x < high`.
    Clip(f32, f32),
}

impl Activation {
    /// The value at `x`.
    #[inline]
    pub fn value(self, x: f32) -> f32 {
        match self {
            Activation::None => x,
            Activation::Relu => x.max(0.0),
            Activation::LeakyRelu(slope) => {
                if x > 0.0 {
                    x
                } else {
                    slope * x
                }
            }
            Activation::Clip(low, high) => x.max(low).min(high),
        }
    }

    /// The tape's bit at `x` (the value before the activation).
    #[inline]
    pub fn bit(self, x: f32) -> bool {
        match self {
            Activation::None => true,
            Activation::Relu | Activation::LeakyRelu(_) => x > 0.0,
            Activation::Clip(low, high) => low < x && x < high,
        }
    }

    /// The derivative where the bit is clear; it is 1 where the bit is set.
    pub fn slope_off(self) -> f32 {
        match self {
            Activation::LeakyRelu(slope) => slope,
            _ => 0.0,
        }
    }
}

/// The derivative of a two-slope activation: element `i` of a channels-last map is multiplied by `on` where bit `i % 8` of
/// byte `i / 8` is set, else by `off`.
#[derive(Clone, Copy, Debug)]
pub struct Mask<'a> {
    /// One bit an element, padding lanes included.
    pub bits: &'a [u8],
    /// The slope where the bit is set.
    pub on: f32,
    /// The slope where it is clear.
    pub off: f32,
}

impl Mask<'_> {
    /// The slope at element `i`.
    #[inline]
    pub fn slope(&self, i: usize) -> f32 {
        if self.bits[i / 8] >> (i % 8) & 1 == 1 { self.on } else { self.off }
    }
}

/// What to do to each result before it is stored. See the module's formula.
#[derive(Debug, Default)]
pub struct Epilogue<'a> {
    /// One value a channel (the real channels only).
    pub bias: Option<&'a [f32]>,
    /// A map of the output's shape and layout to add.
    pub residual: Option<&'a [f32]>,
    /// Add to what the output already holds instead of overwriting it.
    pub accumulate: bool,
    /// Applied after the additions.
    pub activation: Activation,
    /// Where to write the activation's bits: one byte for eight lanes of the output, padding lanes included (their bits are
    /// unspecified).
    pub bits: Option<&'a mut [u8]>,
    /// Applied after the activation.
    pub mask: Option<Mask<'a>>,
    /// Applied last, for walks that keep no tape: the same bytes as [`crate::activation::apply`] afterwards.
    pub smooth: Option<Function>,
}
