//! Softmax, LogSoftmax and Hardmax along an axis.
//!
//! `y = exp(x - max) / sum`, pulled back as `y (g - <g, y>)`; the logarithm as `g - exp(y) <g, 1>`. The tape is the output. Before
//! opset 13 the dimensions from the axis on count as one. The axis is contiguous in plain tensors when it is the last, and channels
//! last when it is the channels; other axes go through folds.

use evenkeel_kernels::formula::wide;
use evenkeel_kernels::layout::stride;
use evenkeel_kernels::parallel;

use super::broadcast::{binary, combine};
use super::fold::{Fold, axis_of, fold, sum};
use super::lanes::{max_of, sum_of, sum_of_pairs};
use super::number::{Float, for_float};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::{Layout, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("Softmax", true, |d| build(d, Kind::Softmax)),
    entry("LogSoftmax", true, |d| build(d, Kind::LogSoftmax)),
    entry("Hardmax", false, |d| build(d, Kind::Hardmax)),
];

/// Elements below which splitting costs more than it gains.
const GRAIN: usize = 1 << 13;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Softmax,
    LogSoftmax,
    Hardmax,
}

#[derive(Clone, Copy, Debug)]
struct Softmax {
    kind: Kind,
    axis: i64,
    /// Whether the axis and all after it count as one.
    flattens: bool,
}

fn build(definition: &Definition<'_>, kind: Kind) -> Result<Box<dyn Operator>, Fault> {
    let flattens = definition.opset < 13;
    let axis = definition.attributes.int("axis")?.unwrap_or(if flattens { 1 } else { -1 });
    Ok(Box::new(Softmax { kind, axis, flattens }))
}

impl Operator for Softmax {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn passes_gradient(&self, _: usize) -> bool {
        self.kind != Kind::Hardmax
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let wanted = call.wants_any();
        let x = call.take(0)?;
        for_float!(x, 0, T => self.forward::<T>(x, wanted, call.room))
    }
}

/// Rows along which to normalise: their length, and how far apart they begin.
#[derive(Clone, Copy, Debug)]
struct Rows {
    len: usize,
    pitch: usize,
}

impl Rows {
    fn each<T: Float>(self, out: &mut [T], task: impl Fn(usize, &mut [T]) + Sync + Send) {
        if out.is_empty() {
            return;
        }
        parallel::rows(out, self.pitch, (GRAIN / self.pitch).max(1), |first, part| {
            for (i, row) in part.chunks_exact_mut(self.pitch).enumerate() {
                task((first + i) * self.pitch, &mut row[..self.len]);
            }
        });
    }
}

impl Softmax {
    fn forward<T: Float>(self, x: Tensor, wanted: bool, room: &Room) -> Result<Answer, Fault> {
        if x.rank() == 0 {
            let one = T::of(if self.kind == Kind::LogSoftmax { 0.0 } else { 1.0 });
            return Ok(Answer::one(Tensor::scalar(one)));
        }
        let axis = axis_of(self.axis, x.rank())?;
        let shape = x.shape().to_vec();
        let rest: usize = if x.is_empty() { 1 } else { shape[axis + 1..].iter().product() };
        let channels_last = x.layout() == Layout::ChannelsLast;
        let rows = if channels_last && axis == 1 && (!self.flattens || rest == 1) {
            Some(Rows { len: shape[1], pitch: stride(shape[1]) })
        } else if self.flattens || rest == 1 {
            let len = if self.flattens && !x.is_empty() { shape[axis] * rest } else { shape[axis] };
            Some(Rows { len, pitch: len })
        } else {
            None
        };
        let x = if channels_last && rows.is_none_or(|rows| rows.pitch == rows.len && axis != 1) {
            x.to_plain(room)?
        } else {
            x
        };
        let x = if channels_last && self.flattens && rest != 1 { x.to_plain(room)? } else { x };
        match rows {
            Some(rows) => self.along_rows::<T>(x, rows, wanted, room),
            None => self.along_axis::<T>(x, axis, wanted, room),
        }
    }

    fn along_rows<T: Float>(self, x: Tensor, rows: Rows, wanted: bool, room: &Room) -> Result<Answer, Fault> {
        let mut y = if x.is_shared() { x.copied(room)? } else { x };
        let kind = self.kind;
        if let Some(values) = y.values_mut::<T>() {
            rows.each(values, |_, row| normalise(kind, row));
        }
        let kept = wanted.then(|| y.clone());
        Ok(Answer::one(y).with(wanted && kind != Kind::Hardmax, move |back| {
            let (Some(g), Some(y)) = (back.take(0), &kept) else { return Ok(()) };
            let mut g = if g.is_shared() { g.copied(back.room())? } else { g };
            let values: &[T] = super::values_of(y, 0)?;
            if let Some(g) = g.values_mut::<T>() {
                rows.each(g, |at, row| pull(kind, row, &values[at..]));
            }
            back.give(0, g)
        }))
    }

