//! Conv: the convolution of one- and two-dimensional maps (and, plainly, of volumes), with what follows it (bias, residual, activation) in its last pass.
//!
//! `y = activation(w * x + bias + residual)`. The pullback needs the weights and, if there is an activation, its bits; no
//! activation is kept.

use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_kernels::activation::Function;
use evenkeel_kernels::conv2d::{self, Geometry, Weights};
use evenkeel_kernels::epilogue::{Activation, Epilogue};

use super::registry::{Entry, entry};
use super::window::Window;
use super::{Answer, Back, Call, Definition, Layouts, Operator, SlopeMask, values_of};
use crate::error::Fault;
use crate::tensor::{DType, Layout, Room, Tensor};

mod exact;
mod fused;
mod pair;
mod transpose;
mod volume;

pub use fused::FusedConv;
pub(crate) use pair::ConvPair;
pub use transpose::ConvTranspose;

/// The entries of this folder.
pub const ENTRIES: &[Entry] = &[entry("Conv", true, build), entry("ConvTranspose", true, transpose::build)];

/// A convolution whose weights come as its second input and bias as its third.
#[derive(Debug)]
pub struct Conv {
    pub(crate) window: Window,
    pub(crate) groups: usize,
    packed: Packed,
}

fn build(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Conv {
        window: Window::of(definition)?,
        groups: groups(definition)?,
        packed: Packed::default(),
    }))
}

fn groups(definition: &Definition<'_>) -> Result<usize, Fault> {
    match definition.attributes.int("group")?.unwrap_or(1) {
        groups @ 1..=0x10_0000 => Ok(groups as usize),
        other => Err(Fault::Attribute { name: "group".into(), problem: format!("{other} is out of range") }),
    }
}

/// The packed form of the weights last seen, so that constant weights are packed once.
#[derive(Debug, Default)]
struct Packed(Mutex<Option<(Tensor, Arc<Weights>)>>);

impl Packed {
    fn bytes(&self) -> usize {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.as_ref().map_or(0, |(_, packed)| packed.packed_bytes())
    }

    fn of(&self, weights: &Tensor, make: impl FnOnce() -> Weights) -> Arc<Weights> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*seen {
            Some((tensor, packed)) if tensor.same_values(weights) => packed.clone(),
            _ => {
                let packed = Arc::new(make());
                *seen = Some((weights.clone(), packed.clone()));
                packed
            }
        }
    }
}

/// Extents `[n, c, h, w]` of a map or signal of this shape.
fn extents(shape: &[usize]) -> Result<[usize; 4], Fault> {
    let dims = match *shape {
        [n, c, l] => [n, c, 1, l],
        [n, c, h, w] => [n, c, h, w],
        _ => {
            return Err(Fault::Shape {
                input: 0,
                expected: "[n, c, l] or [n, c, h, w]".into(),
                got: shape.to_vec(),
            });
        }
    };
    if dims.contains(&0) {
        return Err(Fault::Shape { input: 0, expected: "no empty dimension".into(), got: shape.to_vec() });
    }
    Ok(dims)
}

impl Conv {
    /// The sizes of the convolution of a map of shape `x` with `weights`.
    fn geometry(&self, x: &[usize], weights: &Tensor) -> Result<Geometry, Fault> {
        let [batch, in_c, in_h, in_w] = extents(x)?;
        let wrong = |expected: String| Fault::Shape { input: 1, expected, got: weights.shape().to_vec() };
        if weights.rank() != x.len() || weights.is_empty() {
            return Err(wrong(format!("a non-empty tensor of rank {}", x.len())));
        }
        let (out_c, per_group) = (weights.shape()[0], weights.shape()[1]);
        if !out_c.is_multiple_of(self.groups) || per_group.checked_mul(self.groups) != Some(in_c) {
            return Err(wrong(format!("{} groups of {in_c} input channels", self.groups)));
        }
        let window = self.window.resolve(&weights.shape()[2..], &x[2..])?;
        let (kernel, stride, dilation, pads) = (window.kernel, window.stride, window.dilation, window.pads);
        let geometry =
            Geometry { batch, in_h, in_w, in_c, out_c, kernel, stride, dilation, pads, groups: self.groups };
        if geometry.out_h() == 0 || geometry.out_w() == 0 {
            let expected = format!("room for a kernel of {kernel:?} dilated by {dilation:?}");
            return Err(Fault::Shape { input: 0, expected, got: x.to_vec() });
        }
        Ok(geometry)
    }
}

