//! The gradient of a convolution to its weights: `gw[o, c, t] += sum over n, p of gy[n, p, o] * x[n, s*p + d*t - pad, c]`.
//!
//! A product over all pixels of the batch for each tap. The input is copied once into panels of sixteen channels with its zeros around it, so that
//! a tap is an offset; the output's gradient once into planes. Tiles of output channels by two vectors of input channels stay in registers over a
//! block of pixels, and blocks are added in order, so a gradient is the same for any number of threads.

#[cfg(target_arch = "x86_64")]
mod blocked;
pub mod reference;
#[cfg(test)]
mod tests;

use super::Geometry;
#[cfg(target_arch = "x86_64")]
use crate::cpu;
use crate::layout;

/// Adds the gradient to the weights `[out_c][in_c][kernel[0]][kernel[1]]` to `gw`.
///
/// # Panics
/// If the convolution has groups, or a slice does not have the size the geometry gives it.
pub fn to_weights(geometry: &Geometry, x: &[f32], gy: &[f32], gw: &mut [f32]) {
    check(geometry, x, gy, gw);
    #[cfg(target_arch = "x86_64")]
    match (cpu::avx512(), cpu::avx2()) {
        (Some(l), _) => return blocked::run(l, geometry, x, gy, gw),
        (_, Some(l)) => return blocked::run(l, geometry, x, gy, gw),
        _ => {}
    }
    reference::to_weights(geometry, x, gy, gw);
}

fn check(g: &Geometry, x: &[f32], gy: &[f32], gw: &[f32]) {
    assert_eq!(g.groups, 1, "one group, {g:?}");
    assert!(g.stride.iter().chain(&g.dilation).all(|&s| s > 0), "a step of zero in {g:?}");
    assert_eq!(x.len(), g.batch * g.in_h * g.in_w * layout::stride(g.in_c), "size of the input, {g:?}");
    let output = g.batch * g.out_h() * g.out_w() * layout::stride(g.out_c);
    assert_eq!(gy.len(), output, "size of the output, {g:?}");
    assert_eq!(gw.len(), g.out_c * g.in_c * g.kernel[0] * g.kernel[1], "size of the weights, {g:?}");
}
