//! ArgMax and ArgMin: where along an axis the extreme lies, as i64. No gradient passes.
//!
//! Ties go to the first, or to the last if the file asks for it. A NaN is the extreme of floats.

use evenkeel_kernels::layout::stride;
use evenkeel_kernels::parallel;

use super::fold::{axis_of, folded_shape};
use super::number::{Number, for_number};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Layouts, Operator, values_of};
use crate::error::Fault;
use crate::tensor::{Layout, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] =
    &[entry("ArgMax", false, |d| build(d, true)), entry("ArgMin", false, |d| build(d, false))];

/// Elements below which splitting costs more than it gains.
const GRAIN: usize = 1 << 14;

#[derive(Clone, Copy, Debug)]
struct Arg {
    most: bool,
    axis: i64,
    keep: bool,
    last: bool,
}

fn build(definition: &Definition<'_>, most: bool) -> Result<Box<dyn Operator>, Fault> {
    let attributes = definition.attributes;
    Ok(Box::new(Arg {
        most,
        axis: attributes.int("axis")?.unwrap_or(0),
        keep: attributes.flag("keepdims", true)?,
        last: attributes.flag("select_last_index", false)?,
    }))
}

impl Operator for Arg {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn passes_gradient(&self, _: usize) -> bool {
        false
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        for_number!(x, 0, T => self.indices::<T>(x, call.room)).map(Answer::one)
    }
}

impl Arg {
    fn indices<T: Number>(&self, x: &Tensor, room: &Room) -> Result<Tensor, Fault> {
        let axis = axis_of(self.axis, x.rank())?;
        let shape = folded_shape(x.shape(), &[axis], self.keep);
        let size = x.shape()[axis];
        if size == 0 {
            return Err(Fault::Shape {
                input: 0,
                expected: "something to choose from".into(),
                got: x.shape().to_vec(),
            });
        }
        let along_channels = x.layout() == Layout::ChannelsLast && axis == 1;
        let x = if along_channels { x.clone() } else { x.to_plain(room)? };
        let values: &[T] = values_of(&x, 0)?;
        let rest: usize =
            if x.is_empty() || along_channels { 1 } else { x.shape()[axis + 1..].iter().product() };
        let pitch = if along_channels { stride(size) } else { size * rest };
        room.tensor(&shape, |out| {
            if out.is_empty() {
                return;
            }
            parallel::rows(out, 1, (GRAIN / size).max(1), |first, part| {
                for (i, out) in part.iter_mut().enumerate() {
                    let start = (first + i) / rest * pitch + (first + i) % rest;
                    *out = self.position(size, |k| values[start + k * rest]) as i64;
                }
            });
        })
    }

    fn position<T: Number>(&self, size: usize, at: impl Fn(usize) -> T) -> usize {
        let (mut best, mut index) = (at(0), 0);
        for k in 1..size {
            let value = at(k);
            let nan = value.partial_cmp(&value).is_none();
            let held = best.partial_cmp(&best).is_none();
            let better = if self.most { value > best } else { value < best };
            if (!held && (better || nan)) || (self.last && (value == best || (nan && held))) {
                (best, index) = (value, k);
            }
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::Call;
    use super::super::proof::{Numbers, build, narrow, outputs, room};
    use crate::tensor::Tensor;

    #[test]
    fn ties_and_axes() {
        let x = Tensor::new(&[2, 3], vec![2.0f32, 7.0, 7.0, -1.0, -1.0, 4.0]);
        let of = |name, axis, last| {
            let attributes = [("axis", Attribute::Int(axis)), ("select_last_index", Attribute::Int(last))];
            let y = outputs(&build(name, 13, &attributes, 1).into(), &[Some(x.clone())], 1).remove(0);
            y.values::<i64>().unwrap().to_vec()
        };
        assert_eq!(of("ArgMax", 1, 0), [1, 2]);
        assert_eq!(of("ArgMax", -1, 1), [2, 2]);
        assert_eq!(of("ArgMin", 1, 0), [0, 0]);
        assert_eq!(of("ArgMin", 1, 1), [0, 1]);
        assert_eq!(of("ArgMax", 0, 0), [0, 0, 0]);
    }

    #[test]
    fn layouts_agree() {
        let room = room();
        let x = narrow(&Numbers::new(91).tensor(&[2, 11, 3, 4], -1.0, 1.0));
        for axis in 0..4 {
            let run = |x: Tensor| {
                let op = build("ArgMax", 13, &[("axis", Attribute::Int(axis))], 1);
                let call = Call { inputs: vec![Some(x)], wants: &[false], outputs: 1, room: &room };
                op.apply(call).unwrap().outputs.remove(0).values::<i64>().unwrap().to_vec()
            };
            assert_eq!(run(x.clone()), run(x.to_channels_last(&room).unwrap()));
        }
    }
}
