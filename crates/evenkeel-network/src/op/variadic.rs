//! Sum, Mean, Min and Max of any number of tensors, with broadcasting.
//!
//! Where several inputs tie for the extreme they share its gradient evenly, as PyTorch's `maximum` does for two.

use super::broadcast::{binary, combine, combine_hot, map};
use super::fold::sum_to;
use super::number::{Float, Number, for_float, for_number};
use super::registry::{Entry, entry};
use super::{Answer, Call, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::{Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("Sum", true, |_| Ok(Box::new(Variadic::Sum))),
    entry("Mean", true, |_| Ok(Box::new(Variadic::Mean))),
    entry("Min", true, |_| Ok(Box::new(Variadic::Min))),
    entry("Max", true, |_| Ok(Box::new(Variadic::Max))),
];

/// An operator of any number of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variadic {
    /// The sum.
    Sum,
    /// The mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Operator for Variadic {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let wanted = call.wants_any();
        let inputs = (0..call.inputs.len()).map(|i| call.take(i)).collect::<Result<Vec<_>, _>>()?;
        let first = inputs.first().ok_or(Fault::Missing(0))?;
        if let Some(i) = inputs.iter().position(|x| x.dtype() != first.dtype()) {
            return Err(Fault::Type { input: i, expected: "the type of input 0", got: inputs[i].dtype() });
        }
        if !first.dtype().is_float() {
            return for_number!(first, 0, T => self.value::<T>(inputs, call.room)).map(Answer::one);
        }
        for_float!(first, 0, T => self.floats::<T>(inputs, wanted, call.room))
    }
}

impl Variadic {
    fn value<T: Number>(self, inputs: Vec<Tensor>, room: &Room) -> Result<Tensor, Fault> {
        let mut rest = inputs.into_iter();
        let mut y = rest.next().ok_or(Fault::Missing(0))?;
        for x in rest {
            y = match self {
                Variadic::Sum | Variadic::Mean => combine_hot(
                    y,
                    x,
                    room,
                    #[inline(always)]
                    |a: T, b: T| a.plus(b),
                )?,
                Variadic::Min => combine_hot(
                    y,
                    x,
                    room,
                    #[inline(always)]
                    |a: T, b: T| a.smaller(b),
                )?,
                Variadic::Max => combine_hot(
                    y,
                    x,
                    room,
                    #[inline(always)]
                    |a: T, b: T| a.larger(b),
                )?,
            };
        }
        Ok(y)
    }

    fn floats<T: Float>(self, inputs: Vec<Tensor>, wanted: bool, room: &Room) -> Result<Answer, Fault> {
        let count = inputs.len();
        let shapes: Vec<Vec<usize>> = inputs.iter().map(|x| x.shape().to_vec()).collect();
        let extreme = matches!(self, Variadic::Min | Variadic::Max);
        let kept = if wanted && extreme { inputs.clone() } else { Vec::new() };
        let share = T::of(1.0 / count as f64);
        let mut y = self.value::<T>(inputs, room)?;
        if self == Variadic::Mean {
            y = map(
                y,
                room,
                #[inline(always)]
                |y: T| y * share,
            )?;
        }
        let best = (wanted && extreme).then(|| y.clone());
        Ok(Answer::one(y).with(wanted, move |back| {
            let Some(mut g) = back.take(0) else { return Ok(()) };
            if self == Variadic::Mean {
                g = map(
                    g,
                    back.room(),
                    #[inline(always)]
                    |g: T| g * share,
                )?;
            }
            let hits = |x: &Tensor, y: &Tensor, room: &Room| {
                binary(x, y, room, |x: T, y: T| T::of(if x == y { 1.0 } else { 0.0 }))
            };
            if let Some(y) = &best {
                let mut ties = hits(&kept[0], y, back.room())?;
                for x in &kept[1..] {
                    let more = hits(x, y, back.room())?;
                    ties = combine(
                        ties,
                        more,
                        back.room(),
                        #[inline(always)]
                        |a: T, b: T| a + b,
                    )?;
                }
                g = combine(
                    g,
                    ties,
                    back.room(),
                    #[inline(always)]
                    |g: T, ties: T| g / ties,
                )?;
            }
            for (i, shape) in shapes.iter().enumerate() {
                if !back.wants(i) {
                    continue;
                }
                let own = match &best {
                    None => g.clone(),
                    Some(y) => {
                        let hit = hits(&kept[i], y, back.room())?;
                        combine(
                            g.clone(),
                            hit,
                            back.room(),
                            #[inline(always)]
                            |g: T, hit: T| g * hit,
                        )?
                    }
                };
                back.give(i, sum_to::<T>(own, shape, back.room())?)?;
            }
            Ok(())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::proof::{Numbers, build, outputs, prove_gradient, prove_layouts};
    use crate::tensor::Tensor;

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(5);
        for name in ["Sum", "Mean", "Min", "Max"] {
            for shapes in
                [vec![&[2, 5, 3, 2][..], &[5, 1, 1], &[2, 5, 3, 2]], vec![&[4]], vec![&[2, 5, 3, 2], &[]]]
            {
                let inputs: Vec<Option<Tensor>> =
                    shapes.iter().map(|shape| Some(numbers.tensor(shape, -1.0, 1.0))).collect();
                prove_gradient(build(name, 13, &[], inputs.len()), &inputs, 1, 1e-5);
                prove_layouts(build(name, 13, &[], inputs.len()), &inputs);
            }
        }
    }

    #[test]
    fn integers_have_extremes_too() {
        let t = |v: &[i64]| Some(Tensor::new(&[v.len()], v.to_vec()));
        let op = build("Max", 13, &[], 2).into();
        let y = outputs(&op, &[t(&[1, 5, -3]), t(&[2])], 1).remove(0);
        assert_eq!(y.values::<i64>().unwrap(), [2, 5, 2]);
    }
}
