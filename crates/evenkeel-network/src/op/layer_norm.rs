//! LayerNormalization and RMSNormalization.
//!
//! Layer and RMS norm work on rows, the dimensions from an axis on: `z = (x - mean) / sqrt(variance + epsilon)`, or without the mean,
//! then `y = scale z + bias`. With `h = scale g`, `dx = inverse (h - mean(h) - z mean(h z))`, the middle term for layer norm only.
//! The tape is the input and two numbers a row.

use evenkeel_kernels::formula::wide;
use evenkeel_kernels::norm;
use evenkeel_kernels::parallel;

use super::broadcast::{self, combine};
use super::fold::{axis_of, sum_to};
use super::lanes::{sum_of, sum_of_pairs};
use super::number::{Float, for_float};
use super::registry::{Entry, entry};
use super::{Answer, Back, Call, Definition, Operator, values_of};
use crate::error::Fault;
use crate::tensor::{Layout, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("LayerNormalization", true, |d| build(d, true)),
    entry("RMSNormalization", true, |d| build(d, false)),
];

/// Elements below which splitting costs more than it gains.
const GRAIN: usize = 1 << 13;

#[derive(Clone, Copy, Debug)]
struct LayerNorm {
    axis: i64,
    epsilon: f64,
    /// Whether the mean is taken off.
    centred: bool,
}

fn build(definition: &Definition<'_>, centred: bool) -> Result<Box<dyn Operator>, Fault> {
    let axis = definition.attributes.int("axis")?.unwrap_or(-1);
    let epsilon = definition.attributes.float("epsilon")?.unwrap_or(1e-5).into();
    Ok(Box::new(LayerNorm { axis, epsilon, centred }))
}

impl Operator for LayerNorm {
    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.take(0)?;
        for_float!(x, 0, T => self.forward::<T>(x, &call))
    }
}

/// The mean (zero where it is not taken off) and the inverse deviation of each row.
struct Moments<T> {
    len: usize,
    centred: bool,
    pairs: Vec<[T; 2]>,
}

impl LayerNorm {
    fn forward<T: Float>(&self, x: Tensor, call: &Call<'_>) -> Result<Answer, Fault> {
        let axis = axis_of(self.axis, x.rank())?;
        let shape = x.shape().to_vec();
        let len = if x.is_empty() { 1 } else { shape[axis..].iter().product() };
        let wanted = call.wants_any();
        let scale =
            call.optional(1).map(|scale| fitted::<T>(scale, &shape[axis..], call.room)).transpose()?;
        let bias = call.optional(2).cloned();
        if let Some(answer) = self.single(&x, len, [scale.as_ref(), bias.as_ref()], call)? {
            return Ok(answer);
        }
        let moments = self.moments::<T>(values_of(&x, 0)?, len);
        let kept = wanted.then(|| (x.clone(), scale.clone()));
        let parameter_shapes = [1, 2].map(|i| call.optional(i).map(|t| t.shape().to_vec()));
        let mut y = if x.is_shared() { x.copied(call.room)? } else { x };
        if let Some(values) = y.values_mut::<T>() {
            moments.normalise(values);
        }
        for (parameter, scales) in [(&scale, true), (&bias, false)] {
            let Some(parameter) = parameter else { continue };
            if broadcast::shape_of(&shape, parameter.shape())? != shape {
                let (left, right) = (shape, parameter.shape().to_vec());
                return Err(Fault::Mismatch { left, right, verb: "broadcast to the first" });
            }
            y = if scales {
                combine(
                    y,
                    parameter.clone(),
                    call.room,
                    #[inline(always)]
                    |y: T, s: T| y * s,
                )?
            } else {
                combine(
                    y,
                    parameter.clone(),
                    call.room,
                    #[inline(always)]
                    |y: T, b: T| y + b,
                )?
            };
        }
        let mut outputs = vec![y];
        if call.outputs > 1 {
            let mut stat_shape = shape[..axis].to_vec();
            stat_shape.resize(shape.len(), 1);
            for k in [0, 1] {
                outputs.push(call.room.tensor(&stat_shape, |out: &mut [T]| {
                    out.iter_mut().zip(&moments.pairs).for_each(|(out, pair)| *out = pair[k]);
                })?);
            }
        }
        Ok(Answer::new(outputs).with(wanted, move |back| {
            let (Some(g), Some((x, scale))) = (back.take(0), &kept) else { return Ok(()) };
            moments.pull(x, scale.as_ref(), &parameter_shapes, g, back)
        }))
    }

