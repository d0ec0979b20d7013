//! Convolutions of volumes `[n, c, d, h, w]` and their transposes, in plain loops over f32 or f64.
//!
//! `y[n, o, p] = sum over c, t of w[o, c, t] x[n, c, s p + d t - pad]`. Every gradient is the same walk over the products with
//! another of the three as the sum, and the transpose is the walk with `x` and `y` changed round.

use std::ops::{AddAssign, Mul};

use super::super::window::{AutoPad, Window, same_pads};
use super::super::{Answer, Back, Call};
use crate::error::Fault;
use crate::tensor::{Element, Room, Tensor};

/// The sizes of a convolution of volumes. Channels are counted for one group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Volume {
    batch: usize,
    groups: usize,
    in_c: usize,
    out_c: usize,
    input: [usize; 3],
    output: [usize; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
    dilation: [usize; 3],
    /// Before the first element along each axis.
    pads: [usize; 3],
}

/// What one axis of a transposed convolution adds to or asks of its output.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wish {
    pub(super) extra: usize,
    pub(super) asked: Option<usize>,
}

/// One axis: kernel, stride, dilation, and padding on both sides.
struct Axis {
    kernel: usize,
    stride: usize,
    dilation: usize,
    pads: [usize; 2],
}

fn axis(window: &Window, kernel: &[usize], spatial: &[usize], i: usize) -> Result<Axis, Fault> {
    let wrong =
        |name: &str| Fault::Attribute { name: name.into(), problem: "does not fit three dimensions".into() };
    let of = |values: &Option<Vec<usize>>, name: &str| match values {
        None => Ok(1),
        Some(values) if values.len() == 3 => Ok(values[i]),
        Some(_) => Err(wrong(name)),
    };
    let kernel = kernel[i];
    let (stride, dilation) = (of(&window.strides, "strides")?, of(&window.dilations, "dilations")?);
    if kernel == 0 || kernel > 1 << 20 {
        return Err(wrong("kernel_shape"));
    }
    let pads = match (window.auto_pad, window.pads.as_deref()) {
        (AutoPad::Given, Some(pads)) if pads.len() == 6 => [pads[i], pads[i + 3]],
        (AutoPad::Given, Some(_)) => return Err(wrong("pads")),
        (AutoPad::Given, None) | (AutoPad::Valid, _) => [0, 0],
        (same, _) => same_pads(same, spatial[i], kernel, stride, dilation),
    };
    Ok(Axis { kernel, stride, dilation, pads })
}

impl Volume {
    /// A convolution of `x` with `weights`.
    pub(super) fn of(window: &Window, groups: usize, x: &Tensor, weights: &Tensor) -> Result<Volume, Fault> {
        let (&[batch, all_in, ..], &[all_out, in_c, ..]) = (x.shape(), weights.shape()) else {
            return Err(misfit(weights));
        };
        let fits =
            weights.rank() == 5 && in_c.checked_mul(groups) == Some(all_in) && all_out.is_multiple_of(groups);
        let mut volume = Volume::empty([batch, groups, in_c, all_out / groups]);
        if !fits || x.is_empty() || weights.is_empty() {
            return Err(misfit(weights));
        }
        for i in 0..3 {
            let spatial = &x.shape()[2..];
            let at = axis(window, &weights.shape()[2..], spatial, i)?;
            let reach = at.dilation * (at.kernel - 1) + 1;
            let room =
                (spatial[i] + at.pads[0] + at.pads[1]).checked_sub(reach).ok_or_else(|| misfit(weights))?;
            volume.set(i, &at, spatial[i], room / at.stride + 1);
        }
        Ok(volume)
    }

