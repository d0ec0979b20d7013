//! Reductions: each output is a fold over the inputs that share its kept coordinates.
//!
//! Dimensions are merged, then the outputs are split over threads; each output's fold runs in one fixed order on one thread. Where the
//! innermost dimension is kept, a whole row of outputs is folded at once, so that memory is read in order either way.

use evenkeel_kernels::formula::wide;
use evenkeel_kernels::layout::stride;
use evenkeel_kernels::parallel;

use super::number::{Float, Number, Wide};
use super::walk::row_strides;
use crate::error::Fault;
use crate::tensor::{DType, Element, Layout, Room, Tensor};

/// Elements below which splitting costs more than it gains.
const GRAIN: usize = 1 << 15;

/// Sorted axes without repeats, counted from the front.
///
/// # Errors
/// If an axis is outside the rank or given twice.
pub fn axes_of(given: &[i64], rank: usize) -> Result<Vec<usize>, Fault> {
    let mut axes = given.iter().map(|&axis| axis_of(axis, rank)).collect::<Result<Vec<_>, _>>()?;
    axes.sort_unstable();
    if axes.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Fault::Value(format!("axes {given:?} name a dimension twice")));
    }
    Ok(axes)
}

/// An axis counted from the front.
///
/// # Errors
/// If it is outside the rank.
pub fn axis_of(axis: i64, rank: usize) -> Result<usize, Fault> {
    let high = rank as i64;
    let counted = if axis < 0 { axis.saturating_add(high) } else { axis };
    if (0..high).contains(&counted) {
        Ok(counted as usize)
    } else {
        Err(Fault::Range { what: "axis", index: axis, low: -high, high })
    }
}

/// Merged dimensions: size, stride in the input's storage, whether it is folded away.
struct Folding {
    kept: Vec<(usize, usize)>,
    folded: Vec<(usize, usize)>,
    /// The innermost dimension, if it is kept.
    row: Option<(usize, usize)>,
    /// The innermost dimension, if it is folded.
    run: Option<(usize, usize)>,
}

/// The dimensions of a tensor in storage order, each with its stride and whether `axes` has it; `None` if the kept ones would
/// come out in another order than the logical one.
fn dims(x: &Tensor, axes: &[usize]) -> Option<Vec<(usize, usize, bool)>> {
    let gone = |axis: usize| axes.contains(&axis);
    match (x.layout(), x.shape()) {
        (Layout::ChannelsLast, &[n, c, h, w]) => {
            let step = stride(c);
            let ordered = gone(1) || ((gone(2) || h == 1) && (gone(3) || w == 1));
            ordered.then(|| {
                vec![(n, h * w * step, gone(0)), (h, w * step, gone(2)), (w, step, gone(3)), (c, 1, gone(1))]
            })
        }
        (_, shape) => {
            let strides = row_strides(shape);
            Some((0..shape.len()).map(|i| (shape[i], strides[i], gone(i))).collect())
        }
    }
}

impl Folding {
    fn new(dims: Vec<(usize, usize, bool)>) -> Folding {
        let mut merged: Vec<(usize, usize, bool)> = Vec::new();
        for (size, stride, gone) in dims.into_iter().rev().filter(|&(size, ..)| size != 1) {
            match merged.last_mut() {
                Some((inner, inner_stride, inner_gone))
                    if *inner_gone == gone && stride == *inner_stride * *inner =>
                {
                    *inner *= size;
                }
                _ => merged.push((size, stride, gone)),
            }
        }
        let innermost = if merged.is_empty() { None } else { Some(merged.remove(0)) };
        merged.reverse();
        let of = |gone: bool| {
            merged.iter().filter(|dim| dim.2 == gone).map(|&(size, step, _)| (size, step)).collect()
        };
        let inner = |gone: bool| innermost.filter(|dim| dim.2 == gone).map(|(size, step, _)| (size, step));
        Folding { kept: of(false), folded: of(true), row: inner(false), run: inner(true) }
    }
}

