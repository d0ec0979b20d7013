//! Broadcasting: several tensors read in step, each repeated along the dimensions where it has size one.
//!
//! A channels-last operand of the output's shape makes the output channels last. The loops are those of a `Walk`, except that
//! tensors stored alike go through one flat loop, padding lanes included: computing them costs less than going round them.
//!
//! The loops call their formula through a pointer; the `_hot` ones, for what networks do to whole maps, are compiled for it.

use evenkeel_kernels::formula::{self, wide};
use evenkeel_kernels::layout::stride;

use super::values_of;
use super::walk::{Walk, strides};
use crate::error::Fault;
use crate::tensor::{DType, Element, Layout, Room, Tensor};

/// The shape two shapes broadcast to.
///
/// # Errors
/// If a dimension differs and neither is one.
pub fn shape_of(a: &[usize], b: &[usize]) -> Result<Vec<usize>, Fault> {
    let rank = a.len().max(b.len());
    let dim = |shape: &[usize], i: usize| (i + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
    (0..rank)
        .map(|i| match (dim(a, i), dim(b, i)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            _ => Err(Fault::Mismatch { left: a.to_vec(), right: b.to_vec(), verb: "broadcast" }),
        })
        .collect()
}

/// Whether an output of type `R` and this shape is best made channels last from these operands.
pub(super) fn layout_of<R: Element>(shape: &[usize], operands: &[&Tensor]) -> Layout {
    let map = |t: &&Tensor| t.layout() == Layout::ChannelsLast && t.shape() == shape;
    let last = R::DTYPE == DType::F32 && operands.iter().any(map);
    if last { Layout::ChannelsLast } else { Layout::Plain }
}

/// An operand fit to be read for an output of this shape and layout: strided where it is small, converted where it is not.
pub(super) fn fit(tensor: &Tensor, shape: &[usize], layout: Layout, room: &Room) -> Result<Tensor, Fault> {
    match layout {
        Layout::Plain => tensor.to_plain(room),
        Layout::ChannelsLast if tensor.shape() == shape && tensor.dtype() == DType::F32 => {
            tensor.to_channels_last(room)
        }
        Layout::ChannelsLast => Ok(tensor.clone()),
    }
}

/// A new tensor of this shape and layout. Channels last is for f32.
pub(super) fn fresh<R: Element>(
    shape: &[usize],
    layout: Layout,
    room: &Room,
    fill: impl FnOnce(&mut [R]),
) -> Result<Tensor, Fault> {
    match (layout, shape) {
        (Layout::ChannelsLast, &[n, c, h, w]) => {
            let mut buffer = room.take::<R>(room.len_of(&[n, h, w, stride(c)])?)?;
            fill(&mut buffer);
            Tensor::in_storage(shape, layout, buffer)
        }
        _ => room.tensor(shape, fill),
    }
}

/// `f(a, b)` for every pair, as a new tensor.
///
/// # Errors
/// If the tensors are of other types or do not broadcast, or the room is used up.
pub fn binary<T: Element, U: Element, R: Element>(
    a: &Tensor,
    b: &Tensor,
    room: &Room,
    f: impl Fn(T, U) -> R + Sync + Send,
) -> Result<Tensor, Fault> {
    binary_by(a, b, room, dynamic(&f))
}

/// [`binary`], compiled for the formula where that is worth it.
///
/// # Errors
/// As for [`binary`].
pub fn binary_hot<T: Element, U: Element, R: Element>(
    a: &Tensor,
    b: &Tensor,
    room: &Room,
    f: impl Fn(T, U) -> R + Sync + Send,
) -> Result<Tensor, Fault> {
    if const { is_hot::<R>() } { binary_by(a, b, room, f) } else { binary_by(a, b, room, dynamic(&f)) }
}

/// Whether loops over this type are worth compiling for each formula: f32 is, the others call the formula.
const fn is_hot<T: Element>() -> bool {
    matches!(T::DTYPE, DType::F32)
}

fn dynamic<A, B, R>(f: &(dyn Fn(A, B) -> R + Sync + Send)) -> &(dyn Fn(A, B) -> R + Sync + Send) {
    f
}

fn binary_by<T: Element, U: Element, R: Element>(
    a: &Tensor,
    b: &Tensor,
    room: &Room,
    f: impl Fn(T, U) -> R + Sync + Send,
) -> Result<Tensor, Fault> {
    let shape = shape_of(a.shape(), b.shape())?;
    let layout = layout_of::<R>(&shape, &[a, b]);
    let (a, b) = (fit(a, &shape, layout, room)?, fit(b, &shape, layout, room)?);
    let (x, y) = (values_of::<T>(&a, 0)?, values_of::<U>(&b, 1)?);
    let walk = if a.shape() == b.shape() && a.layout() == b.layout() {
        Walk::flat(x.len())
    } else {
        Walk::new(&shape, layout, [strides(&a, &shape, layout), strides(&b, &shape, layout)])
    };
    fresh(&shape, layout, room, |out| {
        walk.each(out, |row, [i, j], steps| match steps {
            [1, 1] => zip_row(row, &x[i..], &y[j..], &f),
            [1, 0] => map_row(
                row,
                &x[i..],
                #[inline(always)]
                |x| f(x, y[j]),
            ),
            [0, 1] => map_row(
                row,
                &y[j..],
                #[inline(always)]
                |y| f(x[i], y),
            ),
            [p, q] => row.iter_mut().enumerate().for_each(|(k, out)| *out = f(x[i + p * k], y[j + q * k])),
        });
    })
}

fn zip_row<T: Copy, U: Copy, R>(row: &mut [R], x: &[T], y: &[U], f: &impl Fn(T, U) -> R) {
    wide(
        #[inline(always)]
        || row.iter_mut().zip(x.iter().zip(y)).for_each(|(out, (&x, &y))| *out = f(x, y)),
    );
}

fn map_row<T: Copy, R>(row: &mut [R], x: &[T], f: impl Fn(T) -> R) {
    wide(
        #[inline(always)]
        || row.iter_mut().zip(x).for_each(|(out, &x)| *out = f(x)),
    );
}

/// `f(a, b)` for every pair, in place of `a` where it has the output's shape and is not shared.
///
/// # Errors
/// As for [`binary`].
pub fn combine<T: Element>(
    a: Tensor,
    b: Tensor,
    room: &Room,
    f: impl Fn(T, T) -> T + Sync + Send,
) -> Result<Tensor, Fault> {
    combine_by(a, b, room, dynamic(&f))
}

/// [`combine`], compiled for the formula where that is worth it.
///
/// # Errors
/// As for [`binary`].
pub fn combine_hot<T: Element>(
    a: Tensor,
    b: Tensor,
    room: &Room,
    f: impl Fn(T, T) -> T + Sync + Send,
) -> Result<Tensor, Fault> {
    if const { is_hot::<T>() } { combine_by(a, b, room, f) } else { combine_by(a, b, room, dynamic(&f)) }
}

fn combine_by<T: Element>(
    mut a: Tensor,
    b: Tensor,
    room: &Room,
    f: impl Fn(T, T) -> T + Sync + Send,
) -> Result<Tensor, Fault> {
    let shape = shape_of(a.shape(), b.shape())?;
    if fits_in_place::<T>(&mut a, &b, &shape) {
        over(&mut a, &b, room, f)?;
        Ok(a)
    } else {
        binary_by(&a, &b, room, f)
    }
}

/// `f(a, b)` for every pair of two tensors of one shape, in place of the first where it is not shared: a cotangent and what its
/// pullback kept.
///
/// # Errors
/// If the types or shapes differ, or the room is used up.
pub fn weigh<T: Element>(
    a: Tensor,
    b: &Tensor,
    room: &Room,
    f: impl Fn(T, T) -> T + Sync + Send,
) -> Result<Tensor, Fault> {
    if a.shape() != b.shape() {
        let (left, right) = (a.shape().to_vec(), b.shape().to_vec());
        return Err(Fault::Mismatch { left, right, verb: "agree" });
    }
    let mut a = if a.is_shared() { a.copied(room)? } else { a };
    let b = b.clone().in_layout(a.layout(), room)?;
    let kept = values_of::<T>(&b, 1)?;
    if let Some(values) = a.values_mut::<T>() {
        let general: &(dyn Fn(T, T) -> T + Sync + Send) = &f;
        if const { is_hot::<T>() } {
            formula::zip_in_place(values, kept, f);
        } else {
            formula::zip_in_place(values, kept, general);
        }
    }
    Ok(a)
}

/// Whether `target` can be overwritten without giving up a better layout.
fn fits_in_place<T: Element>(target: &mut Tensor, other: &Tensor, shape: &[usize]) -> bool {
    let layout = layout_of::<T>(shape, &[target, other]);
    target.shape() == shape && target.layout() == layout && target.values_mut::<T>().is_some()
}

/// `target = f(target, other)`, where `other` broadcasts to the target's shape and the target is not shared.
fn over<T: Element, U: Element>(
    target: &mut Tensor,
    other: &Tensor,
    room: &Room,
    f: impl Fn(T, U) -> T + Sync + Send,
) -> Result<(), Fault> {
    let (shape, layout) = (target.shape().to_vec(), target.layout());
    let other = fit(other, &shape, layout, room)?;
    let y = values_of::<U>(&other, 1)?;
    let got = target.dtype();
    let same = other.shape() == shape && other.layout() == layout;
    let values =
        target.values_mut::<T>().ok_or(Fault::Type { input: 0, expected: super::type_name::<T>(), got })?;
    let walk =
        if same { Walk::flat(y.len()) } else { Walk::new(&shape, layout, [strides(&other, &shape, layout)]) };
    walk.each(values, |row, [j], steps| match steps {
        [0] => {
            let y = y[j];
            wide(
                #[inline(always)]
                || row.iter_mut().for_each(|v| *v = f(*v, y)),
            );
        }
        [1] => wide(
            #[inline(always)]
            || row.iter_mut().zip(&y[j..]).for_each(|(v, &y)| *v = f(*v, y)),
        ),
        [q] => row.iter_mut().enumerate().for_each(|(k, v)| *v = f(*v, y[j + q * k])),
    });
    Ok(())
}

/// `f(x)` for every element, in place where the tensor is not shared.
///
/// # Errors
/// If the tensor is of another type or the room is used up.
pub fn map<T: Element>(x: Tensor, room: &Room, f: impl Fn(T) -> T + Sync + Send) -> Result<Tensor, Fault> {
    let general: &(dyn Fn(T) -> T + Sync + Send) = &f;
    if const { is_hot::<T>() } { map_by(x, room, f) } else { map_by(x, room, general) }
}

fn map_by<T: Element>(mut x: Tensor, room: &Room, f: impl Fn(T) -> T + Sync + Send) -> Result<Tensor, Fault> {
    if let Some(values) = x.values_mut::<T>() {
        formula::map_in_place(values, f);
        return Ok(x);
    }
    let values = values_of::<T>(&x, 0)?;
    fresh(x.shape(), x.layout(), room, |out| formula::map(values, out, f))
}

/// `f(x)` for every element, as a new tensor of another type; channels last stays so only from f32 to f32.
///
/// # Errors
/// As for [`map`].
pub fn convert<T: Element, R: Element>(
    x: &Tensor,
    room: &Room,
    f: impl Fn(T) -> R + Sync + Send,
) -> Result<Tensor, Fault> {
    let general: &(dyn Fn(T) -> R + Sync + Send) = &f;
    let x = x.to_plain(room)?;
    let values = values_of::<T>(&x, 0)?;
    room.tensor(x.shape(), |out| formula::map(values, out, general))
}

/// `x` repeated to a larger shape, in this layout.
///
/// # Errors
/// If it does not broadcast to that shape, or the room is used up.
pub fn expand<T: Element>(x: &Tensor, shape: &[usize], layout: Layout, room: &Room) -> Result<Tensor, Fault> {
    if x.shape() == shape {
        return x.clone().in_layout(layout, room);
    }
    if shape_of(x.shape(), shape)? != shape {
        let (left, right) = (x.shape().to_vec(), shape.to_vec());
        return Err(Fault::Mismatch { left, right, verb: "broadcast to the second" });
    }
    let x = fit(x, shape, layout, room)?;
    let values = values_of::<T>(&x, 0)?;
    let walk = Walk::new(shape, layout, [strides(&x, shape, layout)]);
    fresh(shape, layout, room, |out| {
        walk.each(out, |row, [i], [step]| match step {
            0 => row.fill(values[i]),
            1 => row.copy_from_slice(&values[i..i + row.len()]),
            _ => row.iter_mut().enumerate().for_each(|(k, out)| *out = values[i + step * k]),
        });
    })
}
