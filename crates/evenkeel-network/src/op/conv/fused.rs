//! A convolution with constant weights and what follows it in one pass: scale, bias, residual and activation.
//!
//! Inputs: the map, and the residual if there is one. Whether the residual has the shape of the result is known only when it
//! arrives; if it does not, the nodes this was fused from are run instead.

use std::sync::Arc;

use evenkeel_kernels::activation::Function;
use evenkeel_kernels::conv2d::{Geometry, Weights};
use evenkeel_kernels::epilogue::Activation;

use super::super::ending::EndsSmoothly;
use super::super::original::run_original;
use super::super::{Answer, Call, Layouts, Operator};
use super::{Conv, Layer};
use crate::error::Fault;
use crate::plan::Plan;
use crate::tensor::Tensor;

/// A convolution and what was fused into it.
#[derive(Debug)]
pub struct FusedConv {
    pub(crate) conv: Arc<dyn Operator>,
    /// The shape of the convolution's weights, as the file has them.
    pub(crate) shape: Tensor,
    pub(crate) weights: Arc<Weights>,
    pub(crate) bias: Vec<f32>,
    pub(crate) activation: Activation,
    /// The nodes this was fused from, with the same inputs and output.
    pub(crate) original: Arc<Plan>,
}

impl FusedConv {
    fn conv(&self) -> Result<&Conv, Fault> {
        let any: &dyn std::any::Any = &*self.conv;
        any.downcast_ref().ok_or_else(|| Fault::Value("a fused node lost its convolution".into()))
    }

    /// The sizes of the convolution of a map of this shape.
    pub(super) fn geometry(&self, x: &[usize]) -> Result<Geometry, Fault> {
        self.conv()?.geometry(x, &self.shape)
    }

    /// The sizes for the inputs of a call, if its residual has the shape of the result.
    fn fitting(&self, call: &Call<'_>) -> Result<Option<Geometry>, Fault> {
        let geometry = self.geometry(call.input(0)?.shape())?;
        let shape = [geometry.batch, geometry.out_c, geometry.out_h(), geometry.out_w()];
        let fits = call.optional(1).is_none_or(|residual| residual.shape() == shape);
        Ok((fits && call.input(0)?.rank() == 4).then_some(geometry))
    }

    fn run(&self, geometry: Geometry, smooth: Option<Function>, mut call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.take(0)?;
        let residual = call.inputs.get_mut(1).and_then(Option::take).map(|tensor| (1, tensor));
        let layer = Layer { geometry, weights: self.weights.clone(), activation: self.activation, smooth };
        layer.forward(x, Some(&self.bias), residual, &call)
    }
}

impl EndsSmoothly for FusedConv {
    fn apply_with<'a>(&self, function: Function, call: Call<'a>) -> Result<Result<Answer, Fault>, Call<'a>> {
        match self.fitting(&call) {
            Ok(Some(geometry)) => Ok(self.run(geometry, Some(function), call)),
            _ => Err(call),
        }
    }
}

impl Operator for FusedConv {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        match self.fitting(&call)? {
            Some(geometry) => self.run(geometry, None, call),
            None => run_original(&self.original, call),
        }
    }

    fn packed_bytes(&self) -> usize {
        self.weights.packed_bytes()
            + self.original.steps.iter().map(|step| step.op.packed_bytes()).sum::<usize>()
    }

    fn kind(&self, inputs: &[Option<&Tensor>]) -> String {
        let geometry = inputs.first().copied().flatten().and_then(|x| self.geometry(x.shape()).ok());
        geometry.map_or_else(String::new, |geometry| super::kind(&geometry))
    }

    fn flops(&self, inputs: &[Option<&Tensor>]) -> f64 {
        match inputs {
            [Some(x), ..] => self.geometry(x.shape()).map_or(0.0, |geometry| geometry.flops()),
            _ => 0.0,
        }
    }
}
