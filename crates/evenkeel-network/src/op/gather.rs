//! Gather, GatherElements and GatherND: blocks of the data picked by index. The pullback adds each block's cotangent to where it
//! came from, in the order of the picks.
//!
//! The tape is the picked positions.

use evenkeel_kernels::buffer::Buffer;
use evenkeel_kernels::parallel;

use super::registry::{Entry, entry};
use super::strided::{GRAIN, Real, axis_of, for_real, row_strides};
use super::{Answer, Call, Definition, Operator};
use crate::error::Fault;
use crate::for_type;
use crate::tensor::{Element, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("Gather", true, gather),
    entry("GatherElements", true, gather_elements),
    entry("GatherND", true, gather_nd),
];

/// How indices name blocks.
#[derive(Debug)]
enum Gather {
    Along { axis: i64 },
    Elements { axis: i64 },
    Tuples { batch: i64 },
}

fn gather(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Gather::Along { axis: definition.attributes.int("axis")?.unwrap_or(0) }))
}

fn gather_elements(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Gather::Elements { axis: definition.attributes.int("axis")?.unwrap_or(0) }))
}

fn gather_nd(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Gather::Tuples { batch: definition.attributes.int("batch_dims")?.unwrap_or(0) }))
}

/// In each of some equal stretches of the source, the blocks at these positions.
pub(super) struct Picks {
    pub(super) positions: Buffer<i64>,
    pub(super) block: usize,
    /// Elements of the source from one stretch to the next.
    pub(super) stretch: usize,
}

impl Picks {
    fn copy<T: Element>(&self, source: &[T], out: &mut [T]) {
        let (count, block) = (self.positions.len(), self.block);
        if out.is_empty() {
            return;
        }
        parallel::rows(out, block, (GRAIN / block).max(1), |first, part| {
            for (i, out) in part.chunks_exact_mut(block).enumerate() {
                let (repeat, pick) = ((first + i) / count, (first + i) % count);
                let from = repeat * self.stretch + self.positions[pick] as usize * block;
                out.copy_from_slice(&source[from..from + block]);
            }
        });
    }

    fn add_back<T: Real>(&self, cotangents: &[T], target: &mut [T]) {
        let (count, block) = (self.positions.len(), self.block);
        if cotangents.is_empty() {
            return;
        }
        for (i, row) in cotangents.chunks_exact(block).enumerate() {
            let (repeat, pick) = (i / count, i % count);
            let to = repeat * self.stretch + self.positions[pick] as usize * block;
            target[to..to + block].iter_mut().zip(row).for_each(|(t, &g)| *t += g);
        }
    }

    /// A plain tensor of the blocks picked.
    pub(super) fn read(&self, source: &Tensor, shape: &[usize], room: &Room) -> Result<Tensor, Fault> {
        for_type!(source.data(), values => room.tensor(shape, |out| self.copy(values, out)))
    }

    /// The pullback of [`Picks::read`].
    pub(super) fn pull(&self, cotangent: &Tensor, shape: &[usize], room: &Room) -> Result<Tensor, Fault> {
        for_real!(cotangent, values => room.tensor(shape, |out| {
            out.fill(Default::default());
            self.add_back(values, out);
        }))
    }
}

/// An index counted from the front.
fn index_of(index: i64, size: usize) -> Result<usize, Fault> {
    let high = size as i64;
    let from_front = if index < 0 { index.saturating_add(high) } else { index };
    if (0..high).contains(&from_front) {
        return Ok(from_front as usize);
    }
    Err(Fault::Range { what: "index", index, low: -high, high })
}

/// For each element of `indices` (shaped as `shape`), the position in `data` that replaces its coordinate along `axis`.
pub(super) fn element_positions(
    data: &[usize],
    axis: usize,
    (shape, indices): (&[usize], &[i64]),
    room: &Room,
) -> Result<Buffer<i64>, Fault> {
    let fits = shape.len() == data.len() && (0..data.len()).all(|d| d == axis || shape[d] <= data[d]);
    if !fits {
        return Err(Fault::Mismatch { left: data.to_vec(), right: shape.to_vec(), verb: "index each other" });
    }
    let (strides, steps) = (row_strides(data), row_strides(shape));
    let mut positions = room.take::<i64>(indices.len())?;
    for (i, (&index, position)) in indices.iter().zip(positions.iter_mut()).enumerate() {
        let others: usize =
            (0..shape.len()).filter(|&d| d != axis).map(|d| i / steps[d] % shape[d] * strides[d]).sum();
        *position = (others + index_of(index, data[axis])? * strides[axis]) as i64;
    }
    Ok(positions)
}

/// For each tuple along the last axis of `indices`, the block of `data` it names, after `batch` shared axes; and the block's size.
pub(super) fn tuple_positions(
    data: &[usize],
    batch: usize,
    (shape, indices): (&[usize], &[i64]),
    room: &Room,
) -> Result<(Buffer<i64>, usize), Fault> {
    let refused = || Fault::Mismatch { left: data.to_vec(), right: shape.to_vec(), verb: "index each other" };
    let &width = shape.last().ok_or_else(refused)?;
    let depth = batch.checked_add(width).filter(|&depth| depth <= data.len()).ok_or_else(refused)?;
    if batch >= shape.len() || data[..batch] != shape[..batch] {
        return Err(refused());
    }
    let block = data[depth..].iter().product();
    let tuples: usize = shape[..shape.len() - 1].iter().product();
    let per_batch = shape[batch..shape.len() - 1].iter().product::<usize>().max(1);
    let per_source: usize = data[batch..depth].iter().product();
    let strides = row_strides(&data[batch..depth]);
    let mut positions = room.take::<i64>(tuples)?;
    for (i, position) in positions.iter_mut().enumerate() {
        let mut at = i / per_batch * per_source;
        for (d, &index) in indices[i * width..(i + 1) * width].iter().enumerate() {
            at += index_of(index, data[batch + d])? * strides[d];
        }
        *position = at as i64;
    }
    Ok((positions, block))
}

