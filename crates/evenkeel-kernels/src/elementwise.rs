//! Arithmetic on slices of one shape, split over threads where they are large: `a op= b`, and a few that take a scalar.

use crate::parallel;
use crate::vectorised::vectorised;

const GRAIN: usize = 1 << 15;

/// Runs `task(into, from)` over matching parts.
fn parts(into: &mut [f32], from: &[f32], task: impl Fn(&mut [f32], &[f32]) + Sync + Send) {
    assert_eq!(into.len(), from.len());
    if !into.is_empty() {
        parallel::rows(into, 1, GRAIN, |first, part| task(part, &from[first..first + part.len()]));
    }
}

macro_rules! binary {
    ($($(#[$note:meta])* $name:ident: $part:ident, $into:ident, $from:ident => $value:expr;)*) => {$(
        $(#[$note])*
        ///
        /// # Panics
        /// If the slices differ in length.
        pub fn $name(into: &mut [f32], from: &[f32]) {
            parts(into, from, $part);
        }

        vectorised! {
            fn $part(into: &mut [f32], from: &[f32]) {
                for (into, &$from) in into.iter_mut().zip(from) {
                    let $into = *into;
                    *into = $value;
                }
            }
        }
    )*};
}

binary! {
    /// `into += from`.
    add: add_part, a, b => a + b;
    /// `into -= from`.
    subtract: subtract_part, a, b => a - b;
    /// `into *= from`.
    multiply: multiply_part, a, b => a * b;
    /// `into /= from`.
    divide: divide_part, a, b => a / b;
    /// `into = max(into, from)`, NaN if either is.
    maximum: maximum_part, a, b => if b > a || b.is_nan() { b } else { a };
    /// `into = min(into, from)`, NaN if either is.
    minimum: minimum_part, a, b => if b < a || b.is_nan() { b } else { a };
}

/// `into += factor * from`.
///
/// # Panics
/// If the slices differ in length.
pub fn add_scaled(into: &mut [f32], factor: f32, from: &[f32]) {
    parts(into, from, |into, from| add_scaled_part(into, factor, from));
}

vectorised! {
    fn add_scaled_part(into: &mut [f32], factor: f32, from: &[f32]) {
        for (into, &from) in into.iter_mut().zip(from) {
            *into += factor * from;
        }
    }
}

/// `values = factor * values + offset`.
pub fn scale(values: &mut [f32], factor: f32, offset: f32) {
    if !values.is_empty() {
        parallel::rows(values, 1, GRAIN, |_, part| scale_part(part, factor, offset));
    }
}

vectorised! {
    fn scale_part(values: &mut [f32], factor: f32, offset: f32) {
        for value in values {
            *value = factor * *value + offset;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded::{random, with_threads};

    #[test]
    fn each_is_its_formula_on_any_number_of_threads() {
        let (a, b) = (random(100_003, 1), random(100_003, 2));
        for threads in [1, 3] {
            let run = |operate: fn(&mut [f32], &[f32])| {
                let mut into = a.clone();
                with_threads(threads, || operate(&mut into, &b));
                into
            };
            let expect = |formula: fn(f32, f32) -> f32| {
                a.iter().zip(&b).map(|(&a, &b)| formula(a, b)).collect::<Vec<_>>()
            };
            assert_eq!(run(add), expect(|a, b| a + b));
            assert_eq!(run(subtract), expect(|a, b| a - b));
            assert_eq!(run(multiply), expect(|a, b| a * b));
            assert_eq!(run(divide), expect(|a, b| a / b));
            assert_eq!(run(maximum), expect(f32::max));
            assert_eq!(run(minimum), expect(f32::min));
            assert_eq!(run(|a, b| add_scaled(a, 0.5, b)), expect(|a, b| a + 0.5 * b));
            assert_eq!(run(|a, _| scale(a, 2.0, 1.0)), expect(|a, _| 2.0 * a + 1.0));
        }
    }

    #[test]
    fn a_nan_is_the_maximum_and_the_minimum() {
        let mut values = [1.0, f32::NAN];
        maximum(&mut values, &[f32::NAN, 1.0]);
        assert!(values[0].is_nan() && values[1].is_nan());
        minimum(&mut values, &[0.0, 0.0]);
        assert!(values[0].is_nan() && values[1].is_nan());
    }
}
