//! The convolution in plain loops, over f32 or f64, with gradients to input, weights and bias: for the reference walk and for
//! weights that are not constant.

use evenkeel_kernels::conv2d::{Geometry, reference};
use evenkeel_kernels::epilogue::Epilogue;
use evenkeel_kernels::layout::stride;

use super::super::{Answer, Call};
use crate::error::Fault;
use crate::tensor::{Element, Room, Tensor};

/// The floats a plain convolution runs on.
pub(super) trait Real: Element + reference::Real + std::ops::AddAssign {}
impl Real for f32 {}
impl Real for f64 {}

pub(super) fn apply(
    g: Geometry,
    x: Tensor,
    weights: Tensor,
    bias: Option<Tensor>,
    call: &Call<'_>,
) -> Result<Answer, Fault> {
    let x = x.to_plain(call.room)?;
    if x.values::<f64>().is_some() {
        typed::<f64>(g, x, weights, bias, call)
    } else {
        typed::<f32>(g, x, weights, bias, call)
    }
}

fn values<T: Real>(tensor: &Tensor, input: usize) -> Result<&[T], Fault> {
    tensor.values::<T>().ok_or(Fault::Type { input, expected: "floats of one type", got: tensor.dtype() })
}

/// `[n][c][p]` to `[n][p][stride(c)]`.
pub(super) fn lay<T: Real>(n: usize, c: usize, pixels: usize, planar: &[T]) -> Vec<T> {
    let mut map = vec![T::default(); n * pixels * stride(c)];
    for i in 0..n * c * pixels {
        let (image, channel, pixel) = (i / (c * pixels), i / pixels % c, i % pixels);
        map[(image * pixels + pixel) * stride(c) + channel] = planar[i];
    }
    map
}

/// `[n][p][stride(c)]` to `[n][c][p]`.
pub(super) fn unlay<T: Real>(
    shape: &[usize],
    [n, c, pixels]: [usize; 3],
    map: &[T],
    room: &Room,
) -> Result<Tensor, Fault> {
    room.tensor(shape, |planar: &mut [T]| {
        for i in 0..n * c * pixels {
            let (image, channel, pixel) = (i / (c * pixels), i / pixels % c, i % pixels);
            planar[i] = map[(image * pixels + pixel) * stride(c) + channel];
        }
    })
}

fn typed<T: Real>(
    g: Geometry,
    x: Tensor,
    weights: Tensor,
    bias: Option<Tensor>,
    call: &Call<'_>,
) -> Result<Answer, Fault> {
    let (in_pixels, out_pixels) = (g.in_h * g.in_w, g.out_h() * g.out_w());
    let mut shape = vec![g.batch, g.out_c];
    if x.rank() == 4 {
        shape.push(g.out_h());
    }
    shape.push(g.out_w());
    call.room.len_of(&[g.batch, out_pixels, stride(g.out_c)])?;
    // Held only to be counted against the limits.
    let _room_for_output = call.room.take::<T>(g.batch * out_pixels * stride(g.out_c))?;
    let map = lay(g.batch, g.in_c, in_pixels, values::<T>(&x, 0)?);
    let mut out = vec![T::default(); g.batch * out_pixels * stride(g.out_c)];
    reference::forward(&g, values::<T>(&weights, 1)?, &map, &mut out, Epilogue::default());
    if let Some(bias) = &bias {
        let bias = values::<T>(bias, 2)?;
        for pixel in out.chunks_mut(stride(g.out_c)) {
            pixel.iter_mut().zip(bias).for_each(|(y, &b)| *y += b);
        }
    }
    let y = unlay(&shape, [g.batch, g.out_c, out_pixels], &out, call.room)?;
    let kept_x = call.wants(1).then_some(x.clone());
    let x_shape = x.shape().to_vec();
    Ok(Answer::one(y).with(call.wants_any(), move |back| {
        let Some(cotangent) = back.take(0) else { return Ok(()) };
        let gy = lay(g.batch, g.out_c, out_pixels, values::<T>(&cotangent.to_plain(back.room())?, 0)?);
        if back.wants(0) {
            let mut gx = vec![T::default(); g.batch * in_pixels * stride(g.in_c)];
            reference::pullback(&g, values::<T>(&weights, 1)?, &gy, &mut gx, Epilogue::default());
            let gx = unlay(&x_shape, [g.batch, g.in_c, in_pixels], &gx, back.room())?;
            back.give(0, gx)?;
        }
        if let Some(x) = &kept_x {
            let map = lay(g.batch, g.in_c, in_pixels, values::<T>(x, 0)?);
            let gw =
                back.room().tensor(weights.shape(), |gw: &mut [T]| weight_gradient(&g, &map, &gy, gw))?;
            back.give(1, gw)?;
        }
        if back.wants(2) {
            let mut gb = vec![T::default(); g.out_c];
            for pixel in gy.chunks(stride(g.out_c)) {
                gb.iter_mut().zip(pixel).for_each(|(sum, &v)| *sum += v);
            }
            back.give(2, Tensor::new(&[g.out_c], gb))?;
        }
        Ok(())
    }))
}

/// `gw[o, c, t] = sum over n, p of gy[n, o, p] * x[n, c, s*p + d*t - pad]`.
fn weight_gradient<T: Real>(g: &Geometry, x: &[T], gy: &[T], gw: &mut [T]) {
    let (ins, outs) = (g.in_c / g.groups, g.out_c / g.groups);
    for (i, sum) in gw.iter_mut().enumerate() {
        let (kx, ky) = (i % g.kernel[1], i / g.kernel[1] % g.kernel[0]);
        let (c, o) = (i / (g.kernel[1] * g.kernel[0]) % ins, i / (g.kernel[1] * g.kernel[0] * ins));
        *sum = T::default();
        for p in 0..g.batch * g.out_h() * g.out_w() {
            let (n, oy, ox) = (p / (g.out_h() * g.out_w()), p / g.out_w() % g.out_h(), p % g.out_w());
            let (y, xx) = (oy * g.stride[0] + ky * g.dilation[0], ox * g.stride[1] + kx * g.dilation[1]);
            let inside =
                (g.pads[0]..g.pads[0] + g.in_h).contains(&y) && (g.pads[1]..g.pads[1] + g.in_w).contains(&xx);
            if inside {
                let pixel = (n * g.in_h + y - g.pads[0]) * g.in_w + xx - g.pads[1];
                *sum += gy[p * stride(g.out_c) + o] * x[pixel * stride(g.in_c) + o / outs * ins + c];
            }
        }
    }
}