impl Gather {
    fn picks(&self, call: &Call<'_>) -> Result<(Picks, Vec<usize>), Fault> {
        let (data, shape) = (call.input(0)?.shape(), call.input(1)?.shape());
        let indices = call.integers(1)?;
        let whole = |positions, block| Picks { positions, block, stretch: 0 };
        match *self {
            Gather::Along { axis } => {
                let axis = axis_of(axis, data.len())?;
                let mut positions = call.room.take::<i64>(indices.len())?;
                for (&index, position) in indices.iter().zip(positions.iter_mut()) {
                    *position = index_of(index, data[axis])? as i64;
                }
                let block = data[axis + 1..].iter().product();
                let picks = Picks { positions, block, stretch: data[axis] * block };
                Ok((picks, [&data[..axis], shape, &data[axis + 1..]].concat()))
            }
            Gather::Elements { axis } => {
                let axis = axis_of(axis, data.len())?;
                let positions = element_positions(data, axis, (shape, &indices), call.room)?;
                Ok((whole(positions, 1), shape.to_vec()))
            }
            Gather::Tuples { batch } => {
                let batch = usize::try_from(batch).unwrap_or(usize::MAX);
                let (positions, block) = tuple_positions(data, batch, (shape, &indices), call.room)?;
                let width = shape[shape.len() - 1];
                let out = [&shape[..shape.len() - 1], &data[batch + width..]].concat();
                Ok((whole(positions, block), out))
            }
        }
    }
}

impl Operator for Gather {
    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (picks, shape) = self.picks(&call)?;
        let data = call.input(0)?;
        let y = picks.read(data, &shape, call.room)?;
        let old = data.shape().to_vec();
        Ok(Answer::one(y).with(call.wants(0), move |back| {
            let Some(cotangent) = back.take(0) else { return Ok(()) };
            let grad = picks.pull(&cotangent, &old, back.room())?;
            back.give(0, grad)
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::proof::{Numbers, build, outputs, prove_gradient, room};
    use super::super::{Attribute, Call, Operator};
    use crate::tensor::Tensor;

    fn ints(shape: &[usize], values: &[i64]) -> Option<Tensor> {
        Some(Tensor::new(shape, values.to_vec()))
    }

    #[test]
    fn blocks_are_picked() {
        let x = Some(Tensor::new(&[3, 2], vec![1i32, 2, 3, 4, 5, 6]));
        let gather = |axis: i64, at| {
            let op: Arc<dyn Operator> = build("Gather", 13, &[("axis", Attribute::Int(axis))], 2).into();
            outputs(&op, &[x.clone(), at], 1).remove(0)
        };
        let y = gather(0, ints(&[1, 2], &[-1, 0]));
        assert_eq!((y.shape(), y.values::<i32>()), (&[1, 2, 2][..], Some(&[5, 6, 1, 2][..])));
        let y = gather(1, ints(&[], &[1]));
        assert_eq!((y.shape(), y.values::<i32>()), (&[3][..], Some(&[2, 4, 6][..])));
        let tuples: Arc<dyn Operator> = build("GatherND", 13, &[("batch_dims", Attribute::Int(1))], 2).into();
        let y = outputs(&tuples, &[x, ints(&[3, 1], &[1, 0, 1])], 1).remove(0);
        assert_eq!(y.values::<i32>(), Some(&[2, 3, 6][..]));
    }

    #[test]
    fn wild_indices_are_refused() {
        let room = room();
        for name in ["Gather", "GatherElements", "GatherND"] {
            for index in [3, -4, i64::MIN, i64::MAX] {
                let x = Some(Tensor::new(&[3, 2], vec![0.0f32; 6]));
                let call =
                    Call { inputs: vec![x, ints(&[1, 1], &[index])], wants: &[], outputs: 1, room: &room };
                assert!(build(name, 13, &[], 2).apply(call).is_err(), "{name} {index}");
            }
        }
    }

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(11);
        let x = Some(numbers.tensor(&[2, 3, 4, 2], -1.0, 1.0));
        let axis = |axis| [("axis", Attribute::Int(axis))];
        let at = ints(&[2, 2], &[0, 2, 0, -1]);
        prove_gradient(build("Gather", 13, &axis(1), 2), &[x.clone(), at.clone()], 1, 1e-6);
        prove_gradient(build("GatherND", 13, &[], 2), &[x, at], 1, 1e-6);
        let x = Some(numbers.tensor(&[3, 3], -1.0, 1.0));
        let at = ints(&[2, 3], &[0, 1, 2, 2, 2, 1]);
        prove_gradient(build("GatherElements", 13, &axis(1), 2), &[x, at], 1, 1e-6);
    }
}
