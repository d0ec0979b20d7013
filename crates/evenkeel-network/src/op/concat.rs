//! Concat and Split: runs of indices along one axis, joined and cut, each the other's pullback.
//!
//! Maps that are channels last stay so: along the channels a run is copied pixel by pixel, along the other axes in blocks. The tape
//! holds sizes only.

use evenkeel_kernels::layout::{Span, copy_channels};
use evenkeel_kernels::parallel;

use super::registry::{Entry, entry};
use super::strided::{GRAIN, axis_of};
use super::{Answer, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::for_type;
use crate::tensor::{DType, Element, Layout, Room, Store, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("Concat", true, concat), entry("Split", true, split)];

/// Joins its inputs along an axis.
#[derive(Debug)]
struct Concat {
    axis: i64,
}

fn concat(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let axis = definition.attributes.int("axis")?;
    let missing = || Fault::Attribute { name: "axis".into(), problem: "is missing".into() };
    Ok(Box::new(Concat { axis: axis.ok_or_else(missing)? }))
}

/// Elements along an axis and after it.
#[derive(Clone, Copy)]
struct Blocks {
    along: usize,
    inner: usize,
}

impl Blocks {
    fn of(shape: &[usize], axis: usize) -> Blocks {
        Blocks { along: shape[axis], inner: shape[axis + 1..].iter().product() }
    }

    fn row(&self) -> usize {
        self.along * self.inner
    }
}

/// The axis of a channels-last map's storage that an axis of its shape lies along; `None` for the channels.
pub(super) fn storage_axis(axis: usize) -> Option<usize> {
    [Some(0), None, Some(1), Some(2)][axis]
}

/// `count` indices from `first` along `axis`, in the layout of `x`.
pub(super) fn cut(x: &Tensor, axis: usize, first: usize, count: usize, room: &Room) -> Result<Tensor, Fault> {
    if x.layout() == Layout::ChannelsLast {
        let channels = x.shape()[1];
        if let Some(axis) = storage_axis(axis) {
            return cut(&x.storage(), axis, first, count, room)?.as_map_of(channels);
        }
        let &[n, _, h, w] = x.shape() else { return Err(rank(x)) };
        let (from, to) = (Span { channels, first }, Span { channels: count, first: 0 });
        let values = x.values::<f32>().unwrap_or(&[]);
        return room.feature_map([n, count, h, w], |out| copy_channels(values, from, out, to, count));
    }
    let blocks = Blocks::of(x.shape(), axis);
    let mut shape = x.shape().to_vec();
    shape[axis] = count;
    let row = count * blocks.inner;
    for_type!(x.data(), values => room.tensor(&shape, |out| {
        if out.is_empty() {
            return;
        }
        parallel::rows(out, row, (GRAIN / row).max(1), |start, part| {
            for (i, out) in part.chunks_exact_mut(row).enumerate() {
                out.copy_from_slice(&values[(start + i) * blocks.row() + first * blocks.inner..][..row]);
            }
        });
    }))
}

/// A tensor of `shape` whose runs along `axis`, of these counts, are `parts`; absent ones are zero. Parts share type and layout.
pub(super) fn join(
    shape: &[usize],
    axis: usize,
    parts: &[(usize, Option<Tensor>)],
    room: &Room,
) -> Result<Tensor, Fault> {
    let Some(first) = parts.iter().find_map(|(_, part)| part.as_ref()) else { return Err(Fault::Missing(0)) };
    if first.layout() == Layout::ChannelsLast {
        let &[n, c, h, w] = shape else { return Err(rank(first)) };
        if let Some(axis) = storage_axis(axis) {
            let stored: Vec<_> =
                parts.iter().map(|(count, part)| (*count, part.as_ref().map(Tensor::storage))).collect();
            let step = evenkeel_kernels::layout::stride(c);
            return join(&[n, h, w, step], axis, &stored, room)?.as_map_of(c);
        }
        return room.feature_map([n, c, h, w], |out| join_channels(c, parts, out));
    }
    for_type!(first.data(), values => join_typed(values, shape, axis, parts, room))
}

fn join_channels(channels: usize, parts: &[(usize, Option<Tensor>)], out: &mut [f32]) {
    if parts.iter().any(|(_, part)| part.is_none()) {
        out.fill(0.0);
    }
    let mut first = 0;
    for (count, part) in parts {
        if let Some(values) = part.as_ref().and_then(Tensor::values::<f32>) {
            let from = Span { channels: *count, first: 0 };
            copy_channels(values, from, out, Span { channels, first }, *count);
        }
        first += count;
    }
}

fn join_typed<T: Element>(
    _: &Store<T>,
    shape: &[usize],
    axis: usize,
    parts: &[(usize, Option<Tensor>)],
    room: &Room,
) -> Result<Tensor, Fault> {
    let blocks = Blocks::of(shape, axis);
    let mut sources: Vec<(usize, Option<&[T]>)> = Vec::with_capacity(parts.len());
    for (i, (count, part)) in parts.iter().enumerate() {
        let values = match part {
            None => None,
            Some(part) => Some(part.values::<T>().ok_or(Fault::Type {
                input: i,
                expected: "the type of the first",
                got: part.dtype(),
            })?),
        };
        sources.push((count * blocks.inner, values));
    }
    let row = blocks.row();
    room.tensor(shape, |out| {
        if out.is_empty() {
            return;
        }
        parallel::rows(out, row, (GRAIN / row).max(1), |start, rows| {
            for (i, out) in rows.chunks_exact_mut(row).enumerate() {
                let mut rest = out;
                for &(len, source) in &sources {
                    let (run, after) = rest.split_at_mut(len);
                    match source {
                        Some(source) => run.copy_from_slice(&source[(start + i) * len..][..len]),
                        None => run.fill(T::default()),
                    }
                    rest = after;
                }
            }
        });
    })
}

fn rank(x: &Tensor) -> Fault {
    Fault::Shape { input: 0, expected: "rank 4".into(), got: x.shape().to_vec() }
}

impl Operator for Concat {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let first = call.input(0)?;
        let axis = axis_of(self.axis, first.rank())?;
        let mut shape = first.shape().to_vec();
        let map = shape.len() == 4
            && call.inputs.iter().flatten().any(|x| x.layout() == Layout::ChannelsLast)
            && call.inputs.iter().flatten().all(|x| x.dtype() == DType::F32);
        let layout = if map { Layout::ChannelsLast } else { Layout::Plain };
        let (mut parts, mut total) = (Vec::with_capacity(call.inputs.len()), 0usize);
        for i in 0..call.inputs.len() {
            let part = call.take(i)?;
            let alike = part.rank() == shape.len()
                && (0..shape.len()).all(|d| d == axis || part.shape()[d] == shape[d]);
            if !alike {
                return Err(Fault::Mismatch { left: shape, right: part.shape().to_vec(), verb: "join" });
            }
            let count = part.shape()[axis];
            total = total.checked_add(count).ok_or(Fault::Value("too many elements".into()))?;
            parts.push((count, Some(part.in_layout(layout, call.room)?)));
        }
        shape[axis] = total;
        let y = join(&shape, axis, &parts, call.room)?;
        let counts: Vec<usize> = parts.into_iter().map(|(count, _)| count).collect();
        Ok(Answer::one(y).with(call.wants_any(), move |back| {
            let Some(cotangent) = back.take(0) else { return Ok(()) };
            let mut first = 0;
            for (i, &count) in counts.iter().enumerate() {
                if back.wants(i) {
                    let part = cut(&cotangent, axis, first, count, back.room())?;
                    back.give(i, part)?;
                }
                first += count;
            }
            Ok(())
        }))
    }
}

