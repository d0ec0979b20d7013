//! The arithmetic operators need of element types, written once for all of them.
//!
//! Integers wrap on overflow. Sums and products of reductions run in [`Number::Wide`], f64 or i64, and are narrowed once.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use evenkeel_kernels::activation::curves;

use crate::tensor::Element;

/// What reductions accumulate in.
pub trait Wide: Copy + PartialOrd + Send + Sync + 'static {
    /// Nothing, for sums.
    const ZERO: Self;
    /// Nothing, for products.
    const ONE: Self;
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
    /// The absolute value.
    fn magnitude(self) -> Self;
    /// The mean of `count` values with this sum.
    fn share(self, count: usize) -> Self;
    /// As a float.
    fn to_float(self) -> f64;
    /// From a float, rounded towards zero.
    fn from_float(value: f64) -> Self;
}

impl Wide for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    fn plus(self, other: f64) -> f64 {
        self + other
    }
    fn times(self, other: f64) -> f64 {
        self * other
    }
    fn magnitude(self) -> f64 {
        self.abs()
    }
    fn share(self, count: usize) -> f64 {
        self / count as f64
    }
    fn to_float(self) -> f64 {
        self
    }
    fn from_float(value: f64) -> f64 {
        value
    }
}

impl Wide for i64 {
    const ZERO: i64 = 0;
    const ONE: i64 = 1;
    fn plus(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }
    fn times(self, other: i64) -> i64 {
        self.wrapping_mul(other)
    }
    fn magnitude(self) -> i64 {
        self.wrapping_abs()
    }
    fn share(self, count: usize) -> i64 {
        self.checked_div(count as i64).unwrap_or(0)
    }
    fn to_float(self) -> f64 {
        self as f64
    }
    fn from_float(value: f64) -> i64 {
        value as i64
    }
}

/// An element type with arithmetic: floats and integers.
pub trait Number: Element + PartialOrd {
    /// What its reductions accumulate in.
    type Wide: Wide;
    /// The lowest value, below all others.
    const LOWEST: Self;
    /// The highest value, above all others.
    const HIGHEST: Self;
    /// As the accumulator.
    fn wide(self) -> Self::Wide;
    /// From the accumulator.
    fn narrow(wide: Self::Wide) -> Self;
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The difference.
    fn minus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
    /// The quotient; integers round towards zero, and a zero divisor, which callers refuse first, gives zero.
    fn over(self, other: Self) -> Self;
    /// The remainder with the divisor's sign (ONNX and Python `%`).
    fn modulo(self, other: Self) -> Self;
    /// The remainder with the dividend's sign (C `fmod`).
    fn remainder(self, other: Self) -> Self;
    /// The larger; a NaN wins.
    fn larger(self, other: Self) -> Self;
    /// The smaller; a NaN wins.
    fn smaller(self, other: Self) -> Self;
}

macro_rules! integer {
    ($($type:ty),*) => {$(
        impl Number for $type {
            type Wide = i64;
            const LOWEST: $type = <$type>::MIN;
            const HIGHEST: $type = <$type>::MAX;
            fn wide(self) -> i64 { self.into() }
            fn narrow(wide: i64) -> $type { wide as $type }
            fn plus(self, other: $type) -> $type { self.wrapping_add(other) }
            fn minus(self, other: $type) -> $type { self.wrapping_sub(other) }
            fn times(self, other: $type) -> $type { self.wrapping_mul(other) }
            fn over(self, other: $type) -> $type { if other == 0 { 0 } else { self.wrapping_div(other) } }
            #[allow(unused_comparisons)]
            fn modulo(self, other: $type) -> $type {
                let rest = self.remainder(other);
                if rest != 0 && (rest < 0) != (other < 0) { rest.wrapping_add(other) } else { rest }
            }
            fn remainder(self, other: $type) -> $type { if other == 0 { 0 } else { self.wrapping_rem(other) } }
            fn larger(self, other: $type) -> $type { self.max(other) }
            fn smaller(self, other: $type) -> $type { self.min(other) }
        }
    )*};
}
integer!(i32, i64, u8, i8);

