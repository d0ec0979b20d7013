//! The tail of a convolution, eight channels at a time, on the way out of the output transform.

use super::lanes::Lanes;
use crate::tail::{Activation, Mask, Tail};

/// A [`Tail`] and the map it writes, open to tasks that each write their own elements.
pub(super) struct Finish<'a> {
    out: *mut f32,
    bits: Option<*mut u8>,
    bias: Option<&'a [f32]>,
    residual: Option<&'a [f32]>,
    accumulate: bool,
    activation: Activation,
    mask: Option<Mask<'a>>,
}

// SAFETY: the pointers stand for exclusive borrows held as long as the value lives, and `store` asks its callers to write disjoint
// elements.
unsafe impl Send for Finish<'_> {}
// SAFETY: as above.
unsafe impl Sync for Finish<'_> {}

impl<'a> Finish<'a> {
    /// # Panics
    /// If a part of the tail does not have the size of `out`, or the bias not one value for each of `channels`.
    pub(super) fn new(out: &'a mut [f32], tail: Tail<'a>, channels: usize) -> Finish<'a> {
        if let Some(bias) = tail.bias {
            assert_eq!(bias.len(), channels, "one bias a channel");
        }
        if let Some(residual) = tail.residual {
            assert_eq!(residual.len(), out.len(), "residual has the output's shape");
        }
        if let Some(bits) = &tail.bits {
            assert_eq!(bits.len() * 8, out.len(), "one bit an element");
        }
        if let Some(mask) = &tail.mask {
            assert_eq!(mask.bits.len() * 8, out.len(), "one mask bit an element");
        }
        Finish {
            out: out.as_mut_ptr(),
            bits: tail.bits.map(<[u8]>::as_mut_ptr),
            bias: tail.bias,
            residual: tail.residual,
            accumulate: tail.accumulate,
            activation: tail.activation,
            mask: tail.mask,
        }
    }

    /// The bias of channels `first..`, zero where there is none.
    pub(super) fn bias(&self, first: usize, to: &mut [f32]) {
        to.fill(0.0);
        if let Some(bias) = self.bias {
            let count = to.len().min(bias.len() - first);
            to[..count].copy_from_slice(&bias[first..first + count]);
        }
    }

    /// Sends eight results through the tail to elements `at..at + 8`.
    ///
    /// # Safety
    /// `at` must be a multiple of eight inside the map, and no other task may touch these elements.
    #[inline(always)]
    pub(super) unsafe fn store<L: Lanes>(&self, l: L, at: usize, result: L::Vector) {
        let mut v = result;
        // SAFETY: the parts of the tail were checked to have the map's size, and `at` lies in it.
        unsafe {
            if let Some(residual) = self.residual {
                v = l.add(v, l.load(residual.as_ptr().add(at)));
            }
            if self.accumulate {
                v = l.add(v, l.load(self.out.add(at)));
            }
            if let Some(bits) = self.bits {
                *bits.add(at / 8) = bits_of(l, self.activation, v);
            }
            v = activate(l, self.activation, v);
            if let Some(mask) = &self.mask {
                let set = *mask.bits.get_unchecked(at / 8);
                v = l.mul(v, l.select(set, l.splat(mask.on), l.splat(mask.off)));
            }
            l.store(self.out.add(at), v);
        }
    }
}

#[inline(always)]
fn bits_of<L: Lanes>(l: L, activation: Activation, v: L::Vector) -> u8 {
    match activation {
        Activation::None => u8::MAX,
        Activation::Relu | Activation::LeakyRelu(_) => l.greater(v, l.splat(0.0)),
        Activation::Clip(low, high) => l.greater(v, l.splat(low)) & l.greater(l.splat(high), v),
    }
}

#[inline(always)]
fn activate<L: Lanes>(l: L, activation: Activation, v: L::Vector) -> L::Vector {
    match activation {
        Activation::None => v,
        Activation::Relu => l.max(v, l.splat(0.0)),
        Activation::LeakyRelu(slope) => l.select(l.greater(v, l.splat(0.0)), v, l.mul(v, l.splat(slope))),
        Activation::Clip(low, high) => l.min(l.max(v, l.splat(low)), l.splat(high)),
    }
}