/// Cuts its input along an axis.
#[derive(Debug)]
struct Split {
    axis: i64,
    sizes: Option<Vec<i64>>,
    count: Option<i64>,
}

fn split(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let attributes = definition.attributes;
    Ok(Box::new(Split {
        axis: attributes.int("axis")?.unwrap_or(0),
        sizes: attributes.ints("split")?,
        count: attributes.int("num_outputs")?,
    }))
}

impl Split {
    /// How many indices each output gets of `along`.
    fn counts(&self, call: &Call<'_>, along: usize) -> Result<Vec<usize>, Fault> {
        let given = match call.optional(1) {
            Some(_) => Some(call.integers(1)?),
            None => self.sizes.clone(),
        };
        if let Some(sizes) = given {
            let counts: Option<Vec<usize>> = sizes.iter().map(|&size| usize::try_from(size).ok()).collect();
            let total =
                counts.as_ref().and_then(|c| c.iter().try_fold(0usize, |sum, &size| sum.checked_add(size)));
            return match (counts, total) {
                (Some(counts), Some(total)) if total == along => Ok(counts),
                _ => Err(Fault::Value(format!("parts {sizes:?} do not make up {along}"))),
            };
        }
        let count = self.count.map_or(call.outputs as i64, |count| count);
        if count != call.outputs as i64 || count < 1 {
            return Err(Fault::Value(format!("{count} parts for {} outputs", call.outputs)));
        }
        let each = along.div_ceil(call.outputs);
        if self.count.is_none() && each * call.outputs != along {
            return Err(Fault::Value(format!("{along} indices do not make {count} equal parts")));
        }
        let part = |i: usize| (each * (i + 1)).min(along) - (each * i).min(along);
        Ok((0..call.outputs).map(part).collect())
    }
}

