//! Cast and CastLike. Types without a tensor type of their own are held in a wider one, rounded or wrapped as theirs would be.
//!
//! A float cast to a float passes its gradient on, through the rounding to a narrower type too; no other cast has a gradient.

use evenkeel_kernels::buffer::Flag;
use half::{bf16, f16};

use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::{DType, Data, Element, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] =
    &[entry("Cast", true, cast), entry("CastLike", true, |_| Ok(Box::new(Cast(None))))];

/// A type as ONNX names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    F16,
    BF16,
    F32,
    F64,
    U8,
    I8,
    U16,
    I16,
    I32,
    I64,
    U32,
    U64,
    Bool,
}

impl Target {
    /// The type of an ONNX type number.
    pub(super) fn of(number: i64) -> Result<Target, Fault> {
        Ok(match number {
            1 => Target::F32,
            2 => Target::U8,
            3 => Target::I8,
            4 => Target::U16,
            5 => Target::I16,
            6 => Target::I32,
            7 => Target::I64,
            9 => Target::Bool,
            10 => Target::F16,
            11 => Target::F64,
            12 => Target::U32,
            13 => Target::U64,
            16 => Target::BF16,
            _ => return Err(Fault::Unsupported(format!("element type {number}"))),
        })
    }

    /// The type of a tensor.
    pub(super) fn like(tensor: &Tensor) -> Target {
        match tensor.dtype() {
            DType::F32 => Target::F32,
            DType::F64 => Target::F64,
            DType::I32 => Target::I32,
            DType::I64 => Target::I64,
            DType::U8 => Target::U8,
            DType::I8 => Target::I8,
            DType::Bool => Target::Bool,
        }
    }

    /// The values of a plain tensor in this type.
    pub(super) fn cast(self, x: &Tensor, room: &Room) -> Result<Tensor, Fault> {
        match self {
            Target::F16 => map(x, room, |v| f16::from_f64(v.float()).to_f32()),
            Target::BF16 => map(x, room, |v| bf16::from_f64(v.float()).to_f32()),
            Target::F32 => map(x, room, |v| v.float() as f32),
            Target::F64 => map(x, room, |v| v.float()),
            Target::U8 => map(x, room, |v| v.integer() as u8),
            Target::I8 => map(x, room, |v| v.integer() as i8),
            Target::U16 => map(x, room, |v| i32::from(v.integer() as u16)),
            Target::I16 => map(x, room, |v| i32::from(v.integer() as i16)),
            Target::I32 => map(x, room, |v| v.integer() as i32),
            Target::I64 | Target::U64 => map(x, room, |v| v.integer()),
            Target::U32 => map(x, room, |v| i64::from(v.integer() as u32)),
            Target::Bool => map(x, room, |v| Flag::from(v.truth())),
        }
    }

    fn holds(self, dtype: DType) -> bool {
        matches!(
            (self, dtype),
            (Target::F32, DType::F32)
                | (Target::F64, DType::F64)
                | (Target::I32, DType::I32)
                | (Target::I64 | Target::U64, DType::I64)
                | (Target::U8, DType::U8)
                | (Target::I8, DType::I8)
                | (Target::Bool, DType::Bool)
        )
    }
}

/// A value on its way to another type.
#[derive(Clone, Copy)]
enum Number {
    Float(f64),
    Integer(i64),
}

impl Number {
    fn float(self) -> f64 {
        match self {
            Number::Float(v) => v,
            Number::Integer(v) => v as f64,
        }
    }

    /// Towards zero; what lies outside becomes the nearest, NaN zero.
    fn integer(self) -> i64 {
        match self {
            Number::Float(v) => v as i64,
            Number::Integer(v) => v,
        }
    }

    fn truth(self) -> bool {
        match self {
            Number::Float(v) => v != 0.0,
            Number::Integer(v) => v != 0,
        }
    }
}

