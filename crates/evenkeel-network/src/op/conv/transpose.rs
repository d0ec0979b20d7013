//! ConvTranspose: the transpose of a convolution, so its forward is the convolution's pullback kernel and the other way round.

use std::sync::Arc;

use evenkeel_kernels::conv2d::{self, Geometry, Weights, reference};
use evenkeel_kernels::epilogue::Epilogue;
use evenkeel_kernels::layout::stride;

use super::super::window::{AutoPad, Window};
use super::super::{Answer, Back, Call, Definition, Layouts, Operator};
use super::exact::{Real, lay, unlay};
use super::volume::{self, Volume, Wish};
use super::{Packed, extents, finished, floats, groups};
use crate::error::Fault;
use crate::tensor::{DType, Layout, Tensor};

/// A transposed convolution whose weights `[in, out / groups, kh, kw]` come as its second input and bias as its third.
#[derive(Debug)]
pub struct ConvTranspose {
    window: Window,
    groups: usize,
    output_padding: Option<Vec<i64>>,
    output_shape: Option<Vec<i64>>,
    packed: Packed,
}

pub(super) fn build(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(ConvTranspose {
        window: Window::of(definition)?,
        groups: groups(definition)?,
        output_padding: definition.attributes.ints("output_padding")?,
        output_shape: definition.attributes.ints("output_shape")?,
        packed: Packed::default(),
    }))
}

/// The values of an attribute for two dimensions.
fn pair(name: &str, values: Option<&[i64]>, rank: usize) -> Result<Option<[usize; 2]>, Fault> {
    let Some(values) = values else { return Ok(None) };
    // An output shape may also name the batch and channels.
    let spatial = if values.len() == rank { &values[2..] } else { values };
    let wrong = || Fault::Attribute { name: name.into(), problem: format!("{values:?} is out of range") };
    let size = |v: i64| usize::try_from(v).ok().filter(|&v| v <= 1 << 24).ok_or_else(wrong);
    match (spatial, rank) {
        (&[w], 3) => Ok(Some([if name == "output_shape" { 1 } else { 0 }, size(w)?])),
        (&[h, w], 4) => Ok(Some([size(h)?, size(w)?])),
        _ => Err(wrong()),
    }
}

impl ConvTranspose {
    /// The sizes for three dimensions.
    fn volume(&self, x: &Tensor, weights: &Tensor) -> Result<Volume, Fault> {
        let at = |name: &str, values: Option<&[i64]>, i: usize| {
            let wrong = |values| Fault::Attribute {
                name: name.into(),
                problem: format!("{values:?} is out of range"),
            };
            let Some(values) = values else { return Ok(None) };
            let spatial = if values.len() == 5 { &values[2..] } else { values };
            let size = spatial.get(i).and_then(|&v| usize::try_from(v).ok()).filter(|&v| v <= 1 << 24);
            size.filter(|_| spatial.len() == 3).map(Some).ok_or_else(|| wrong(values))
        };
        let mut wishes = [Wish::default(); 3];
        for (i, wish) in wishes.iter_mut().enumerate() {
            wish.extra = at("output_padding", self.output_padding.as_deref(), i)?.unwrap_or(0);
            wish.asked = at("output_shape", self.output_shape.as_deref(), i)?;
        }
        Volume::transposed(&self.window, self.groups, x, weights, wishes)
    }