impl Operator for Split {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let axis = axis_of(self.axis, x.rank())?;
        let counts = self.counts(&call, x.shape()[axis])?;
        let mut outputs = Vec::with_capacity(counts.len());
        let mut first = 0;
        for &count in &counts {
            outputs.push(cut(x, axis, first, count, call.room)?);
            first += count;
        }
        let shape = x.shape().to_vec();
        Ok(Answer::new(outputs).with(call.wants(0), move |back| {
            let parts: Vec<_> = counts.iter().enumerate().map(|(i, &count)| (count, back.take(i))).collect();
            let whole = join(&shape, axis, &parts, back.room())?;
            back.give(0, whole)
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
    fn joining_and_cutting_undo_each_other() {
        let mut numbers = Numbers::new(5);
        for (shape, axis) in [(&[2, 5, 3, 4][..], 1i64), (&[2, 5, 3, 4], 3), (&[7], 0), (&[2, 3, 6], -1)] {
            let x = numbers.tensor(shape, -1.0, 1.0);
            let along = shape[axis.rem_euclid(shape.len() as i64) as usize] as i64;
            let sizes = Tensor::new(&[3], vec![1, along - 2, 1i64]);
            let axis = [("axis", Attribute::Int(axis))];
            let cutter: Arc<dyn Operator> = build("Split", 13, &axis, 2).into();
            let parts = outputs(&cutter, &[Some(x.clone()), Some(sizes)], 3);
            let joiner: Arc<dyn Operator> = build("Concat", 13, &axis, 3).into();
            let joined = outputs(&joiner, &parts.into_iter().map(Some).collect::<Vec<_>>(), 1);
            assert_eq!(joined[0].values::<f64>(), x.values::<f64>());
        }
    }

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(6);
        for axis in [0, 1, 2, 3] {
            let attribute = [("axis", Attribute::Int(axis))];
            let parts: Vec<_> = (1..4)
                .map(|count| {
                    let mut shape = [2, 9, 3, 2];
                    shape[axis as usize] = count;
                    Some(numbers.tensor(&shape, -1.0, 1.0))
                })
                .collect();
            prove_gradient(build("Concat", 13, &attribute, 3), &parts, 1, 1e-6);
            let whole = Some(numbers.tensor(&[4, 10, 6, 8], -1.0, 1.0));
            prove_gradient(build("Split", 11, &attribute, 1), &[whole], 2, 1e-6);
        }
    }
}
