//! Add, Sub, Mul, Div and Mod of two tensors, with broadcasting.
//!
//! Add and Sub keep nothing; Mul keeps the other factor of each input whose gradient is wanted (a constant factor is shared, not copied);
//! Div keeps the divisor, and the dividend only for the divisor's own gradient. The gradient of a repeated input is summed
//! back to its shape. Integers wrap; an integer divided by zero is a fault.

use super::broadcast::{binary, combine, combine_hot};
use super::fold::sum_to;
use super::number::{Float, Number, for_number};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::{DType, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("Add", true, |_| Ok(Box::new(Arithmetic::Add))),
    entry("Sub", true, |_| Ok(Box::new(Arithmetic::Sub))),
    entry("Mul", true, |_| Ok(Box::new(Arithmetic::Mul))),
    entry("Div", true, |_| Ok(Box::new(Arithmetic::Div))),
    entry("Mod", true, modulo),
];

/// An operator of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// The sum.
    Add,
    /// The difference.
    Sub,
    /// The product.
    Mul,
    /// The quotient.
    Div,
    /// The remainder with the divisor's sign.
    Mod,
    /// The remainder with the dividend's sign.
    Fmod,
}

fn modulo(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let c_like = definition.attributes.flag("fmod", false)?;
    Ok(Box::new(if c_like { Arithmetic::Fmod } else { Arithmetic::Mod }))
}

impl Operator for Arithmetic {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let wants = [call.wants(0), call.wants(1)];
        let (a, b) = (call.take(0)?, call.take(1)?);
        if a.dtype() != b.dtype() {
            return Err(Fault::Type { input: 1, expected: "the type of input 0", got: b.dtype() });
        }
        match a.dtype() {
            DType::F32 => self.floats::<f32>(a, b, wants, call.room),
            DType::F64 => self.floats::<f64>(a, b, wants, call.room),
            _ => for_number!(a, 0, T => self.integers::<T>(a, b, call.room)),
        }
    }
}

impl Arithmetic {
    fn value<T: Number>(self, a: Tensor, b: Tensor, room: &Room) -> Result<Tensor, Fault> {
        match self {
            Arithmetic::Add => combine_hot(
                a,
                b,
                room,
                #[inline(always)]
                |a: T, b: T| a.plus(b),
            ),
            Arithmetic::Sub => combine_hot(
                a,
                b,
                room,
                #[inline(always)]
                |a: T, b: T| a.minus(b),
            ),
            Arithmetic::Mul => combine_hot(
                a,
                b,
                room,
                #[inline(always)]
                |a: T, b: T| a.times(b),
            ),
            Arithmetic::Div => combine_hot(
                a,
                b,
                room,
                #[inline(always)]
                |a: T, b: T| a.over(b),
            ),
            Arithmetic::Mod => combine(a, b, room, |a: T, b: T| a.modulo(b)),
            Arithmetic::Fmod => combine(a, b, room, |a: T, b: T| a.remainder(b)),
        }
    }

    fn integers<T: Number>(self, a: Tensor, b: Tensor, room: &Room) -> Result<Answer, Fault> {
        let divides = !matches!(self, Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul);
        if divides && b.values::<T>().is_some_and(|values| values.contains(&T::default())) {
            return Err(Fault::Value("an integer is divided by zero".into()));
        }
        Ok(Answer::one(self.value::<T>(a, b, room)?))
    }

    fn floats<T: Float>(self, a: Tensor, b: Tensor, wants: [bool; 2], room: &Room) -> Result<Answer, Fault> {
        let shapes = [a.shape().to_vec(), b.shape().to_vec()];
        let needs = self.needs(wants);
        let (kept_a, kept_b) = (needs[0].then(|| a.clone()), needs[1].then(|| b.clone()));
        let y = self.value::<T>(a, b, room)?;
        Ok(Answer::one(y).with(wants[0] || wants[1], move |back| {
            let Some(mut g) = back.take(0) else { return Ok(()) };
            for i in [0, 1] {
                if !back.wants(i) {
                    continue;
                }
                let last = i == 1 || !back.wants(1);
                let g = if last { std::mem::replace(&mut g, Tensor::scalar(T::of(0.0))) } else { g.clone() };
                let own = self.pull::<T>(i, g, kept_a.as_ref(), kept_b.as_ref(), back.room())?;
                back.give(i, sum_to::<T>(own, &shapes[i], back.room())?)?;
            }
            Ok(())
        }))
    }

    /// Which of the inputs the pullback needs.
    fn needs(self, [a, b]: [bool; 2]) -> [bool; 2] {
        match self {
            Arithmetic::Add | Arithmetic::Sub => [false, false],
            Arithmetic::Mul => [b, a],
            Arithmetic::Div => [b, a || b],
            Arithmetic::Mod | Arithmetic::Fmod => [b, b],
        }
    }

