//! Clip and HardSigmoid: a line between two levels, with one bit an element as tape. PRelu, whose lower slope may vary by channel.
//!
//! Clip passes the gradient where the value lies strictly between the bounds, to the value only: bounds computed inside a network get
//! none. Where the lower bound is above the upper one everything becomes the upper one.

use evenkeel_kernels::epilogue::Activation;

use super::broadcast::{binary, binary_hot, combine, combine_hot, map, shape_of};
use super::fold::sum_to;
use super::number::{Float, Number, for_float, for_number};
use super::registry::{Entry, entry};
use super::two_slope::activate;
use super::{Answer, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::{DType, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("Clip", true, clip),
    entry("HardSigmoid", true, hard_sigmoid),
    entry("PRelu", true, |d| Ok(Box::new(PRelu { by_channel: d.opset < 7 }))),
];

/// Values kept between two bounds, which are attributes or inputs.
#[derive(Clone, Copy, Debug)]
pub struct Clip {
    /// The bounds of a file older than opset 11; both infinite otherwise.
    pub bounds: (f32, f32),
}

fn clip(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let attribute = |name: &str, default: f32| -> Result<f32, Fault> {
        let given = if definition.opset < 11 { definition.attributes.float(name)? } else { None };
        Ok(given.unwrap_or(default))
    };
    let bounds = (attribute("min", f32::NEG_INFINITY)?, attribute("max", f32::INFINITY)?);
    Ok(Box::new(Clip { bounds }))
}

/// A bound: the value of a tensor of one element, if there is one.
fn bound<T: Number>(tensor: Option<&Tensor>, input: usize) -> Result<Option<T>, Fault> {
    let Some(tensor) = tensor else { return Ok(None) };
    let values: &[T] = super::values_of(tensor, input)?;
    match values {
        [value] => Ok(Some(*value)),
        _ => Err(Fault::Shape { input, expected: "one value".into(), got: tensor.shape().to_vec() }),
    }
}

impl Clip {
    /// The activation this is on f32 values with these bounds.
    ///
    /// # Errors
    /// If a bound is not one f32 value.
    pub fn activation(&self, low: Option<&Tensor>, high: Option<&Tensor>) -> Result<Activation, Fault> {
        let low = bound::<f32>(low, 1)?.unwrap_or(self.bounds.0);
        let high = bound::<f32>(high, 2)?.unwrap_or(self.bounds.1);
        Ok(Activation::Clip(low, high))
    }

    fn whole<T: Number>(&self, x: Tensor, call: &Call<'_>) -> Result<Tensor, Fault> {
        let low = bound::<T>(call.optional(1), 1)?.unwrap_or(T::LOWEST);
        let high = bound::<T>(call.optional(2), 2)?.unwrap_or(T::HIGHEST);
        map(x, call.room, |x: T| x.larger(low).smaller(high))
    }
}

impl Operator for Clip {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let wanted = call.wants(0);
        let x = call.take(0)?;
        match x.dtype() {
            DType::F32 => {
                let activation = self.activation(call.optional(1), call.optional(2))?;
                activate(activation, x, wanted, call.room)
            }
            DType::F64 => {
                let low = bound::<f64>(call.optional(1), 1)?.unwrap_or(self.bounds.0.into());
                let high = bound::<f64>(call.optional(2), 2)?.unwrap_or(self.bounds.1.into());
                let kept = wanted.then(|| x.clone());
                let y = map(x, call.room, |x: f64| x.larger(low).smaller(high))?;
                Ok(Answer::one(y).with(wanted, move |back| {
                    let (Some(g), Some(x)) = (back.take(0), kept.clone()) else { return Ok(()) };
                    let inside = |g: f64, x: f64| if low < x && x < high { g } else { 0.0 };
                    let g = combine(g, x, back.room(), inside)?;
                    back.give(0, g)
                }))
            }
            _ => for_number!(x, 0, T => self.whole::<T>(x, &call)).map(Answer::one),
        }
    }
}

/// `alpha x + beta` kept between zero and one.
#[derive(Clone, Copy, Debug)]
pub struct HardSigmoid {
    /// The slope of the line.
    pub alpha: f32,
    /// Its value at zero.
    pub beta: f32,
}

fn hard_sigmoid(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let alpha = definition.attributes.float("alpha")?.unwrap_or(0.2);
    Ok(Box::new(HardSigmoid { alpha, beta: definition.attributes.float("beta")?.unwrap_or(0.5) }))
}

impl Operator for HardSigmoid {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let wanted = call.wants(0);
        let x = call.take(0)?;
        let (alpha, beta) = (f64::from(self.alpha), f64::from(self.beta));
        let line = for_float!(x, 0, T => map(x, call.room, |x: T| x * T::of(alpha) + T::of(beta)))?;
        let mut answer = activate(Activation::Clip(0.0, 1.0), line, wanted, call.room)?;
        if let Some(mask) = &mut answer.mask {
            mask.on = self.alpha;
        }
        Ok(answer)
    }
}

