//! The convolution as its formula says, in plain loops over `f32` or `f64`: what every fast kernel answers to, and what runs
//! where no fast kernel does.
//!
//! Each result is one sum over taps, row by row, then channels.

use std::ops::{Add, Mul};

use super::Geometry;
use crate::epilogue::{Activation, Epilogue};
use crate::layout;

/// `f32` or `f64`.
pub trait Real:
    Copy + Default + PartialOrd + Add<Output = Self> + Mul<Output = Self> + From<f32> + Send + Sync
{
}
impl Real for f32 {}
impl Real for f64 {}

/// Forwards: `out = epilogue(w * x)`, channels-last, weights `[out_c][in_c / groups][kh][kw]`.
pub fn forward<T: Real>(
    geometry: &Geometry,
    weights: &[T],
    x: &[T],
    out: &mut [T],
    mut epilogue: Epilogue<'_>,
) {
    let g = geometry;
    let (ins, outs) = (g.in_c / g.groups, g.out_c / g.groups);
    let (in_stride, out_stride) = (layout::stride(g.in_c), layout::stride(g.out_c));
    for n in 0..g.batch {
        for oy in 0..g.out_h() {
            for ox in 0..g.out_w() {
                let pixel = (n * g.out_h() + oy) * g.out_w() + ox;
                for o in 0..g.out_c {
                    let mut sum = T::default();
                    for ky in 0..g.kernel[0] {
                        for kx in 0..g.kernel[1] {
                            let (y, x_) = (
                                oy * g.stride[0] + ky * g.dilation[0],
                                ox * g.stride[1] + kx * g.dilation[1],
                            );
                            let Some(at) = inside(y, x_, g) else { continue };
                            let from = ((n * g.in_h * g.in_w) + at) * in_stride + o / outs * ins;
                            for c in 0..ins {
                                sum = sum
                                    + x[from + c]
                                        * weights[((o * ins + c) * g.kernel[0] + ky) * g.kernel[1] + kx];
                            }
                        }
                    }
                    finish(sum, o, pixel * out_stride + o, out, &mut epilogue);
                }
            }
        }
    }
}

/// The pullback: `gx = epilogue(w' * gy)`.
pub fn pullback<T: Real>(
    geometry: &Geometry,
    weights: &[T],
    gy: &[T],
    gx: &mut [T],
    mut epilogue: Epilogue<'_>,
) {
    let g = geometry;
    let (ins, outs) = (g.in_c / g.groups, g.out_c / g.groups);
    let (in_stride, out_stride) = (layout::stride(g.in_c), layout::stride(g.out_c));
    for n in 0..g.batch {
        for y in 0..g.in_h {
            for x in 0..g.in_w {
                let pixel = (n * g.in_h + y) * g.in_w + x;
                for c in 0..g.in_c {
                    let (group, lane) = (c / ins, c % ins);
                    let mut sum = T::default();
                    for ky in 0..g.kernel[0] {
                        for kx in 0..g.kernel[1] {
                            let reads = (
                                read_by(y + g.pads[0], ky * g.dilation[0], g.stride[0], g.out_h()),
                                read_by(x + g.pads[1], kx * g.dilation[1], g.stride[1], g.out_w()),
                            );
                            let (Some(oy), Some(ox)) = reads else { continue };
                            let from = ((n * g.out_h() + oy) * g.out_w() + ox) * out_stride + group * outs;
                            for o in 0..outs {
                                let w =
                                    (((group * outs + o) * ins + lane) * g.kernel[0] + ky) * g.kernel[1] + kx;
                                sum = sum + gy[from + o] * weights[w];
                            }
                        }
                    }
                    finish(sum, c, pixel * in_stride + c, gx, &mut epilogue);
                }
            }
        }
    }
}

/// The input pixel at a padded position, if it is not padding.
fn inside(y: usize, x: usize, g: &Geometry) -> Option<usize> {
    let (y, x) = (y.checked_sub(g.pads[0])?, x.checked_sub(g.pads[1])?);
    (y < g.in_h && x < g.in_w).then_some(y * g.in_w + x)
}

/// The output position whose tap at `tap` reads the padded input position `at`.
fn read_by(at: usize, tap: usize, stride: usize, size: usize) -> Option<usize> {
    let from = at.checked_sub(tap)?;
    (from.is_multiple_of(stride) && from / stride < size).then_some(from / stride)
}

fn finish<T: Real>(sum: T, channel: usize, at: usize, out: &mut [T], epilogue: &mut Epilogue<'_>) {
    let mut v = sum;
    if let Some(bias) = epilogue.bias {
        v = v + bias[channel].into();
    }
    if let Some(residual) = epilogue.residual {
        v = v + residual[at].into();
    }
    if epilogue.accumulate {
        v = v + out[at];
    }
    let (value, bit) = activate(v, epilogue.activation);
    if let Some(bits) = &mut epilogue.bits {
        let byte = &mut bits[at / 8];
        *byte = (*byte & !(1 << (at % 8))) | (u8::from(bit) << (at % 8));
    }
    out[at] = match &epilogue.mask {
        Some(mask) => value * mask.slope(at).into(),
        None => value,
    };
}

fn activate<T: Real>(x: T, activation: Activation) -> (T, bool) {
    let zero = T::default();
    match activation {
        Activation::None => (x, true),
        Activation::Relu => (if x > zero { x } else { zero }, x > zero),
        Activation::LeakyRelu(slope) => (if x > zero { x } else { x * slope.into() }, x > zero),
        Activation::Clip(low, high) => {
            let (low, high) = (low.into(), high.into());
            let raised = if x > low { x } else { low };
            (if raised < high { raised } else { high }, low < x && x < high)
        }
    }
}