    /// The sizes of the convolution whose transpose this is: its output is our input.
    fn geometry(&self, x: &Tensor, weights: &Tensor) -> Result<Geometry, Fault> {
        let [batch, in_c, in_h, in_w] = extents(x.shape())?;
        let wrong = || Fault::Shape {
            input: 1,
            expected: format!("[{in_c}, channels / {}, kernel]", self.groups),
            got: weights.shape().to_vec(),
        };
        let fits = weights.rank() == x.rank() && !weights.is_empty() && weights.shape()[0] == in_c;
        if !fits || !in_c.is_multiple_of(self.groups) {
            return Err(wrong());
        }
        let out_c = weights.shape()[1].checked_mul(self.groups).ok_or_else(wrong)?;
        let window = self.window.resolve(&weights.shape()[2..], &x.shape()[2..])?;
        let extra = pair("output_padding", self.output_padding.as_deref(), x.rank())?.unwrap_or([0, 0]);
        let asked = pair("output_shape", self.output_shape.as_deref(), x.rank())?;
        let (mut size, mut pads) = ([0; 2], window.pads);
        for axis in 0..2 {
            let input = [in_h, in_w][axis];
            let (stride, reach) =
                (window.stride[axis], window.dilation[axis] * (window.kernel[axis] - 1) + 1);
            let full = (stride * (input - 1)).checked_add(reach + extra[axis]).ok_or_else(wrong)?;
            let same = matches!(self.window.auto_pad, AutoPad::SameUpper | AutoPad::SameLower);
            let asked = asked.map(|asked| asked[axis]).or(same.then_some(input * stride));
            if let Some(asked) = asked {
                let total = full.saturating_sub(asked);
                let (less, more) = (total / 2, total - total / 2);
                let upper = self.window.auto_pad == AutoPad::SameUpper;
                (pads[axis], pads[axis + 2]) = if upper { (less, more) } else { (more, less) };
                size[axis] = asked;
            } else {
                size[axis] =
                    full.checked_sub(pads[axis] + pads[axis + 2]).filter(|&s| s > 0).ok_or_else(wrong)?;
            }
        }
        let (kernel, stride, dilation) = (window.kernel, window.stride, window.dilation);
        let geometry = Geometry {
            batch,
            in_h: size[0],
            in_w: size[1],
            in_c: out_c,
            out_c: in_c,
            kernel,
            stride,
            dilation,
            pads,
            groups: self.groups,
        };
        if [geometry.out_h(), geometry.out_w()] != [in_h, in_w] {
            return Err(Fault::Unsupported(
                "an output padding or shape of a stride or more beyond the input".into(),
            ));
        }
        Ok(geometry)
    }
}

impl Operator for ConvTranspose {
    fn folds_up_to(&self) -> usize {
        crate::op::SHORT_PRODUCT
    }

    fn layouts(&self) -> Layouts {
        Layouts::ChannelsLast
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let weights = call.take(1)?;
        if call.input(0)?.rank() == 5 {
            let x = call.take(0)?;
            let volume = self.volume(&x, &weights)?;
            return volume::apply(volume, true, [x, weights], call.optional(2).cloned(), &call);
        }
        let g = self.geometry(call.input(0)?, &weights)?;
        let bias = call.optional(2).cloned();
        if let Some(bias) = bias.as_ref().filter(|bias| bias.shape() != [g.in_c]) {
            return Err(Fault::Shape {
                input: 2,
                expected: format!("[{}]", g.in_c),
                got: bias.shape().to_vec(),
            });
        }
        if call.wants(1) || call.wants(2) {
            return Err(Fault::Unsupported("the gradient with respect to ConvTranspose weights".into()));
        }
        let x = call.take(0)?;
        if x.dtype() == DType::F64 {
            return exact::<f64>(g, x, weights, bias, &call);
        }
        let packed = {
            let values = floats(&weights)?;
            self.packed.of(&weights, || Weights::new(values.to_vec(), g.out_c, g.in_c, g.kernel, g.groups))
        };
        fast(g, x, packed, bias, &call)
    }

    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn packed_bytes(&self) -> usize {
        self.packed.bytes()
    }

    fn flops(&self, inputs: &[Option<&Tensor>]) -> f64 {
        match inputs {
            [Some(x), Some(w), ..] if x.rank() == 5 => self.volume(x, w).map_or(0.0, |volume| volume.flops()),
            [Some(x), Some(w), ..] => self.geometry(x, w).map_or(0.0, |geometry| geometry.flops()),
            _ => 0.0,
        }
    }
}