fn map<T: Element>(x: &Tensor, room: &Room, to: impl Fn(Number) -> T + Copy) -> Result<Tensor, Fault> {
    fn fill<S: Copy, T>(source: &[S], out: &mut [T], convert: impl Fn(S) -> T) {
        source.iter().zip(out).for_each(|(&v, out)| *out = convert(v));
    }
    room.tensor(x.shape(), |out| match x.data() {
        Data::F32(v) => fill(v, out, |v| to(Number::Float(v.into()))),
        Data::F64(v) => fill(v, out, |v| to(Number::Float(v))),
        Data::I32(v) => fill(v, out, |v| to(Number::Integer(v.into()))),
        Data::I64(v) => fill(v, out, |v| to(Number::Integer(v))),
        Data::U8(v) => fill(v, out, |v| to(Number::Integer(v.into()))),
        Data::I8(v) => fill(v, out, |v| to(Number::Integer(v.into()))),
        Data::Bool(v) => fill(v, out, |v| to(Number::Integer(v.get().into()))),
    })
}

/// Casts to this type, or to that of input 1.
#[derive(Debug)]
struct Cast(Option<Target>);

fn cast(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let to = definition.attributes.int("to")?;
    let missing = || Fault::Attribute { name: "to".into(), problem: "is missing".into() };
    Ok(Box::new(Cast(Some(Target::of(to.ok_or_else(missing)?)?))))
}

impl Operator for Cast {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn widened(&self) -> Option<Box<dyn Operator>> {
        match self.0 {
            Some(Target::F32) => Some(Box::new(Cast(Some(Target::F64)))),
            _ => None,
        }
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let target = match self.0 {
            Some(target) => target,
            None => Target::like(call.input(1)?),
        };
        let x = call.take(0)?;
        let from = Target::like(&x);
        let y = if target.holds(x.dtype()) { x } else { target.cast(&x.to_plain(call.room)?, call.room)? };
        let passes = call.wants(0) && y.dtype().is_float();
        Ok(Answer::one(y).with(passes, move |back| {
            let Some(cotangent) = back.take(0) else { return Ok(()) };
            let grad =
                if from.holds(cotangent.dtype()) { cotangent } else { from.cast(&cotangent, back.room())? };
            back.give(0, grad)
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_kernels::buffer::Flag;

    use super::super::proof::{Numbers, build, outputs, prove_gradient};
    use super::super::{Attribute, Operator};
    use crate::tensor::Tensor;

    fn cast(x: Tensor, to: i64) -> Tensor {
        let op: Arc<dyn Operator> = build("Cast", 13, &[("to", Attribute::Int(to))], 1).into();
        outputs(&op, &[Some(x)], 1).remove(0)
    }

    #[test]
    fn values_are_rounded_wrapped_and_judged() {
        let x = Tensor::new(&[4], vec![-1.7f32, 0.0, 300.9, 65504.1]);
        assert_eq!(cast(x.clone(), 6).values::<i32>(), Some(&[-1, 0, 300, 65504][..]));
        assert_eq!(cast(x.clone(), 9).values::<Flag>(), Some(&[true, false, true, true].map(Flag::from)[..]));
        assert_eq!(cast(x, 10).values::<f32>(), Some(&[-1.7001953, 0.0, 301.0, 65504.0][..]));
        let flags = Tensor::new(&[2], vec![Flag::from(true), Flag::from(false)]);
        assert_eq!(cast(flags, 11).values::<f64>(), Some(&[1.0, 0.0][..]));
        assert_eq!(cast(Tensor::new(&[1], vec![-1i64]), 12).values::<i64>(), Some(&[0xFFFF_FFFF][..]));
    }

    #[test]
    fn a_float_passes_its_gradient_on() {
        let x = Some(Numbers::new(1).tensor(&[2, 3, 2, 2], -1.0, 1.0));
        prove_gradient(build("CastLike", 15, &[], 2), &[x.clone(), x], 1, 1e-6);
    }
}