    /// The convolution whose transpose takes `x` (as its output) with `weights`.
    pub(super) fn transposed(
        window: &Window,
        groups: usize,
        x: &Tensor,
        weights: &Tensor,
        wishes: [Wish; 3],
    ) -> Result<Volume, Fault> {
        let (&[batch, all_out, ..], &[rows, in_c, ..]) = (x.shape(), weights.shape()) else {
            return Err(misfit(weights));
        };
        if weights.rank() != 5
            || rows != all_out
            || !all_out.is_multiple_of(groups)
            || x.is_empty()
            || weights.is_empty()
        {
            return Err(misfit(weights));
        }
        let mut volume = Volume::empty([batch, groups, in_c, all_out / groups]);
        for i in 0..3 {
            let spatial = &x.shape()[2..];
            let mut at = axis(window, &weights.shape()[2..], spatial, i)?;
            let reach = at.dilation * (at.kernel - 1) + 1;
            let full = at
                .stride
                .checked_mul(spatial[i] - 1)
                .and_then(|full| full.checked_add(reach + wishes[i].extra));
            let full = full.ok_or_else(|| misfit(weights))?;
            let same = matches!(window.auto_pad, AutoPad::SameUpper | AutoPad::SameLower);
            let size = match wishes[i].asked.or(same.then_some(spatial[i].saturating_mul(at.stride))) {
                None => full.checked_sub(at.pads[0] + at.pads[1]).filter(|&size| size > 0),
                Some(asked) => {
                    let total = full.saturating_sub(asked);
                    let upper = window.auto_pad == AutoPad::SameUpper;
                    at.pads[0] = if upper { total / 2 } else { total - total / 2 };
                    Some(asked).filter(|&asked| asked > 0)
                }
            };
            volume.set(i, &at, size.ok_or_else(|| misfit(weights))?, spatial[i]);
        }
        Ok(volume)
    }

    fn empty([batch, groups, in_c, out_c]: [usize; 4]) -> Volume {
        let none = [0; 3];
        Volume {
            batch,
            groups,
            in_c,
            out_c,
            input: none,
            output: none,
            kernel: none,
            stride: none,
            dilation: none,
            pads: none,
        }
    }

    fn set(&mut self, i: usize, axis: &Axis, input: usize, output: usize) {
        (self.input[i], self.output[i]) = (input, output);
        (self.kernel[i], self.stride[i], self.dilation[i]) = (axis.kernel, axis.stride, axis.dilation);
        self.pads[i] = axis.pads[0];
    }

    pub(super) fn in_shape(&self) -> [usize; 5] {
        let [d, h, w] = self.input;
        [self.batch, self.in_c.saturating_mul(self.groups), d, h, w]
    }

    pub(super) fn out_shape(&self) -> [usize; 5] {
        let [d, h, w] = self.output;
        [self.batch, self.out_c.saturating_mul(self.groups), d, h, w]
    }

    /// Multiplications and additions.
    pub(super) fn flops(&self) -> f64 {
        let each = 2.0 * self.in_c as f64 * self.kernel.iter().product::<usize>() as f64;
        self.out_shape().iter().map(|&dim| dim as f64).product::<f64>() * each
    }

    /// Hands over every product as the positions of its factors in x, w and y.
    fn products(&self, mut each: impl FnMut(usize, usize, usize)) {
        let [kd, kh, kw] = self.kernel;
        let mut y = 0;
        for at in 0..self.batch * self.groups * self.out_c {
            let (image, o) = (at / (self.groups * self.out_c), at % (self.groups * self.out_c));
            let first = (image * self.groups + o / self.out_c) * self.in_c;
            for_each_index(self.output, |p| {
                for ct in 0..self.in_c * kd * kh * kw {
                    let t = [ct / (kh * kw) % kd, ct / kw % kh, ct % kw];
                    let c = first + ct / (kd * kh * kw);
                    if let Some(pixel) = self.source(p, t) {
                        let x = c * self.input.iter().product::<usize>() + pixel;
                        each(x, o * self.in_c * kd * kh * kw + ct, y);
                    }
                }
                y += 1;
            });
        }
    }

    /// The pixel of the input that output `p` sees through tap `t`.
    fn source(&self, p: [usize; 3], t: [usize; 3]) -> Option<usize> {
        (0..3).try_fold(0, |flat, i| {
            let at = (p[i] * self.stride[i] + t[i] * self.dilation[i]).checked_sub(self.pads[i])?;
            (at < self.input[i]).then_some(flat * self.input[i] + at)
        })
    }
}

fn for_each_index(sizes: [usize; 3], mut each: impl FnMut([usize; 3])) {
    for i in 0..sizes.iter().product() {
        each([i / (sizes[1] * sizes[2]), i / sizes[2] % sizes[1], i % sizes[2]]);
    }
}

