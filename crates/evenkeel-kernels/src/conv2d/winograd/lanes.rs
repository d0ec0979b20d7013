//! Eight floats at once: the few operations the transforms and the product are written in.
//!
//! Each algorithm is written once, over [`Lanes`]; the portable lanes are the reference the others answer to. A value of a
//! `Lanes` type proves that its instructions exist, so its methods may use them. Every operation works lane by lane: what stands in
//! one lane never reaches another.

/// Operations on vectors of eight floats.
pub(super) trait Lanes: Copy + Send + Sync {
    /// Eight floats.
    type Vector: Copy;
    /// `x` in every lane.
    fn splat(self, x: f32) -> Self::Vector;
    /// # Safety
    /// Eight floats must be readable at `from`.
    unsafe fn load(self, from: *const f32) -> Self::Vector;
    /// # Safety
    /// Eight floats must be writable at `to`.
    unsafe fn store(self, to: *mut f32, v: Self::Vector);
    /// `a + b`.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a - b`.
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a * b`.
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a * b + c`.
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// `c - a * b`.
    fn mul_sub(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// The larger; `b` where either is not a number.
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The smaller; `b` where either is not a number.
    fn min(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Bit `i` is `a > b` in lane `i`.
    fn greater(self, a: Self::Vector, b: Self::Vector) -> u8;
    /// `on` in the lanes whose bit is set, `off` in the others.
    fn select(self, bits: u8, on: Self::Vector, off: Self::Vector) -> Self::Vector;
    /// Says that the line at `at` will be read soon. Any address will do.
    fn prefetch(self, at: *const f32);
}

/// Plain arrays: runs anywhere.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Lanes for Portable {
    type Vector = [f32; 8];

    #[inline(always)]
    fn splat(self, x: f32) -> [f32; 8] {
        [x; 8]
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> [f32; 8] {
        // SAFETY: the caller says eight floats are there; an array of floats needs no more alignment than one float.
        unsafe { from.cast::<[f32; 8]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, v: [f32; 8]) {
        // SAFETY: as in load.
        unsafe { to.cast::<[f32; 8]>().write_unaligned(v) }
    }

    #[inline(always)]
    fn add(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn sub(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] - b[i])
    }

    #[inline(always)]
    fn mul(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn mul_add(self, a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }

    #[inline(always)]
    fn mul_sub(self, a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| c[i] - a[i] * b[i])
    }

    #[inline(always)]
    fn max(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn min(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| if a[i] < b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn greater(self, a: [f32; 8], b: [f32; 8]) -> u8 {
        (0..8).fold(0, |bits, i| bits | u8::from(a[i] > b[i]) << i)
    }

    #[inline(always)]
    fn select(self, bits: u8, on: [f32; 8], off: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| if bits >> i & 1 == 1 { on[i] } else { off[i] })
    }

    #[inline(always)]
    fn prefetch(self, _: *const f32) {}
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::Lanes;
    use crate::cpu::Avx2;

    // Each method is one instruction; it becomes one once inlined into a function compiled for AVX2.
    impl Lanes for Avx2 {
        type Vector = __m256;

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
        fn greater(self, a: __m256, b: __m256) -> u8 {
            // SAFETY: self proves AVX2.
            unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(a, b)) as u8 }
        }

        #[inline(always)]
        fn select(self, bits: u8, on: __m256, off: __m256) -> __m256 {
            // SAFETY: self proves AVX2.
            unsafe {
                let lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
                let set =
                    _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(i32::from(bits)), lane), lane);
                _mm256_blendv_ps(off, on, _mm256_castsi256_ps(set))
            }
        }

        #[inline(always)]
        fn prefetch(self, at: *const f32) {
            // SAFETY: self proves AVX2; a prefetch of a bad address does nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
        }
    }
}
