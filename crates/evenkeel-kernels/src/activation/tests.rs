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
