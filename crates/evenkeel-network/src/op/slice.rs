//! Slice: every `step`-th index from `start` to `end` along some axes.
//!
//! A channels-last map stays so unless its channels are cut in steps. The tape holds the reading pattern only.

use super::concat::{cut, storage_axis};
use super::registry::{Entry, entry};
use super::strided::{Strided, axis_of, row_strides};
use super::{Answer, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::{Layout, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("Slice", true, slice)];

/// What an old file gives as attributes and a newer one as inputs.
#[derive(Debug)]
struct Slice {
    fixed: Option<Bounds>,
}

#[derive(Clone, Debug)]
struct Bounds {
    starts: Vec<i64>,
    ends: Vec<i64>,
    axes: Option<Vec<i64>>,
    steps: Option<Vec<i64>>,
}

fn slice(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    if definition.opset >= 10 {
        return Ok(Box::new(Slice { fixed: None }));
    }
    let attributes = definition.attributes;
    let required = |name: &str| {
        let missing = || Fault::Attribute { name: name.into(), problem: "is missing".into() };
        attributes.ints(name)?.ok_or_else(missing)
    };
    let bounds = Bounds {
        starts: required("starts")?,
        ends: required("ends")?,
        axes: attributes.ints("axes")?,
        steps: None,
    };
    Ok(Box::new(Slice { fixed: Some(bounds) }))
}

/// The indices taken along one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    first: usize,
    count: usize,
    step: isize,
}

impl Run {
    fn whole(size: usize) -> Run {
        Run { first: 0, count: size, step: 1 }
    }

    fn new(size: usize, start: i64, end: i64, step: i64) -> Result<Run, Fault> {
        if step == 0 {
            return Err(Fault::Value("a slice cannot have step 0".into()));
        }
        let wide = size as i128;
        let from_front = |index: i64| i128::from(index) + if index < 0 { wide } else { 0 };
        let (low, high) = if step > 0 { (0, wide) } else { (-1, wide - 1) };
        let start = from_front(start).clamp(low.max(0).min(high.max(0)), high.max(0));
        let end = from_front(end).clamp(low, high.max(low));
        let span = if step > 0 { end - start } else { start - end };
        let stride = i128::from(step).abs();
        let count = if size == 0 { 0 } else { ((span.max(0) + stride - 1) / stride) as usize };
        let step = isize::try_from(step).unwrap_or(if step > 0 { isize::MAX } else { -isize::MAX });
        Ok(Run { first: if count == 0 { 0 } else { start as usize }, count, step })
    }
}

fn bounds(call: &Call<'_>) -> Result<Bounds, Fault> {
    let optional = |i: usize| call.optional(i).map(|_| call.integers(i)).transpose();
    Ok(Bounds { starts: call.integers(1)?, ends: call.integers(2)?, axes: optional(3)?, steps: optional(4)? })
}

fn runs(bounds: &Bounds, shape: &[usize]) -> Result<Vec<Run>, Fault> {
    let count = bounds.starts.len();
    let axes = bounds.axes.clone().unwrap_or_else(|| (0..count as i64).collect());
    let steps = bounds.steps.clone().unwrap_or_else(|| vec![1; count]);
    if bounds.ends.len() != count || axes.len() != count || steps.len() != count {
        return Err(Fault::Value("starts, ends, axes and steps differ in length".into()));
    }
    let mut runs: Vec<Run> = shape.iter().map(|&size| Run::whole(size)).collect();
    let mut named = vec![false; shape.len()];
    for i in 0..count {
        let axis = axis_of(axes[i], shape.len())?;
        if std::mem::replace(&mut named[axis], true) {
            return Err(Fault::Value(format!("axis {axis} is sliced twice")));
        }
        runs[axis] = Run::new(shape[axis], bounds.starts[i], bounds.ends[i], steps[i])?;
    }
    Ok(runs)
}

fn pattern(runs: &[Run], shape: &[usize]) -> (Strided, Vec<usize>) {
    let strides = row_strides(shape);
    let sizes: Vec<usize> = runs.iter().map(|run| run.count).collect();
    let steps: Vec<isize> =
        runs.iter().zip(&strides).map(|(run, &s)| run.step.saturating_mul(s as isize)).collect();
    let empty = sizes.contains(&0);
    let offset = if empty { 0 } else { runs.iter().zip(&strides).map(|(run, &s)| run.first * s).sum() };
    (Strided::new(&sizes, &steps, offset), sizes)
}

/// Reads a plain tensor.
fn read(x: &Tensor, runs: &[Run], room: &Room) -> Result<Tensor, Fault> {
    let (pattern, sizes) = pattern(runs, x.shape());
    pattern.read(x, &sizes, room)
}

/// The runs along the axes of a channels-last map's storage of this shape.
fn stored(runs: &[Run], storage: &[usize]) -> Vec<Run> {
    let mut moved: Vec<Run> = storage.iter().map(|&size| Run::whole(size)).collect();
    for (axis, &run) in runs.iter().enumerate() {
        if let Some(axis) = storage_axis(axis) {
            moved[axis] = run;
        }
    }
    moved
}

