//! Smooth activations: Sigmoid, Tanh, Erf, Gelu, Softplus, Softsign, the Elu family, HardSwish, Swish, Mish, ThresholdedRelu and
//! Shrink.
//!
//! Sigmoid and Tanh keep their output for the pullback, the others their input. At a corner the derivative is PyTorch's.

use evenkeel_kernels::activation::{self, Function};

use super::broadcast::{fresh, map, weigh};
use super::number::Float;
use super::pointwise::{Curve, Needs, Pointwise, curve_entries, curves};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::{DType, Room, Tensor};

/// The entries of the activations without parameters.
pub const ENTRIES: &[Entry] = &curve_entries![Sigmoid, Tanh, Softsign];

/// The entries of the activations with parameters, and of those the kernels have as functions.
pub const FUNCTIONS: &[Entry] = &[
    entry("Erf", true, |_| smooth(Function::Erf)),
    entry("Softplus", true, |_| smooth(Function::Softplus)),
    entry("HardSwish", true, |_| smooth(Function::HardSwish)),
    entry("Mish", true, |_| smooth(Function::Mish)),
    entry("Gelu", true, gelu),
    entry("Elu", true, |d| smooth(Function::Elu { alpha: parameter(d, "alpha", 1.0)? })),
    entry("Selu", true, selu),
    entry("Celu", true, |d| smooth(Function::Celu { alpha: parameter(d, "alpha", 1.0)? })),
    entry("Swish", true, |d| smooth(Function::Silu { beta: parameter(d, "alpha", 1.0)? })),
    entry("ThresholdedRelu", true, |d| Ok(Box::new(Pointwise(Threshold(parameter(d, "alpha", 1.0)?))))),
    entry("Shrink", true, shrink),
];

curves! {
    Sigmoid: Output, x => T::of(1.0) / (T::of(1.0) + (-x).exp()), y => y * (T::of(1.0) - y);
    Tanh: Output, x => x.tanh(), y => T::of(1.0) - y * y;
    Softsign: Input,
        x => x / (T::of(1.0) + x.abs()),
        x => T::of(1.0) / ((T::of(1.0) + x.abs()) * (T::of(1.0) + x.abs()));
}

fn parameter(definition: &Definition<'_>, name: &str, default: f32) -> Result<f32, Fault> {
    Ok(definition.attributes.float(name)?.unwrap_or(default))
}

/// An activation the kernels have: fast in f32, by its formula in f64.
#[derive(Clone, Copy, Debug)]
pub struct Smooth(pub Function);

fn smooth(function: Function) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Smooth(function)))
}

fn gelu(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    match definition.attributes.text("approximate")?.as_deref() {
        None | Some("none") => smooth(Function::Gelu),
        Some("tanh") => smooth(Function::GeluTanh),
        Some(other) => {
            Err(Fault::Attribute { name: "approximate".into(), problem: format!("{other:?} is unknown") })
        }
    }
}

fn selu(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let alpha = parameter(definition, "alpha", 1.673_263_2)?;
    smooth(Function::Selu { alpha, gamma: parameter(definition, "gamma", 1.050_701)? })
}

impl Operator for Smooth {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let wanted = call.wants_any();
        let x = call.take(0)?;
        let function = self.0;
        if x.dtype() == DType::F32 {
            return single(function, x, wanted, call.room);
        }
        let kept: Option<Tensor> = wanted.then(|| x.clone());
        let y = map(x, call.room, |x: f64| function.value(x))?;
        Ok(Answer::one(y).with(wanted, move |back| {
            let (Some(g), Some(x)) = (back.take(0), kept.clone()) else { return Ok(()) };
            let g = weigh(g, &x, back.room(), |g: f64, x: f64| g * function.slope(x))?;
            back.give(0, g)
        }))
    }
}

/// In f32: with a tape the input's place is taken by the slopes, so that the pullback multiplies and computes nothing anew.
fn single(function: Function, x: Tensor, wanted: bool, room: &Room) -> Result<Answer, Fault> {
    let mut x = if wanted && x.is_shared() { x.copied(room)? } else { x };
    let (shape, layout) = (x.shape().to_vec(), x.layout());
    if !wanted {
        let values = x.values::<f32>().unwrap_or(&[]);
        return fresh(&shape, layout, room, |out| activation::apply(function, values, out)).map(Answer::one);
    }
    let Some(kept) = x.values_mut::<f32>() else {
        return Err(Fault::Value("a tensor that should be unshared is shared".into()));
    };
    let y = fresh(&shape, layout, room, |out| activation::apply_with_slopes(function, kept, out))?;
    Ok(Answer::one(y).with(true, move |back| {
        let Some(g) = back.take(0) else { return Ok(()) };
        let g = weigh(
            g,
            &x,
            back.room(),
            #[inline(always)]
            |g: f32, slope: f32| g * slope,
        )?;
        back.give(0, g)
    }))
}

