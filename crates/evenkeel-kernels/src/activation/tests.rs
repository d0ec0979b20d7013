//! The fast activations give the reference's values and bits on every length, for ordinary and for odd numbers.

use super::*;
use crate::seeded::{random, with_threads};

const ALL: [Activation; 5] = [
    Activation::None,
    Activation::Relu,
    Activation::LeakyRelu(0.1),
    Activation::LeakyRelu(-0.5),
    Activation::Clip(-0.25, 0.5),
];

#[test]
fn values_and_bits_are_the_references() {
    for len in [0, 1, 7, 8, 9, 64, 100, 70_001] {
        let mut input = random(len, 5);
        for (x, odd) in input.iter_mut().zip([f32::INFINITY, 0.0, f32::NEG_INFINITY, -0.25, 0.5, -0.0]) {
            *x = odd;
        }
        for activation in ALL {
            let (mut fast, mut plain) = (input.clone(), input.clone());
            let (mut fast_bits, mut plain_bits) = (vec![0xAA; len.div_ceil(8)], vec![0x55; len.div_ceil(8)]);
            two_slope(activation, &mut fast, Some(&mut fast_bits));
            reference::two_slope(activation, &mut plain, Some(&mut plain_bits));
            assert_eq!(fast, plain, "{activation:?} of {len}");
            assert_eq!(fast_bits, plain_bits, "{activation:?} of {len}");
            let mask = Mask { bits: &fast_bits, on: 1.0, off: activation.slope_off() };
            let (mut fast, mut plain) = (random(len, 6), random(len, 6));
            apply_mask(mask, &mut fast);
            reference::mask(mask, &mut plain);
            assert_eq!(fast, plain, "mask of {activation:?} of {len}");
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let input = random(200_003, 7);
    let run = |threads| {
        with_threads(threads, || {
            let (mut values, mut bits) = (input.clone(), vec![0; input.len().div_ceil(8)]);
            two_slope(Activation::Relu, &mut values, Some(&mut bits));
            (values, bits)
        })
    };
    assert!(run(1) == run(2) && run(1) == run(3));
}

const SMOOTH: [Function; 16] = [
    Function::Sigmoid,
    Function::Silu { beta: 1.0 },
    Function::Silu { beta: 1.7 },
    Function::Tanh,
    Function::Erf,
    Function::Gelu,
    Function::GeluTanh,
    Function::Softplus,
    Function::Mish,
    Function::Exp,
    Function::Log,
    Function::HardSwish,
    Function::HardSigmoid { alpha: 0.2, beta: 0.5 },
    Function::Elu { alpha: 1.3 },
    Function::Selu { alpha: 1.673_263_2, gamma: 1.050_701 },
    Function::Celu { alpha: 0.7 },
];

/// Arguments from the tiny to the huge, of both signs.
fn arguments() -> Vec<f32> {
    let mut all: Vec<f32> = (-44_000..44_000).map(|i| i as f32 * 2.0e-3 + 1.0e-4).collect();
    for power in -120..120 {
        let x = 1.234_567 * 2f32.powi(power);
        all.extend([x, -x]);
    }
    all
}

#[test]
fn smooth_values_and_slopes_are_the_f64_formulas() {
    let inputs = arguments();
    for function in SMOOTH {
        let mut values = vec![0.0; inputs.len()];
        apply(function, &inputs, &mut values);
        let mut slopes = vec![1.0; inputs.len()];
        pull(function, &inputs, &mut slopes);
        let check = |got: f32, truth: f64, x: f32, what: &str| {
            if truth.is_nan() || truth.abs() > f64::from(f32::MAX) {
                assert!(
                    got.is_nan() == truth.is_nan() && got.abs() > 3e38 || got.is_nan(),
                    "{what} of {function:?} at {x}: {got}"
                );
                return;
            }
            let apart = (f64::from(got) - truth).abs();
            // Where the argument is rounded on the way (x^2, beta*x), the error grows with its size; values are tiny there.
            let bound = (4e-7 * truth.abs()).max(if truth.abs() > 1e-3 { 0.0 } else { 1e-9 });
            assert!(
                apart <= bound || apart <= 2.5e-7,
                "{what} of {function:?} at {x}: {got} instead of {truth}"
            );
        };
        for (i, &x) in inputs.iter().enumerate() {
            check(values[i], function.value(f64::from(x)), x, "value");
            check(slopes[i], function.slope(f64::from(x)), x, "slope");
        }
    }
}

#[test]
fn slopes_are_the_derivatives() {
    for function in SMOOTH {
        for i in -300..300 {
            let x = f64::from(i) * 0.031 + 0.0013;
            let h = 1e-6;
            if function == Function::Log && x < 0.1 {
                continue;
            }
            let central = (function.value(x + h) - function.value(x - h)) / (2.0 * h);
            let slope = function.slope(x);
            assert!(
                (central - slope).abs() <= 1e-7 * slope.abs().max(1.0),
                "{function:?} at {x}: {slope} {central}"
            );
        }
    }
}

#[test]
fn relative_accuracy_holds_where_values_are_small() {
    let small: Vec<f32> = (1..400).map(|i| i as f32 * 1.0e-4).collect();
    for function in [Function::Tanh, Function::Erf, Function::Elu { alpha: 1.0 }, Function::Gelu] {
        let inputs: Vec<f32> = small.iter().map(|x| -x).collect();
        let mut values = vec![0.0; inputs.len()];
        apply(function, &inputs, &mut values);
        for (&x, &y) in inputs.iter().zip(&values) {
            let truth = function.value(f64::from(x));
            assert!((f64::from(y) / truth - 1.0).abs() < 4e-7, "{function:?} at {x}: {y} {truth}");
        }
    }
}

#[test]
fn limits_are_taken() {
    let ends = [f32::NEG_INFINITY, f32::INFINITY, f32::NAN, 0.0];
    let at = |function| {
        let mut out = [0.0; 4];
        apply(function, &ends, &mut out);
        assert!(out[2].is_nan(), "{function:?} of NaN is {}", out[2]);
        [out[0], out[1], out[3]]
    };
    assert_eq!(at(Function::Sigmoid), [0.0, 1.0, 0.5]);
    assert_eq!(at(Function::Tanh), [-1.0, 1.0, 0.0]);
    assert_eq!(at(Function::Erf), [-1.0, 1.0, 0.0]);
    assert_eq!(at(Function::Exp), [0.0, f32::INFINITY, 1.0]);
    assert_eq!(at(Function::Softplus)[..2], [0.0, f32::INFINITY]);
    assert_eq!(at(Function::Elu { alpha: 1.0 }), [-1.0, f32::INFINITY, 0.0]);
    let mut logs = [0.0; 4];
    apply(Function::Log, &[0.0, -1.0, f32::INFINITY, 1.0e-42], &mut logs);
    assert!(logs[0] == f32::NEG_INFINITY && logs[1].is_nan() && logs[2] == f32::INFINITY);
    assert!((logs[3] - 1.0e-42f32.ln()).abs() < 1e-5);
}