impl Operator for Conv {
    fn folds_up_to(&self) -> usize {
        crate::op::SHORT_PRODUCT
    }

    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let weights = call.take(1)?;
        if call.input(0)?.rank() == 5 {
            let x = call.take(0)?;
            let volume = volume::Volume::of(&self.window, self.groups, &x, &weights)?;
            return volume::apply(volume, false, [x, weights], call.optional(2).cloned(), &call);
        }
        let geometry = self.geometry(call.input(0)?.shape(), &weights)?;
        let bias = call.optional(2).cloned();
        if let Some(bias) = bias.as_ref().filter(|bias| bias.shape() != [geometry.out_c]) {
            let expected = format!("[{}]", geometry.out_c);
            return Err(Fault::Shape { input: 2, expected, got: bias.shape().to_vec() });
        }
        let x = call.take(0)?;
        if x.dtype() == DType::F64 || call.wants(1) || call.wants(2) {
            return exact::apply(geometry, x, weights, bias, &call);
        }
        let values = values_of::<f32>(&weights, 1)?;
        let bias = bias.as_ref().map(|bias| values_of::<f32>(bias, 2)).transpose()?;
        let packed = self.packed.of(&weights, || {
            Weights::new(values.to_vec(), geometry.out_c, geometry.in_c, geometry.kernel, geometry.groups)
        });
        let layer = Layer { geometry, weights: packed, activation: Activation::None, smooth: None };
        layer.forward(x, bias, None, &call)
    }

    fn packed_bytes(&self) -> usize {
        self.packed.bytes()
    }

    fn kind(&self, inputs: &[Option<&Tensor>]) -> String {
        match inputs {
            [Some(x), Some(w), ..] => {
                self.geometry(x.shape(), w).map_or_else(|_| String::new(), |g| kind(&g))
            }
            _ => String::new(),
        }
    }

    fn flops(&self, inputs: &[Option<&Tensor>]) -> f64 {
        match inputs {
            [Some(x), Some(w), ..] if x.rank() == 5 => {
                volume::Volume::of(&self.window, self.groups, x, w).map_or(0.0, |volume| volume.flops())
            }
            [Some(x), Some(w), ..] => self.geometry(x.shape(), w).map_or(0.0, |geometry| geometry.flops()),
            _ => 0.0,
        }
    }
}

/// A convolution as a table of costs names it: kernel, stride, dilation and grouping.
fn kind(g: &Geometry) -> String {
    let pair = |[h, w]: [usize; 2]| if h == w { h.to_string() } else { format!("{h}x{w}") };
    let mut text = format!("Conv {}x{}", g.kernel[0], g.kernel[1]);
    if g.stride != [1, 1] {
        text += &format!(" stride {}", pair(g.stride));
    }
    if g.dilation != [1, 1] && g.kernel != [1, 1] {
        text += &format!(" dilation {}", pair(g.dilation));
    }
    if g.groups > 1 {
        let depthwise = g.groups == g.in_c;
        text += &if depthwise { " depthwise".to_string() } else { format!(" {} groups", g.groups) };
    }
    text
}

/// One convolution of f32 maps with its sizes settled.
#[derive(Clone, Debug)]
struct Layer {
    geometry: Geometry,
    weights: Arc<Weights>,
    activation: Activation,
    /// What ends it, in walks without a tape.
    smooth: Option<Function>,
}

