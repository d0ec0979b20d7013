//! BatchNormalization with stored statistics: `y = scale (x - mean) / sqrt(var + epsilon) + bias` for each channel.
//!
//! Frozen, it is one scale and one shift a channel; the pullback to the map multiplies by the scale and keeps nothing else. The
//! gradients of the parameters, for graphs that compute them, need two sums a channel.

use super::broadcast::binary;
use super::channels::{Affine, affine};
use super::fold::sum;
use super::number::{Float, for_float};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Layouts, Operator, values_of};
use crate::error::Fault;
use crate::tensor::Tensor;

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("BatchNormalization", true, build)];

/// Batch normalization with stored statistics.
#[derive(Clone, Copy, Debug)]
pub struct BatchNormalization {
    /// Added to the variance.
    pub epsilon: f64,
}

fn build(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let attributes = definition.attributes;
    if attributes.flag("training_mode", false)? {
        return Err(Fault::Unsupported("batch normalization by the statistics of the batch".into()));
    }
    if definition.opset < 9 && !attributes.flag("spatial", true)? {
        return Err(Fault::Unsupported("batch normalization for each pixel".into()));
    }
    let epsilon = attributes.float("epsilon")?.unwrap_or(1e-5).into();
    Ok(Box::new(BatchNormalization { epsilon }))
}

impl Operator for BatchNormalization {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn channel_affine(&self, constants: &[Option<&[f32]>]) -> Option<(Vec<f32>, Vec<f32>)> {
        let &[_, Some(scale), Some(bias), Some(mean), Some(variance)] = constants else { return None };
        let channels = scale.len();
        if [bias, mean, variance].iter().any(|values| values.len() != channels) {
            return None;
        }
        let scales: Vec<f32> = (0..channels)
            .map(|c| (f64::from(scale[c]) / (f64::from(variance[c]) + self.epsilon).sqrt()) as f32)
            .collect();
        let shifts = (0..channels).map(|c| bias[c] - mean[c] * scales[c]).collect();
        Some((scales, shifts))
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.take(0)?;
        for_float!(x, 0, T => self.forward::<T>(x, &call))
    }
}

/// The four parameters of a channel, in the order of the inputs.
struct Parameters<T> {
    scale: Vec<T>,
    bias: Vec<T>,
    mean: Vec<T>,
    /// `1 / sqrt(var + epsilon)`.
    inverse: Vec<T>,
}

impl BatchNormalization {
    fn parameters<T: Float>(&self, x: &Tensor, call: &Call<'_>) -> Result<Parameters<T>, Fault> {
        let Some(&channels) = x.shape().get(1) else {
            return Err(Fault::Shape { input: 0, expected: "[n, c, ...]".into(), got: x.shape().to_vec() });
        };
        let read = |i: usize| -> Result<Vec<T>, Fault> {
            let tensor = call.input(i)?;
            if tensor.len() != channels {
                let got = tensor.shape().to_vec();
                return Err(Fault::Shape { input: i, expected: format!("[{channels}]"), got });
            }
            Ok(values_of::<T>(tensor, i)?.to_vec())
        };
        let inverse = |v: &T| T::of(1.0 / (v.wide() + self.epsilon).sqrt());
        let inverse = read(4)?.iter().map(inverse).collect();
        Ok(Parameters { scale: read(1)?, bias: read(2)?, mean: read(3)?, inverse })
    }

    fn forward<T: Float>(&self, x: Tensor, call: &Call<'_>) -> Result<Answer, Fault> {
        let parameters = self.parameters::<T>(&x, call)?;
        let channels = parameters.scale.len();
        let scale: Vec<T> = (0..channels).map(|c| parameters.scale[c] * parameters.inverse[c]).collect();
        let shift = (0..channels).map(|c| parameters.bias[c] - parameters.mean[c] * scale[c]).collect();
        let wants_parameters = (1..5).any(|i| call.wants(i));
        let kept = wants_parameters.then(|| (x.clone(), parameters));
        let pairs = Affine { scale, shift: Some(shift) };
        let y = affine(x, &pairs, call.room)?;
        let slopes = Affine { scale: pairs.scale, shift: None };
        Ok(Answer::one(y).with(call.wants_any(), move |back| {
            let Some(g) = back.take(0) else { return Ok(()) };
            if let Some((x, parameters)) = &kept {
                let gradients = parameters.gradients(x, &g, back)?;
                for (i, gradient) in gradients.into_iter().enumerate() {
                    back.give(i + 1, Tensor::new(&[channels], gradient))?;
                }
            }
            if back.wants(0) {
                let g = affine(g, &slopes, back.room())?;
                back.give(0, g)?;
            }
            Ok(())
        }))
    }
}

impl<T: Float> Parameters<T> {
    /// From `sum g` and `sum g x` of each channel.
    fn gradients(&self, x: &Tensor, g: &Tensor, back: &super::Back<'_>) -> Result<[Vec<T>; 4], Fault> {
        let room = back.room();
        let axes: Vec<usize> = (0..x.rank()).filter(|&axis| axis != 1).collect();
        let gx = binary(g, x, room, |g: T, x: T| g * x)?;
        let (plain, weighted) = (sum::<T>(g, &axes, room)?, sum::<T>(&gx, &axes, room)?);
        let (plain, weighted): (&[T], &[T]) = (values_of(&plain, 0)?, values_of(&weighted, 0)?);
        let of = |f: &dyn Fn(usize, T, T) -> T| -> Vec<T> {
            (0..plain.len()).map(|c| f(c, plain[c], weighted[c] - self.mean[c] * plain[c])).collect()
        };
        Ok([
            of(&|c, _, centred| centred * self.inverse[c]),
            of(&|_, plain, _| plain),
            of(&|c, plain, _| -(plain * self.scale[c] * self.inverse[c])),
            of(&|c, _, centred| {
                let inverse = self.inverse[c];
                T::of(-0.5) * centred * self.scale[c] * inverse * inverse * inverse
            }),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::proof::{Numbers, build, prove_gradient, prove_layouts};

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(12);
        for shape in [&[2, 5, 3, 2][..], &[3, 8], &[2, 3, 4], &[1, 4, 2, 2, 2]] {
            let mut inputs = vec![Some(numbers.tensor(shape, -2.0, 2.0))];
            inputs.extend((0..4).map(|i| {
                let low = if i == 3 { 0.2 } else { -1.0 };
                Some(numbers.tensor(&shape[1..2], low, 1.5))
            }));
            let epsilon = [("epsilon", Attribute::Float(1e-3))];
            prove_gradient(build("BatchNormalization", 15, &epsilon, 5), &inputs, 1, 2e-5);
            prove_layouts(build("BatchNormalization", 9, &epsilon, 5), &inputs);
        }
    }
}
