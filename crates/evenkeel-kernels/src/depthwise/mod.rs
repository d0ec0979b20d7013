//! Depthwise convolution on channels-last maps, forwards and pulled back to its input: every channel has its own kernel.
//!
//! `y[n, p, c*m + j] = sum over t of w[c*m + j, t] * x[n, s*p + d*t - pad, c]` with channel multiplier `m`; the pullback gathers
//! `sum over (p, t) that read i of w[., t] * g[n, p, .]`. A sum's order is that of the taps, whatever the tiles and the threads.
//! With one vector of weights a tap and no sum over channels, the work is one multiply-add per loaded vector.

mod reference;
#[cfg(target_arch = "x86_64")]
mod runs;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod tiles;

use crate::conv2d::Geometry;
#[cfg(target_arch = "x86_64")]
use crate::cpu;
use crate::epilogue::Epilogue;
use crate::layout::{LANES, stride};
use crate::taps::Axis;

/// Depthwise weights, tap by tap: `[kernel_h * kernel_w][stride(out_c)]`, padding lanes zero.
#[derive(Clone, Debug)]
pub struct Packed {
    taps: Vec<f32>,
    channels: usize,
    kernel: [usize; 2],
}

impl Packed {
    /// Packs weights `[channels][1][kernel_h][kernel_w]`, where `channels` counts the outputs.
    ///
    /// # Panics
    /// If there are not as many weights as that.
    pub fn new(oihw: &[f32], channels: usize, kernel: [usize; 2]) -> Packed {
        let cells = kernel[0] * kernel[1];
        assert_eq!(oihw.len(), channels * cells, "weights of {channels} channels, kernel {kernel:?}");
        let step = stride(channels);
        let mut taps = vec![0.0; cells * step];
        for c in 0..channels {
            for t in 0..cells {
                taps[t * step + c] = oihw[c * cells + t];
            }
        }
        Packed { taps, channels, kernel }
    }

    /// `[kernel_h * kernel_w][stride(out_c)]`.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn taps(&self) -> &[f32] {
        &self.taps
    }
}

/// Whether a convolution of this geometry is depthwise (with any channel multiplier).
pub fn serves(geometry: &Geometry) -> bool {
    geometry.groups == geometry.in_c && geometry.in_c > 0 && geometry.out_c.is_multiple_of(geometry.in_c)
}

/// The convolution of `input`, ended by `epilogue`, in `output`.
///
/// # Panics
/// If the geometry is not depthwise or a slice does not fit it.
pub fn forward(
    geometry: &Geometry,
    weights: &Packed,
    input: &[f32],
    output: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    check(geometry, weights, input.len(), output.len());
    check_epilogue(&epilogue, geometry.out_c, output.len());
    #[cfg(target_arch = "x86_64")]
    if geometry.in_c == geometry.out_c {
        match (cpu::avx512(), cpu::avx2()) {
            (Some(l), _) => return tiles::forward(l, geometry, weights, input, output, epilogue),
            (_, Some(l)) => return tiles::forward(l, geometry, weights, input, output, epilogue),
            _ => {}
        }
    }
    reference::forward(geometry, weights, input, output, epilogue);
}

/// The pullback of [`forward`] at `grad_out`, ended by `epilogue` (whose bias, if any, counts the input channels), in `grad_in`.
///
/// # Panics
/// If the geometry is not depthwise or a slice does not fit it.
pub fn pullback(
    geometry: &Geometry,
    weights: &Packed,
    grad_out: &[f32],
    grad_in: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    check(geometry, weights, grad_in.len(), grad_out.len());
    check_epilogue(&epilogue, geometry.in_c, grad_in.len());
    #[cfg(target_arch = "x86_64")]
    if geometry.in_c == geometry.out_c {
        match (cpu::avx512(), cpu::avx2()) {
            (Some(l), _) => return tiles::pullback(l, geometry, weights, grad_out, grad_in, epilogue),
            (_, Some(l)) => return tiles::pullback(l, geometry, weights, grad_out, grad_in, epilogue),
            _ => {}
        }
    }
    reference::pullback(geometry, weights, grad_out, grad_in, epilogue);
}

fn check(g: &Geometry, weights: &Packed, input: usize, output: usize) {
    assert!(serves(g), "not depthwise: {g:?}");
    assert_eq!((weights.channels, weights.kernel), (g.out_c, g.kernel), "weights of {g:?}");
    assert_eq!(input, g.batch * g.in_h * g.in_w * stride(g.in_c), "input of {g:?}");
    assert_eq!(output, g.batch * g.out_h() * g.out_w() * stride(g.out_c), "output of {g:?}");
}

fn check_epilogue(epilogue: &Epilogue<'_>, channels: usize, len: usize) {
    assert!(epilogue.bias.is_none_or(|bias| bias.len() == channels), "one bias a channel");
    assert!(epilogue.residual.is_none_or(|residual| residual.len() == len), "size of the residual");
    assert!(epilogue.bits.as_ref().is_none_or(|bits| bits.len() == len / LANES), "size of the bits");
    assert!(epilogue.mask.is_none_or(|mask| mask.bits.len() == len / LANES), "size of the mask");
}

fn axes(g: &Geometry) -> [Axis; 2] {
    let axis = |i: usize, input, output| Axis {
        input,
        output,
        kernel: g.kernel[i],
        stride: g.stride[i],
        dilation: g.dilation[i],
        pad: g.pads[i],
    };
    [axis(0, g.in_h, g.out_h()), axis(1, g.in_w, g.out_w())]
}
