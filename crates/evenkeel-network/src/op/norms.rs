//! LpNormalization, MeanVarianceNormalization and LRN: norms put together from folds and broadcasts.
//!
//! Lp: `y = x / norm`, zero where the norm is zero. Mean-variance: `y = (x - mean) / (deviation + 1e-9)` over axes. LRN:
//! `y = x b^-beta` with `b = bias + alpha / size * (sum of squares of the channels around)`.

use evenkeel_kernels::layout::Extents;
use evenkeel_kernels::norm::{self, Lrn};

use super::broadcast::{binary, combine, map};
use super::fold::{Fold, axes_of, axis_of, fold, sum};
use super::number::{Float, for_float};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Layouts, Operator, values_of};
use crate::error::Fault;
use crate::tensor::{Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("LpNormalization", true, lp),
    entry("MeanVarianceNormalization", true, mean_variance),
    entry("LRN", true, lrn),
];

/// Division by the sum of magnitudes, or by the root of the sum of squares, along an axis.
#[derive(Clone, Copy, Debug)]
struct LpNormalization {
    axis: i64,
    squares: bool,
}

fn lp(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let axis = definition.attributes.int("axis")?.unwrap_or(-1);
    match definition.attributes.int("p")?.unwrap_or(2) {
        1 => Ok(Box::new(LpNormalization { axis, squares: false })),
        2 => Ok(Box::new(LpNormalization { axis, squares: true })),
        p => Err(Fault::Attribute { name: "p".into(), problem: format!("{p} is not 1 or 2") }),
    }
}

impl Operator for LpNormalization {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let wanted = call.wants_any();
        let x = call.take(0)?;
        for_float!(x, 0, T => self.forward::<T>(x, wanted, call.room))
    }
}

impl LpNormalization {
    fn forward<T: Float>(self, x: Tensor, wanted: bool, room: &Room) -> Result<Answer, Fault> {
        let axes = [axis_of(self.axis, x.rank())?];
        let squares = self.squares;
        let step = |s: f64, x: T, _| s + if squares { x.wide() * x.wide() } else { x.wide().abs() };
        let inverse = |s: f64, _| {
            let norm = if squares { s.sqrt() } else { s };
            T::of(if norm == 0.0 { 0.0 } else { 1.0 / norm })
        };
        let inverse = fold(&x, &axes, room, &Fold { start: 0.0, step, end: inverse })?;
        let kept = (wanted && !squares).then(|| x.clone());
        let y = combine(
            x,
            inverse.clone(),
            room,
            #[inline(always)]
            |x: T, i: T| x * i,
        )?;
        let output = wanted.then(|| y.clone());
        Ok(Answer::one(y).with(wanted, move |back| {
            let (Some(g), Some(y)) = (back.take(0), &output) else { return Ok(()) };
            let room = back.room();
            let gy = binary(
                &g,
                y,
                room,
                #[inline(always)]
                |g: T, y: T| g * y,
            )?;
            let dots = sum::<T>(&gy, &axes, room)?;
            let zero = T::of(0.0);
            let rest = match &kept {
                None => binary(
                    y,
                    &dots,
                    room,
                    #[inline(always)]
                    |y: T, dot: T| y * dot,
                )?,
                Some(x) => binary(x, &dots, room, |x: T, dot: T| {
                    if x > zero {
                        dot
                    } else if x < zero {
                        -dot
                    } else {
                        zero
                    }
                })?,
            };
            let g = combine(
                g,
                rest,
                room,
                #[inline(always)]
                |g: T, rest: T| g - rest,
            )?;
            let g = combine(
                g,
                inverse.clone(),
                room,
                #[inline(always)]
                |g: T, i: T| g * i,
            )?;
            back.give(0, g)
        }))
    }
}

/// Mean 0 and deviation 1 over axes.
#[derive(Clone, Debug)]
struct MeanVarianceNormalization {
    axes: Vec<i64>,
}

fn mean_variance(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let axes = definition.attributes.ints("axes")?.unwrap_or(vec![0, 2, 3]);
    Ok(Box::new(MeanVarianceNormalization { axes }))
}

impl Operator for MeanVarianceNormalization {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let wanted = call.wants_any();
        let x = call.take(0)?;
        let axes = axes_of(&self.axes, x.rank())?;
        for_float!(x, 0, T => standardise::<T>(x, axes, wanted, call.room))
    }
}