    /// A layer norm in f32 whose scale and bias are whole rows and have no gradient, by the kernels; `None` for others.
    fn single(
        &self,
        x: &Tensor,
        length: usize,
        [scale, bias]: [Option<&Tensor>; 2],
        call: &Call<'_>,
    ) -> Result<Option<Answer>, Fault> {
        let fits = |t: Option<&Tensor>| t.is_none_or(|t| t.len() == length && t.values::<f32>().is_some());
        let plain = self.centred && call.outputs == 1 && !call.wants(1) && !call.wants(2) && !x.is_empty();
        let (Some(values), true) = (x.values::<f32>(), plain && scale.is_some() && fits(scale) && fits(bias))
        else {
            return Ok(None);
        };
        let (scale, bias) = (scale.cloned(), bias.cloned());
        let epsilon = self.epsilon as f32;
        let mut moments = vec![norm::Moments::default(); values.len() / length];
        let rows = kernel_rows(length, epsilon, scale.as_ref(), bias.as_ref());
        let y = call.room.tensor(x.shape(), |out| norm::forward(&rows, values, out, Some(&mut moments)))?;
        let x = x.clone();
        Ok(Some(Answer::one(y).with(call.wants(0), move |back| {
            let Some(g) = back.take(0) else { return Ok(()) };
            let (values, g): (&[f32], &[f32]) = (values_of(&x, 0)?, values_of(&g, 0)?);
            let rows = kernel_rows(length, epsilon, scale.as_ref(), None);
            let own = back.room().tensor(x.shape(), |out| norm::pullback(&rows, values, &moments, g, out))?;
            back.give(0, own)
        })))
    }

    fn moments<T: Float>(&self, values: &[T], len: usize) -> Moments<T> {
        let mut pairs = vec![[T::of(0.0); 2]; values.len() / len.max(1)];
        let share = T::of(1.0 / len as f64);
        parallel::rows(&mut pairs, 1, (GRAIN / len.max(1)).max(1), |first, part| {
            for (i, pair) in part.iter_mut().enumerate() {
                let row = &values[(first + i) * len..(first + i + 1) * len];
                let mean = if self.centred {
                    sum_of(
                        row,
                        #[inline(always)]
                        |x| x,
                    ) * share
                } else {
                    T::of(0.0)
                };
                let variance = sum_of(
                    row,
                    #[inline(always)]
                    |x| (x - mean) * (x - mean),
                ) * share;
                *pair = [mean, T::of(1.0) / (variance + T::of(self.epsilon)).sqrt()];
            }
        });
        Moments { len, centred: self.centred, pairs }
    }
}

/// As the kernels take it.
fn kernel_rows<'a>(
    length: usize,
    epsilon: f32,
    scale: Option<&'a Tensor>,
    bias: Option<&'a Tensor>,
) -> norm::Rows<'a> {
    let scale = scale.and_then(|scale| scale.values::<f32>());
    let bias = bias.and_then(|bias| bias.values::<f32>());
    norm::Rows { length, epsilon, affine: scale.map(|scale| norm::Affine { scale, bias, run: 1 }) }
}

/// A scale that repeats only along leading dimensions of the row, spread to the whole row; others as they are.
fn fitted<T: Float>(scale: &Tensor, row: &[usize], room: &Room) -> Result<Tensor, Fault> {
    if scale.rank() <= row.len() && broadcast::shape_of(scale.shape(), row)? == row {
        broadcast::expand::<T>(scale, row, Layout::Plain, room)
    } else {
        Ok(scale.clone())
    }
}

impl<T: Float> Moments<T> {
    fn normalise(&self, values: &mut [T]) {
        if values.is_empty() {
            return;
        }
        parallel::rows(values, self.len, (GRAIN / self.len).max(1), |first, part| {
            for (i, row) in part.chunks_exact_mut(self.len).enumerate() {
                let [mean, inverse] = self.pairs[first + i];
                wide(
                    #[inline(always)]
                    || row.iter_mut().for_each(|v| *v = (*v - mean) * inverse),
                );
            }
        });
    }

