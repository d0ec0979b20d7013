//! Relu, LeakyRelu, Clip (and ThresholdedRelu's kin): activations whose derivative is one of two constants.
//!
//! The tape is one bit an element, handed to the walk as a [`SlopeMask`]; the pullback is then the identity.

use std::sync::Arc;

use evenkeel_kernels::activation::two_slope;
use evenkeel_kernels::epilogue::Activation;

use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Layouts, Operator, SlopeMask};
use crate::error::Fault;
use crate::tensor::{Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("Relu", true, relu), entry("LeakyRelu", true, leaky_relu)];

/// A two-slope activation with constant parameters.
#[derive(Clone, Copy, Debug)]
pub struct TwoSlope(pub Activation);

fn relu(_: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(TwoSlope(Activation::Relu)))
}

fn leaky_relu(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let slope = definition.attributes.float("alpha")?.unwrap_or(0.01);
    Ok(Box::new(TwoSlope(Activation::LeakyRelu(slope))))
}

impl Operator for TwoSlope {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let taped = call.wants_any();
        let x = call.take(0)?;
        activate(self.0, x, taped, call.room)
    }
}

/// Applies a two-slope activation to floats, in place where the tensor is not shared.
///
/// # Errors
/// If the tensor is not of floats, or the room is used up.
pub fn activate(activation: Activation, x: Tensor, taped: bool, room: &Room) -> Result<Answer, Fault> {
    let mut y = if x.is_shared() { x.copied(room)? } else { x };
    let got = y.dtype();
    let mut bits = room.take::<u8>(if taped { stored(&y).div_ceil(8) } else { 0 })?;
    if let Some(values) = y.values_mut::<f32>() {
        two_slope(activation, values, taped.then_some(&mut *bits));
    } else if let Some(values) = y.values_mut::<f64>() {
        if taped {
            bits.fill(0);
            for (i, &v) in values.iter().enumerate() {
                bits[i / 8] |= u8::from(activation.bit(v as f32)) << (i % 8);
            }
        }
        values.iter_mut().for_each(|v| *v = value(activation, *v));
    } else {
        return Err(Fault::Type { input: 0, expected: "floats", got });
    }
    let mut answer = Answer::one(y).with(taped, |back| match back.take(0) {
        Some(cotangent) => back.give(0, cotangent),
        None => Ok(()),
    });
    answer.mask = taped.then(|| SlopeMask { bits: Arc::new(bits), on: 1.0, off: activation.slope_off() });
    Ok(answer)
}

/// Elements in storage, padding lanes included.
fn stored(tensor: &Tensor) -> usize {
    crate::for_type!(tensor.data(), values => values.len())
}

fn value(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::LeakyRelu(slope) => {
            if x > 0.0 {
                x
            } else {
                f64::from(slope) * x
            }
        }
        Activation::Clip(low, high) => x.max(low.into()).min(high.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::proof::{Numbers, build, prove_gradient};

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(1);
        for shape in [&[2, 3, 4, 5][..], &[7], &[1, 9, 3, 3]] {
            let x = Some(numbers.tensor(shape, -2.0, 2.0));
            prove_gradient(build("Relu", 14, &[], 1), std::slice::from_ref(&x), 1, 1e-5);
            let alpha = [("alpha", Attribute::Float(0.2))];
            prove_gradient(build("LeakyRelu", 16, &alpha, 1), &[x], 1, 1e-5);
        }
    }
}
