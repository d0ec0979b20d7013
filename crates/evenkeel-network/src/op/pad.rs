//! Pad: a border of a constant, of mirrored, of nearest or of wrapped-around values. Negative pads cut off.
//!
//! Along each axis, output index `o` reads source index `map(o)` or, in the border of a constant, nothing. Axes that stay as they are
//! at the end are copied in one block. A channels-last map stays so unless its channels are padded.

use evenkeel_kernels::parallel;

use super::concat::storage_axis;
use super::registry::{Entry, entry};
use super::strided::{GRAIN, Real, axis_of, for_real, row_strides};
use super::{Answer, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::for_type;
use crate::tensor::{Element, Layout, Room, Store, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("Pad", true, pad)];

/// The longest axis that is padded or passed by.
const LONGEST: usize = 1 << 22;

/// What the border holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Border {
    Constant,
    Reflect,
    Edge,
    Wrap,
}

impl Border {
    /// The source index that output index `o` reads, `before` being the pad in front.
    fn source(self, o: i64, before: i64, size: i64) -> Option<usize> {
        let i = o.saturating_sub(before);
        let inside = match self {
            _ if (0..size).contains(&i) => Some(i),
            _ if size == 0 => None,
            Border::Constant => None,
            Border::Edge => Some(i.clamp(0, size - 1)),
            Border::Wrap => Some(i.rem_euclid(size)),
            Border::Reflect if size == 1 => Some(0),
            Border::Reflect => {
                let period = 2 * (size - 1);
                let i = i.rem_euclid(period);
                Some(i.min(period - i))
            }
        };
        inside.map(|i| i as usize)
    }
}

/// What an old file gives as attributes and a newer one as inputs.
#[derive(Debug)]
struct Pad {
    border: Border,
    pads: Option<Vec<i64>>,
    value: f32,
}

fn pad(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let attributes = definition.attributes;
    let mode = attributes.text("mode")?.unwrap_or_else(|| "constant".into());
    let border = match &*mode {
        "constant" => Border::Constant,
        "reflect" => Border::Reflect,
        "edge" => Border::Edge,
        "wrap" => Border::Wrap,
        _ => return Err(Fault::Attribute { name: "mode".into(), problem: format!("{mode:?} is unknown") }),
    };
    let value = attributes.float("value")?.unwrap_or(0.0);
    Ok(Box::new(Pad { border, pads: attributes.ints("pads")?, value }))
}

/// For each index of each axis of the output, the source index it reads.
pub(super) struct Pattern {
    /// Leading axes: elements of the source to skip for each index; `None` where nothing is read.
    lists: Vec<Vec<Option<usize>>>,
    /// The trailing axes that are copied whole.
    block: usize,
}

impl Pattern {
    pub(super) fn new(source: &[usize], lists: Vec<Vec<Option<usize>>>) -> Pattern {
        let whole = |axis: usize| {
            lists[axis].len() == source[axis] && lists[axis].iter().enumerate().all(|(i, s)| *s == Some(i))
        };
        let kept = (0..source.len()).rev().find(|&axis| !whole(axis)).map_or(0, |axis| axis + 1);
        let block = source[kept..].iter().product();
        let strides = row_strides(source);
        let skip = |(axis, list): (usize, &Vec<Option<usize>>)| {
            list.iter().map(|at| at.map(|i| i * strides[axis])).collect()
        };
        Pattern { lists: lists[..kept].iter().enumerate().map(skip).collect(), block }
    }

    /// Where block `i` of the output is read.
    fn source(&self, mut i: usize) -> Option<usize> {
        let mut at = 0;
        for list in self.lists.iter().rev() {
            at += list[i % list.len()]?;
            i /= list.len();
        }
        Some(at)
    }

    pub(super) fn copy<T: Element>(&self, source: &[T], value: T, out: &mut [T]) {
        let block = self.block;
        if out.is_empty() {
            return;
        }
        parallel::rows(out, block, (GRAIN / block).max(1), |first, part| {
            for (i, out) in part.chunks_exact_mut(block).enumerate() {
                match self.source(first + i) {
                    Some(at) => out.copy_from_slice(&source[at..at + block]),
                    None => out.fill(value),
                }
            }
        });
    }

    fn add_back<T: Real>(&self, cotangents: &[T], target: &mut [T]) {
        if cotangents.is_empty() {
            return;
        }
        for (i, row) in cotangents.chunks_exact(self.block).enumerate() {
            if let Some(at) = self.source(i) {
                target[at..at + self.block].iter_mut().zip(row).for_each(|(t, &g)| *t += g);
            }
        }
    }

    fn pull(&self, cotangent: &Tensor, shape: &[usize], room: &Room) -> Result<Tensor, Fault> {
        for_real!(cotangent, values => room.tensor(shape, |out| {
            out.fill(Default::default());
            self.add_back(values, out);
        }))
    }
}

impl Pad {
    /// The pads before and after each axis.
    fn pads(&self, call: &Call<'_>, rank: usize) -> Result<Vec<(i64, i64)>, Fault> {
        let given = match &self.pads {
            Some(pads) => pads.clone(),
            None => call.integers(1)?,
        };
        let axes = match call.optional(3) {
            Some(_) => call.integers(3)?,
            None => (0..rank as i64).collect(),
        };
        if given.len() != 2 * axes.len() {
            return Err(Fault::Value(format!("{} pads for {} axes", given.len(), axes.len())));
        }
        let mut pads = vec![(0, 0); rank];
        for (i, &axis) in axes.iter().enumerate() {
            pads[axis_of(axis, rank)?] = (given[i], given[i + axes.len()]);
        }
        Ok(pads)
    }