    fn pull(
        &self,
        x: &Tensor,
        scale: Option<&Tensor>,
        shapes: &[Option<Vec<usize>>; 2],
        g: Tensor,
        back: &mut Back<'_>,
    ) -> Result<(), Fault> {
        if let (true, Some(shape)) = (back.wants(1), &shapes[0]) {
            let mut z = x.copied(back.room())?;
            if let Some(values) = z.values_mut::<T>() {
                self.normalise(values);
            }
            let own = combine(z, g.clone(), back.room(), |z: T, g: T| z * g)?;
            back.give(1, sum_to::<T>(own, shape, back.room())?)?;
        }
        if let (true, Some(shape)) = (back.wants(2), &shapes[1]) {
            let own = sum_to::<T>(g.clone(), shape, back.room())?;
            back.give(2, own)?;
        }
        if !back.wants(0) {
            return Ok(());
        }
        let mut h = match scale {
            Some(scale) => combine(
                g,
                scale.clone(),
                back.room(),
                #[inline(always)]
                |g: T, s: T| g * s,
            )?,
            None => g,
        };
        if h.is_shared() {
            h = h.copied(back.room())?;
        }
        let values: &[T] = values_of(x, 0)?;
        let share = T::of(1.0 / self.len as f64);
        if let (Some(h), false) = (h.values_mut::<T>(), values.is_empty()) {
            parallel::rows(h, self.len, (GRAIN / self.len).max(1), |first, part| {
                for (i, h) in part.chunks_exact_mut(self.len).enumerate() {
                    let [mean, inverse] = self.pairs[first + i];
                    let x = &values[(first + i) * self.len..(first + i + 1) * self.len];
                    let plain = if self.centred {
                        sum_of(
                            h,
                            #[inline(always)]
                            |h| h,
                        ) * share
                    } else {
                        T::of(0.0)
                    };
                    let dot = sum_of_pairs(
                        h,
                        x,
                        #[inline(always)]
                        |h, x| h * (x - mean),
                    ) * inverse
                        * share;
                    let factor = dot * inverse;
                    wide(
                        #[inline(always)]
                        || {
                            h.iter_mut()
                                .zip(x)
                                .for_each(|(h, &x)| *h = inverse * (*h - plain - (x - mean) * factor))
                        },
                    );
                }
            });
        }
        back.give(0, h)
    }
}

#[cfg(test)]
mod tests {
    use super::super::proof::{Numbers, build, narrow, prove_gradient, room};
    use super::super::{Attribute, Back, Call, Gradient};
    use crate::tensor::Tensor;

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(61);
        for (shape, axis, scale) in [
            (&[2, 3, 10][..], -1, &[10][..]),
            (&[2, 3, 10], 1, &[3, 10]),
            (&[2, 3, 2, 4], 2, &[2, 4]),
            (&[2, 3, 2, 4], 1, &[1, 2, 4]),
            (&[7], 0, &[7]),
            (&[2, 5], 0, &[5]),
        ] {
            let inputs = [
                Some(numbers.tensor(shape, -2.0, 3.0)),
                Some(numbers.tensor(scale, 0.5, 1.5)),
                Some(numbers.tensor(scale, -1.0, 1.0)),
            ];
            let attributes = [("axis", Attribute::Int(axis)), ("epsilon", Attribute::Float(1e-3))];
            prove_gradient(build("LayerNormalization", 17, &attributes, 3), &inputs, 1, 5e-5);
            prove_gradient(build("LayerNormalization", 17, &attributes, 2), &inputs[..2], 1, 5e-5);
            prove_gradient(build("RMSNormalization", 23, &attributes, 2), &inputs[..2], 1, 5e-5);
        }
    }

    #[test]
    fn kernels_answer_like_the_plain_rows() {
        let mut numbers = Numbers::new(62);
        let room = room();
        let inputs: Vec<Tensor> =
            [&[2, 3, 21][..], &[21], &[21]].map(|shape| numbers.tensor(shape, -2.0, 3.0)).to_vec();
        let seed = numbers.tensor(&[2, 3, 21], -1.0, 1.0);
        let answer = |single: bool, wants: &[bool]| {
            let as_type = |x: &Tensor| if single { narrow(x) } else { x.clone() };
            let given = inputs.iter().map(|x| Some(as_type(x))).collect();
            let op = build("LayerNormalization", 17, &[], 3);
            let answer = op.apply(Call { inputs: given, wants, outputs: 1, room: &room }).unwrap();
            let mut gradients: Vec<Gradient> = (0..3).map(|_| Gradient::default()).collect();
            let places = [Some(0), None, None];
            let cotangents = vec![Some(as_type(&seed))];
            let mut back = Back { cotangents, places: &places, gradients: &mut gradients, room: &room };
            answer.pullback.unwrap()(&mut back).unwrap();
            (answer.outputs[0].clone(), gradients[0].sum.clone().unwrap())
        };
        let (y, g) = answer(true, &[true, false, false]);
        let (exact_y, exact_g) = answer(false, &[true, true, true]);
        for (got, exact) in [(y, exact_y), (g, exact_g)] {
            for (a, b) in got.values::<f32>().unwrap().iter().zip(exact.values::<f64>().unwrap()) {
                assert!((f64::from(*a) - b).abs() < 1e-5, "{a} instead of {b}");
            }
        }
    }
}
