//! Where: one tensor's values where a condition holds, another's elsewhere, all three broadcast.
//!
//! The tape is the condition; each branch gets the gradient where it was chosen.

use evenkeel_kernels::buffer::Flag;

use super::broadcast::{binary, fit, fresh, layout_of, shape_of};
use super::fold::sum_to;
use super::number::{Float, for_float};
use super::registry::{Entry, entry};
use super::walk::{Walk, strides};
use super::{Answer, Call, Layouts, Operator, values_of};
use crate::error::Fault;
use crate::for_type;
use crate::tensor::{Element, Room, Store, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("Where", true, |_| Ok(Box::new(Where)))];

/// Chooses between two tensors.
#[derive(Clone, Copy, Debug)]
pub struct Where;

impl Operator for Where {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn passes_gradient(&self, input: usize) -> bool {
        input > 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (condition, x, y) = (call.input(0)?.clone(), call.input(1)?, call.input(2)?);
        if x.dtype() != y.dtype() {
            return Err(Fault::Type { input: 2, expected: "the type of input 1", got: y.dtype() });
        }
        let chosen = for_type!(x.data(), values => choose(values, &condition, x, y, call.room))?;
        if !call.wants_any() {
            return Ok(Answer::one(chosen));
        }
        let shapes = [x.shape().to_vec(), y.shape().to_vec()];
        for_float!(x, 1, T => Ok(Answer::one(chosen).with(true, move |back| {
            let Some(g) = back.take(0) else { return Ok(()) };
            for (i, shape) in shapes.iter().enumerate() {
                if back.wants(i + 1) {
                    let own = share::<T>(&g, &condition, i == 0, back.room())?;
                    back.give(i + 1, sum_to::<T>(own, shape, back.room())?)?;
                }
            }
            Ok(())
        })))
    }
}

/// The gradient where the condition is `truth`, zero elsewhere.
fn share<T: Float>(g: &Tensor, condition: &Tensor, truth: bool, room: &Room) -> Result<Tensor, Fault> {
    binary(g, condition, room, |g: T, flag: Flag| if flag.get() == truth { g } else { T::of(0.0) })
}

/// The type of the values is given by the first argument alone.
fn choose<T: Element>(
    _: &Store<T>,
    condition: &Tensor,
    x: &Tensor,
    y: &Tensor,
    room: &Room,
) -> Result<Tensor, Fault> {
    let shape = shape_of(&shape_of(x.shape(), y.shape())?, condition.shape())?;
    let layout = layout_of::<T>(&shape, &[x, y]);
    let (x, y) = (fit(x, &shape, layout, room)?, fit(y, &shape, layout, room)?);
    let (a, b): (&[T], &[T]) = (values_of(&x, 1)?, values_of(&y, 2)?);
    let flags: &[Flag] = values_of(condition, 0)?;
    let operands = [condition, &x, &y].map(|tensor| strides(tensor, &shape, layout));
    let walk = Walk::new(&shape, layout, operands);
    fresh(&shape, layout, room, |out| {
        walk.each(out, |row, [c, i, j], [p, q, r]| {
            for (k, out) in row.iter_mut().enumerate() {
                *out = if flags[c + p * k].get() { a[i + q * k] } else { b[j + r * k] };
            }
        });
    })
}

#[cfg(test)]
mod tests {
    use super::super::proof::{Numbers, build, outputs, prove_gradient, prove_layouts};
    use crate::tensor::Tensor;
    use evenkeel_kernels::buffer::Flag;

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(41);
        let shapes: &[[&[usize]; 3]] = &[
            [&[2, 5, 3, 2], &[2, 5, 3, 2], &[]],
            [&[3, 2], &[2, 5, 3, 2], &[2, 5, 1, 1]],
            [&[2, 5, 3, 2], &[1], &[2, 5, 3, 2]],
            [&[4], &[3, 1], &[2, 1, 1]],
        ];
        for [c, x, y] in shapes {
            let flags: Vec<Flag> =
                (0..c.iter().product()).map(|_| Flag::from(numbers.next() > 0.0)).collect();
            let inputs = [
                Some(Tensor::new(c, flags)),
                Some(numbers.tensor(x, -1.0, 1.0)),
                Some(numbers.tensor(y, -1.0, 1.0)),
            ];
            prove_gradient(build("Where", 16, &[], 3), &inputs, 1, 1e-5);
            prove_layouts(build("Where", 16, &[], 3), &inputs);
        }
    }

    #[test]
    fn integers_are_chosen_too() {
        let c = Tensor::new(&[2, 1], vec![Flag::from(true), Flag::from(false)]);
        let (x, y) = (Tensor::new(&[2], vec![1i64, 2]), Tensor::scalar(9i64));
        let z = outputs(&build("Where", 9, &[], 3).into(), &[Some(c), Some(x), Some(y)], 1).remove(0);
        assert_eq!((z.shape(), z.values::<i64>().unwrap()), (&[2, 2][..], &[1, 2, 9, 9][..]));
    }
}
