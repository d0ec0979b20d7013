//! ScatterND and ScatterElements (and its old name Scatter): a copy of the data with some of it replaced by updates, or combined with them.
//!
//! The pullback of a replacement sends the cotangent to the update where there is one (the last, if several write the same place) and
//! to the data elsewhere; of a sum, to both; of a product, times the other factors; of an extremum, to the winner.

use evenkeel_kernels::buffer::Buffer;

use super::gather::{element_positions, tuple_positions};
use super::registry::{Entry, entry};
use super::strided::{Real, axis_of, for_real};
use super::{Answer, Call, Definition, Operator};
use crate::error::Fault;
use crate::for_type;
use crate::tensor::{Data, Element, Room, Store, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("ScatterND", true, |definition| build(definition, false)),
    entry("ScatterElements", true, |definition| build(definition, true)),
    entry("Scatter", true, |definition| build(definition, true)),
];

/// How an update meets what is there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meeting {
    Replace,
    Add,
    Multiply,
    Least,
    Greatest,
}

/// See the [module](self).
#[derive(Debug)]
struct Scatter {
    /// The axis along which single elements are named; without one, tuples name blocks.
    axis: Option<i64>,
    meeting: Meeting,
}

fn build(definition: &Definition<'_>, elements: bool) -> Result<Box<dyn Operator>, Fault> {
    let reduction = definition.attributes.text("reduction")?;
    let meeting = match reduction.as_deref() {
        None | Some("none") => Meeting::Replace,
        Some("add") => Meeting::Add,
        Some("mul") => Meeting::Multiply,
        Some("min") => Meeting::Least,
        Some("max") => Meeting::Greatest,
        Some(other) => {
            return Err(Fault::Attribute {
                name: "reduction".into(),
                problem: format!("{other:?} is unknown"),
            });
        }
    };
    let axis = if elements { Some(definition.attributes.int("axis")?.unwrap_or(0)) } else { None };
    Ok(Box::new(Scatter { axis, meeting }))
}

/// Where blocks of the updates go.
struct Places {
    positions: Buffer<i64>,
    block: usize,
}

impl Places {
    /// For each element of the updates, the element of the data it meets.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let block = self.block;
        let pair =
            move |(i, &at): (usize, &i64)| (0..block).map(move |j| (i * block + j, at as usize * block + j));
        self.positions.iter().enumerate().flat_map(pair)
    }
}

