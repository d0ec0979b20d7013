//! The plain twin: one sum after the other.

use super::{Geometry, check};
use crate::layout;

/// [`super::to_weights`] as the formula says.
///
/// # Panics
/// As there.
pub fn to_weights(g: &Geometry, x: &[f32], gy: &[f32], gw: &mut [f32]) {
    check(g, x, gy, gw);
    let (stride, out_stride) = (layout::stride(g.in_c), layout::stride(g.out_c));
    let (out_h, out_w) = (g.out_h(), g.out_w());
    let [kernel_h, kernel_w] = g.kernel;
    for n in 0..g.batch {
        for (oy, ox) in (0..out_h).flat_map(|y| (0..out_w).map(move |x| (y, x))) {
            let errors = &gy[((n * out_h + oy) * out_w + ox) * out_stride..][..g.out_c];
            for (ky, kx) in (0..kernel_h).flat_map(|y| (0..kernel_w).map(move |x| (y, x))) {
                let y = (oy * g.stride[0] + ky * g.dilation[0]).wrapping_sub(g.pads[0]);
                let column = (ox * g.stride[1] + kx * g.dilation[1]).wrapping_sub(g.pads[1]);
                if y >= g.in_h || column >= g.in_w {
                    continue;
                }
                let pixel = &x[((n * g.in_h + y) * g.in_w + column) * stride..][..g.in_c];
                for (o, error) in errors.iter().enumerate() {
                    for (c, value) in pixel.iter().enumerate() {
                        gw[((o * g.in_c + c) * kernel_h + ky) * kernel_w + kx] += error * value;
                    }
                }
            }
        }
    }
}
