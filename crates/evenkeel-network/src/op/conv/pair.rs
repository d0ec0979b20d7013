//! A pointwise convolution and the depthwise one that reads it, in one pass: for walks without a tape.
//!
//! Whether the kernel serves them is known only when the map arrives; if it does not, they run one after the other.

use std::sync::Arc;

use evenkeel_kernels::activation::Function;
use evenkeel_kernels::conv2d::{self, Geometry, Layer};

use super::super::ending::Ending;
use super::super::{Answer, Call, Layouts, Operator};
use super::{FusedConv, floats};
use crate::error::Fault;
use crate::tensor::{DType, Tensor};

/// The two convolutions. They are those of the plan that keeps a tape, so their weights are packed once for both.
#[derive(Debug)]
pub(crate) struct ConvPair {
    first: Arc<dyn Operator>,
    second: Arc<dyn Operator>,
}

/// The convolution of an operator, and the smooth activation that ends it.
fn conv(op: &dyn Operator) -> Option<(&FusedConv, Option<Function>)> {
    let any: &dyn std::any::Any = op;
    match any.downcast_ref::<Ending>() {
        Some(ending) => ending.conv().map(|(conv, function)| (conv, Some(function))),
        None => any.downcast_ref().map(|conv| (conv, None)),
    }
}

/// A convolution with its sizes settled, and what ends it.
type Sized<'a> = (Geometry, &'a FusedConv, Option<Function>);

impl ConvPair {
    /// The pair of two operators, the second of which reads what the first makes, if a kernel may serve them.
    pub(crate) fn of(first: &Arc<dyn Operator>, second: &Arc<dyn Operator>) -> Option<ConvPair> {
        let ((a, _), (b, _)) = (conv(&**first)?, conv(&**second)?);
        let pointwise = a.weights.kernel() == [1, 1] && a.weights.groups() == 1;
        let depthwise = b.weights.groups() == a.weights.out_c() && b.weights.out_c() == b.weights.in_c();
        (pointwise && depthwise).then(|| ConvPair { first: first.clone(), second: second.clone() })
    }

    /// The layers on this map, if they are convolutions that can run on it.
    fn layers(&self, x: &Tensor) -> Option<[Sized<'_>; 2]> {
        let ((a, ends_a), (b, ends_b)) = (conv(&*self.first)?, conv(&*self.second)?);
        let first = a.geometry(x.shape()).ok()?;
        let between = [first.batch, first.out_c, first.out_h(), first.out_w()];
        Some([(first, a, ends_a), (b.geometry(&between).ok()?, b, ends_b)])
    }
}

impl Operator for ConvPair {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let (x, room) = (call.take(0)?, call.room);
        let layers = self.layers(&x).filter(|[(a, ..), (b, ..)]| conv2d::pair_serves(a, b));
        let Some(layers) = layers.filter(|_| x.dtype() == DType::F32 && x.rank() == 4 && !call.wants_any())
        else {
            let alone = |op: &dyn Operator, x: Tensor| {
                op.apply(Call { inputs: vec![Some(x)], wants: &[false], outputs: 1, room })
            };
            let mut between = alone(&*self.first, x)?.outputs;
            return alone(&*self.second, between.swap_remove(0));
        };
        let x = x.to_channels_last(room)?;
        let from = floats(&x)?;
        let [first, second] = layers.each_ref().map(|(geometry, conv, smooth)| Layer {
            geometry,
            weights: &conv.weights,
            bias: &conv.bias,
            activation: conv.activation,
            smooth: *smooth,
        });
        let g = second.geometry;
        let run = |out: &mut [f32]| conv2d::pair_forward(first, second, from, out);
        Ok(Answer::one(room.feature_map([g.batch, g.out_c, g.out_h(), g.out_w()], run)?))
    }

    fn kind(&self, inputs: &[Option<&Tensor>]) -> String {
        let layers = inputs.first().copied().flatten().and_then(|x| self.layers(x));
        layers.map_or_else(String::new, |layers| {
            layers.each_ref().map(|(geometry, ..)| super::kind(geometry)).join(" > ")
        })
    }

    fn flops(&self, inputs: &[Option<&Tensor>]) -> f64 {
        let layers = inputs.first().copied().flatten().and_then(|x| self.layers(x));
        layers.map_or(0.0, |layers| layers.iter().map(|(geometry, ..)| geometry.flops()).sum())
    }
}