impl Scatter {
    fn places(&self, call: &Call<'_>) -> Result<Places, Fault> {
        let (data, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
        let values = (indices.shape(), &*call.integers(1)?);
        let (places, shape) = match self.axis {
            Some(axis) => {
                let axis = axis_of(axis, data.rank())?;
                let positions = element_positions(data.shape(), axis, values, call.room)?;
                (Places { positions, block: 1 }, indices.shape().to_vec())
            }
            None => {
                let (positions, block) = tuple_positions(data.shape(), 0, values, call.room)?;
                let (&width, tuples) = indices.shape().split_last().ok_or(Fault::Missing(1))?;
                (Places { positions, block }, [tuples, &data.shape()[width..]].concat())
            }
        };
        if updates.shape() != shape {
            let expected = format!("{shape:?}");
            return Err(Fault::Shape { input: 2, expected, got: updates.shape().to_vec() });
        }
        Ok(places)
    }

    fn meet<T: Element>(
        &self,
        (data, updates): (&Store<T>, &[T]),
        places: &Places,
        shape: &[usize],
        room: &Room,
        combine: impl Fn(T, T) -> T,
    ) -> Result<Tensor, Fault> {
        room.tensor(shape, |out| {
            out.copy_from_slice(data);
            places.pairs().for_each(|(from, to)| out[to] = combine(out[to], updates[from]));
        })
    }

    fn combined(&self, call: &Call<'_>, places: &Places) -> Result<Tensor, Fault> {
        let data = call.input(0)?;
        let (shape, room) = (data.shape(), call.room);
        if self.meeting == Meeting::Replace {
            return for_type!(data.data(), values => {
                self.meet((values, call.values(2)?), places, shape, room, |_, update| update)
            });
        }
        macro_rules! number {
            ($values:expr, $add:expr, $multiply:expr) => {{
                let both = ($values, call.values(2)?);
                match self.meeting {
                    Meeting::Add => self.meet(both, places, shape, room, $add),
                    Meeting::Multiply => self.meet(both, places, shape, room, $multiply),
                    Meeting::Least => self.meet(both, places, shape, room, |a, b| if b < a { b } else { a }),
                    _ => self.meet(both, places, shape, room, |a, b| if b > a { b } else { a }),
                }
            }};
        }
        match data.data() {
            Data::F32(v) => number!(v, |a, b| a + b, |a, b| a * b),
            Data::F64(v) => number!(v, |a, b| a + b, |a, b| a * b),
            Data::I32(v) => number!(v, i32::wrapping_add, i32::wrapping_mul),
            Data::I64(v) => number!(v, i64::wrapping_add, i64::wrapping_mul),
            Data::U8(v) => number!(v, u8::wrapping_add, u8::wrapping_mul),
            Data::I8(v) => number!(v, i8::wrapping_add, i8::wrapping_mul),
            Data::Bool(_) => Err(Fault::Type { input: 0, expected: "numbers", got: data.dtype() }),
        }
    }
}

/// Data, updates and output, kept where the derivative depends on them.
struct Kept {
    data: Tensor,
    updates: Tensor,
    output: Tensor,
}

/// The gradients of data and updates, added to zeros.
fn pull<T: Real>(
    meeting: Meeting,
    places: &Places,
    kept: Option<[&[T]; 3]>,
    gy: &[T],
    (g_data, g_updates): (&mut [T], &mut [T]),
) {
    g_data.copy_from_slice(gy);
    match (meeting, kept) {
        (Meeting::Add, _) => places.pairs().for_each(|(from, to)| g_updates[from] = gy[to]),
        (Meeting::Multiply, Some([data, updates, _])) => {
            for (from, to) in places.pairs() {
                let others = places.pairs().filter(|&(other, at)| at == to && other != from);
                let product =
                    others.fold(data[to].f64(), |product, (other, _)| product * updates[other].f64());
                g_updates[from] = T::of(gy[to].f64() * product);
                g_data[to] = g_data[to] * updates[from];
            }
        }
        (Meeting::Least | Meeting::Greatest, Some([data, updates, output])) => {
            // The first to reach the extremum has it.
            let mut open: Vec<bool> = data.iter().zip(output).map(|(a, b)| a != b).collect();
            for (from, to) in places.pairs() {
                if open[to] && updates[from] == output[to] {
                    g_updates[from] = gy[to];
                    open[to] = false;
                }
                if data[to] != output[to] {
                    g_data[to] = T::default();
                }
            }
        }
        _ => {
            places.pairs().for_each(|(_, to)| g_data[to] = T::default());
            let mut last = vec![usize::MAX; gy.len()];
            places.pairs().for_each(|(from, to)| last[to] = from);
            let kept = places.pairs().filter(|&(from, to)| last[to] == from);
            kept.for_each(|(from, to)| g_updates[from] = gy[to]);
        }
    }
}

impl Operator for Scatter {
    fn passes_gradient(&self, input: usize) -> bool {
        input != 1
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let places = self.places(&call)?;
        let y = self.combined(&call, &places)?;
        let (data, updates) = (call.input(0)?, call.input(2)?);
        let (meeting, old, given) = (self.meeting, data.shape().to_vec(), updates.shape().to_vec());
        let depends = call.wants_any() && !matches!(meeting, Meeting::Replace | Meeting::Add);
        let kept = depends.then(|| Kept { data: data.clone(), updates: updates.clone(), output: y.clone() });
        Ok(Answer::one(y).with(call.wants_any(), move |back| {
            let Some(gy) = back.take(0) else { return Ok(()) };
            let room = back.room().clone();
            let (g_data, g_updates) = for_real!(gy, gy => {
                pulled(gy, meeting, &places, kept.as_ref(), (&old, &given), &room)
            })?;
            back.give(0, g_data)?;
            back.give(2, g_updates)
        }))
    }
}

fn pulled<T: Real>(
    gy: &Store<T>,
    meeting: Meeting,
    places: &Places,
    kept: Option<&Kept>,
    (old, given): (&[usize], &[usize]),
    room: &Room,
) -> Result<(Tensor, Tensor), Fault> {
    let kept = kept.and_then(|k| Some([k.data.values()?, k.updates.values()?, k.output.values()?]));
    let mut g_updates = room.take::<T>(room.len_of(given)?)?;
    g_updates.fill(T::default());
    let g_data = room.tensor(old, |g_data| pull(meeting, places, kept, gy, (g_data, &mut g_updates)))?;
    Ok((g_data, Tensor::new(given, g_updates)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::proof::{Numbers, build, outputs, prove_gradient};
    use super::super::{Attribute, Operator};
    use crate::tensor::Tensor;

    #[test]
    fn updates_meet_the_data() {
        let data = Some(Tensor::new(&[3, 2], vec![1i32, 2, 3, 4, 5, 6]));
        let at = Some(Tensor::new(&[2, 1], vec![2i64, 0]));
        let new = Some(Tensor::new(&[2, 2], vec![10i32, 20, 30, 40]));
        let run = |reduction: &str| {
            let reduction = [("reduction", Attribute::Text(reduction.into()))];
            let op: Arc<dyn Operator> = build("ScatterND", 18, &reduction, 3).into();
            let y = outputs(&op, &[data.clone(), at.clone(), new.clone()], 1);
            y[0].values::<i32>().map(<[i32]>::to_vec)
        };
        assert_eq!(run("none"), Some(vec![30, 40, 3, 4, 10, 20]));
        assert_eq!(run("add"), Some(vec![31, 42, 3, 4, 15, 26]));
        assert_eq!(run("min"), Some(vec![1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(14);
        for reduction in ["none", "add", "mul", "min", "max"] {
            let attributes = [("reduction", Attribute::Text(reduction.into())), ("axis", Attribute::Int(1))];
            let data = Some(numbers.tensor(&[2, 3], -1.0, 1.0));
            let updates = Some(numbers.tensor(&[2, 3], -1.0, 1.0));
            let at = Some(Tensor::new(&[2, 3], vec![0i64, 2, 0, 1, 1, 1]));
            let op = build("ScatterElements", 18, &attributes, 3);
            prove_gradient(op, &[data, at, updates], 1, 1e-5);
            let data = Some(numbers.tensor(&[3, 2, 2, 2], -1.0, 1.0));
            let updates = Some(numbers.tensor(&[2, 2, 2], -1.0, 1.0));
            let at = Some(Tensor::new(&[2, 2], vec![0i64, 1, 2, -1]));
            prove_gradient(build("ScatterND", 18, &attributes[..1], 3), &[data, at, updates], 1, 1e-5);
        }
    }
}