fn fast(
    g: Geometry,
    x: Tensor,
    weights: Arc<Weights>,
    bias: Option<Tensor>,
    call: &Call<'_>,
) -> Result<Answer, Fault> {
    let (room, rank) = (call.room, x.rank());
    let x = if rank == 3 { x.reshaped(&[g.batch, g.out_c, 1, g.out_w()])? } else { x };
    let x = x.to_channels_last(room)?;
    let from = floats(&x)?;
    let bias = bias.as_ref().map(floats).transpose()?;
    let y = room.feature_map([g.batch, g.in_c, g.in_h, g.in_w], |out| {
        conv2d::pullback(&g, &weights, from, out, Epilogue { bias, ..Epilogue::default() });
    })?;
    let y = if rank == 3 { y.to_plain(room)?.reshaped(&[g.batch, g.in_c, g.in_w])? } else { y };
    Ok(Answer::one(y).with(call.wants_any(), move |back: &mut Back<'_>| {
        let Some(cotangent) = back.take(0) else { return Ok(()) };
        let cotangent =
            if rank == 3 { cotangent.reshaped(&[g.batch, g.in_c, 1, g.in_w])? } else { cotangent };
        let cotangent = cotangent.to_channels_last(back.room())?;
        let finish = if rank == 4 { back.finish(0, Layout::ChannelsLast)? } else { Default::default() };
        let run = |from: &[f32], into: &mut [f32], epilogue: Epilogue<'_>| {
            conv2d::forward(&g, &weights, from, into, epilogue)
        };
        let shape = [g.batch, g.out_c, g.out_h(), g.out_w()];
        let gx = finished(shape, floats(&cotangent)?, finish, back.room(), run)?;
        let gx =
            if rank == 3 { gx.to_plain(back.room())?.reshaped(&[g.batch, g.out_c, g.out_w()])? } else { gx };
        back.give(0, gx)
    }))
}

/// In plain loops.
fn exact<T: Real>(
    g: Geometry,
    x: Tensor,
    weights: Tensor,
    bias: Option<Tensor>,
    call: &Call<'_>,
) -> Result<Answer, Fault> {
    let typed = |tensor: &Tensor, input| -> Result<Vec<T>, Fault> {
        let values = tensor.values::<T>().map(<[T]>::to_vec);
        values.ok_or(Fault::Type { input, expected: "floats of one type", got: tensor.dtype() })
    };
    let (ours, theirs) = (g.in_h * g.in_w, g.out_h() * g.out_w());
    let mut shape = vec![g.batch, g.in_c];
    if x.rank() == 4 {
        shape.push(g.in_h);
    }
    shape.push(g.in_w);
    // Held only to be counted against the limits.
    let _room_for_output = call.room.take::<T>(call.room.len_of(&[g.batch, ours, stride(g.in_c)])?)?;
    let (weights, map) = (typed(&weights, 1)?, lay(g.batch, g.out_c, theirs, &typed(&x, 0)?));
    let mut out = vec![T::default(); g.batch * ours * stride(g.in_c)];
    reference::pullback(&g, &weights, &map, &mut out, Epilogue::default());
    if let Some(bias) = bias {
        let bias = typed(&bias, 2)?;
        for pixel in out.chunks_mut(stride(g.in_c)) {
            pixel.iter_mut().zip(&bias).for_each(|(y, &b)| *y += b);
        }
    }
    let y = unlay(&shape, [g.batch, g.in_c, ours], &out, call.room)?;
    let x_shape = x.shape().to_vec();
    Ok(Answer::one(y).with(call.wants_any(), move |back| {
        let Some(cotangent) = back.take(0) else { return Ok(()) };
        let plain = cotangent.to_plain(back.room())?;
        let gy =
            plain.values::<T>().ok_or(Fault::Type { input: 0, expected: "floats", got: plain.dtype() })?;
        let mut gx = vec![T::default(); g.batch * theirs * stride(g.out_c)];
        reference::forward(&g, &weights, &lay(g.batch, g.in_c, ours, gy), &mut gx, Epilogue::default());
        let gx = unlay(&x_shape, [g.batch, g.out_c, theirs], &gx, back.room())?;
        back.give(0, gx)
    }))
}
