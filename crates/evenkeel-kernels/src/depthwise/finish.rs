//! The [`Epilogue`] on a tile of vectors, before it is stored: each question is asked once a tile.
//!
//! `out = mask(activation(result + bias + residual [+ out]))`, as everywhere.

use std::arch::x86_64::*;

use crate::disjoint::Disjoint;
use crate::epilogue::{Activation, Epilogue, Mask};
use crate::layout::{LANES, stride};

/// An [`Epilogue`] and the output it ends in, shared by tasks that finish different elements.
pub(super) struct Finish<'a> {
    out: Disjoint<'a, f32>,
    bits: Option<Disjoint<'a, u8>>,
    bias: Vec<f32>, // one pixel, zero where there is none
    residual: Option<&'a [f32]>,
    mask: Option<Mask<'a>>,
    accumulate: bool,
    activation: Activation,
}

impl<'a> Finish<'a> {
    /// # Panics
    /// If a slice of the epilogue has not the output's shape.
    pub(super) fn new(epilogue: Epilogue<'a>, channels: usize, out: &'a mut [f32]) -> Self {
        let len = out.len();
        let mut bias = vec![0.0; stride(channels)];
        if let Some(given) = epilogue.bias {
            bias[..channels].copy_from_slice(given);
        }
        assert!(epilogue.residual.is_none_or(|residual| residual.len() == len), "residual");
        assert!(epilogue.mask.is_none_or(|mask| mask.bits.len() == len / LANES), "mask");
        let bits = epilogue.bits.map(|bits| {
            assert_eq!(bits.len(), len / LANES, "bits");
            Disjoint::new(bits)
        });
        Finish {
            out: Disjoint::new(out),
            bits,
            bias,
            residual: epilogue.residual,
            mask: epilogue.mask,
            accumulate: epilogue.accumulate,
            activation: epilogue.activation,
        }
    }

    /// Finishes one vector of channels, from `channel` on, of `P` pixels `step` elements apart, the first at element `at`.
    ///
    /// # Safety
    /// The machine has AVX2, and no other task finishes the same elements.
    #[inline(always)]
    pub(super) unsafe fn tile<const P: usize>(
        &self,
        at: usize,
        step: usize,
        channel: usize,
        mut tile: [__m256; P],
    ) {
        let last = at + (P - 1) * step + LANES;
        let out = self.out.pointer(at..last);
        // SAFETY: promised by the caller; pointers stay within at..last, and the bias and bytes are those of these elements.
        unsafe {
            let bias = _mm256_loadu_ps(self.bias[channel..channel + LANES].as_ptr());
            for v in &mut tile {
                *v = _mm256_add_ps(*v, bias);
            }
            if let Some(residual) = self.residual {
                let from = residual[at..last].as_ptr();
                for (p, v) in tile.iter_mut().enumerate() {
                    *v = _mm256_add_ps(*v, _mm256_loadu_ps(from.add(p * step)));
                }
            }
            if self.accumulate {
                for (p, v) in tile.iter_mut().enumerate() {
                    *v = _mm256_add_ps(*v, _mm256_loadu_ps(out.add(p * step)));
                }
            }
            let mut set = [0xFF; P];
            activate(self.activation, &mut tile, &mut set);
            if let Some(bits) = &self.bits {
                for (p, &byte) in set.iter().enumerate() {
                    let place = (at + p * step) / LANES;
                    bits.part(place..place + 1)[0] = byte;
                }
            }
            if let Some(mask) = self.mask {
                let lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
                let (on, off) = (_mm256_set1_ps(mask.on), _mm256_set1_ps(mask.off));
                for (p, v) in tile.iter_mut().enumerate() {
                    let byte = _mm256_set1_epi32(i32::from(mask.bits[(at + p * step) / LANES]));
                    let set = _mm256_cmpeq_epi32(_mm256_and_si256(byte, lane), lane);
                    *v = _mm256_mul_ps(*v, _mm256_blendv_ps(off, on, _mm256_castsi256_ps(set)));
                }
            }
            for (p, v) in tile.into_iter().enumerate() {
                _mm256_storeu_ps(out.add(p * step), v);
            }
        }
    }
}

/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn activate<const P: usize>(activation: Activation, tile: &mut [__m256; P], set: &mut [u8; P]) {
    // SAFETY: promised by the caller: the machine has AVX2.
    unsafe {
        let zero = _mm256_setzero_ps();
        match activation {
            Activation::None => {}
            Activation::Relu => {
                for (v, set) in tile.iter_mut().zip(set) {
                    *set = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(*v, zero)) as u8;
                    *v = _mm256_max_ps(*v, zero);
                }
            }
            Activation::LeakyRelu(slope) => {
                let slope = _mm256_set1_ps(slope);
                for (v, set) in tile.iter_mut().zip(set) {
                    let above = _mm256_cmp_ps::<_CMP_GT_OQ>(*v, zero);
                    *set = _mm256_movemask_ps(above) as u8;
                    *v = _mm256_blendv_ps(_mm256_mul_ps(*v, slope), *v, above);
                }
            }
            Activation::Clip(low, high) => {
                let (low, high) = (_mm256_set1_ps(low), _mm256_set1_ps(high));
                for (v, set) in tile.iter_mut().zip(set) {
                    let inside = _mm256_and_ps(
                        _mm256_cmp_ps::<_CMP_GT_OQ>(*v, low),
                        _mm256_cmp_ps::<_CMP_LT_OQ>(*v, high),
                    );
                    *set = _mm256_movemask_ps(inside) as u8;
                    *v = _mm256_min_ps(_mm256_max_ps(*v, low), high);
                }
            }
        }
    }
}
