//! Softmax, LogSoftmax and Hardmax along an axis.
//!
//! `y = exp(x - max) / sum`, pulled back as `y (g - <g, y>)`; the logarithm as `g - exp(y) <g, 1>`. The tape is the output. Before
//! opset 13 the dimensions from the axis on count as one.

use evenkeel_kernels::layout::Along;
use evenkeel_kernels::softmax;

use super::broadcast::{binary, fresh, map};
use super::fold::{Fold, axis_of, fold, sum};
use super::number::{Float, Number, for_float};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Layouts, Operator, values_of};
use crate::error::Fault;
use crate::tensor::{DType, Layout, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("Softmax", true, |d| build(d, Kind::Smooth(softmax::Kind::Softmax))),
    entry("LogSoftmax", true, |d| build(d, Kind::Smooth(softmax::Kind::LogSoftmax))),
    entry("Hardmax", false, |d| build(d, Kind::Hardmax)),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Smooth(softmax::Kind),
    Hardmax,
}

#[derive(Clone, Copy, Debug)]
struct Softmax {
    kind: Kind,
    axis: i64,
    /// Whether the axis and all after it count as one.
    flattens: bool,
}

fn build(definition: &Definition<'_>, kind: Kind) -> Result<Box<dyn Operator>, Fault> {
    let flattens = definition.opset < 13;
    let axis = definition.attributes.int("axis")?.unwrap_or(if flattens { 1 } else { -1 });
    Ok(Box::new(Softmax { kind, axis, flattens }))
}

impl Operator for Softmax {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn passes_gradient(&self, _: usize) -> bool {
        self.kind != Kind::Hardmax
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let wanted = call.wants_any();
        let x = call.take(0)?;
        self.forward(x, wanted, call.room)
    }
}

impl Softmax {
    fn forward(self, x: Tensor, wanted: bool, room: &Room) -> Result<Answer, Fault> {
        let axis = axis_of(self.axis, x.rank())?;
        let inner: usize = if x.is_empty() { 1 } else { x.shape()[axis + 1..].iter().product() };
        let channels = x.layout() == Layout::ChannelsLast && axis == 1 && (!self.flattens || inner == 1);
        let x = if channels { x } else { x.to_plain(room)? };
        let (length, inner) =
            if self.flattens { (x.shape()[axis].saturating_mul(inner), 1) } else { (x.shape()[axis], inner) };
        let outer = if x.is_empty() { 0 } else { x.len() / length / inner };
        let along = Along { outer, length, inner };
        match (self.kind, x.dtype()) {
            (Kind::Hardmax, _) => for_float!(x, 0, T => first_hits::<T>(&x, along, room)).map(Answer::one),
            (Kind::Smooth(kind), DType::F32) => single(x, Line { kind, along, channels }, wanted, room),
            (Kind::Smooth(kind), _) => double(kind, x, along, wanted, room),
        }
    }
}

/// What the kernels need to know.
#[derive(Clone, Copy, Debug)]
struct Line {
    kind: softmax::Kind,
    along: Along,
    /// Whether the axis is the channels of a channels-last map.
    channels: bool,
}

/// In f32, by the kernels.
fn single(x: Tensor, line: Line, wanted: bool, room: &Room) -> Result<Answer, Fault> {
    let Line { kind, along, channels } = line;
    let values: &[f32] = values_of(&x, 0)?;
    let y = fresh(x.shape(), x.layout(), room, |out| match channels {
        true => softmax::forward_channels(kind, along.length, values, out),
        false => softmax::forward(kind, along, values, out),
    })?;
    let kept = wanted.then(|| y.clone());
    Ok(Answer::one(y).with(wanted, move |back| {
        let (Some(g), Some(y)) = (back.take(0), &kept) else { return Ok(()) };
        let (y_values, g_values): (&[f32], &[f32]) = (values_of(y, 0)?, values_of(&g, 0)?);
        let own = fresh(y.shape(), y.layout(), back.room(), |out| match channels {
            true => softmax::pullback_channels(kind, along.length, y_values, g_values, out),
            false => softmax::pullback(kind, along, y_values, g_values, out),
        })?;
        back.give(0, own)
    }))
}

