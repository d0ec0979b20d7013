//! The [`Epilogue`] in vectors: what the vector kernels do to results before they store them.
//!
//! `out = smooth(mask(activation(result + bias + residual [+ out])))`, in this order, as everywhere. A vector begins on a multiple
//! of eight and is stored in whole eights: lanes past the last channel are padding.

use std::mem::MaybeUninit;

use crate::activation::{Function, apply_part};
use crate::epilogue::{Activation, Epilogue};
use crate::lanes::Lanes;

/// An [`Epilogue`] as raw pointers, so that threads can share it; null where the epilogue has nothing.
#[derive(Clone, Copy)]
pub(crate) struct Finish {
    out: *mut f32,
    bias: *const f32,
    residual: *const f32,
    accumulate: bool,
    activation: Activation,
    bits: *mut u8,
    mask: *const u8,
    on: f32,
    off: f32,
    smooth: Option<Function>,
}

// SAFETY: the pointers come from slices borrowed for as long as the kernel runs; each task writes its own elements of `out`
// and its own bytes of `bits`.
unsafe impl Send for Finish {}
// SAFETY: as above.
unsafe impl Sync for Finish {}

impl Finish {
    /// The epilogue for results that go to `out`. The caller has checked that all slices have the output's shape.
    pub(crate) fn new(out: &mut [f32], epilogue: Epilogue<'_>) -> Finish {
        Finish {
            out: out.as_mut_ptr(),
            bias: epilogue.bias.map_or(std::ptr::null(), <[f32]>::as_ptr),
            residual: epilogue.residual.map_or(std::ptr::null(), <[f32]>::as_ptr),
            accumulate: epilogue.accumulate,
            activation: epilogue.activation,
            bits: epilogue.bits.map_or(std::ptr::null_mut(), |bits| bits.as_mut_ptr()),
            mask: epilogue.mask.map_or(std::ptr::null(), |mask| mask.bits.as_ptr()),
            on: epilogue.mask.map_or(1.0, |mask| mask.on),
            off: epilogue.mask.map_or(0.0, |mask| mask.off),
            smooth: epilogue.smooth,
        }
    }

    /// The bias of channels `first .. first + count`, the rest of `N` lanes zero.
    ///
    /// # Safety
    /// The bias, if there is one, has these channels.
    pub(crate) unsafe fn bias<const N: usize>(&self, first: usize, count: usize) -> [f32; N] {
        let mut lanes = [0.0; N];
        if !self.bias.is_null() {
            for (lane, value) in lanes.iter_mut().enumerate().take(count) {
                // SAFETY: promised by the caller.
                *value = unsafe { *self.bias.add(first + lane) };
            }
        }
        lanes
    }

    /// Asks for the cache lines that `V` vectors of results at `at` will go to.
    ///
    /// # Safety
    /// `at` is in range.
    #[inline(always)]
    pub(crate) unsafe fn expect<L: Lanes, const V: usize>(&self, l: L, at: usize) {
        l.prefetch_near(self.out.wrapping_add(at));
        l.prefetch_near(self.out.wrapping_add(at + L::WIDTH * V - 1));
    }

    /// Finishes `R` rows of `V` vectors of results, row `r` into the elements from `at[r]` on; the last vector has the lanes of
    /// `last`.
    ///
    /// # Safety
    /// Each `at` is a multiple of eight and its elements are in range; no other thread touches them.
    #[inline(always)]
    pub(crate) unsafe fn tile<L: Lanes, const R: usize, const V: usize>(
        self,
        l: L,
        mut tile: [[L::Vector; V]; R],
        bias: [L::Vector; V],
        at: [usize; R],
        last: L::Part,
    ) {
        let mut parts = [l.part(L::WIDTH); V];
        parts[V - 1] = last;
        // SAFETY: promised by the caller.
        unsafe {
            for r in 0..R {
                for v in 0..V {
                    tile[r][v] = l.add(tile[r][v], bias[v]);
                }
            }
            if !self.residual.is_null() {
                for r in 0..R {
                    for v in 0..V {
                        let more = l.load_part(self.residual.add(at[r] + L::WIDTH * v), parts[v]);
                        tile[r][v] = l.add(tile[r][v], more);
                    }
                }
            }
            if self.accumulate {
                for r in 0..R {
                    for v in 0..V {
                        let more = l.load_part(self.out.add(at[r] + L::WIDTH * v), parts[v]);
                        tile[r][v] = l.add(tile[r][v], more);
                    }
                }
            }
            if !self.bits.is_null() {
                for r in 0..R {
                    for v in 0..V {
                        let bits = bits(l, self.activation, tile[r][v]);
                        l.store_bits(self.bits.add((at[r] + L::WIDTH * v) / 8), bits, parts[v]);
                    }
                }
            }
            activate(l, self.activation, tile.as_flattened_mut());
            if !self.mask.is_null() {
                let (on, off) = (l.splat(self.on), l.splat(self.off));
                for r in 0..R {
                    for v in 0..V {
                        let set = l.load_bits(self.mask.add((at[r] + L::WIDTH * v) / 8), parts[v]);
                        tile[r][v] = l.mul(tile[r][v], l.select(set, on, off));
                    }
                }
            }
            if let Some(function) = self.smooth {
                bend(l, function, tile.as_flattened_mut());
            }
            for r in 0..R {
                for v in 0..V {
                    l.store_part(self.out.add(at[r] + L::WIDTH * v), tile[r][v], parts[v]);
                }
            }
        }
    }
}

/// The activation's bits at the values of a vector.
#[inline(always)]
pub(crate) fn bits<L: Lanes>(l: L, activation: Activation, v: L::Vector) -> u16 {
    match activation {
        Activation::None => u16::MAX,
        Activation::Relu | Activation::LeakyRelu(_) => l.greater(v, l.splat(0.0)),
        Activation::Clip(low, high) => l.greater(v, l.splat(low)) & l.greater(l.splat(high), v),
    }
}

/// The activation of every value of some vectors.
#[inline(always)]
pub(crate) fn activate<L: Lanes>(l: L, activation: Activation, values: &mut [L::Vector]) {
    match activation {
        Activation::None => {}
        Activation::Relu => {
            for v in values {
                *v = l.max(*v, l.splat(0.0));
            }
        }
        Activation::LeakyRelu(slope) => {
            for v in values {
                *v = l.select(l.greater(*v, l.splat(0.0)), *v, l.mul(*v, l.splat(slope)));
            }
        }
        Activation::Clip(low, high) => {
            for v in values {
                *v = l.min(l.max(*v, l.splat(low)), l.splat(high));
            }
        }
    }
}

/// Elements of the largest tile.
const MOST: usize = 256;

/// The smooth activation of every value of some vectors, at most [`MOST`] values: by the loop that serves maps, so the bytes are the same.
#[inline(always)]
pub(crate) fn bend<L: Lanes>(l: L, function: Function, vectors: &mut [L::Vector]) {
    let count = vectors.len() * L::WIDTH;
    assert!(count <= MOST);
    let mut stage = MaybeUninit::<[f32; MOST]>::uninit();
    let first = stage.as_mut_ptr().cast::<f32>();
    // SAFETY: the vectors fit the stage, and fill as much of it as is read.
    unsafe {
        for (i, v) in vectors.iter().enumerate() {
            l.store(first.add(i * L::WIDTH), *v);
        }
        apply_part(function, std::slice::from_raw_parts_mut(first, count));
        for (i, v) in vectors.iter_mut().enumerate() {
            *v = l.load(first.add(i * L::WIDTH));
        }
    }
}