/// `x` above the threshold, zero elsewhere.
#[derive(Clone, Copy, Debug)]
struct Threshold(f32);

impl Curve for Threshold {
    const NEEDS: Needs = Needs::Input;
    #[inline(always)]
    fn value<T: Float>(&self, x: T) -> T {
        if x > T::of(self.0.into()) { x } else { T::of(0.0) }
    }
    #[inline(always)]
    fn slope<T: Float>(&self, x: T) -> T {
        T::of(if x > T::of(self.0.into()) { 1.0 } else { 0.0 })
    }
}

/// `x` moved towards zero by `bias`, and zero within `lambda` of it.
#[derive(Clone, Copy, Debug)]
struct Shrink {
    lambda: f64,
    bias: f64,
}

impl Curve for Shrink {
    const NEEDS: Needs = Needs::Input;
    #[inline(always)]
    fn value<T: Float>(&self, x: T) -> T {
        if x < T::of(-self.lambda) {
            x + T::of(self.bias)
        } else if x > T::of(self.lambda) {
            x - T::of(self.bias)
        } else {
            T::of(0.0)
        }
    }
    #[inline(always)]
    fn slope<T: Float>(&self, x: T) -> T {
        T::of(if x < T::of(-self.lambda) || x > T::of(self.lambda) { 1.0 } else { 0.0 })
    }
}

fn shrink(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let lambda = parameter(definition, "lambd", 0.5)?.into();
    Ok(Box::new(Pointwise(Shrink { lambda, bias: parameter(definition, "bias", 0.0)?.into() })))
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::proof::{Numbers, build, outputs, prove_gradient, prove_layouts};
    use super::{ENTRIES, FUNCTIONS};
    use crate::tensor::Tensor;

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(6);
        for name in ENTRIES.iter().chain(FUNCTIONS).map(|entry| entry.name) {
            for shape in [&[2, 3, 2, 3][..], &[9], &[]] {
                let x = Some(numbers.tensor(shape, -4.0, 4.0));
                prove_gradient(build(name, 24, &[], 1), &[x], 1, 2e-5);
            }
            prove_layouts(build(name, 24, &[], 1), &[Some(numbers.tensor(&[2, 5, 3, 2], -4.0, 4.0))]);
        }
        let x = [Some(numbers.tensor(&[20], -3.0, 3.0))];
        let alpha = [("alpha", Attribute::Float(1.7))];
        for name in ["Elu", "Selu", "Celu", "Swish", "ThresholdedRelu"] {
            prove_gradient(build(name, 24, &alpha, 1), &x, 1, 2e-5);
        }
        let tanh = [("approximate", Attribute::Text("tanh".into()))];
        prove_gradient(build("Gelu", 20, &tanh, 1), &x, 1, 2e-5);
        let parameters = [("lambd", Attribute::Float(1.5)), ("bias", Attribute::Float(0.3))];
        prove_gradient(build("Shrink", 9, &parameters, 1), &x, 1, 2e-5);
    }

    #[test]
    fn values_are_known() {
        let x = Tensor::new(&[3], vec![-1.0f32, 0.5, 30.0]);
        for (name, expected) in [
            ("Sigmoid", [0.268_941_43, 0.622_459_35, 1.0]),
            ("Gelu", [-0.158_655_26, 0.345_731_23, 30.0]),
            ("Softplus", [0.313_261_7, 0.974_077, 30.0]),
            ("Mish", [-0.303_401_46, 0.375_245_1, 30.0]),
            ("Selu", [-1.111_330_7, 0.525_350_5, 31.521_03]),
            ("HardSwish", [-0.333_333_34, 0.291_666_66, 30.0]),
        ] {
            let y = outputs(&build(name, 24, &[], 1).into(), &[Some(x.clone())], 1).remove(0);
            for (&y, e) in y.values::<f32>().unwrap().iter().zip(expected) {
                assert!((y - e).abs() < 1e-5 * e.abs().max(0.1), "{name}: {y} instead of {e}");
            }
        }
    }
}