/// In f64, put together from folds.
fn double(kind: softmax::Kind, x: Tensor, along: Along, wanted: bool, room: &Room) -> Result<Answer, Fault> {
    let shape = x.shape().to_vec();
    let blocks = [along.outer, along.length, along.inner];
    if x.is_empty() {
        return Ok(Answer::one(x));
    }
    let x = x.reshaped(&blocks)?;
    let max = Fold { start: f64::LOWEST, step: |m: f64, x: f64, _| m.larger(x), end: |m: f64, _| m };
    let x = binary(&x, &fold(&x, &[1], room, &max)?, room, |x: f64, m: f64| x - m)?;
    let exps = Fold { start: 0.0, step: |s: f64, x: f64, _| s + x.exp(), end: |s: f64, _| s.ln() };
    let logs = fold(&x, &[1], room, &exps)?;
    let log = binary(&x, &logs, room, |x: f64, l: f64| x - l)?;
    let probability = map(log.clone(), room, |y: f64| y.exp())?;
    let logarithm = kind == softmax::Kind::LogSoftmax;
    let y = if logarithm { log } else { probability.clone() };
    Ok(Answer::one(y.reshaped(&shape)?).with(wanted, move |back| {
        let Some(g) = back.take(0) else { return Ok(()) };
        let (g, room) = (g.reshaped(&blocks)?, back.room());
        let weighted = binary(&g, &probability, room, |g: f64, p: f64| g * p)?;
        let own = if logarithm {
            let part = binary(&probability, &sum::<f64>(&g, &[1], room)?, room, |p: f64, s: f64| p * s)?;
            binary(&g, &part, room, |g: f64, part: f64| g - part)?
        } else {
            let part =
                binary(&probability, &sum::<f64>(&weighted, &[1], room)?, room, |p: f64, s: f64| p * s)?;
            binary(&weighted, &part, room, |w: f64, part: f64| w - part)?
        };
        back.give(0, own.reshaped(&shape)?)
    }))
}

/// One where the axis first reaches its maximum, zero elsewhere.
fn first_hits<T: Float>(x: &Tensor, along: Along, room: &Room) -> Result<Tensor, Fault> {
    let x = x.to_plain(room)?;
    let values: &[T] = values_of(&x, 0)?;
    room.tensor(x.shape(), |out| {
        out.fill(T::of(0.0));
        for column in 0..along.outer * along.inner {
            let start = column / along.inner * along.length * along.inner + column % along.inner;
            let at = |i: usize| values[start + i * along.inner];
            let best = (1..along.length).fold(0, |best, i| if at(i) > at(best) { i } else { best });
            out[start + best * along.inner] = T::of(1.0);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::proof::{Numbers, build, outputs, prove_gradient, prove_layouts};
    use crate::tensor::Tensor;

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(11);
        for name in ["Softmax", "LogSoftmax"] {
            for (shape, axes) in [(&[2, 5, 3, 2][..], -4..4), (&[11], -1..1), (&[2, 9], -2..2)] {
                for axis in axes {
                    let x = [Some(numbers.tensor(shape, -2.0, 2.0))];
                    for opset in [11, 13] {
                        let attributes = [("axis", Attribute::Int(axis))];
                        prove_gradient(build(name, opset, &attributes, 1), &x, 1, 2e-5);
                        prove_layouts(build(name, opset, &attributes, 1), &x);
                    }
                }
            }
        }
    }

    #[test]
    fn large_values_do_not_overflow_and_the_first_maximum_wins() {
        let x = Tensor::new(&[2, 3], vec![1000.0f32, 1000.0, -1000.0, 0.0, 3.0, 3.0]);
        let of = |name, axis| {
            let attributes = [("axis", Attribute::Int(axis))];
            outputs(&build(name, 13, &attributes, 1).into(), &[Some(x.clone())], 1).remove(0)
        };
        assert_eq!(of("Softmax", 1).values::<f32>().unwrap()[..3], [0.5, 0.5, 0.0]);
        assert_eq!(of("Hardmax", 1).values::<f32>().unwrap(), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(of("Hardmax", 0).values::<f32>().unwrap(), [1.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    }
}