/// Runs `visit` with the storage offset of every index of `dims`, in order.
fn offsets(dims: &[(usize, usize)], start: usize, visit: &mut impl FnMut(usize)) {
    match dims {
        [] => visit(start),
        [(size, step), rest @ ..] => {
            for i in 0..*size {
                offsets(rest, start + i * step, visit);
            }
        }
    }
}

fn offset_of(dims: &[(usize, usize)], mut at: usize) -> usize {
    let mut offset = 0;
    for (size, step) in dims.iter().rev() {
        offset += at % size * step;
        at /= size;
    }
    offset
}

/// The shape with folded axes of size one, or without them.
pub fn folded_shape(shape: &[usize], axes: &[usize], keep: bool) -> Vec<usize> {
    let dim = |(i, &size): (usize, &usize)| match (axes.contains(&i), keep) {
        (false, _) => Some(size),
        (true, true) => Some(1),
        (true, false) => None,
    };
    shape.iter().enumerate().filter_map(dim).collect()
}

/// A fold: where it starts, how it takes a value in (with the output it is for), and what it ends as.
pub struct Fold<A, S, E> {
    /// The value before the first.
    pub start: A,
    /// Takes in a value for an output.
    pub step: S,
    /// Ends the fold of an output.
    pub end: E,
}

/// Folds `x` over `axes`. The output is plain, with the folded axes of size one.
///
/// # Errors
/// If `x` is of another type or the room is used up.
pub fn fold<T: Element, R: Element, A, S, E>(
    x: &Tensor,
    axes: &[usize],
    room: &Room,
    fold: &Fold<A, S, E>,
) -> Result<Tensor, Fault>
where
    A: Copy + Send + Sync,
    S: Fn(A, T, usize) -> A + Sync + Send,
    E: Fn(A, usize) -> R + Sync + Send,
{
    let step: &(dyn Fn(A, T, usize) -> A + Sync + Send) = &fold.step;
    let end: &(dyn Fn(A, usize) -> R + Sync + Send) = &fold.end;
    fold_by(x, axes, room, &Fold { start: fold.start, step, end })
}

/// [`fold`], compiled for the formula where that is worth it.
///
/// # Errors
/// As for [`fold`].
pub fn fold_hot<T: Element, R: Element, A, S, E>(
    x: &Tensor,
    axes: &[usize],
    room: &Room,
    given: &Fold<A, S, E>,
) -> Result<Tensor, Fault>
where
    A: Copy + Send + Sync,
    S: Fn(A, T, usize) -> A + Sync + Send,
    E: Fn(A, usize) -> R + Sync + Send,
{
    if const { matches!(T::DTYPE, DType::F32) } {
        fold_by(x, axes, room, given)
    } else {
        fold(x, axes, room, given)
    }
}

fn fold_by<T: Element, R: Element, A, S, E>(
    x: &Tensor,
    axes: &[usize],
    room: &Room,
    fold: &Fold<A, S, E>,
) -> Result<Tensor, Fault>
where
    A: Copy + Send + Sync,
    S: Fn(A, T, usize) -> A + Sync + Send,
    E: Fn(A, usize) -> R + Sync + Send,
{
    let shape = folded_shape(x.shape(), axes, true);
    if x.is_empty() {
        return room.tensor(&shape, |out| {
            out.iter_mut().enumerate().for_each(|(i, out)| *out = (fold.end)(fold.start, i));
        });
    }
    let (x, dims) = match dims(x, axes) {
        Some(dims) => (x.clone(), dims),
        None => {
            let x = x.to_plain(room)?;
            let dims = dims(&x, axes).unwrap_or_default();
            (x, dims)
        }
    };
    let values: &[T] = super::values_of(&x, 0)?;
    let plan = Folding::new(dims);
    room.tensor(&shape, |out| match plan.row {
        Some((inner, 1)) if inner > 1 => fold_rows(values, &plan, inner, fold, out),
        _ => fold_runs(values, &plan, fold, out),
    })
}

