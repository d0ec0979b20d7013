//! A scale, a shift and a lower slope for each channel of a channels-last map, in place: batch norm and PReLU in one pass.
//!
//! `z = scale x + shift`, `y = z` where `z >= 0`, else `slope z`; the tape is the bit `z > 0` of every lane. Pulled back,
//! `g *= scale * (bit ? 1 : slope)`. Padding lanes get any values.

use crate::disjoint::Disjoint;
use crate::layout::{LANES, stride};
use crate::parallel;

use super::GRAIN;

/// One value a channel of each, padded to whole vectors. Absent scales are one, absent shifts zero, absent slopes one.
#[derive(Clone, Debug)]
pub struct ByChannel {
    affine: Option<(Vec<f32>, Vec<f32>)>,
    slopes: Option<Vec<f32>>,
    /// What a gradient is multiplied with where the bit is set, and where it is clear.
    pull: (Vec<f32>, Vec<f32>),
}

impl ByChannel {
    /// # Panics
    /// If the lists differ in length, or there are neither pairs nor slopes.
    pub fn new(affine: Option<(&[f32], &[f32])>, slopes: Option<&[f32]>) -> ByChannel {
        let channels =
            affine.map(|(scale, _)| scale.len()).or(slopes.map(<[f32]>::len)).expect("something to do");
        let padded = |values: &[f32]| {
            assert_eq!(values.len(), channels, "one value a channel");
            let mut values = values.to_vec();
            values.resize(stride(channels), 0.0);
            values
        };
        let affine = affine.map(|(scale, shift)| (padded(scale), padded(shift)));
        let slopes = slopes.map(padded);
        let on = affine.as_ref().map_or_else(|| vec![1.0; stride(channels)], |(scale, _)| scale.clone());
        let off = match &slopes {
            Some(slopes) => on.iter().zip(slopes).map(|(on, slope)| on * slope).collect(),
            None => on.clone(),
        };
        ByChannel { affine, slopes, pull: (on, off) }
    }

    /// Whether the pullback needs bits.
    pub fn has_bits(&self) -> bool {
        self.slopes.is_some()
    }

    /// Lanes of a pixel.
    fn step(&self) -> usize {
        self.pull.0.len()
    }

    /// Applies it in place and writes the bits if they are asked for.
    ///
    /// # Panics
    /// If the map is not of whole pixels, or `bits` has not one byte for every eight lanes.
    pub fn apply(&self, values: &mut [f32], bits: Option<&mut [u8]>) {
        assert!(
            bits.as_ref().is_none_or(|bits| bits.len() == values.len() / LANES),
            "bits of {}",
            values.len()
        );
        let bits = bits.map(Disjoint::new);
        self.each(values, |bytes, pixels| {
            // SAFETY: tasks have different byte ranges.
            let bits = bits.as_ref().map(|bits| unsafe { bits.part(bytes) });
            self.apply_part(pixels, bits);
        });
    }

    /// Multiplies each gradient by its slope.
    ///
    /// # Panics
    /// If the map is not of whole pixels, or there are not bits for all of it where slopes need them.
    pub fn pull(&self, bits: &[u8], gradients: &mut [f32]) {
        assert!(!self.has_bits() || bits.len() == gradients.len() / LANES, "bits of {}", gradients.len());
        self.each(gradients, |bytes, pixels| {
            self.pull_part(if self.has_bits() { &bits[bytes] } else { &[] }, pixels);
        });
    }

    fn each(&self, values: &mut [f32], task: impl Fn(std::ops::Range<usize>, &mut [f32]) + Sync + Send) {
        let step = self.step();
        parallel::rows(values, step, (GRAIN / step).max(1), |first, part| {
            let bytes = first * step / LANES..(first * step + part.len()) / LANES;
            task(bytes, part);
        });
    }

    fn apply_part(&self, values: &mut [f32], bits: Option<&mut [u8]>) {
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::avx2().is_some() {
            // SAFETY: the proof says that the machine has AVX2; lengths are checked by the callers.
            return unsafe { avx2::apply(self, values, bits) };
        }
        reference_apply(self, values, bits);
    }

    fn pull_part(&self, bits: &[u8], gradients: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::avx2().is_some() {
            // SAFETY: as in `apply_part`.
            return unsafe { avx2::pull(self, bits, gradients) };
        }
        reference_pull(self, bits, gradients);
    }
}

fn reference_apply(by: &ByChannel, values: &mut [f32], mut bits: Option<&mut [u8]>) {
    let step = by.step();
    for (i, value) in values.iter_mut().enumerate() {
        let c = i % step;
        let z = by.affine.as_ref().map_or(*value, |(scale, shift)| *value * scale[c] + shift[c]);
        *value = by.slopes.as_ref().map_or(z, |slopes| if z < 0.0 { z * slopes[c] } else { z });
        if let Some(bits) = &mut bits {
            let byte = &mut bits[i / LANES];
            let bit = u8::from(z > 0.0) << (i % LANES);
            *byte = if i % LANES == 0 { bit } else { *byte | bit };
        }
    }
}

