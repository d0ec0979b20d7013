//! Maps agree with hand-worked interpolations, fast application with the plain loops, the transpose with the adjoint identity, and
//! threads never matter.

use super::*;
use crate::layout::{Extents, from_planar, stride};
use crate::seeded::{assert_close, random, with_threads};

const COORDINATES: [Coordinates; 6] = [
    Coordinates::HalfPixel,
    Coordinates::HalfPixelSymmetric,
    Coordinates::PytorchHalfPixel,
    Coordinates::AlignCorners,
    Coordinates::Asymmetric,
    Coordinates::Crop { start: -0.2, end: 0.9, outside: 7.0 },
];

const FILTERS: [Filter; 8] = [
    Filter::Nearest(Rounding::PreferFloor),
    Filter::Nearest(Rounding::PreferCeil),
    Filter::Nearest(Rounding::Floor),
    Filter::Nearest(Rounding::Ceil),
    Filter::Linear { antialias: false },
    Filter::Linear { antialias: true },
    Filter::Cubic { a: -0.75, antialias: false },
    Filter::Cubic { a: -0.5, antialias: true },
];

fn table() -> Vec<AxisMap> {
    let mut all = Vec::new();
    for coordinates in COORDINATES {
        for filter in FILTERS {
            for exclude_outside in [false, true] {
                for (input, output) in [(1, 1), (1, 4), (5, 1), (7, 3), (6, 13), (20, 20), (33, 17)] {
                    let sampling = Sampling { coordinates, filter, exclude_outside };
                    all.push(AxisMap::resize(input, output, output as f64 / input as f64, sampling));
                }
            }
        }
    }
    all
}

fn along(map: &AxisMap, x: &[f32]) -> Vec<f32> {
    let mut y = vec![0.0; map.output()];
    map.apply(1, 1, x, &mut y);
    y
}

fn resize(coordinates: Coordinates, filter: Filter, x: &[f32], output: usize) -> Vec<f32> {
    let sampling = Sampling { coordinates, filter, exclude_outside: false };
    along(&AxisMap::resize(x.len(), output, output as f64 / x.len() as f64, sampling), x)
}

#[test]
fn worked_examples() {
    let linear = Filter::Linear { antialias: false };
    let x = [1.0, 2.0, 3.0, 4.0];
    assert_eq!(resize(Coordinates::HalfPixel, linear, &x, 8), [1.0, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4.0]);
    assert_close(
        &resize(Coordinates::AlignCorners, linear, &x, 7),
        &[1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0],
        1e-6,
        "corners",
    );
    assert_eq!(resize(Coordinates::Asymmetric, linear, &x, 8), [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.0]);
    let nearest = |rounding| Filter::Nearest(rounding);
    assert_eq!(
        resize(Coordinates::Asymmetric, nearest(Rounding::Floor), &x, 6),
        [1.0, 1.0, 2.0, 3.0, 3.0, 4.0]
    );
    assert_eq!(resize(Coordinates::HalfPixel, nearest(Rounding::PreferCeil), &x, 2), [2.0, 4.0]);
    assert_eq!(resize(Coordinates::HalfPixel, nearest(Rounding::PreferFloor), &x, 2), [1.0, 3.0]);
    // Halving with an antialiased triangle: weights 1/8, 3/8, 3/8, 1/8, the edge standing in for what lies outside.
    let halved = resize(Coordinates::HalfPixel, Filter::Linear { antialias: true }, &x, 2);
    assert_close(&halved, &[1.625, 3.375], 1e-6, "antialias");
    let crop = Coordinates::Crop { start: 0.0, end: 2.0, outside: 9.0 };
    assert_eq!(resize(crop, linear, &x, 4), [1.0, 3.0, 9.0, 9.0]);
    // The cubic halfway between samples: (-a/8) outside, (4+a)/8 inside... with a = -0.75.
    let cubic = AxisMap::resize(
        4,
        8,
        2.0,
        Sampling { filter: Filter::Cubic { a: -0.75, antialias: false }, ..Sampling::LINEAR },
    );
    let weights: Vec<f32> = cubic.list(3).iter().map(|pair| pair.1).collect();
    assert_close(&weights, &[-0.105_468_75, 0.878_906_25, 0.261_718_75, -0.035_156_25], 1e-6, "cubic");
}