    fn along_axis<T: Float>(
        self,
        x: Tensor,
        axis: usize,
        wanted: bool,
        room: &Room,
    ) -> Result<Answer, Fault> {
        let axes = [axis];
        let max = Fold { start: T::LOWEST, step: |m: T, x: T, _| m.larger(x), end: |m: T, _| m };
        let largest = fold(&x, &axes, room, &max)?;
        if self.kind == Kind::Hardmax {
            return Ok(Answer::one(first_hits::<T>(&x, &largest, axis, room)?));
        }
        let y = if self.kind == Kind::LogSoftmax {
            let x = combine(
                x,
                largest,
                room,
                #[inline(always)]
                |x: T, m: T| x - m,
            )?;
            let exps = |s: f64, x: T, _| s + x.exp().wide();
            let logs =
                fold(&x, &axes, room, &Fold { start: 0.0, step: exps, end: |s: f64, _| T::of(s.ln()) })?;
            combine(
                x,
                logs,
                room,
                #[inline(always)]
                |x: T, l: T| x - l,
            )?
        } else {
            let e = combine(
                x,
                largest,
                room,
                #[inline(always)]
                |x: T, m: T| (x - m).exp(),
            )?;
            let sums = sum::<T>(&e, &axes, room)?;
            combine(
                e,
                sums,
                room,
                #[inline(always)]
                |e: T, s: T| e / s,
            )?
        };
        let kept = wanted.then(|| y.clone());
        let logarithm = self.kind == Kind::LogSoftmax;
        Ok(Answer::one(y).with(wanted, move |back| {
            let (Some(g), Some(y)) = (back.take(0), &kept) else { return Ok(()) };
            let g = if logarithm {
                let sums = sum::<T>(&g, &axes, back.room())?;
                let part = binary(
                    y,
                    &sums,
                    back.room(),
                    #[inline(always)]
                    |y: T, s: T| y.exp() * s,
                )?;
                combine(
                    g,
                    part,
                    back.room(),
                    #[inline(always)]
                    |g: T, p: T| g - p,
                )?
            } else {
                let gy = binary(
                    &g,
                    y,
                    back.room(),
                    #[inline(always)]
                    |g: T, y: T| g * y,
                )?;
                let sums = sum::<T>(&gy, &axes, back.room())?;
                let part = binary(
                    y,
                    &sums,
                    back.room(),
                    #[inline(always)]
                    |y: T, s: T| y * s,
                )?;
                combine(
                    gy,
                    part,
                    back.room(),
                    #[inline(always)]
                    |gy: T, p: T| gy - p,
                )?
            };
            back.give(0, g)
        }))
    }
}

fn normalise<T: Float>(kind: Kind, row: &mut [T]) {
    let largest = max_of(row);
    match kind {
        Kind::Softmax => {
            wide(
                #[inline(always)]
                || row.iter_mut().for_each(|x| *x = (*x - largest).exp()),
            );
            let scale = T::of(1.0)
                / sum_of(
                    row,
                    #[inline(always)]
                    |e| e,
                );
            wide(
                #[inline(always)]
                || row.iter_mut().for_each(|e| *e = *e * scale),
            );
        }
        Kind::LogSoftmax => {
            let log = sum_of(
                row,
                #[inline(always)]
                |x| (x - largest).exp(),
            )
            .ln();
            row.iter_mut().for_each(|x| *x = *x - largest - log);
        }
        Kind::Hardmax => {
            let hit = row.iter().position(|&x| x == largest);
            row.iter_mut().enumerate().for_each(|(i, x)| *x = T::of(if Some(i) == hit { 1.0 } else { 0.0 }));
        }
    }
}

fn pull<T: Float>(kind: Kind, g: &mut [T], y: &[T]) {
    let y = &y[..g.len()];
    if kind == Kind::LogSoftmax {
        let sum = sum_of(
            g,
            #[inline(always)]
            |g| g,
        );
        wide(
            #[inline(always)]
            || g.iter_mut().zip(y).for_each(|(g, &y)| *g = *g - y.exp() * sum),
        );
    } else {
        let dot = sum_of_pairs(
            g,
            y,
            #[inline(always)]
            |g, y| g * y,
        );
        wide(
            #[inline(always)]
            || g.iter_mut().zip(y).for_each(|(g, &y)| *g = y * (*g - dot)),
        );
    }
}

/// One where the axis first reaches its maximum, zero elsewhere. Both tensors are read plain.
fn first_hits<T: Float>(x: &Tensor, largest: &Tensor, axis: usize, room: &Room) -> Result<Tensor, Fault> {
    let x = x.to_plain(room)?;
    let (values, most): (&[T], &[T]) = (super::values_of(&x, 0)?, super::values_of(largest, 0)?);
    let (size, rest) = (x.shape()[axis], x.shape()[axis + 1..].iter().product::<usize>());
    room.tensor(x.shape(), |out| {
        out.fill(T::of(0.0));
        for (column, &most) in most.iter().enumerate() {
            let start = column / rest * size * rest + column % rest;
            if let Some(i) = (0..size).find(|i| values[start + i * rest] == most) {
                out[start + i * rest] = T::of(1.0);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::proof::{Numbers, build, outputs, prove_gradient, prove_layouts};
    use crate::tensor::Tensor;

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(11);
        for name in ["Softmax", "LogSoftmax"] {
            for (shape, axes) in [(&[2, 5, 3, 2][..], -4..4), (&[11], -1..1), (&[2, 9], -2..2)] {
                for axis in axes {
                    let x = [Some(numbers.tensor(shape, -2.0, 2.0))];
                    for opset in [11, 13] {
                        let attributes = [("axis", Attribute::Int(axis))];
                        prove_gradient(build(name, opset, &attributes, 1), &x, 1, 2e-5);
                        prove_layouts(build(name, opset, &attributes, 1), &x);
                    }
                }
            }
        }
    }

    #[test]
    fn large_values_do_not_overflow_and_the_first_maximum_wins() {
        let x = Tensor::new(&[2, 3], vec![1000.0f32, 1000.0, -1000.0, 0.0, 3.0, 3.0]);
        let of = |name, axis| {
            let attributes = [("axis", Attribute::Int(axis))];
            outputs(&build(name, 13, &attributes, 1).into(), &[Some(x.clone())], 1).remove(0)
        };
        assert_eq!(of("Softmax", 1).values::<f32>().unwrap()[..3], [0.5, 0.5, 0.0]);
        assert_eq!(of("Hardmax", 1).values::<f32>().unwrap(), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(of("Hardmax", 0).values::<f32>().unwrap(), [1.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    }
}