fn reference_pull(by: &ByChannel, bits: &[u8], gradients: &mut [f32]) {
    let step = by.step();
    for (i, gradient) in gradients.iter_mut().enumerate() {
        let set = bits.get(i / LANES).is_none_or(|byte| byte >> (i % LANES) & 1 == 1);
        *gradient *= if set { by.pull.0[i % step] } else { by.pull.1[i % step] };
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{ByChannel, LANES};

    /// # Safety
    /// The machine has AVX2; `values` is of whole pixels; `bits` has one byte for eight of them.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn apply(by: &ByChannel, values: &mut [f32], bits: Option<&mut [u8]>) {
        let bits = bits.map_or(std::ptr::null_mut(), |bits| bits.as_mut_ptr());
        let (step, zero) = (by.step(), _mm256_setzero_ps());
        let list = |values: Option<&Vec<f32>>| values.map_or(std::ptr::null(), |values| values.as_ptr());
        let (scale, shift) = (list(by.affine.as_ref().map(|a| &a.0)), list(by.affine.as_ref().map(|a| &a.1)));
        let slopes = list(by.slopes.as_ref());
        let mut c = 0;
        for (i, lanes) in values.chunks_exact_mut(LANES).enumerate() {
            // SAFETY: `c` is a multiple of eight below `step`, the length of every list; byte `i` belongs to these lanes.
            unsafe {
                let mut z = _mm256_loadu_ps(lanes.as_ptr());
                if !scale.is_null() {
                    // Not fused: the same bytes as a batch norm on its own.
                    z = _mm256_add_ps(
                        _mm256_mul_ps(z, _mm256_loadu_ps(scale.add(c))),
                        _mm256_loadu_ps(shift.add(c)),
                    );
                }
                if !bits.is_null() {
                    *bits.add(i) = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(z, zero)) as u8;
                }
                if !slopes.is_null() {
                    let below = _mm256_mul_ps(z, _mm256_loadu_ps(slopes.add(c)));
                    z = _mm256_blendv_ps(z, below, _mm256_cmp_ps::<_CMP_LT_OQ>(z, zero));
                }
                _mm256_storeu_ps(lanes.as_mut_ptr(), z);
            }
            c = if c + LANES == step { 0 } else { c + LANES };
        }
    }

    /// # Safety
    /// As for [`apply`]; there are bits if there are slopes.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn pull(by: &ByChannel, bits: &[u8], gradients: &mut [f32]) {
        let (step, with_bits) = (by.step(), by.has_bits());
        let lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        let mut c = 0;
        for (i, lanes) in gradients.chunks_exact_mut(LANES).enumerate() {
            // SAFETY: as above.
            unsafe {
                let mut slopes = _mm256_loadu_ps(by.pull.0.as_ptr().add(c));
                if with_bits {
                    let byte = _mm256_set1_epi32(i32::from(*bits.get_unchecked(i)));
                    let set = _mm256_cmpeq_epi32(_mm256_and_si256(byte, lane), lane);
                    let off = _mm256_loadu_ps(by.pull.1.as_ptr().add(c));
                    slopes = _mm256_blendv_ps(off, slopes, _mm256_castsi256_ps(set));
                }
                _mm256_storeu_ps(lanes.as_mut_ptr(), _mm256_mul_ps(_mm256_loadu_ps(lanes.as_ptr()), slopes));
            }
            c = if c + LANES == step { 0 } else { c + LANES };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_passes_answer_like_the_plain_ones() {
        for (channels, pixels) in [(1, 3), (8, 1), (13, 50), (64, 700), (20, 3000)] {
            let list = |seed: usize| -> Vec<f32> {
                (0..channels).map(|c| ((c * 7 + seed * 13) % 19) as f32 / 9.0 - 1.0).collect()
            };
            let (scale, shift, lower) = (list(1), list(2), list(3));
            let x: Vec<f32> =
                (0..pixels * stride(channels)).map(|i| ((i * 31) % 97) as f32 / 48.0 - 1.0).collect();
            for (affine, slopes) in [(true, true), (true, false), (false, true)] {
                let affine = affine.then_some((&scale[..], &shift[..]));
                let by = ByChannel::new(affine, slopes.then_some(&lower[..]));
                let (mut fast, mut plain) = (x.clone(), x.clone());
                let mut bits = [vec![0; x.len() / LANES], vec![0; x.len() / LANES]];
                by.apply(&mut fast, Some(&mut bits[0]));
                reference_apply(&by, &mut plain, Some(&mut bits[1]));
                assert_eq!(fast, plain);
                assert_eq!(bits[0], bits[1]);
                let (mut fast, mut plain) = (x.clone(), x.clone());
                by.pull(&bits[0], &mut fast);
                reference_pull(&by, if by.has_bits() { &bits[0] } else { &[] }, &mut plain);
                assert_eq!(fast, plain);
            }
        }
    }
}