/// The innermost dimension is kept: a row of outputs is folded at once.
fn fold_rows<T: Element, R: Element, A, S, E>(
    values: &[T],
    plan: &Folding,
    inner: usize,
    fold: &Fold<A, S, E>,
    out: &mut [R],
) where
    A: Copy + Send + Sync,
    S: Fn(A, T, usize) -> A + Sync + Send,
    E: Fn(A, usize) -> R + Sync + Send,
{
    let work: usize = inner * plan.folded.iter().map(|dim| dim.0).product::<usize>();
    let run = |first: usize, part: &mut [R]| {
        let (base, lane) = (offset_of(&plan.kept, first / inner), first % inner);
        let mut sums = vec![fold.start; part.len()];
        offsets(&plan.folded, base + lane, &mut |offset| {
            let row = &values[offset..offset + sums.len()];
            wide(
                #[inline(always)]
                || {
                    for (j, (sum, &value)) in sums.iter_mut().zip(row).enumerate() {
                        *sum = (fold.step)(*sum, value, first + j);
                    }
                },
            );
        });
        for (j, (out, sum)) in part.iter_mut().zip(sums).enumerate() {
            *out = (fold.end)(sum, first + j);
        }
    };
    if plan.kept.is_empty() {
        return parallel::rows(out, 1, (GRAIN * inner / work.max(1)).max(64), run);
    }
    let grain = (GRAIN / work.max(1)).max(1);
    parallel::rows(out, inner, grain, |first, part| {
        for (i, row) in part.chunks_mut(inner).enumerate() {
            run((first + i) * inner, row);
        }
    });
}

/// The innermost dimension is folded, or strided: one output at a time.
fn fold_runs<T: Element, R: Element, A, S, E>(
    values: &[T],
    plan: &Folding,
    fold: &Fold<A, S, E>,
    out: &mut [R],
) where
    A: Copy + Send + Sync,
    S: Fn(A, T, usize) -> A + Sync + Send,
    E: Fn(A, usize) -> R + Sync + Send,
{
    let mut kept = plan.kept.clone();
    kept.extend(plan.row);
    let (run, step) = plan.run.unwrap_or((1, 1));
    let work: usize = run * plan.folded.iter().map(|dim| dim.0).product::<usize>();
    parallel::rows(out, 1, (GRAIN / work.max(1)).max(1), |first, part| {
        for (i, out) in part.iter_mut().enumerate() {
            let index = first + i;
            let mut sum = fold.start;
            offsets(&plan.folded, offset_of(&kept, index), &mut |offset| {
                let values = &values[offset..];
                sum = (0..run).fold(sum, |sum, i| (fold.step)(sum, values[i * step], index));
            });
            *out = (fold.end)(sum, index);
        }
    });
}

/// The sum over axes, which stay with size one.
///
/// # Errors
/// As for [`fold`].
pub fn sum<T: Number>(x: &Tensor, axes: &[usize], room: &Room) -> Result<Tensor, Fault> {
    let plus = |sum: T::Wide, x: T, _| sum.plus(x.wide());
    fold_hot(x, axes, room, &Fold { start: T::Wide::ZERO, step: plus, end: |sum, _| T::narrow(sum) })
}

/// The gradient of a broadcast: `g` summed back to the shape it was repeated from.
///
/// # Errors
/// As for [`fold`].
pub fn sum_to<T: Float>(g: Tensor, shape: &[usize], room: &Room) -> Result<Tensor, Fault> {
    if g.shape() == shape {
        return Ok(g);
    }
    let missing = g.rank() - shape.len();
    let repeated = |&i: &usize| i < missing || (shape[i - missing] == 1 && g.shape()[i] != 1);
    let axes: Vec<usize> = (0..g.rank()).filter(repeated).collect();
    let g = if axes.iter().all(|&i| g.shape()[i] == 1) { g } else { sum::<T>(&g, &axes, room)? };
    g.to_plain(room)?.reshaped(shape)
}
