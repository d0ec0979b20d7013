//! The numbers the reference kernels are written for: `f32`, which they run in, and `f64`, in which their derivatives are proved.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A real number in single or double precision.
pub trait Real:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + 'static
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The nearest value to `x`.
    fn of(x: f64) -> Self;
    /// The value in double precision.
    fn wide(self) -> f64;
    /// e to this power.
    fn exp(self) -> Self;
    /// e to this power, less one.
    fn exp_m1(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The natural logarithm of one more.
    fn ln_1p(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// This to the power `p`.
    fn powf(self, p: Self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// The largest integer not above.
    fn floor(self) -> Self;
    /// The larger of the two.
    fn max(self, other: Self) -> Self;
    /// The smaller of the two.
    fn min(self, other: Self) -> Self;

    /// The error function.
    fn erf(self) -> Self {
        Self::of(erf(self.wide()))
    }
}

macro_rules! real {
    ($($type:ident),*) => {$(
        impl Real for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn of(x: f64) -> Self { x as $type }
            #[inline(always)]
            fn wide(self) -> f64 { f64::from(self) }
            #[inline(always)]
            fn exp(self) -> Self { self.exp() }
            #[inline(always)]
            fn exp_m1(self) -> Self { self.exp_m1() }
            #[inline(always)]
            fn ln(self) -> Self { self.ln() }
            #[inline(always)]
            fn ln_1p(self) -> Self { self.ln_1p() }
            #[inline(always)]
            fn tanh(self) -> Self { self.tanh() }
            #[inline(always)]
            fn sqrt(self) -> Self { self.sqrt() }
            #[inline(always)]
            fn powf(self, p: Self) -> Self { self.powf(p) }
            #[inline(always)]
            fn abs(self) -> Self { self.abs() }
            #[inline(always)]
            fn floor(self) -> Self { self.floor() }
            #[inline(always)]
            fn max(self, other: Self) -> Self { self.max(other) }
            #[inline(always)]
            fn min(self, other: Self) -> Self { self.min(other) }
        }
    )*};
}

real!(f32, f64);

/// `erf(x)`: its series of positive terms near zero, the continued fraction of its complement far out.
fn erf(x: f64) -> f64 {
    let far = x.abs();
    if x.is_nan() {
        return x;
    }
    if far > 6.0 {
        return x.signum();
    }
    let scale = std::f64::consts::FRAC_2_SQRT_PI * (-far * far).exp();
    if far < 2.5 {
        // exp(-x^2) * sum of 2^n x^(2n+1) / (1 * 3 * ... * (2n+1))
        let (mut term, mut sum, mut odd) = (far, 0.0, 1.0);
        while term > sum * 1e-18 {
            sum += term;
            odd += 2.0;
            term *= 2.0 * far * far / odd;
        }
        return (scale * sum).copysign(x);
    }
    // erfc(x) = exp(-x^2) / sqrt(pi) / (x + 1/2 / (x + 1 / (x + 3/2 / (x + ...))))
    let fraction = (1..=60).rev().fold(far, |below, k| far + 0.5 * f64::from(k) / below);
    (1.0 - 0.5 * scale / fraction).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_has_its_known_values_and_its_derivative() {
        for (x, value) in [
            (0.0, 0.0),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
            (-1.0, -0.842_700_792_949_714_9),
        ] {
            assert!((erf(x) - value).abs() < 1e-15, "erf({x}) is {}", erf(x));
        }
        for i in -40..40 {
            let x = f64::from(i) * 0.11;
            let slope = (erf(x + 1e-5) - erf(x - 1e-5)) / 2e-5;
            assert!((slope - std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp()).abs() < 1e-9, "{x}");
        }
    }
}
