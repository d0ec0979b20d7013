//! NonZero, Compress, OneHot, Trilu and ReverseSequence: elements chosen by value, by flag, by triangle or by sequence length.

use evenkeel_kernels::buffer::{Buffer, Flag};

use super::gather::Picks;
use super::registry::{Entry, entry};
use super::strided::axis_of;
use super::{Answer, Call, Definition, Operator};
use crate::error::Fault;
use crate::for_type;
use crate::tensor::{Element, Room, Store, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("NonZero", false, |_| Ok(Box::new(NonZero))),
    entry("OneHot", false, |d| Ok(Box::new(OneHot { axis: d.attributes.int("axis")?.unwrap_or(-1) }))),
    entry("Compress", true, |d| Ok(Box::new(Compress { axis: d.attributes.int("axis")? }))),
    entry("Trilu", true, |d| Ok(Box::new(Trilu { upper: d.attributes.flag("upper", true)? }))),
    entry("ReverseSequence", true, reverse_sequence),
];

/// The coordinates of the elements that are not zero, one column each.
#[derive(Debug)]
struct NonZero;

impl Operator for NonZero {
    fn passes_gradient(&self, _: usize) -> bool {
        false
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let found: Vec<usize> = for_type!(x.data(), values => nonzero(values));
        let rank = x.rank();
        call.room
            .tensor(&[rank, found.len()], |out: &mut [i64]| {
                for (i, &at) in found.iter().enumerate() {
                    let mut rest = at;
                    for axis in (0..rank).rev() {
                        out[axis * found.len() + i] = (rest % x.shape()[axis]) as i64;
                        rest /= x.shape()[axis];
                    }
                }
            })
            .map(Answer::one)
    }
}

fn nonzero<T: Element>(values: &Store<T>) -> Vec<usize> {
    (0..values.len()).filter(|&i| values[i] != T::default()).collect()
}

/// A new axis on which one element is on.
#[derive(Debug)]
struct OneHot {
    axis: i64,
}

fn one_hot<T: Element>(
    values: &Store<T>,
    (indices, shape): (&[f64], &[usize]),
    axis: usize,
    room: &Room,
) -> Result<Tensor, Fault> {
    let &[off, on] = &values[..] else {
        return Err(Fault::Shape { input: 2, expected: "two values".into(), got: vec![values.len()] });
    };
    let (depth, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    room.tensor(shape, |out| {
        out.fill(off);
        for (i, &index) in indices.iter().enumerate() {
            let at = if index < 0.0 { index + depth as f64 } else { index }.trunc();
            if at >= 0.0 && at < depth as f64 {
                out[(i / inner * depth + at as usize) * inner + i % inner] = on;
            }
        }
    })
}

/// The numbers of an input of any type.
fn numbers(call: &Call<'_>, i: usize) -> Result<Vec<f64>, Fault> {
    let wide = super::cast::Target::F64.cast(call.input(i)?, call.room)?;
    Ok(wide.values::<f64>().unwrap_or(&[]).to_vec())
}

impl Operator for OneHot {
    fn passes_gradient(&self, _: usize) -> bool {
        false
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (indices, depth) = (call.input(0)?, numbers(&call, 1)?);
        let depth = depth.first().copied().filter(|depth| (0.0..1e15).contains(depth));
        let depth = depth.ok_or_else(|| Fault::Value("no depth".into()))? as usize;
        let axis = axis_of(self.axis, indices.rank() + 1)?;
        let mut shape = indices.shape().to_vec();
        shape.insert(axis, depth);
        call.room.len_of(&shape)?;
        let at = numbers(&call, 0)?;
        let on_off = call.input(2)?;
        for_type!(on_off.data(), values => one_hot(values, (&at, &shape), axis, call.room)).map(Answer::one)
    }
}

/// The slices along an axis (or the elements) whose flag is set.
#[derive(Debug)]
struct Compress {
    axis: Option<i64>,
}

/// An answer of picked blocks, and its pullback.
fn picked(call: &Call<'_>, picks: Picks, shape: &[usize]) -> Result<Answer, Fault> {
    let x = call.input(0)?;
    let old = x.shape().to_vec();
    Ok(Answer::one(picks.read(x, shape, call.room)?).with(call.wants(0), move |back| {
        let Some(cotangent) = back.take(0) else { return Ok(()) };
        let grad = picks.pull(&cotangent, &old, back.room())?;
        back.give(0, grad)
    }))
}

fn positions(found: impl ExactSizeIterator<Item = usize>, room: &Room) -> Result<Buffer<i64>, Fault> {
    let mut positions = room.take::<i64>(found.len())?;
    positions.iter_mut().zip(found).for_each(|(position, at)| *position = at as i64);
    Ok(positions)
}

impl Operator for Compress {
    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (x, flags) = (call.input(0)?, call.values::<Flag>(1)?);
        let mut shape = x.shape().to_vec();
        let axis = self.axis.map(|axis| axis_of(axis, x.rank())).transpose()?;
        let along = axis.map_or(x.len(), |axis| shape[axis]);
        let set: Vec<usize> = (0..flags.len()).filter(|&i| flags[i].get()).collect();
        if let Some(&last) = set.last().filter(|&&last| last >= along) {
            return Err(Fault::Range { what: "index", index: last as i64, low: 0, high: along as i64 });
        }
        let count = set.len();
        let positions = positions(set.into_iter(), call.room)?;
        match axis {
            None => picked(&call, Picks { positions, block: 1, stretch: 0 }, &[count]),
            Some(axis) => {
                let block = shape[axis + 1..].iter().product();
                shape[axis] = count;
                picked(&call, Picks { positions, block, stretch: along * block }, &shape)
            }
        }
    }
}