    /// The shape of the output, checked.
    fn shape(&self, old: &[usize], pads: &[(i64, i64)], room: &Room) -> Result<Vec<usize>, Fault> {
        let mut shape = Vec::with_capacity(old.len());
        for (&size, &(before, after)) in old.iter().zip(pads) {
            let padded = (size as i64).checked_add(before).and_then(|sum| sum.checked_add(after));
            let Some(padded) = padded.filter(|&padded| padded >= 0) else {
                return Err(Fault::Value(format!("pads {before} and {after} do not fit {size}")));
            };
            if size == 0 && padded > 0 && self.border != Border::Constant {
                return Err(Fault::Value("nothing to mirror or repeat".into()));
            }
            shape.push(padded as usize);
        }
        if let Some(&longest) = shape.iter().max().filter(|&&longest| longest > LONGEST) {
            let asked = i64::try_from(longest).unwrap_or(i64::MAX);
            return Err(Fault::Work { what: "indices along an axis", asked, limit: LONGEST as i64 });
        }
        room.len_of(&shape)?;
        Ok(shape)
    }

    fn value<T: Element>(&self, call: &Call<'_>, _: &Store<T>, old: bool) -> Result<T, Fault> {
        match call.optional(2) {
            Some(given) if !old => {
                let value = given.values::<T>().and_then(|v| v.first().copied());
                value.ok_or(Fault::Type { input: 2, expected: "the type of the data", got: given.dtype() })
            }
            _ => {
                let mut made = Tensor::scalar(T::default());
                if let Some(values) = made.values_mut::<f32>() {
                    values[0] = self.value;
                } else if let Some(values) = made.values_mut::<f64>() {
                    values[0] = self.value.into();
                }
                Ok(made.values::<T>().map_or(T::default(), |v| v[0]))
            }
        }
    }
}

impl Operator for Pad {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let given = call.input(0)?;
        let pads = self.pads(&call, given.rank())?;
        let shape = self.shape(given.shape(), &pads, call.room)?;
        let map = given.layout() == Layout::ChannelsLast && pads[1] == (0, 0);
        let x = if map { given.storage() } else { given.to_plain(call.room)? };
        let (mut sizes, mut before) = (x.shape().to_vec(), vec![0; x.rank()]);
        for axis in 0..x.rank() {
            if let Some(at) = if map { storage_axis(axis) } else { Some(axis) } {
                (sizes[at], before[at]) = (shape[axis], pads[axis].0);
            }
        }
        let count = call.room.len_of(&sizes)?;
        let old = x.shape().to_vec();
        let list = |axis: usize| -> Vec<Option<usize>> {
            let size = old[axis] as i64;
            (0..sizes[axis] as i64).map(|o| self.border.source(o, before[axis], size)).collect()
        };
        // An empty output may still have one enormous side, which is not worth listing.
        let lists = || match count {
            0 => vec![Vec::new(); old.len()],
            _ => (0..old.len()).map(list).collect(),
        };
        let (y, pattern) = for_type!(x.data(), values => {
            let value = self.value(&call, values, self.pads.is_some())?;
            let mut out = call.room.take(count)?;
            let pattern = Pattern::new(&old, lists());
            if count > 0 {
                pattern.copy(values, value, &mut out);
            }
            (Tensor::new(&sizes, out), pattern)
        });
        let channels = map.then(|| given.shape()[1]);
        let y = match channels {
            Some(channels) => y.as_map_of(channels)?,
            None => y,
        };
        Ok(Answer::one(y).with(call.wants(0), move |back| {
            let Some(cotangent) = back.take(0) else { return Ok(()) };
            let grad = pattern.pull(&cotangent.storage(), &old, back.room())?;
            back.give(
                0,
                match channels {
                    Some(channels) => grad.as_map_of(channels)?,
                    None => grad,
                },
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::proof::{Numbers, build, outputs, prove_gradient};
    use super::super::{Attribute, Operator};
    use crate::tensor::Tensor;

    fn ints(values: &[i64]) -> Option<Tensor> {
        Some(Tensor::new(&[values.len()], values.to_vec()))
    }

    #[test]
    fn borders_hold_what_they_should() {
        let x = Some(Tensor::new(&[3], vec![1i32, 2, 3]));
        let padded = |mode: &str, pads: &[i64], value| {
            let op: Arc<dyn Operator> = build("Pad", 13, &[("mode", Attribute::Text(mode.into()))], 3).into();
            outputs(&op, &[x.clone(), ints(pads), value], 1)[0].values::<i32>().map(<[i32]>::to_vec)
        };
        let nine = Some(Tensor::scalar(9i32));
        assert_eq!(padded("constant", &[1, 2], nine), Some(vec![9, 1, 2, 3, 9, 9]));
        assert_eq!(padded("constant", &[-1, 1], None), Some(vec![2, 3, 0]));
        assert_eq!(padded("edge", &[2, 1], None), Some(vec![1, 1, 1, 2, 3, 3]));
        assert_eq!(padded("reflect", &[2, 2], None), Some(vec![3, 2, 1, 2, 3, 2, 1]));
        assert_eq!(padded("wrap", &[4, 1], None), Some(vec![3, 1, 2, 3, 1, 2, 3, 1]));
        assert_eq!(padded("wrap", &[-1, 2], None), Some(vec![2, 3, 1, 2]));
    }

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(12);
        for mode in ["constant", "reflect", "edge", "wrap"] {
            for pads in [[0, 0, 1, 2, 0, 0, 2, -1], [0, 2, 1, 0, 1, 1, 1, 0]] {
                let x = Some(numbers.tensor(&[2, 3, 4, 3], -1.0, 1.0));
                let op = build("Pad", 18, &[("mode", Attribute::Text(mode.into()))], 2);
                prove_gradient(op, &[x, ints(&pads)], 1, 1e-5);
            }
        }
    }
}