#[test]
fn weights_sum_to_one_wherever_an_output_is_not_filled() {
    for map in table() {
        for o in 0..map.output() {
            let sum: f32 = map.list(o).iter().map(|pair| pair.1).sum();
            assert!(map.list(o).is_empty() || (sum - 1.0).abs() < 1e-5, "{map:?} {o}");
        }
    }
}

#[test]
fn fast_answers_to_reference_along_any_axis() {
    for map in table() {
        for map in [map.transposed(), map] {
            for (outer, inner) in [(1, 1), (3, 1), (2, 3), (2, 8), (1, 70)] {
                let x = random(outer * map.input() * inner, 1);
                let len = outer * map.output() * inner;
                let (mut fast, mut plain) = (vec![f32::NAN; len], vec![f32::NAN; len]);
                map.apply(outer, inner, &x, &mut fast);
                map.apply_reference(outer, inner, &x, &mut plain);
                assert_close(&fast, &plain, 1e-6, &format!("{map:?} {outer} {inner}"));
            }
        }
    }
}

#[test]
fn the_transpose_is_the_adjoint() {
    for mut map in table() {
        map.fill = 0.0;
        let (x, y): (Vec<f64>, Vec<f64>) = (
            random(2 * map.input() * 3, 2).iter().map(|&x| x.into()).collect(),
            random(2 * map.output() * 3, 3).iter().map(|&x| x.into()).collect(),
        );
        let (mut ax, mut aty) = (vec![0.0; y.len()], vec![0.0; x.len()]);
        map.apply_reference(2, 3, &x, &mut ax);
        map.transposed().apply_reference(2, 3, &y, &mut aty);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        assert!((dot(&ax, &y) - dot(&x, &aty)).abs() < 1e-9, "{map:?}");
    }
}

#[test]
fn both_layouts_agree_to_the_bit() {
    let map = |input, output| AxisMap::resize(input, output, output as f64 / input as f64, Sampling::LINEAR);
    for (rows, columns) in [(map(9, 17), map(12, 30)), (map(17, 9), map(12, 30)), (map(17, 9), map(30, 12))] {
        let both = Separable { rows, columns };
        for both in [both.transposed(), both] {
            let (pixels_in, pixels_out) =
                (both.rows.input() * both.columns.input(), both.rows.output() * both.columns.output());
            let (batch, channels) = (2, 5);
            let x = random(batch * channels * pixels_in, 4);
            let mut planar = vec![0.0; batch * channels * pixels_out];
            both.apply_planar(batch * channels, &x, &mut planar);
            let mut map = vec![0.0; batch * pixels_in * stride(channels)];
            from_planar(Extents { batch, channels, pixels: pixels_in }, &x, &mut map);
            let mut out = vec![0.0; batch * pixels_out * stride(channels)];
            both.apply_channels_last(batch, channels, &map, &mut out);
            let mut expected = vec![0.0; out.len()];
            from_planar(Extents { batch, channels, pixels: pixels_out }, &planar, &mut expected);
            assert_eq!(out, expected);
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let map = AxisMap::resize(300, 411, 1.37, Sampling::LINEAR);
    let both = Separable { rows: map.clone(), columns: map };
    let x = random(3 * 300 * 300, 5);
    let run = |threads| {
        with_threads(threads, || {
            let (mut y, mut back) = (vec![0.0; 3 * 411 * 411], vec![0.0; x.len()]);
            both.apply_planar(3, &x, &mut y);
            both.transposed().apply_planar(3, &y, &mut back);
            (y, back)
        })
    };
    assert!(run(1) == run(2) && run(1) == run(3));
}