/// Zero below (or above) a diagonal of the last two axes.
#[derive(Debug)]
struct Trilu {
    upper: bool,
}

impl Trilu {
    fn keep<T: Element>(&self, (rows, columns): (usize, usize), k: i64, x: &Store<T>, out: &mut [T]) {
        for (i, (value, out)) in x.iter().zip(out).enumerate() {
            let (row, column) = ((i / columns % rows) as i64, (i % columns) as i64);
            let place = column.saturating_sub(row);
            let kept = if self.upper { place >= k } else { place <= k };
            *out = if kept { *value } else { T::default() };
        }
    }
}

impl Operator for Trilu {
    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let k = match call.optional(1) {
            Some(_) => call.integers(1)?.first().copied().ok_or(Fault::Missing(1))?,
            None => 0,
        };
        let &[.., rows, columns] = x.shape() else {
            return Err(Fault::Shape { input: 0, expected: "matrices".into(), got: x.shape().to_vec() });
        };
        let (size, op) = ((rows, columns), Trilu { upper: self.upper });
        let y = for_type!(x.data(), values => {
            call.room.tensor(x.shape(), |out| self.keep(size, k, values, out))
        })?;
        Ok(Answer::one(y).with(call.wants(0), move |back| {
            let Some(gy) = back.take(0) else { return Ok(()) };
            let gx = for_type!(gy.data(), values => {
                back.room().tensor(gy.shape(), |out| op.keep(size, k, values, out))
            })?;
            back.give(0, gx)
        }))
    }
}

/// Each sequence of a batch back to front, up to its length.
#[derive(Debug)]
struct ReverseSequence {
    time_first: bool,
}

fn reverse_sequence(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let axis = |name, default| Ok::<i64, Fault>(definition.attributes.int(name)?.unwrap_or(default));
    match (axis("time_axis", 0)?, axis("batch_axis", 1)?) {
        (0, 1) => Ok(Box::new(ReverseSequence { time_first: true })),
        (1, 0) => Ok(Box::new(ReverseSequence { time_first: false })),
        _ => Err(Fault::Attribute {
            name: "time_axis".into(),
            problem: "must be 0 or 1, the batch's the other".into(),
        }),
    }
}

impl Operator for ReverseSequence {
    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (x, lengths) = (call.input(0)?, call.integers(1)?);
        let &[first, second, ..] = x.shape() else {
            return Err(Fault::Shape {
                input: 0,
                expected: "rank 2 or more".into(),
                got: x.shape().to_vec(),
            });
        };
        let (time, batch) = if self.time_first { (first, second) } else { (second, first) };
        if lengths.len() != batch || lengths.iter().any(|&length| !(0..=time as i64).contains(&length)) {
            return Err(Fault::Value(format!("lengths {lengths:?} do not fit {batch} sequences of {time}")));
        }
        let place = |i: usize| {
            let (t, b) = if self.time_first { (i / second, i % second) } else { (i % second, i / second) };
            let length = lengths[b] as usize;
            let t = if t < length { length - 1 - t } else { t };
            if self.time_first { t * second + b } else { b * second + t }
        };
        let positions = positions((0..first * second).map(place), call.room)?;
        let block = x.shape()[2..].iter().product();
        let shape = x.shape().to_vec();
        picked(&call, Picks { positions, block, stretch: 0 }, &shape)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_kernels::buffer::Flag;

    use super::super::proof::{Numbers, build, outputs, prove_gradient};
    use super::super::{Attribute, Operator};
    use crate::tensor::Tensor;

    fn run(name: &str, attributes: &[(&str, Attribute)], inputs: &[Option<Tensor>]) -> Tensor {
        let op: Arc<dyn Operator> = build(name, 13, attributes, inputs.len()).into();
        outputs(&op, inputs, 1).remove(0)
    }

    #[test]
    fn elements_are_found_and_marked() {
        let x = Some(Tensor::new(&[2, 2], vec![1i32, 0, 2, 3]));
        assert_eq!(run("NonZero", &[], &[x]).values::<i64>(), Some(&[0, 1, 1, 0, 0, 1][..]));
        let at = Some(Tensor::new(&[2], vec![1i64, -3]));
        let on_off = Some(Tensor::new(&[2], vec![5.0f32, 7.0]));
        let y = run("OneHot", &[], &[at, Some(Tensor::scalar(3i64)), on_off]);
        assert_eq!(y.values::<f32>(), Some(&[5.0, 7.0, 5.0, 7.0, 5.0, 5.0][..]));
    }

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(71);
        let x = Some(numbers.tensor(&[3, 4, 2, 3], -1.0, 1.0));
        let flags = Some(Tensor::new(&[3], [false, true, true].map(Flag::from).to_vec()));
        prove_gradient(
            build("Compress", 11, &[("axis", Attribute::Int(1))], 2),
            &[x.clone(), flags.clone()],
            1,
            1e-6,
        );
        prove_gradient(build("Compress", 11, &[], 2), &[x.clone(), flags], 1, 1e-6);
        for upper in [0, 1] {
            let k = Some(Tensor::scalar(-1i64));
            prove_gradient(
                build("Trilu", 14, &[("upper", Attribute::Int(upper))], 2),
                &[x.clone(), k],
                1,
                1e-6,
            );
        }
        let lengths = Some(Tensor::new(&[4], vec![3i64, 0, 1, 2]));
        prove_gradient(build("ReverseSequence", 10, &[], 2), &[x, lengths], 1, 1e-6);
    }
}
