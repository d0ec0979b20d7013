//! Operators of one input that treat each element alone: a function beside its derivative.
//!
//! The tape is the input, the output or nothing, whichever the derivative is written in. Where a derivative does not exist the value
//! is PyTorch's: zero for Abs at 0.

use std::fmt::Debug;

use super::broadcast::{convert, map, weigh};
use super::number::{Float, for_float};
use super::{Answer, Call, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::{DType, Room, Tensor};

/// What a derivative is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The input.
    Input,
    /// The output.
    Output,
    /// Neither: it is constant.
    Neither,
    /// It is zero wherever it exists.
    Zero,
}

/// A function of one number, with its derivative.
pub trait Curve: Debug + Clone + Send + Sync + 'static {
    /// What [`Curve::slope`] is written in.
    const NEEDS: Needs;
    /// The value at `x`.
    fn value<T: Float>(&self, x: T) -> T;
    /// The derivative, from the input or the output as [`Curve::NEEDS`] says.
    fn slope<T: Float>(&self, kept: T) -> T;
    /// The value at an integer, if it is defined for integers.
    fn integer(&self) -> Option<fn(i64) -> i64> {
        None
    }
}

/// The operator of a curve.
#[derive(Clone, Debug)]
pub struct Pointwise<C>(pub C);

impl<C: Curve> Operator for Pointwise<C> {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn passes_gradient(&self, _: usize) -> bool {
        C::NEEDS != Needs::Zero
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let wanted = call.wants_any();
        let x = call.take(0)?;
        if let (Some(f), false) = (self.0.integer(), x.dtype().is_float()) {
            return Ok(Answer::one(whole(&x, call.room, f)?));
        }
        for_float!(x, 0, T => self.forward::<T>(x, wanted, call.room))
    }
}

impl<C: Curve> Pointwise<C> {
    fn forward<T: Float>(&self, x: Tensor, wanted: bool, room: &Room) -> Result<Answer, Fault> {
        let curve = self.0.clone();
        let input = (wanted && C::NEEDS == Needs::Input).then(|| x.clone());
        let y = map(
            x,
            room,
            #[inline(always)]
            |x: T| curve.value(x),
        )?;
        let kept = if wanted && C::NEEDS == Needs::Output { Some(y.clone()) } else { input };
        Ok(Answer::one(y).with(wanted && C::NEEDS != Needs::Zero, move |back| {
            let Some(g) = back.take(0) else { return Ok(()) };
            let g = match &kept {
                None => {
                    let slope = curve.slope(T::of(0.0));
                    map(
                        g,
                        back.room(),
                        #[inline(always)]
                        |g: T| g * slope,
                    )?
                }
                Some(kept) => weigh(
                    g,
                    kept,
                    back.room(),
                    #[inline(always)]
                    |g: T, v: T| g * curve.slope(v),
                )?,
            };
            back.give(0, g)
        }))
    }
}

fn whole(x: &Tensor, room: &Room, f: fn(i64) -> i64) -> Result<Tensor, Fault> {
    match x.dtype() {
        DType::I64 => convert(x, room, f),
        DType::I32 => convert(x, room, move |v: i32| f(v.into()) as i32),
        DType::I8 => convert(x, room, move |v: i8| f(v.into()) as i8),
        DType::U8 => convert(x, room, move |v: u8| f(v.into()) as u8),
        got => Err(Fault::Type { input: 0, expected: "numbers", got }),
    }
}

/// Declares curves without parameters, one a line: name, what the derivative needs, the function, the derivative.
macro_rules! curves {
    ($($(#[$note:meta])* $name:ident: $needs:ident, $x:ident => $value:expr, $kept:ident => $slope:expr $(, $integer:expr)?;)*) => {$(
        $(#[$note])*
        #[derive(Clone, Copy, Debug)]
        struct $name;

        impl $crate::op::pointwise::Curve for $name {
            const NEEDS: $crate::op::pointwise::Needs = $crate::op::pointwise::Needs::$needs;
            #[inline(always)]
            fn value<T: $crate::op::number::Float>(&self, $x: T) -> T {
                $value
            }
            #[inline(always)]
            fn slope<T: $crate::op::number::Float>(&self, $kept: T) -> T {
                $slope
            }
            $(fn integer(&self) -> Option<fn(i64) -> i64> {
                Some($integer)
            })?
        }
    )*};
}

/// Entries for curves without parameters.
macro_rules! curve_entries {
    ($($name:ident),* $(,)?) => {
        [$($crate::op::registry::entry(
            stringify!($name),
            !matches!(<$name as $crate::op::pointwise::Curve>::NEEDS, $crate::op::pointwise::Needs::Zero),
            |_| Ok(Box::new($crate::op::pointwise::Pointwise($name))),
        )),*]
    };
}

pub(crate) use {curve_entries, curves};
