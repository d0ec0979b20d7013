//! Equal, Greater, Less and their kin, and IsNaN and IsInf: truth values, through which no gradient passes.

use evenkeel_kernels::buffer::Flag;

use super::broadcast::{binary, convert};
use super::number::{Number, for_float, for_number};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Operator};
use crate::error::Fault;
use crate::tensor::{DType, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("Equal", false, |_| Ok(Box::new(Comparison::Equal))),
    entry("Greater", false, |_| Ok(Box::new(Comparison::Greater))),
    entry("Less", false, |_| Ok(Box::new(Comparison::Less))),
    entry("GreaterOrEqual", false, |_| Ok(Box::new(Comparison::GreaterOrEqual))),
    entry("LessOrEqual", false, |_| Ok(Box::new(Comparison::LessOrEqual))),
    entry("IsNaN", false, |_| Ok(Box::new(IsNaN))),
    entry("IsInf", false, is_inf),
];

/// A comparison of two tensors, with broadcasting.
#[derive(Clone, Copy, Debug)]
enum Comparison {
    Equal,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
}

impl Operator for Comparison {
    fn passes_gradient(&self, _: usize) -> bool {
        false
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (a, b) = (call.input(0)?, call.input(1)?);
        if a.dtype() == DType::Bool {
            let equal = |a: Flag, b: Flag| Flag::from(a == b);
            return match self {
                Comparison::Equal => Ok(Answer::one(binary(a, b, call.room, equal)?)),
                _ => Err(Fault::Type { input: 0, expected: "numbers", got: DType::Bool }),
            };
        }
        for_number!(a, 0, T => self.numbers::<T>(a, b, call.room)).map(Answer::one)
    }
}

impl Comparison {
    fn numbers<T: Number>(self, a: &Tensor, b: &Tensor, room: &Room) -> Result<Tensor, Fault> {
        let holds: fn(&T, &T) -> bool = match self {
            Comparison::Equal => T::eq,
            Comparison::Greater => T::gt,
            Comparison::Less => T::lt,
            Comparison::GreaterOrEqual => T::ge,
            Comparison::LessOrEqual => T::le,
        };
        binary(a, b, room, move |a: T, b: T| Flag::from(holds(&a, &b)))
    }
}

#[derive(Clone, Copy, Debug)]
struct IsNaN;

impl Operator for IsNaN {
    fn passes_gradient(&self, _: usize) -> bool {
        false
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let y = for_float!(x, 0, T => convert(x, call.room, |x: T| Flag::from(x.is_nan())))?;
        Ok(Answer::one(y))
    }
}

#[derive(Clone, Copy, Debug)]
struct IsInf {
    positive: bool,
    negative: bool,
}

fn is_inf(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let positive = definition.attributes.flag("detect_positive", true)?;
    Ok(Box::new(IsInf { positive, negative: definition.attributes.flag("detect_negative", true)? }))
}

impl Operator for IsInf {
    fn passes_gradient(&self, _: usize) -> bool {
        false
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let IsInf { positive, negative } = *self;
        let y = for_float!(x, 0, T => convert(x, call.room, move |x: T| {
            Flag::from((positive && x == T::INFINITY) || (negative && x == T::NEG_INFINITY))
        }))?;
        Ok(Answer::one(y))
    }
}

#[cfg(test)]
mod tests {
    use super::super::proof::{build, outputs};
    use crate::tensor::Tensor;
    use evenkeel_kernels::buffer::Flag;

    fn flags(name: &str, inputs: &[Option<Tensor>]) -> Vec<bool> {
        let y = outputs(&build(name, 16, &[], inputs.len()).into(), inputs, 1).remove(0);
        y.values::<Flag>().unwrap().iter().map(|flag| flag.get()).collect()
    }

    #[test]
    fn comparisons_broadcast_and_nan_equals_nothing() {
        let a = Some(Tensor::new(&[3], vec![1.0f32, f32::NAN, 3.0]));
        let b = Some(Tensor::scalar(3.0f32));
        assert_eq!(flags("Less", &[a.clone(), b.clone()]), [true, false, false]);
        assert_eq!(flags("GreaterOrEqual", &[a.clone(), b.clone()]), [false, false, true]);
        assert_eq!(flags("Equal", &[a.clone(), a.clone()]), [true, false, true]);
        assert_eq!(flags("IsNaN", &[a]), [false, true, false]);
        let x = Some(Tensor::new(&[3], vec![f64::INFINITY, 0.0, f64::NEG_INFINITY]));
        assert_eq!(flags("IsInf", &[x]), [true, false, true]);
    }
}