macro_rules! float {
    ($type:ty, $exp:path, $ln:path, $tanh:path, $values:ident => $singles:expr) => {
        impl Number for $type {
            type Wide = f64;
            const LOWEST: $type = <$type>::NEG_INFINITY;
            const HIGHEST: $type = <$type>::INFINITY;
            fn wide(self) -> f64 {
                self.into()
            }
            fn narrow(wide: f64) -> $type {
                wide as $type
            }
            #[inline(always)]
            fn plus(self, other: $type) -> $type {
                self + other
            }
            #[inline(always)]
            fn minus(self, other: $type) -> $type {
                self - other
            }
            #[inline(always)]
            fn times(self, other: $type) -> $type {
                self * other
            }
            #[inline(always)]
            fn over(self, other: $type) -> $type {
                self / other
            }
            fn modulo(self, other: $type) -> $type {
                let rest = self % other;
                if rest != 0.0 && (rest < 0.0) != (other < 0.0) { rest + other } else { rest }
            }
            fn remainder(self, other: $type) -> $type {
                self % other
            }
            #[inline(always)]
            fn larger(self, other: $type) -> $type {
                if other > self || other.is_nan() { other } else { self }
            }
            #[inline(always)]
            fn smaller(self, other: $type) -> $type {
                if other < self || other.is_nan() { other } else { self }
            }
        }
        impl Float for $type {
            #[inline(always)]
            fn of(value: f64) -> $type {
                value as $type
            }
            #[inline(always)]
            fn exp(self) -> $type {
                $exp(self)
            }
            #[inline(always)]
            fn ln(self) -> $type {
                $ln(self)
            }
            #[inline(always)]
            fn sqrt(self) -> $type {
                self.sqrt()
            }
            #[inline(always)]
            fn tanh(self) -> $type {
                $tanh(self)
            }
            #[inline(always)]
            fn abs(self) -> $type {
                self.abs()
            }
            #[inline(always)]
            fn floor(self) -> $type {
                self.floor()
            }
            #[inline(always)]
            fn ceil(self) -> $type {
                self.ceil()
            }
            #[inline(always)]
            fn round_even(self) -> $type {
                self.round_ties_even()
            }
            fn powf(self, power: $type) -> $type {
                self.powf(power)
            }
            fn singles($values: &[$type]) -> Option<&[f32]> {
                $singles
            }
            fn singles_mut($values: &mut [$type]) -> Option<&mut [f32]> {
                $singles
            }
            fn via(self, function: fn(f64) -> f64) -> $type {
                function(self.into()) as $type
            }
        }
    };
}
float!(f32, curves::exp, curves::ln, curves::tanh, values => Some(values));
float!(f64, f64::exp, f64::ln, f64::tanh, _values => None);

/// A float: what gradients are made of.
pub trait Float:
    Number<Wide = f64>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
{
    /// The nearest value.
    fn of(value: f64) -> Self;
    /// e to its power.
    fn exp(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// Rounded down.
    fn floor(self) -> Self;
    /// Rounded up.
    fn ceil(self) -> Self;
    /// Rounded to the nearest, ties to even.
    fn round_even(self) -> Self;
    /// To a power.
    fn powf(self, power: Self) -> Self;
    /// The slice itself, if this is f32.
    fn singles(values: &[Self]) -> Option<&[f32]>;
    /// The slice itself for writing, if this is f32.
    fn singles_mut(values: &mut [Self]) -> Option<&mut [f32]>;
    /// A function known in f64.
    fn via(self, function: fn(f64) -> f64) -> Self;
}

/// Runs an expression with `$type` standing for the float type of a tensor; any other type is a fault of input `$input`.
macro_rules! for_float {
    ($tensor:expr, $input:expr, $type:ident => $body:expr) => {
        match $tensor.dtype() {
            $crate::tensor::DType::F32 => {
                type $type = f32;
                $body
            }
            $crate::tensor::DType::F64 => {
                type $type = f64;
                $body
            }
            got => Err($crate::error::Fault::Type { input: $input, expected: "floats", got }),
        }
    };
}

/// As [`for_float`], for every type with arithmetic.
macro_rules! for_number {
    ($tensor:expr, $input:expr, $type:ident => $body:expr) => {
        match $tensor.dtype() {
            $crate::tensor::DType::F32 => {
                type $type = f32;
                $body
            }
            $crate::tensor::DType::F64 => {
                type $type = f64;
                $body
            }
            $crate::tensor::DType::I32 => {
                type $type = i32;
                $body
            }
            $crate::tensor::DType::I64 => {
                type $type = i64;
                $body
            }
            $crate::tensor::DType::U8 => {
                type $type = u8;
                $body
            }
            $crate::tensor::DType::I8 => {
                type $type = i8;
                $body
            }
            got => Err($crate::error::Fault::Type { input: $input, expected: "numbers", got }),
        }
    };
}

pub(crate) use {for_float, for_number};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_take_the_sign_they_should() {
        assert_eq!(((-7i64).modulo(3), (-7i64).remainder(3)), (2, -1));
        assert_eq!((7i32.modulo(-3), 200u8.modulo(7), i32::MIN.modulo(-1)), (-2, 4, 0));
        assert_eq!((-7.5f32).modulo(2.0), 0.5);
        assert!(f32::NAN.larger(1.0).is_nan() && 1.0f32.smaller(f32::NAN).is_nan());
    }
}