    /// The cotangent of input `i` before it is summed to the input's shape.
    fn pull<T: Float>(
        self,
        i: usize,
        g: Tensor,
        a: Option<&Tensor>,
        b: Option<&Tensor>,
        room: &Room,
    ) -> Result<Tensor, Fault> {
        let kept = |tensor: Option<&Tensor>| tensor.cloned().ok_or(Fault::Missing(1 - i));
        match (self, i) {
            (Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mod | Arithmetic::Fmod, 0)
            | (Arithmetic::Add, _) => Ok(g),
            (Arithmetic::Sub, _) => super::broadcast::map(g, room, |g: T| -g),
            (Arithmetic::Mul, 0) => combine_hot(
                g,
                kept(b)?,
                room,
                #[inline(always)]
                |g: T, b: T| g * b,
            ),
            (Arithmetic::Mul, _) => combine_hot(
                g,
                kept(a)?,
                room,
                #[inline(always)]
                |g: T, a: T| g * a,
            ),
            (Arithmetic::Div, 0) => combine_hot(
                g,
                kept(b)?,
                room,
                #[inline(always)]
                |g: T, b: T| g / b,
            ),
            (Arithmetic::Div, _) => {
                let slope = binary(
                    &kept(a)?,
                    &kept(b)?,
                    room,
                    #[inline(always)]
                    |a: T, b: T| -(a / (b * b)),
                )?;
                combine(
                    g,
                    slope,
                    room,
                    #[inline(always)]
                    |g: T, slope: T| g * slope,
                )
            }
            (Arithmetic::Mod | Arithmetic::Fmod, _) => {
                let rounds_down = self == Arithmetic::Mod;
                let slope = binary(&kept(a)?, &kept(b)?, room, |a: T, b: T| {
                    let ratio = a / b;
                    -if rounds_down || ratio > T::of(0.0) { ratio.floor() } else { ratio.ceil() }
                })?;
                combine(g, slope, room, |g: T, slope: T| g * slope)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::proof::{Numbers, build, prove_gradient, prove_layouts, room};
    use super::super::{Call, Operator};
    use crate::tensor::Tensor;

    const SHAPES: &[[&[usize]; 2]] = &[
        [&[2, 5, 3, 2], &[2, 5, 3, 2]],
        [&[2, 5, 3, 2], &[]],
        [&[2, 5, 3, 2], &[5, 1, 1]],
        [&[2, 8, 3, 2], &[1, 8, 1, 1]],
        [&[2, 5, 3, 2], &[2, 5, 1, 1]],
        [&[2, 5, 1, 1], &[2, 5, 3, 2]],
        [&[2, 5, 3, 2], &[2, 1, 3, 2]],
        [&[2, 5, 3, 2], &[3, 1]],
        [&[2, 1, 3, 2], &[1, 4, 1, 2]],
        [&[1], &[3]],
        [&[3, 1], &[2, 1, 4]],
        [&[], &[]],
        [&[1, 1, 1, 1], &[2, 1, 3, 1]],
    ];

    #[test]
    fn pullbacks_agree_with_differences_and_layouts_with_each_other() {
        let mut numbers = Numbers::new(4);
        for name in ["Add", "Sub", "Mul", "Div"] {
            for [a, b] in SHAPES {
                let inputs = [Some(numbers.tensor(a, 0.5, 2.0)), Some(numbers.tensor(b, 0.5, 2.0))];
                prove_gradient(build(name, 14, &[], 2), &inputs, 1, 2e-5);
                prove_layouts(build(name, 14, &[], 2), &inputs);
            }
        }
        let fmod = [("fmod", Attribute::Int(1))];
        let inputs = [Some(numbers.tensor(&[7], -5.0, 5.0)), Some(numbers.tensor(&[7], 1.5, 2.0))];
        prove_gradient(build("Mod", 13, &fmod, 2), &inputs, 1, 1e-5);
    }

    fn run(name: &str, a: Tensor, b: Tensor) -> Result<Tensor, crate::Fault> {
        let (op, room): (Box<dyn Operator>, _) = (build(name, 14, &[], 2), room());
        let call = Call { inputs: vec![Some(a), Some(b)], wants: &[false; 2], outputs: 1, room: &room };
        Ok(op.apply(call)?.outputs.remove(0))
    }

    #[test]
    fn integers_wrap_and_never_divide_by_zero() {
        let t = |v: &[i32]| Tensor::new(&[v.len()], v.to_vec());
        let sum = run("Add", t(&[i32::MAX, 1]), t(&[1, 2])).unwrap();
        assert_eq!(sum.values::<i32>().unwrap(), [i32::MIN, 3]);
        assert_eq!(run("Div", t(&[-7, i32::MIN]), t(&[2, -1])).unwrap().values::<i32>().unwrap()[0], -3);
        assert_eq!(run("Mod", t(&[-7]), t(&[3])).unwrap().values::<i32>().unwrap(), [2]);
        assert!(run("Div", t(&[1]), t(&[0])).is_err() && run("Mod", t(&[1]), t(&[0])).is_err());
        assert!(run("Add", t(&[1, 2, 3]), t(&[0, 1])).is_err());
        assert!(run("Add", t(&[1]), Tensor::scalar(1i64)).is_err());
        assert_eq!(run("Add", t(&[]), t(&[1])).unwrap().shape(), [0]);
    }
}