impl Layer {
    /// Runs it on input 0 of `call`, whose input `residual.0` is added.
    fn forward(
        self,
        x: Tensor,
        bias: Option<&[f32]>,
        residual: Option<(usize, Tensor)>,
        call: &Call<'_>,
    ) -> Result<Answer, Fault> {
        let (g, room) = (self.geometry, call.room);
        if x.dtype() != DType::F32 {
            return Err(Fault::Type { input: 0, expected: "floats", got: x.dtype() });
        }
        let rank = x.rank();
        let x = if rank == 3 { x.reshaped(&[g.batch, g.in_c, 1, g.in_w])? } else { x };
        let shape = [g.batch, g.out_c, g.out_h(), g.out_w()];
        let taped = call.wants_any();
        let residual_input = residual.as_ref().map(|(input, _)| *input);
        let mut added =
            residual.map(|(_, tensor)| tensor.in_layout(Layout::ChannelsLast, room)).transpose()?;
        // A residual nobody else needs is added to in place.
        let in_place = added.take_if(|tensor| !tensor.is_shared());
        let accumulate = in_place.is_some();
        let mut y = in_place.map_or_else(|| room.feature_map(shape, |_| {}), Ok)?;
        let stored = y.values::<f32>().map_or(0, <[f32]>::len);
        let with_bits = taped && self.activation != Activation::None;
        let mut bits = room.take::<u8>(if with_bits { stored / 8 } else { 0 })?;
        let epilogue = Epilogue {
            bias,
            residual: added.as_ref().and_then(|tensor| tensor.values::<f32>()),
            accumulate,
            activation: self.activation,
            bits: with_bits.then_some(&mut bits),
            mask: None,
            smooth: self.smooth,
        };
        let stem = conv2d::stem_serves(&g) && x.layout() == Layout::Plain;
        let x = if stem { x } else { x.to_channels_last(room)? };
        let (Some(from), Some(into)) = (x.values::<f32>(), y.values_mut::<f32>()) else {
            return Err(Fault::Value("a map that should be unshared is shared".into()));
        };
        if stem {
            conv2d::stem_forward(&g, &self.weights, from, into, epilogue);
        } else {
            conv2d::forward(&g, &self.weights, from, into, epilogue);
        }
        drop((added, x));
        let y = if rank == 3 { y.to_plain(room)?.reshaped(&[g.batch, g.out_c, g.out_w()])? } else { y };
        let activation = self.activation;
        let mut answer = Answer::one(y).with(taped, move |back| {
            let Some(cotangent) = back.take(0) else { return Ok(()) };
            if let Some(input) = residual_input {
                back.give(input, cotangent.clone())?;
            }
            if !back.wants(0) {
                return Ok(());
            }
            let gradient =
                if stem { self.pull_stem(cotangent, rank, back) } else { self.pull(cotangent, rank, back) };
            back.give(0, gradient?)
        });
        answer.mask =
            with_bits.then(|| SlopeMask { bits: Arc::new(bits), on: 1.0, off: activation.slope_off() });
        Ok(answer)
    }

    /// To a planar map of few channels.
    fn pull_stem(&self, cotangent: Tensor, rank: usize, back: &Back<'_>) -> Result<Tensor, Fault> {
        let g = self.geometry;
        let cotangent =
            if rank == 3 { cotangent.reshaped(&[g.batch, g.out_c, 1, g.out_w()])? } else { cotangent };
        let cotangent = cotangent.to_channels_last(back.room())?;
        let from = floats(&cotangent)?;
        let run = |out: &mut [f32]| conv2d::stem_pullback(&g, &self.weights, from, out, false);
        let gx = back.room().tensor(&[g.batch, g.in_c, g.in_h, g.in_w], run)?;
        if rank == 3 { gx.reshaped(&[g.batch, g.in_c, g.in_w]) } else { Ok(gx) }
    }

    fn pull(&self, cotangent: Tensor, rank: usize, back: &mut Back<'_>) -> Result<Tensor, Fault> {
        let g = self.geometry;
        let cotangent =
            if rank == 3 { cotangent.reshaped(&[g.batch, g.out_c, 1, g.out_w()])? } else { cotangent };
        let cotangent = cotangent.to_channels_last(back.room())?;
        let finish = if rank == 4 { back.finish(0, Layout::ChannelsLast)? } else { Default::default() };
        let run = |from: &[f32], into: &mut [f32], epilogue: Epilogue<'_>| {
            conv2d::pullback(&g, &self.weights, from, into, epilogue)
        };
        let gx = finished([g.batch, g.in_c, g.in_h, g.in_w], floats(&cotangent)?, finish, back.room(), run)?;
        if rank == 3 { gx.to_plain(back.room())?.reshaped(&[g.batch, g.in_c, g.in_w]) } else { Ok(gx) }
    }
}

pub(super) fn floats(tensor: &Tensor) -> Result<&[f32], Fault> {
    tensor.values::<f32>().ok_or(Fault::Type { input: 0, expected: "f32", got: tensor.dtype() })
}