impl Operator for Slice {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let bounds = match &self.fixed {
            Some(bounds) => bounds.clone(),
            None => bounds(&call)?,
        };
        let wanted = call.wants(0);
        let x = call.take(0)?;
        let runs = runs(&bounds, x.shape())?;
        let shape = x.shape().to_vec();
        if runs.iter().zip(&shape).all(|(run, &size)| *run == Run::whole(size)) {
            return Ok(Answer::one(x).with(wanted, |back| match back.take(0) {
                Some(cotangent) => back.give(0, cotangent),
                None => Ok(()),
            }));
        }
        let y = match x.layout() {
            Layout::Plain => read(&x, &runs, call.room)?,
            Layout::ChannelsLast if runs[1].step != 1 => {
                // Channels in steps: the plain copy is read instead.
                let x = x.to_plain(call.room)?;
                read(&x, &runs, call.room)?
            }
            Layout::ChannelsLast => {
                let stored_x = x.storage();
                let kept = stored(&runs, stored_x.shape());
                let spatial = if kept.iter().zip(stored_x.shape()).all(|(r, &size)| *r == Run::whole(size)) {
                    x.clone()
                } else {
                    read(&stored_x, &kept, call.room)?.as_map_of(shape[1])?
                };
                match runs[1] {
                    whole if whole == Run::whole(shape[1]) => spatial,
                    run => cut(&spatial, 1, run.first, run.count, call.room)?,
                }
            }
        };
        Ok(Answer::one(y).with(wanted, move |back| {
            let Some(cotangent) = back.take(0) else { return Ok(()) };
            let grad = pull(&cotangent, &runs, &shape, back.room())?;
            back.give(0, grad)
        }))
    }
}

/// The gradient of the input, of this shape, in the layout of the cotangent.
fn pull(cotangent: &Tensor, runs: &[Run], shape: &[usize], room: &Room) -> Result<Tensor, Fault> {
    if let (Layout::ChannelsLast, &[n, c, h, w]) = (cotangent.layout(), shape)
        && runs[1] == Run::whole(c)
    {
        let storage = cotangent.storage();
        let shape = [n, h, w, storage.shape()[3]];
        return pattern(&stored(runs, &shape), &shape).0.pull(&storage, &shape, room)?.as_map_of(c);
    }
    pattern(runs, shape).0.pull(&cotangent.to_plain(room)?, shape, room)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Operator;
    use super::super::proof::{Numbers, build, outputs, prove_gradient};
    use super::Run;
    use crate::tensor::Tensor;

    fn ints(values: &[i64]) -> Option<Tensor> {
        Some(Tensor::new(&[values.len()], values.to_vec()))
    }

    #[test]
    fn bounds_are_clamped_as_the_standard_says() {
        let run = |size, start, end, step| Run::new(size, start, end, step).map(|r| (r.first, r.count)).ok();
        assert_eq!(run(5, 1, 4, 2), Some((1, 2)));
        assert_eq!(run(5, -2, i64::MAX, 1), Some((3, 2)));
        assert_eq!(run(5, 100, i64::MIN, -1), Some((4, 5)));
        assert_eq!(run(5, 3, 3, 1), Some((0, 0)));
        assert_eq!(run(5, i64::MIN, i64::MAX, i64::MAX), Some((0, 1)));
        assert_eq!(run(5, 4, -6, i64::MIN), Some((4, 1)));
        assert_eq!(run(0, 0, 1, 1), Some((0, 0)));
        assert_eq!(run(0, -1, i64::MIN, -1), Some((0, 0)));
        assert_eq!(run(5, 0, 1, 0), None);
    }

    #[test]
    fn backwards_steps_reverse() {
        let op: Arc<dyn Operator> = build("Slice", 13, &[], 5).into();
        let x = Tensor::new(&[2, 3], vec![1i32, 2, 3, 4, 5, 6]);
        let y =
            outputs(&op, &[Some(x), ints(&[-1, 0]), ints(&[i64::MIN, 2]), ints(&[1, 0]), ints(&[-1, 1])], 1);
        assert_eq!(y[0].values::<i32>(), Some(&[3, 2, 1, 6, 5, 4][..]));
    }

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(7);
        let table: &[[&[i64]; 4]] = &[
            [&[1, 1], &[-1, 100], &[2, 3], &[1, 2]],
            [&[2], &[9], &[1], &[1]],
            [&[2, 0], &[9, 2], &[1, 3], &[1, 1]],
            [&[8, 4], &[0, 1], &[1, 2], &[-3, -1]],
            [&[0], &[0], &[0], &[1]],
        ];
        for &[starts, ends, axes, steps] in table {
            let x = Some(numbers.tensor(&[2, 10, 5, 4], -1.0, 1.0));
            let inputs = [x, ints(starts), ints(ends), ints(axes), ints(steps)];
            prove_gradient(build("Slice", 13, &[], 5), &inputs, 1, 1e-6);
        }
    }
}
