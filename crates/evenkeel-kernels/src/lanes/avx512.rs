//! Sixteen lanes with AVX-512.
//!
//! Each method is one instruction or two; it becomes that once inlined into a function compiled for AVX-512.

use std::arch::x86_64::*;

use super::{Kernel, Lanes};
use crate::cpu::Avx512;

/// Compiles a kernel for AVX-512.
#[inline]
#[target_feature(enable = "avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")]
fn compiled<K: Kernel<Avx512>>(l: Avx512, kernel: K) {
    kernel.run(l);
}

impl Lanes for Avx512 {
    type Vector = __m512;
    type Part = __mmask16;
    const WIDTH: usize = 16;
    const ROWS: usize = 8;

    #[inline(always)]
    fn run<K: Kernel<Self>>(self, kernel: K) {
        // SAFETY: self proves AVX-512.
        unsafe { compiled(self, kernel) }
    }

    #[inline(always)]
    fn part(self, left: usize) -> __mmask16 {
        if left >= 16 { 0xffff } else { 0x00ff }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: self proves AVX-512.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m512 {
        // SAFETY: self proves AVX-512, the caller that sixteen floats are there.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, v: __m512) {
        // SAFETY: as in load.
        unsafe { _mm512_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn load_part(self, from: *const f32, part: __mmask16) -> __m512 {
        // SAFETY: self proves AVX-512, the caller that the part is there; lanes outside the mask are not touched.
        unsafe { _mm512_maskz_loadu_ps(part, from) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, v: __m512, part: __mmask16) {
        // SAFETY: as in load_part.
        unsafe { _mm512_mask_storeu_ps(to, part, v) }
    }

    #[inline(always)]
    unsafe fn load_bits(self, from: *const u8, part: __mmask16) -> u16 {
        // SAFETY: the caller's promise: two bytes for sixteen lanes, one for eight.
        unsafe { if part > 0xff { from.cast::<u16>().read_unaligned() } else { u16::from(*from) } }
    }

    #[inline(always)]
    unsafe fn store_bits(self, to: *mut u8, bits: u16, part: __mmask16) {
        // SAFETY: as in load_bits.
        unsafe { if part > 0xff { to.cast::<u16>().write_unaligned(bits) } else { *to = bits as u8 } }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: self proves AVX-512.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: self proves AVX-512.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: self proves AVX-512.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: self proves AVX-512.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn mul_sub(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: self proves AVX-512.
        unsafe { _mm512_fnmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: self proves AVX-512.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: self proves AVX-512.
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    fn greater(self, a: __m512, b: __m512) -> u16 {
        // SAFETY: self proves AVX-512.
        unsafe { _mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b) }
    }

    #[inline(always)]
    fn select(self, bits: u16, on: __m512, off: __m512) -> __m512 {
        // SAFETY: self proves AVX-512.
        unsafe { _mm512_mask_blend_ps(bits, off, on) }
    }

    #[inline(always)]
    fn prefetch(self, at: *const f32) {
        // SAFETY: self proves AVX-512; a prefetch of a bad address does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }

    #[inline(always)]
    fn prefetch_near(self, at: *const f32) {
        // SAFETY: self proves AVX-512; a prefetch of a bad address does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}
