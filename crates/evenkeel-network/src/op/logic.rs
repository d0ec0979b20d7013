//! And, Or, Xor and Not of truth values, and the same and shifts of the bits of integers. No gradient passes.

use evenkeel_kernels::buffer::Flag;

use super::broadcast::{binary, convert};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Operator};
use crate::error::Fault;
use crate::tensor::{DType, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("And", false, |_| Ok(Box::new(Logic::And))),
    entry("Or", false, |_| Ok(Box::new(Logic::Or))),
    entry("Xor", false, |_| Ok(Box::new(Logic::Xor))),
    entry("Not", false, |_| Ok(Box::new(Not { bits: false }))),
    entry("BitwiseAnd", false, |_| Ok(Box::new(Bits::And))),
    entry("BitwiseOr", false, |_| Ok(Box::new(Bits::Or))),
    entry("BitwiseXor", false, |_| Ok(Box::new(Bits::Xor))),
    entry("BitwiseNot", false, |_| Ok(Box::new(Not { bits: true }))),
    entry("BitShift", false, shift),
];

#[derive(Clone, Copy, Debug)]
enum Logic {
    And,
    Or,
    Xor,
}

impl Operator for Logic {
    fn passes_gradient(&self, _: usize) -> bool {
        false
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let holds: fn(bool, bool) -> bool = match self {
            Logic::And => |a, b| a && b,
            Logic::Or => |a, b| a || b,
            Logic::Xor => |a, b| a != b,
        };
        let of = move |a: Flag, b: Flag| Flag::from(holds(a.get(), b.get()));
        Ok(Answer::one(binary(call.input(0)?, call.input(1)?, call.room, of)?))
    }
}

#[derive(Clone, Copy, Debug)]
enum Bits {
    And,
    Or,
    Xor,
    /// Bits shifted out are gone; zeros move in, and copies of the sign from the left.
    Left,
    Right,
}

fn shift(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    match definition.attributes.text("direction")?.as_deref() {
        Some("LEFT") => Ok(Box::new(Bits::Left)),
        Some("RIGHT") => Ok(Box::new(Bits::Right)),
        other => Err(Fault::Attribute {
            name: "direction".into(),
            problem: format!("{other:?} is not LEFT or RIGHT"),
        }),
    }
}

/// Runs an expression with `$type` standing for the integer type of a tensor and `$bits` for the unsigned type of its width.
macro_rules! for_integer {
    ($tensor:expr, $type:ident, $bits:ident => $body:expr) => {
        match $tensor.dtype() {
            DType::I32 => {
                type $type = i32;
                type $bits = u32;
                $body
            }
            DType::I64 => {
                type $type = i64;
                type $bits = u64;
                $body
            }
            DType::U8 => {
                type $type = u8;
                type $bits = u8;
                $body
            }
            DType::I8 => {
                type $type = i8;
                type $bits = u8;
                $body
            }
            got => Err(Fault::Type { input: 0, expected: "integers", got }),
        }
    };
}

impl Operator for Bits {
    fn passes_gradient(&self, _: usize) -> bool {
        false
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (a, b): (&Tensor, &Tensor) = (call.input(0)?, call.input(1)?);
        let y = for_integer!(a, T, B => {
            let of: fn(T, T) -> T = match self {
                Bits::And => |a, b| a & b,
                Bits::Or => |a, b| a | b,
                Bits::Xor => |a, b| a ^ b,
                Bits::Left => |a, by| (a as B).checked_shl(by as u32).unwrap_or(0) as T,
                Bits::Right => |a, by| a.checked_shr(by as u32).unwrap_or(a >> (T::BITS - 1)),
            };
            binary(a, b, call.room, of)
        })?;
        Ok(Answer::one(y))
    }
}

#[derive(Clone, Copy, Debug)]
struct Not {
    bits: bool,
}

impl Operator for Not {
    fn passes_gradient(&self, _: usize) -> bool {
        false
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let y = if self.bits {
            for_integer!(x, T, B => convert(x, call.room, |x: T| !(x as B) as T))?
        } else {
            convert(x, call.room, |x: Flag| Flag::from(!x.get()))?
        };
        Ok(Answer::one(y))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::proof::{build, outputs};
    use crate::tensor::Tensor;
    use evenkeel_kernels::buffer::Flag;

    #[test]
    fn truth_tables_and_shifts() {
        let flags = |v: [bool; 4]| Some(Tensor::new(&[4], v.map(Flag::from).to_vec()));
        let (a, b) = (flags([false, false, true, true]), flags([false, true, false, true]));
        for (name, expected) in [
            ("And", [false, false, false, true]),
            ("Or", [false, true, true, true]),
            ("Xor", [false, true, true, false]),
        ] {
            let y = outputs(&build(name, 7, &[], 2).into(), &[a.clone(), b.clone()], 1).remove(0);
            assert_eq!(y.values::<Flag>().unwrap(), expected.map(Flag::from), "{name}");
        }
        let x = Some(Tensor::new(&[3], vec![-1i32, 4, 1]));
        let by = Some(Tensor::new(&[3], vec![28i32, 1, 64]));
        let right = [("direction", Attribute::Text("RIGHT".into()))];
        let y = outputs(&build("BitShift", 11, &right, 2).into(), &[x.clone(), by], 1).remove(0);
        assert_eq!(y.values::<i32>().unwrap(), [-1, 2, 0]);
        let y = outputs(&build("BitwiseNot", 18, &[], 1).into(), &[x], 1).remove(0);
        assert_eq!(y.values::<i32>().unwrap(), [0, -5, -2]);
    }
}