fn misfit(weights: &Tensor) -> Fault {
    let expected = "weights that fit the volume, its groups and its window".into();
    Fault::Shape { input: 1, expected, got: weights.shape().to_vec() }
}

/// Runs a convolution of volumes, or with `transposed` its transpose, on input `x`.
pub(super) fn apply(
    volume: Volume,
    transposed: bool,
    [x, weights]: [Tensor; 2],
    bias: Option<Tensor>,
    call: &Call<'_>,
) -> Result<Answer, Fault> {
    if x.values::<f64>().is_some() {
        typed::<f64>(volume, transposed, [x, weights], bias, call)
    } else {
        typed::<f32>(volume, transposed, [x, weights], bias, call)
    }
}

fn values<T: Element>(tensor: &Tensor, input: usize) -> Result<&[T], Fault> {
    tensor.values::<T>().ok_or(Fault::Type { input, expected: "floats of one type", got: tensor.dtype() })
}

fn typed<T: Element + AddAssign + Mul<Output = T>>(
    volume: Volume,
    transposed: bool,
    [x, weights]: [Tensor; 2],
    bias: Option<Tensor>,
    call: &Call<'_>,
) -> Result<Answer, Fault> {
    let shape = if transposed { volume.in_shape() } else { volume.out_shape() };
    let (from, w) = (values::<T>(&x, 0)?, values::<T>(&weights, 1)?);
    let bias = bias.as_ref().map(|bias| values::<T>(bias, 2)).transpose()?;
    if bias.is_some_and(|bias| bias.len() != shape[1]) {
        return Err(Fault::Value(format!("the bias needs {} values", shape[1])));
    }
    let y = call.room.tensor(&shape, |out: &mut [T]| {
        let pixels = shape[2] * shape[3] * shape[4];
        for (i, plane) in out.chunks_mut(pixels).enumerate() {
            plane.fill(bias.map_or(T::default(), |bias| bias[i % shape[1]]));
        }
        if transposed {
            volume.products(|x, t, y| out[x] += w[t] * from[y]);
        } else {
            volume.products(|x, t, y| out[y] += w[t] * from[x]);
        }
    })?;
    let wanted = call.wants_any();
    Ok(Answer::one(y).with(wanted, move |back| pull::<T>(&volume, transposed, [&x, &weights], back)))
}

fn pull<T: Element + AddAssign + Mul<Output = T>>(
    volume: &Volume,
    transposed: bool,
    [x, weights]: [&Tensor; 2],
    back: &mut Back<'_>,
) -> Result<(), Fault> {
    let Some(cotangent) = back.take(0) else { return Ok(()) };
    let cotangent = cotangent.to_plain(back.room())?;
    let (g, from, w) = (values::<T>(&cotangent, 0)?, values::<T>(x, 0)?, values::<T>(weights, 1)?);
    let sum = |shape: &[usize], room: &Room, add: &dyn Fn(&mut [T])| {
        room.tensor(shape, |out: &mut [T]| {
            out.fill(T::default());
            add(out);
        })
    };
    if back.wants(0) {
        let gx = sum(x.shape(), back.room(), &|out| match transposed {
            true => volume.products(|x, t, y| out[y] += w[t] * g[x]),
            false => volume.products(|x, t, y| out[x] += w[t] * g[y]),
        })?;
        back.give(0, gx)?;
    }
    if back.wants(1) {
        let gw = sum(weights.shape(), back.room(), &|out| match transposed {
            true => volume.products(|x, t, y| out[t] += from[y] * g[x]),
            false => volume.products(|x, t, y| out[t] += from[x] * g[y]),
        })?;
        back.give(1, gw)?;
    }
    if back.wants(2) {
        let (channels, pixels) = (cotangent.shape()[1], cotangent.shape()[2..].iter().product());
        let gb = sum(&[channels], back.room(), &|out| {
            for (i, plane) in g.chunks(pixels).enumerate() {
                plane.iter().for_each(|&v| out[i % channels] += v);
            }
        })?;
        back.give(2, gb)?;
    }
    Ok(())
}
