//! TopK: the k largest or smallest values along an axis, with their indices. Among equals the lower index comes first.
//!
//! The tape is the indices it gives anyway.

use std::cmp::Ordering;

use super::registry::{Entry, entry};
use super::strided::{Real, axis_of, for_real};
use super::{Answer, Call, Definition, Operator};
use crate::error::Fault;
use crate::tensor::{Data, Element, Room, Store, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("TopK", true, top_k)];

/// See the [module](self). Older files give k as an attribute.
#[derive(Debug)]
struct TopK {
    k: Option<i64>,
    axis: i64,
    largest: bool,
}

fn top_k(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let attributes = definition.attributes;
    Ok(Box::new(TopK {
        k: attributes.int("k")?,
        axis: attributes.int("axis")?.unwrap_or(-1),
        largest: attributes.flag("largest", true)?,
    }))
}

/// The lines of a tensor along an axis: element `i` of line `l` is at `start(l) + i * inner`.
#[derive(Clone, Copy)]
struct Lines {
    outer: usize,
    along: usize,
    inner: usize,
}

impl Lines {
    fn start(&self, line: usize, along: usize) -> usize {
        line / self.inner * along * self.inner + line % self.inner
    }

    fn count(&self) -> usize {
        self.outer * self.inner
    }
}

/// Larger first, with NaN above everything.
fn descending<T: PartialOrd>(a: &T, b: &T) -> Ordering {
    let nan = |v: &T| v.partial_cmp(v).is_none();
    b.partial_cmp(a).unwrap_or_else(|| nan(b).cmp(&nan(a)))
}

impl TopK {
    fn choose<T: Element + PartialOrd>(
        &self,
        x: &Store<T>,
        (lines, k): (Lines, usize),
        shape: &[usize],
        room: &Room,
    ) -> Result<(Tensor, Tensor), Fault> {
        let mut values = room.take::<T>(room.len_of(shape)?)?;
        let mut indices = room.take::<i64>(values.len())?;
        let mut order: Vec<usize> = Vec::with_capacity(lines.along);
        for line in 0..lines.count() {
            let from = lines.start(line, lines.along);
            let at = |i: usize| &x[from + i * lines.inner];
            let before = |&a: &usize, &b: &usize| {
                let by_value = descending(at(a), at(b));
                (if self.largest { by_value } else { by_value.reverse() }).then(a.cmp(&b))
            };
            order.clear();
            order.extend(0..lines.along);
            if k > 0 && k < order.len() {
                order.select_nth_unstable_by(k - 1, before);
            }
            order[..k].sort_unstable_by(before);
            let to = lines.start(line, k);
            for (i, &chosen) in order[..k].iter().enumerate() {
                values[to + i * lines.inner] = *at(chosen);
                indices[to + i * lines.inner] = chosen as i64;
            }
        }
        Ok((Tensor::new(shape, values), Tensor::new(shape, indices)))
    }
}

fn put_back<T: Real>(lines: Lines, k: usize, indices: &[i64], gy: &[T], gx: &mut [T]) {
    for line in 0..lines.count() {
        let (from, to) = (lines.start(line, k), lines.start(line, lines.along));
        for i in 0..k {
            let at = from + i * lines.inner;
            gx[to + indices[at] as usize * lines.inner] += gy[at];
        }
    }
}

impl Operator for TopK {
    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let axis = axis_of(self.axis, x.rank())?;
        let asked = match self.k {
            Some(k) => k,
            None => call.integers(1)?.first().copied().ok_or(Fault::Missing(1))?,
        };
        let along = x.shape()[axis];
        let Some(k) = usize::try_from(asked).ok().filter(|&k| k <= along) else {
            return Err(Fault::Range { what: "k", index: asked, low: 0, high: along as i64 + 1 });
        };
        let old = x.shape().to_vec();
        let product = |dims: &[usize]| dims.iter().product::<usize>();
        let lines = Lines { outer: product(&old[..axis]), along, inner: product(&old[axis + 1..]) };
        let mut shape = old.clone();
        shape[axis] = k;
        let what = (lines, k);
        let (values, indices) = match x.data() {
            Data::F32(v) => self.choose(v, what, &shape, call.room),
            Data::F64(v) => self.choose(v, what, &shape, call.room),
            Data::I32(v) => self.choose(v, what, &shape, call.room),
            Data::I64(v) => self.choose(v, what, &shape, call.room),
            Data::U8(v) => self.choose(v, what, &shape, call.room),
            Data::I8(v) => self.choose(v, what, &shape, call.room),
            Data::Bool(_) => Err(Fault::Type { input: 0, expected: "numbers", got: x.dtype() }),
        }?;
        let kept = indices.clone();
        Ok(Answer::new(vec![values, indices]).with(call.wants(0), move |back| {
            let Some(gy) = back.take(0) else { return Ok(()) };
            let indices = kept.values::<i64>().unwrap_or(&[]);
            let gx = for_real!(gy, gy => back.room().tensor(&old, |gx| {
                gx.fill(Default::default());
                put_back(lines, k, indices, gy, gx);
            }))?;
            back.give(0, gx)
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::proof::{Numbers, build, outputs, prove_gradient};
    use super::super::{Attribute, Operator};
    use crate::tensor::Tensor;

    #[test]
    fn equals_keep_their_order() {
        let x = Some(Tensor::new(&[2, 4], vec![1.0f32, 3.0, 3.0, 2.0, f32::NAN, 0.0, 5.0, -1.0]));
        let k = Some(Tensor::new(&[1], vec![2i64]));
        let largest: Arc<dyn Operator> = build("TopK", 11, &[], 2).into();
        let y = outputs(&largest, &[x.clone(), k.clone()], 2);
        assert_eq!(y[1].values::<i64>(), Some(&[1, 2, 0, 2][..]));
        let smallest: Arc<dyn Operator> = build("TopK", 11, &[("largest", Attribute::Int(0))], 2).into();
        let y = outputs(&smallest, &[x, k], 2);
        assert_eq!(y[1].values::<i64>(), Some(&[0, 3, 3, 1][..]));
    }

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(13);
        for axis in 0..4 {
            let x = Some(numbers.tensor(&[2, 3, 4, 5], -1.0, 1.0));
            let k = Some(Tensor::new(&[1], vec![2i64]));
            prove_gradient(build("TopK", 11, &[("axis", Attribute::Int(axis))], 2), &[x, k], 2, 1e-5);
        }
    }
}
