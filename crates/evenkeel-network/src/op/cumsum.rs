//! CumSum: running sums along an axis, forwards or backwards, with or without the element itself.
//!
//! The pullback of a running sum is the running sum of the cotangent from the other end.

use super::fold::axis_of;
use super::number::{Number, for_float, for_number};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Operator, values_of};
use crate::error::Fault;
use crate::tensor::{Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("CumSum", true, build)];

#[derive(Clone, Copy, Debug)]
struct CumSum {
    exclusive: bool,
    reverse: bool,
}

fn build(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let exclusive = definition.attributes.flag("exclusive", false)?;
    Ok(Box::new(CumSum { exclusive, reverse: definition.attributes.flag("reverse", false)? }))
}

impl Operator for CumSum {
    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let &[axis] = &call.integers(1)?[..] else {
            let got = call.input(1)?.shape().to_vec();
            return Err(Fault::Shape { input: 1, expected: "one axis".into(), got });
        };
        let axis = axis_of(axis, x.rank())?;
        let y = for_number!(x, 0, T => self.run::<T>(x, axis, call.room))?;
        if !call.wants(0) {
            return Ok(Answer::one(y));
        }
        let turned = CumSum { reverse: !self.reverse, ..*self };
        Ok(Answer::one(y).with(true, move |back| {
            let Some(g) = back.take(0) else { return Ok(()) };
            let g = for_float!(g, 0, T => turned.run::<T>(&g, axis, back.room()))?;
            back.give(0, g)
        }))
    }
}

impl CumSum {
    fn run<T: Number>(self, x: &Tensor, axis: usize, room: &Room) -> Result<Tensor, Fault> {
        let values: &[T] = values_of(x, 0)?;
        room.tensor(x.shape(), |out| {
            if out.is_empty() {
                return;
            }
            let (size, rest) = (x.shape()[axis], x.shape()[axis + 1..].iter().product::<usize>());
            for start in (0..out.len()).step_by(size * rest) {
                for column in start..start + rest {
                    let mut sum = T::default();
                    for k in 0..size {
                        let at = column + rest * if self.reverse { size - 1 - k } else { k };
                        let next = sum.plus(values[at]);
                        out[at] = if self.exclusive { sum } else { next };
                        sum = next;
                    }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::proof::{Numbers, build, outputs, prove_gradient};
    use crate::tensor::Tensor;

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(101);
        for way in 0..4 {
            let attributes = [("exclusive", Attribute::Int(way & 1)), ("reverse", Attribute::Int(way >> 1))];
            for axis in [-1i64, 0, 1] {
                let inputs = [Some(numbers.tensor(&[2, 3, 4], -1.0, 1.0)), Some(Tensor::scalar(axis))];
                prove_gradient(build("CumSum", 14, &attributes, 2), &inputs, 1, 1e-5);
            }
        }
    }

    #[test]
    fn sums_run_either_way() {
        let x = Some(Tensor::new(&[3], vec![1i32, 2, 3]));
        let of = |exclusive, reverse| {
            let attributes = [("exclusive", Attribute::Int(exclusive)), ("reverse", Attribute::Int(reverse))];
            let inputs = [x.clone(), Some(Tensor::scalar(0i32))];
            outputs(&build("CumSum", 11, &attributes, 2).into(), &inputs, 1)
                .remove(0)
                .values::<i32>()
                .unwrap()
                .to_vec()
        };
        assert_eq!((of(0, 0), of(1, 0)), (vec![1, 3, 6], vec![0, 1, 3]));
        assert_eq!((of(0, 1), of(1, 1)), (vec![6, 5, 3], vec![5, 3, 0]));
    }
}
