//! A product with constant weights along the last axis and what follows it in one pass: bias, residual and activation.
//!
//! `y[.., n] = activation(sum over k of x[.., k] w[k, n] + bias[n] + residual[.., n])`: a pointwise convolution whose pixels are the
//! rows of `x`, so it runs on the convolution's kernels with weights packed once for each direction. A row is the same bytes alone and
//! among others. Rows of a multiple of eight elements lie in memory as a channels-last map's pixels do; others are not fused.

use std::sync::Arc;

use evenkeel_kernels::activation::Function;
use evenkeel_kernels::conv2d::{self, Geometry, Weights};
use evenkeel_kernels::epilogue::{Activation, Epilogue};

use super::ending::EndsSmoothly;
use super::original::run_original;
use super::{Answer, Back, Call, Operator, SlopeMask, values_of};
use crate::error::Fault;
use crate::plan::Plan;
use crate::tensor::{DType, Layout, Tensor};

/// See the [module](self). Inputs: the rows, and the residual if there is one.
#[derive(Debug)]
pub(crate) struct Linear {
    pub(crate) weights: Arc<Weights>,
    pub(crate) bias: Vec<f32>,
    pub(crate) activation: Activation,
    /// The nodes this was fused from, with the same inputs and output.
    pub(crate) original: Arc<Plan>,
}

impl Linear {
    fn geometry(&self, rows: usize) -> Geometry {
        Geometry {
            batch: 1,
            in_h: 1,
            in_w: rows,
            in_c: self.weights.in_c(),
            out_c: self.weights.out_c(),
            kernel: [1, 1],
            stride: [1, 1],
            dilation: [1, 1],
            pads: [0; 4],
            groups: 1,
        }
    }

    /// The output's shape for rows of this shape, if they can be multiplied.
    fn output(&self, x: &[usize]) -> Option<Vec<usize>> {
        let (&last, lead) = x.split_last()?;
        let fits = last == self.weights.in_c() && !lead.is_empty() && !x.contains(&0);
        fits.then(|| lead.iter().copied().chain([self.weights.out_c()]).collect())
    }

    /// The output's shape for the inputs of a call, if the kernel serves them.
    fn fitting(&self, call: &Call<'_>) -> Result<Option<Vec<usize>>, Fault> {
        let x = call.input(0)?;
        let shape = self.output(x.shape());
        let fits = call.optional(1).is_none_or(|residual| Some(residual.shape()) == shape.as_deref());
        Ok(shape.filter(|_| fits && x.dtype() == DType::F32))
    }

    fn run(&self, shape: Vec<usize>, smooth: Option<Function>, mut call: Call<'_>) -> Result<Answer, Fault> {
        let (x, room, taped) = (call.take(0)?, call.room, call.wants_any());
        let x_shape = x.shape().to_vec();
        let geometry = self.geometry(x.len() / self.weights.in_c());
        let mut residual = call.inputs.get_mut(1).and_then(Option::take);
        let with_residual = residual.is_some();
        // A residual nobody else needs is added to in place.
        let in_place = residual.take_if(|tensor| !tensor.is_shared());
        let accumulate = in_place.is_some();
        let mut y = in_place.map_or_else(|| room.tensor::<f32>(&shape, |_| {}), Ok)?;
        let with_bits = taped && self.activation != Activation::None;
        let mut bits = room.take::<u8>(if with_bits { y.len() / 8 } else { 0 })?;
        let epilogue = Epilogue {
            bias: Some(&self.bias),
            residual: residual.as_ref().and_then(|tensor| tensor.values::<f32>()),
            accumulate,
            activation: self.activation,
            bits: with_bits.then_some(&mut bits),
            mask: None,
            smooth,
        };
        let Some(into) = y.values_mut::<f32>() else {
            return Err(Fault::Value("a tensor that should be unshared is shared".into()));
        };
        conv2d::forward(&geometry, &self.weights, values_of(&x, 0)?, into, epilogue);
        let weights = self.weights.clone();
        let mut answer = Answer::one(y).with(taped, move |back| {
            let Some(cotangent) = back.take(0) else { return Ok(()) };
            if with_residual {
                back.give(1, cotangent.clone())?;
            }
            if !back.wants(0) {
                return Ok(());
            }
            let gradient = pull(&geometry, &weights, &cotangent, &x_shape, back)?;
            back.give(0, gradient)
        });
        let off = self.activation.slope_off();
        answer.mask = with_bits.then(|| SlopeMask { bits: Arc::new(bits), on: 1.0, off });
        Ok(answer)
    }
}

impl EndsSmoothly for Linear {
    fn apply_with<'a>(&self, function: Function, call: Call<'a>) -> Result<Result<Answer, Fault>, Call<'a>> {
        match self.fitting(&call) {
            Ok(Some(shape)) => Ok(self.run(shape, Some(function), call)),
            _ => Err(call),
        }
    }
}

impl Operator for Linear {
    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        match self.fitting(&call)? {
            Some(shape) => self.run(shape, None, call),
            None => run_original(&self.original, call),
        }
    }

    fn packed_bytes(&self) -> usize {
        self.weights.packed_bytes()
            + self.original.steps.iter().map(|step| step.op.packed_bytes()).sum::<usize>()
    }

    fn kind(&self, _: &[Option<&Tensor>]) -> String {
        "MatMul by constants".into()
    }

    fn flops(&self, inputs: &[Option<&Tensor>]) -> f64 {
        let rows = inputs.first().copied().flatten().map_or(0, |x| x.len() / self.weights.in_c());
        self.geometry(rows).flops()
    }
}

/// The gradient of the rows, with the sum so far and the mask of what made them in the same pass.
fn pull(
    geometry: &Geometry,
    weights: &Weights,
    cotangent: &Tensor,
    shape: &[usize],
    back: &mut Back<'_>,
) -> Result<Tensor, Fault> {
    let finish = back.finish(0, Layout::Plain)?;
    let mut sum = finish.accumulated;
    let in_place = sum.take_if(|tensor| !tensor.is_shared());
    let epilogue = Epilogue {
        accumulate: in_place.is_some(),
        residual: sum.as_ref().and_then(|tensor| tensor.values::<f32>()),
        mask: finish.mask.as_ref().map(SlopeMask::as_mask),
        ..Epilogue::default()
    };
    let mut gradient = in_place.map_or_else(|| back.room().tensor::<f32>(shape, |_| {}), Ok)?;
    match gradient.values_mut::<f32>() {
        Some(into) => conv2d::pullback(geometry, weights, values_of(cotangent, 0)?, into, epilogue),
        None => return Err(Fault::Value("a gradient that should be unshared is shared".into())),
    }
    Ok(gradient)
}
