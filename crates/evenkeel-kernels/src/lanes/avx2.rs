//! Eight lanes with AVX2 and FMA.
//!
//! Each method is one instruction or two; it becomes that once inlined into a function compiled for AVX2.

use std::arch::x86_64::*;

use super::{Kernel, Lanes};
use crate::cpu::Avx2;

/// Compiles a kernel for AVX2 and FMA.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn compiled<K: Kernel<Avx2>>(l: Avx2, kernel: K) {
    kernel.run(l);
}

impl Lanes for Avx2 {
    type Vector = __m256;
    type Part = ();
    const WIDTH: usize = 8;
    const ROWS: usize = 6;

    #[inline(always)]
    fn run<K: Kernel<Self>>(self, kernel: K) {
        // SAFETY: self proves AVX2 and FMA.
        unsafe { compiled(self, kernel) }
    }

    #[inline(always)]
    fn part(self, _: usize) {}

    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        // SAFETY: self proves AVX2.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m256 {
        // SAFETY: self proves AVX2, the caller that eight floats are there.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, v: __m256) {
        // SAFETY: as in load.
        unsafe { _mm256_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn load_part(self, from: *const f32, _: ()) -> __m256 {
        // SAFETY: the only part is the whole vector.
        unsafe { self.load(from) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, v: __m256, _: ()) {
        // SAFETY: as in load_part.
        unsafe { self.store(to, v) }
    }

    #[inline(always)]
    unsafe fn load_bits(self, from: *const u8, _: ()) -> u16 {
        // SAFETY: the caller's promise.
        u16::from(unsafe { *from })
    }

    #[inline(always)]
    unsafe fn store_bits(self, to: *mut u8, bits: u16, _: ()) {
        // SAFETY: the caller's promise.
        unsafe { *to = bits as u8 }
    }

    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: self proves AVX2.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: self proves AVX2.
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: self proves AVX2.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    fn mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: self proves AVX2 and FMA.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn mul_sub(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: self proves AVX2 and FMA.
        unsafe { _mm256_fnmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: self proves AVX2.
        unsafe { _mm256_max_ps(a, b) }
    }

    #[inline(always)]
    fn min(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: self proves AVX2.
        unsafe { _mm256_min_ps(a, b) }
    }

    #[inline(always)]
    fn greater(self, a: __m256, b: __m256) -> u16 {
        // SAFETY: self proves AVX2.
        unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(a, b)) as u16 }
    }

    #[inline(always)]
    fn select(self, bits: u16, on: __m256, off: __m256) -> __m256 {
        // SAFETY: self proves AVX2.
        unsafe {
            let lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let set = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(i32::from(bits)), lane), lane);
            _mm256_blendv_ps(off, on, _mm256_castsi256_ps(set))
        }
    }

    #[inline(always)]
    fn prefetch(self, at: *const f32) {
        // SAFETY: self proves AVX2; a prefetch of a bad address does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }

    #[inline(always)]
    fn prefetch_near(self, at: *const f32) {
        // SAFETY: self proves AVX2; a prefetch of a bad address does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}