/// Runs a kernel that takes an [`Epilogue`], with the sum so far added in place if it is unshared, and the mask applied.
pub(super) fn finished(
    shape: [usize; 4],
    from: &[f32],
    finish: super::Finish,
    room: &Room,
    run: impl FnOnce(&[f32], &mut [f32], Epilogue<'_>),
) -> Result<Tensor, Fault> {
    let mut sum = finish.accumulated;
    let in_place = sum.take_if(|tensor| !tensor.is_shared());
    let mut epilogue = Epilogue { accumulate: in_place.is_some(), ..Epilogue::default() };
    epilogue.residual = sum.as_ref().and_then(|tensor| tensor.values::<f32>());
    epilogue.mask = finish.mask.as_ref().map(SlopeMask::as_mask);
    let mut out = in_place.map_or_else(|| room.feature_map(shape, |_| {}), Ok)?;
    match out.values_mut::<f32>() {
        Some(into) => run(from, into, epilogue),
        None => return Err(Fault::Value("a gradient that should be unshared is shared".into())),
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::proof::{Numbers, build, prove_gradient};

    /// Shapes of input and weights, and attributes.
    type Case<'a> = (&'a [usize], &'a [usize], &'a [(&'a str, Attribute)]);

    fn ints(values: &[i64]) -> Attribute {
        Attribute::Ints(values.to_vec())
    }

    #[test]
    fn conv_pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(4);
        let cases: &[Case<'_>] = &[
            (&[2, 3, 6, 5], &[4, 3, 3, 3], &[("pads", ints(&[1, 1, 1, 1]))]),
            (&[1, 4, 7, 6], &[6, 2, 3, 2], &[("group", Attribute::Int(2)), ("strides", ints(&[2, 1]))]),
            (&[1, 9, 6, 6], &[9, 1, 3, 3], &[("group", Attribute::Int(9)), ("dilations", ints(&[2, 2]))]),
            (
                &[1, 4, 3, 4, 5],
                &[2, 2, 2, 3, 2],
                &[("group", Attribute::Int(2)), ("strides", ints(&[1, 2, 1]))],
            ),
            (
                &[1, 2, 4, 4, 3],
                &[3, 2, 2, 2, 2],
                &[("pads", ints(&[1, 0, 1, 0, 1, 0])), ("dilations", ints(&[2, 1, 1]))],
            ),
            (&[2, 3, 9], &[5, 3, 4], &[("auto_pad", Attribute::Text("SAME_LOWER".into()))]),
            (&[1, 2, 5, 5], &[3, 2, 3, 3], &[("pads", ints(&[0, 2, 1, 0])), ("strides", ints(&[3, 2]))]),
        ];
        for (x, w, attributes) in cases {
            let inputs = [x, w, &&w[..1]].map(|shape| Some(numbers.tensor(shape, -1.0, 1.0)));
            prove_gradient(build("Conv", 11, attributes, 3), &inputs, 1, 1e-4);
        }
    }

    #[test]
    fn transposed_pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(5);
        let cases: &[Case<'_>] = &[
            (&[2, 3, 4, 5], &[3, 2, 3, 3], &[("strides", ints(&[2, 2])), ("output_padding", ints(&[1, 1]))]),
            (&[1, 4, 3, 3], &[4, 3, 4, 4], &[("group", Attribute::Int(2)), ("pads", ints(&[1, 1, 1, 1]))]),
            (
                &[1, 2, 3, 2, 3],
                &[2, 3, 2, 2, 2],
                &[("strides", ints(&[2, 1, 2])), ("pads", ints(&[1, 0, 0, 0, 1, 1]))],
            ),
            (&[1, 2, 6], &[2, 3, 3], &[("dilations", ints(&[2]))]),
            (&[1, 3, 3, 3], &[3, 2, 3, 3], &[("strides", ints(&[3, 2])), ("output_shape", ints(&[10, 8]))]),
        ];
        for (x, w, attributes) in cases {
            let inputs = [x, w].map(|shape| Some(numbers.tensor(shape, -1.0, 1.0)));
            prove_gradient(build("ConvTranspose", 11, attributes, 2), &inputs, 1, 1e-4);
        }
    }
}
