//! The [`Epilogue`] applied to runs of results that already lie in memory, for kernels that are bound by reading and not by
//! arithmetic.
//!
//! `out = smooth(mask(activation(result + bias + residual [+ out])))`, as everywhere. A run begins on a whole vector, so that its bits
//! begin on a whole byte.

use crate::activation::{self, Function};
use crate::disjoint::Disjoint;
use crate::epilogue::{Activation, Epilogue, Mask};
use crate::layout::{LANES, stride};
use crate::vectorised::vectorised;

/// An [`Epilogue`] and the output it ends in, shared by tasks that finish different pixels.
pub(crate) struct EpilogueRows<'a> {
    out: Disjoint<'a, f32>,
    bits: Option<Disjoint<'a, u8>>,
    bias: Option<Vec<f32>>, // one pixel, padding lanes zero
    residual: Option<&'a [f32]>,
    mask: Option<Mask<'a>>,
    accumulate: bool,
    activation: Activation,
    smooth: Option<Function>,
}

impl<'a> EpilogueRows<'a> {
    /// # Panics
    /// If a slice of the epilogue has not the output's shape.
    pub(crate) fn new(epilogue: Epilogue<'a>, channels: usize, out: &'a mut [f32]) -> Self {
        let len = out.len();
        assert_eq!(len % LANES, 0);
        if let Some(residual) = epilogue.residual {
            assert_eq!(residual.len(), len, "residual");
        }
        if let Some(mask) = epilogue.mask {
            assert_eq!(mask.bits.len(), len / LANES, "mask");
        }
        let bias = epilogue.bias.map(|bias| {
            assert_eq!(bias.len(), channels, "bias");
            let mut padded = bias.to_vec();
            padded.resize(stride(channels), 0.0);
            padded
        });
        let bits = epilogue.bits.map(|bits| {
            assert_eq!(bits.len(), len / LANES, "bits");
            Disjoint::new(bits)
        });
        EpilogueRows {
            out: Disjoint::new(out),
            bits,
            bias,
            residual: epilogue.residual,
            mask: epilogue.mask,
            accumulate: epilogue.accumulate,
            activation: epilogue.activation,
            smooth: epilogue.smooth,
        }
    }

    /// Finishes `results`, which are whole pixels, into the elements from `at` on.
    ///
    /// # Safety
    /// No other task finishes the same elements.
    pub(crate) unsafe fn finish(&self, at: usize, results: &mut [f32]) {
        let range = at..at + results.len();
        let bytes = at / LANES..(at + results.len()) / LANES;
        if let Some(bias) = &self.bias {
            for pixel in results.chunks_exact_mut(bias.len()) {
                add(pixel, bias);
            }
        }
        if let Some(residual) = self.residual {
            add(results, &residual[range.clone()]);
        }
        // SAFETY: promised by the caller.
        let out = unsafe { self.out.part(range) };
        if self.accumulate {
            add(results, out);
        }
        // SAFETY: the bytes of elements that are this task's alone.
        let bits = self.bits.as_ref().map(|bits| unsafe { bits.part(bytes.clone()) });
        activation::two_slope_part(self.activation, results, bits);
        if let Some(mask) = self.mask {
            activation::mask_part(Mask { bits: &mask.bits[bytes], ..mask }, results);
        }
        match self.smooth {
            Some(function) => activation::apply(function, results, out),
            None => out.copy_from_slice(results),
        }
    }
}

vectorised! {
    fn add(sum: &mut [f32], term: &[f32]) {
        for (sum, term) in sum.iter_mut().zip(term) {
            *sum += term;
        }
    }
}