fn standardise<T: Float>(x: Tensor, axes: Vec<usize>, wanted: bool, room: &Room) -> Result<Answer, Fault> {
    let count: usize = axes.iter().map(|&axis| x.shape()[axis]).fold(1, usize::saturating_mul);
    let share = 1.0 / count as f64;
    let add = |s: f64, x: T, _: usize| s + x.wide();
    let mean =
        |x: &Tensor| fold(x, &axes, room, &Fold { start: 0.0, step: add, end: |s: f64, _| T::of(s * share) });
    let means = mean(&x)?;
    let centred = combine(
        x,
        means,
        room,
        #[inline(always)]
        |x: T, mean: T| x - mean,
    )?;
    let step = |s: f64, x: T, _| s + x.wide() * x.wide();
    let deviation =
        fold(&centred, &axes, room, &Fold { start: 0.0, step, end: |s: f64, _| T::of((s * share).sqrt()) })?;
    let inverse = map(deviation.clone(), room, |d: T| T::of(1.0) / (d + T::of(1e-9)))?;
    let y = combine(
        centred,
        inverse.clone(),
        room,
        #[inline(always)]
        |x: T, i: T| x * i,
    )?;
    let kept = wanted.then(|| y.clone());
    Ok(Answer::one(y).with(wanted, move |back| {
        let (Some(g), Some(y)) = (back.take(0), &kept) else { return Ok(()) };
        let room = back.room();
        let mean_of = |x: &Tensor| {
            fold(x, &axes, room, &Fold { start: 0.0, step: add, end: |s: f64, _| T::of(s * share) })
        };
        // dx = i (g - mean g - (x - mean) / deviation * mean(g y)), and (x - mean) = y / i
        let plain = mean_of(&g)?;
        let weighted = mean_of(&binary(
            &g,
            y,
            room,
            #[inline(always)]
            |g: T, y: T| g * y,
        )?)?;
        let stretch = binary(&deviation, &inverse, room, |d: T, i: T| T::of(1.0) / (d * i))?;
        let weighted = combine(weighted, stretch, room, |w: T, s: T| w * s)?;
        let rest = binary(
            y,
            &weighted,
            room,
            #[inline(always)]
            |y: T, w: T| y * w,
        )?;
        let g = combine(
            g,
            plain,
            room,
            #[inline(always)]
            |g: T, plain: T| g - plain,
        )?;
        let g = combine(
            g,
            rest,
            room,
            #[inline(always)]
            |g: T, rest: T| g - rest,
        )?;
        let g = combine(
            g,
            inverse.clone(),
            room,
            #[inline(always)]
            |g: T, i: T| g * i,
        )?;
        back.give(0, g)
    }))
}

/// Local response normalization across channels. It keeps its input.
#[derive(Clone, Copy, Debug)]
struct LocalResponse(Lrn);

fn lrn(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let attributes = definition.attributes;
    let float =
        |name: &str, default: f32| -> Result<f32, Fault> { Ok(attributes.float(name)?.unwrap_or(default)) };
    let size = attributes.int("size")?.and_then(|size| u32::try_from(size).ok()).filter(|&size| size > 0);
    let wrong = || Fault::Attribute { name: "size".into(), problem: "is not a positive number".into() };
    let (alpha, beta, bias) = (float("alpha", 1e-4)?, float("beta", 0.75)?, float("bias", 1.0)?);
    Ok(Box::new(LocalResponse(Lrn { size: size.ok_or_else(wrong)? as usize, alpha, beta, bias })))
}

impl Operator for LocalResponse {
    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?.clone();
        let &[batch, channels, ref rest @ ..] = x.shape() else {
            return Err(Fault::Shape { input: 0, expected: "[n, c, ...]".into(), got: x.shape().to_vec() });
        };
        if x.is_empty() {
            return Ok(Answer::one(x));
        }
        let extents = Extents { batch, channels, pixels: rest.iter().product() };
        let (constants, wanted) = (self.0, call.wants_any());
        for_float!(x, 0, T => {
            let values: &[T] = values_of(&x, 0)?;
            let y = call.room.tensor(x.shape(), |out| norm::lrn(constants, extents, values, out))?;
            Ok(Answer::one(y).with(wanted, move |back| {
                let Some(g) = back.take(0) else { return Ok(()) };
                let (x_values, g_values): (&[T], &[T]) = (values_of(&x, 0)?, values_of(&g, 0)?);
                let own = back.room().tensor(x.shape(), |out| {
                    norm::lrn_pullback(constants, extents, x_values, g_values, out);
                })?;
                back.give(0, own)
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::proof::{Numbers, build, outputs, prove_gradient, prove_layouts};
    use crate::tensor::Tensor;

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(71);
        for axis in [-1, 0, 1] {
            for p in [1, 2] {
                let attributes = [("axis", Attribute::Int(axis)), ("p", Attribute::Int(p))];
                let x = [Some(numbers.tensor(&[2, 5, 3, 2], -2.0, 2.0))];
                prove_gradient(build("LpNormalization", 22, &attributes, 1), &x, 1, 2e-5);
                prove_layouts(build("LpNormalization", 22, &attributes, 1), &x);
            }
        }
        let x = [Some(numbers.tensor(&[2, 5, 3, 2], -2.0, 2.0))];
        prove_gradient(build("MeanVarianceNormalization", 13, &[], 1), &x, 1, 5e-5);
        prove_layouts(build("MeanVarianceNormalization", 13, &[], 1), &x);
        for size in [1, 2, 3, 5, 20] {
            let attributes = [("size", Attribute::Int(size)), ("alpha", Attribute::Float(0.5))];
            prove_gradient(build("LRN", 13, &attributes, 1), &x, 1, 2e-5);
        }
    }

    #[test]
    fn a_zero_row_stays_zero() {
        let x = Tensor::new(&[2, 2], vec![0.0f32, 0.0, 3.0, 4.0]);
        let y = outputs(&build("LpNormalization", 1, &[], 1).into(), &[Some(x)], 1).remove(0);
        assert_eq!(y.values::<f32>().unwrap(), [0.0, 0.0, 0.6, 0.8]);
    }
}
