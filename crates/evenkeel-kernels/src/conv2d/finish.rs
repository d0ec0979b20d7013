//! The [`Epilogue`] in vectors: what the AVX2 kernels do to eight results at a time before they store them.
//!
//! `out = mask(activation(result + bias + residual [+ out]))`, in this order, as everywhere. Eight lanes that begin on a
//! multiple of eight are stored whole: lanes past the last channel are padding.

use std::arch::x86_64::*;

use crate::epilogue::{Activation, Epilogue};

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
    /// `at + 8 * V` elements are in range.
    #[inline(always)]
    pub(crate) unsafe fn expect<const V: usize>(&self, at: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(self.out.add(at).cast());
            _mm_prefetch::<_MM_HINT_T0>(self.out.add(at + 8 * V - 1).cast());
        }
    }

    /// Finishes `R` rows of `V` vectors of results, row `r` into elements `at[r] .. at[r] + 8 * V`.
    ///
    /// # Safety
    /// The machine has AVX2; each `at` is a multiple of eight and its elements are in range; no other thread touches them.
    #[inline(always)]
    pub(crate) unsafe fn tile<const R: usize, const V: usize>(
        self,
        mut tile: [[__m256; V]; R],
        bias: [__m256; V],
        at: [usize; R],
    ) {
        // SAFETY: promised by the caller.
        unsafe {
            for (row, values) in tile.iter_mut().enumerate() {
                for (v, value) in values.iter_mut().enumerate() {
                    *value = _mm256_add_ps(*value, bias[v]);
                    if !self.residual.is_null() {
                        *value = _mm256_add_ps(*value, _mm256_loadu_ps(self.residual.add(at[row] + 8 * v)));
                    }
                }
            }
            if self.accumulate {
                for (row, values) in tile.iter_mut().enumerate() {
                    for (v, value) in values.iter_mut().enumerate() {
                        *value = _mm256_add_ps(*value, _mm256_loadu_ps(self.out.add(at[row] + 8 * v)));
                    }
                }
            }
            if !self.bits.is_null() {
                for (row, values) in tile.iter().enumerate() {
                    for (v, &value) in values.iter().enumerate() {
                        *self.bits.add(at[row] / 8 + v) = bits(value, self.activation);
                    }
                }
            }
            activate(&mut tile, self.activation);
            if !self.mask.is_null() {
                for (row, values) in tile.iter_mut().enumerate() {
                    for (v, value) in values.iter_mut().enumerate() {
                        let slopes = slopes(*self.mask.add(at[row] / 8 + v), self.on, self.off);
                        *value = _mm256_mul_ps(*value, slopes);
                    }
                }
            }
            for (row, values) in tile.iter().enumerate() {
                for (v, &value) in values.iter().enumerate() {
                    _mm256_storeu_ps(self.out.add(at[row] + 8 * v), value);
                }
            }
        }
    }
}

/// The activation's bits at eight values.
#[inline(always)]
unsafe fn bits(v: __m256, activation: Activation) -> u8 {
    // SAFETY: only the caller's promise that the machine has AVX2 is used.
    unsafe {
        let set = match activation {
            Activation::None => return 0xff,
            Activation::Relu | Activation::LeakyRelu(_) => {
                _mm256_cmp_ps::<_CMP_GT_OQ>(v, _mm256_setzero_ps())
            }
            Activation::Clip(low, high) => _mm256_and_ps(
                _mm256_cmp_ps::<_CMP_GT_OQ>(v, _mm256_set1_ps(low)),
                _mm256_cmp_ps::<_CMP_LT_OQ>(v, _mm256_set1_ps(high)),
            ),
        };
        _mm256_movemask_ps(set) as u8
    }
}

/// The activation of every value of a tile.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(crate) unsafe fn activate<const R: usize, const V: usize>(
    tile: &mut [[__m256; V]; R],
    activation: Activation,
) {
    // SAFETY: only the caller's promise that the machine has AVX2 is used.
    unsafe {
        let zero = _mm256_setzero_ps();
        match activation {
            Activation::None => {}
            Activation::Relu => {
                for value in tile.as_flattened_mut() {
                    *value = _mm256_max_ps(*value, zero);
                }
            }
            Activation::LeakyRelu(slope) => {
                for value in tile.as_flattened_mut() {
                    let below = _mm256_mul_ps(*value, _mm256_set1_ps(slope));
                    *value = _mm256_blendv_ps(below, *value, _mm256_cmp_ps::<_CMP_GT_OQ>(*value, zero));
                }
            }
            Activation::Clip(low, high) => {
                let (low, high) = (_mm256_set1_ps(low), _mm256_set1_ps(high));
                for value in tile.as_flattened_mut() {
                    *value = _mm256_min_ps(_mm256_max_ps(*value, low), high);
                }
            }
        }
    }
}

/// `on` in the lanes whose bit is set, `off` in the others.
#[inline(always)]
unsafe fn slopes(byte: u8, on: f32, off: f32) -> __m256 {
    // SAFETY: only the caller's promise that the machine has AVX2 is used.
    unsafe {
        let lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        let set = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(i32::from(byte)), lane), lane);
        _mm256_blendv_ps(_mm256_set1_ps(off), _mm256_set1_ps(on), _mm256_castsi256_ps(set))
    }
}
