//! Neg, Abs, Sqrt, Reciprocal, Exp, Log, the rounding family, and the trigonometric and hyperbolic functions.
//!
//! Each line is an operator: what its derivative is written in, the function, the derivative. Rounding has derivative zero.

use super::number::Float;
use super::pointwise::{curve_entries, curves};
use super::registry::Entry;

/// The entries of this file.
pub const ENTRIES: &[Entry] = &curve_entries![
    Neg, Abs, Sqrt, Reciprocal, Exp, Log, Sign, Floor, Ceil, Round, Sin, Cos, Tan, Asin, Acos, Atan, Sinh,
    Cosh, Asinh, Acosh, Atanh,
];

fn sign<T: Float>(x: T) -> T {
    if x > T::of(0.0) {
        T::of(1.0)
    } else if x < T::of(0.0) {
        T::of(-1.0)
    } else {
        x
    }
}

curves! {
    Neg: Neither, x => -x, _x => T::of(-1.0), i64::wrapping_neg;
    Abs: Input, x => x.abs(), x => sign(x), i64::wrapping_abs;
    Sqrt: Output, x => x.sqrt(), y => T::of(0.5) / y;
    Reciprocal: Output, x => T::of(1.0) / x, y => -(y * y);
    Exp: Output, x => x.exp(), y => y;
    Log: Input, x => x.ln(), x => T::of(1.0) / x;
    Sign: Zero, x => sign(x), _x => T::of(0.0), i64::signum;
    Floor: Zero, x => x.floor(), _x => T::of(0.0);
    Ceil: Zero, x => x.ceil(), _x => T::of(0.0);
    Round: Zero, x => x.round_even(), _x => T::of(0.0);
    Sin: Input, x => x.via(f64::sin), x => x.via(f64::cos);
    Cos: Input, x => x.via(f64::cos), x => -x.via(f64::sin);
    Tan: Output, x => x.via(f64::tan), y => T::of(1.0) + y * y;
    Asin: Input, x => x.via(f64::asin), x => T::of(1.0) / (T::of(1.0) - x * x).sqrt();
    Acos: Input, x => x.via(f64::acos), x => T::of(-1.0) / (T::of(1.0) - x * x).sqrt();
    Atan: Input, x => x.via(f64::atan), x => T::of(1.0) / (T::of(1.0) + x * x);
    Sinh: Input, x => x.via(f64::sinh), x => x.via(f64::cosh);
    Cosh: Input, x => x.via(f64::cosh), x => x.via(f64::sinh);
    Asinh: Input, x => x.via(f64::asinh), x => T::of(1.0) / (x * x + T::of(1.0)).sqrt();
    Acosh: Input, x => x.via(f64::acosh), x => T::of(1.0) / (x * x - T::of(1.0)).sqrt();
    Atanh: Input, x => x.via(f64::atanh), x => T::of(1.0) / (T::of(1.0) - x * x);
}

#[cfg(test)]
mod tests {
    use super::super::proof::{Numbers, build, outputs, prove_gradient, prove_layouts};
    use super::ENTRIES;
    use crate::tensor::Tensor;

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(3);
        for entry in ENTRIES.iter().filter(|entry| entry.gradient) {
            let (low, high) = match entry.name {
                "Sqrt" | "Log" | "Reciprocal" => (0.3, 2.0),
                "Acosh" => (1.2, 3.0),
                "Asin" | "Acos" | "Atanh" => (-0.8, 0.8),
                _ => (-1.3, 1.3),
            };
            for shape in [&[2, 3, 2, 3][..], &[5], &[]] {
                let x = Some(numbers.tensor(shape, low, high));
                prove_gradient(build(entry.name, 17, &[], 1), &[x], 1, 2e-5);
            }
            prove_layouts(build(entry.name, 17, &[], 1), &[Some(numbers.tensor(&[2, 5, 3, 2], low, high))]);
        }
    }

    #[test]
    fn rounding_goes_to_even_and_integers_wrap() {
        let of = |name, x: Tensor| outputs(&build(name, 17, &[], 1).into(), &[Some(x)], 1).remove(0);
        let x = Tensor::new(&[5], vec![0.5f32, 1.5, 2.5, -1.5, -2.4]);
        assert_eq!(of("Round", x).values::<f32>().unwrap(), [0.0, 2.0, 2.0, -2.0, -2.0]);
        let x = Tensor::new(&[3], vec![i32::MIN, -4, 7]);
        assert_eq!(of("Neg", x.clone()).values::<i32>().unwrap(), [i32::MIN, 4, -7]);
        assert_eq!(of("Sign", x).values::<i32>().unwrap(), [-1, -1, 1]);
    }
}