/// `x` above zero, `slope x` below; the slope is a tensor that broadcasts to the input. It keeps its input, unless the slope is a
/// single number: then one bit an element will do.
#[derive(Clone, Copy, Debug)]
struct PRelu {
    /// Before opset 7 a slope of rank one was for the channels.
    by_channel: bool,
}

impl Operator for PRelu {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let wants = [call.wants(0), call.wants(1)];
        let (x, mut slope) = (call.take(0)?, call.take(1)?);
        let slope_shape = slope.shape().to_vec();
        if self.by_channel && slope.rank() == 1 && slope.len() > 1 {
            let mut shape = vec![1; x.rank().saturating_sub(1).max(1)];
            shape[0] = slope.len();
            slope = slope.reshaped(&shape)?;
        }
        if shape_of(x.shape(), slope.shape())? != x.shape() {
            let (left, right) = (x.shape().to_vec(), slope.shape().to_vec());
            return Err(Fault::Mismatch { left, right, verb: "broadcast to the first" });
        }
        if let (DType::F32, Some(&[slope]), false) = (x.dtype(), slope.values::<f32>(), wants[1]) {
            return activate(Activation::LeakyRelu(slope), x, wants[0], call.room);
        }
        if !x.dtype().is_float() {
            return for_number!(x, 0, T => parametric::<T>(x, slope, call.room)).map(Answer::one);
        }
        for_float!(x, 0, T => parametric_floats::<T>(x, slope, slope_shape, wants, call.room))
    }
}

fn parametric<T: Number>(x: Tensor, slope: Tensor, room: &Room) -> Result<Tensor, Fault> {
    combine_hot(
        x,
        slope,
        room,
        #[inline(always)]
        |x: T, slope: T| if x < T::default() { x.times(slope) } else { x },
    )
}

fn parametric_floats<T: Float>(
    x: Tensor,
    slope: Tensor,
    slope_shape: Vec<usize>,
    wants: [bool; 2],
    room: &Room,
) -> Result<Answer, Fault> {
    let wanted = wants[0] || wants[1];
    let kept = wanted.then(|| (x.clone(), slope.clone()));
    let y = parametric::<T>(x, slope, room)?;
    Ok(Answer::one(y).with(wanted, move |back| {
        let (Some(g), Some((x, slope))) = (back.take(0), &kept) else { return Ok(()) };
        let zero = T::of(0.0);
        if back.wants(0) {
            let slopes = binary_hot(
                x,
                slope,
                back.room(),
                |x: T, slope: T| if x > zero { T::of(1.0) } else { slope },
            )?;
            let own = combine_hot(
                slopes,
                g.clone(),
                back.room(),
                #[inline(always)]
                |slope: T, g: T| slope * g,
            )?;
            back.give(0, own)?;
        }
        if back.wants(1) {
            let own = binary(x, &g, back.room(), |x: T, g: T| if x > zero { zero } else { x * g })?;
            back.give(1, sum_to::<T>(own, slope.shape(), back.room())?.reshaped(&slope_shape)?)?;
        }
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::proof::{Numbers, build, outputs, prove_gradient, prove_layouts};
    use crate::tensor::Tensor;

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(8);
        for shape in [&[2, 5, 3, 2][..], &[9]] {
            let x = Some(numbers.tensor(shape, -4.0, 4.0));
            let old = [("min", Attribute::Float(-1.0)), ("max", Attribute::Float(2.0))];
            prove_gradient(build("Clip", 6, &old, 1), std::slice::from_ref(&x), 1, 1e-5);
            prove_gradient(build("HardSigmoid", 6, &[], 1), std::slice::from_ref(&x), 1, 1e-5);
            prove_layouts(build("Clip", 6, &old, 1), std::slice::from_ref(&x));
            prove_layouts(build("HardSigmoid", 6, &[], 1), std::slice::from_ref(&x));
            for slope in [&[1][..], if shape.len() == 4 { &[5, 1, 1] } else { &[9] }] {
                let inputs = [x.clone(), Some(numbers.tensor(slope, -0.5, 0.5))];
                prove_gradient(build("PRelu", 16, &[], 2), &inputs, 1, 1e-5);
                prove_layouts(build("PRelu", 16, &[], 2), &inputs);
            }
        }
    }

    #[test]
    fn bounds_may_be_inputs_of_any_type_or_absent() {
        let clip = |x: Tensor, low: Option<Tensor>, high: Option<Tensor>| {
            outputs(&build("Clip", 13, &[], 3).into(), &[Some(x), low, high], 1).remove(0)
        };
        let x = Tensor::new(&[4], vec![-5.0f32, -1.0, 1.0, 9.0]);
        let y = clip(x.clone(), Some(Tensor::scalar(-2.0f32)), None);
        assert_eq!(y.values::<f32>().unwrap(), [-2.0, -1.0, 1.0, 9.0]);
        let y = clip(x, Some(Tensor::scalar(2.0f32)), Some(Tensor::scalar(1.0f32)));
        assert_eq!(y.values::<f32>().unwrap(), [1.0; 4]);
        let x = Tensor::new(&[3], vec![-5i64, 1, 9]);
        let y = clip(x, None, Some(Tensor::scalar(4i64)));
        assert_eq!(y.values::<i64>().unwrap(), [-5, 1, 4]);
    }
}
