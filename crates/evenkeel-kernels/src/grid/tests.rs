//! Both layouts answer to the reference, slopes to central differences in f64, the pullback to the adjoint identity, threads never
//! matter.

use super::*;
use crate::layout::{Extents, from_planar, to_planar};
use crate::seeded::{assert_close, random, with_threads};

fn table() -> Vec<Sampling> {
    let mut all = Vec::new();
    for filter in [Filter::Bilinear, Filter::Nearest, Filter::Bicubic] {
        for padding in [Padding::Zeros, Padding::Border, Padding::Reflection] {
            for align_corners in [false, true] {
                all.push(Sampling { filter, padding, align_corners });
            }
        }
    }
    all
}

const PLANAR: Geometry =
    Geometry { batch: 2, channels: 3, input: [5, 7], points: 40, layout: Layout::Planar };

fn points() -> Vec<f32> {
    random(2 * 40 * 2, 1).iter().map(|x| x * 1.8).collect()
}

#[test]
fn forward_answers_to_the_reference_in_both_layouts() {
    let (x, grid) = (random(2 * 3 * 35, 2), points());
    for sampling in table() {
        let mut planar = vec![0.0; 2 * 3 * 40];
        forward(&PLANAR, sampling, &x, &grid, &mut planar);
        for (i, &y) in planar.iter().enumerate() {
            let (n, c, p) = (i / 120, i / 40 % 3, i % 40);
            let point = [grid[(n * 40 + p) * 2], grid[(n * 40 + p) * 2 + 1]];
            let expected = sample_reference(sampling, [5, 7], &x[(n * 3 + c) * 35..][..35], point);
            assert!((y - expected).abs() < 1e-5, "{sampling:?} {i}: {y} {expected}");
        }
        let mut map = vec![0.0; 2 * 35 * 8];
        from_planar(Extents { batch: 2, channels: 3, pixels: 35 }, &x, &mut map);
        let last = Geometry { layout: Layout::ChannelsLast, ..PLANAR };
        let (mut out, mut back) = (vec![0.0; 2 * 40 * 8], vec![0.0; planar.len()]);
        forward(&last, sampling, &map, &grid, &mut out);
        to_planar(Extents { batch: 2, channels: 3, pixels: 40 }, &out, &mut back);
        assert_close(&back, &planar, 1e-6, &format!("{sampling:?}"));
    }
}

#[test]
fn slopes_follow_central_differences() {
    let x: Vec<f64> = random(35, 3).iter().map(|&x| x.into()).collect();
    for sampling in table() {
        for point in points().chunks(2) {
            let point = [f64::from(point[0]), f64::from(point[1])];
            let slopes = sample_reference_slopes(sampling, [5, 7], &x, point);
            for axis in 0..2 {
                let moved = |by: f64| {
                    let mut point = point;
                    point[axis] += by;
                    sample_reference(sampling, [5, 7], &x, point)
                };
                let slope = (moved(1e-7) - moved(-1e-7)) / 2e-7;
                assert!((slope - slopes[axis]).abs() < 1e-5, "{sampling:?} {point:?}: {slope} {slopes:?}");
            }
        }
    }
}

#[test]
fn gradients_to_input_and_points() {
    let (x, g, grid) = (random(2 * 3 * 35, 4), random(2 * 3 * 40, 5), points());
    for sampling in table() {
        let (mut y, mut back) = (vec![0.0; g.len()], vec![0.0; x.len()]);
        forward(&PLANAR, sampling, &x, &grid, &mut y);
        pullback_input(&PLANAR, sampling, &grid, &g, &mut back);
        let dot =
            |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
        assert!((dot(&y, &g) - dot(&x, &back)).abs() < 1e-4, "{sampling:?}");
        let mut grad_grid = vec![0.0; grid.len()];
        pullback_grid(&PLANAR, sampling, SampledAt { input: &x, grid: &grid }, &g, &mut grad_grid);
        for i in 0..80 {
            let (n, p) = (i / 40, i % 40);
            let mut expected = [0.0; 2];
            for c in 0..3 {
                let channel = &x[(n * 3 + c) * 35..][..35];
                let slopes =
                    sample_reference_slopes(sampling, [5, 7], channel, [grid[2 * i], grid[2 * i + 1]]);
                expected[0] += slopes[0] * g[(n * 3 + c) * 40 + p];
                expected[1] += slopes[1] * g[(n * 3 + c) * 40 + p];
            }
            assert_close(&grad_grid[2 * i..2 * i + 2], &expected, 1e-5, &format!("{sampling:?}"));
        }
    }
}

#[test]
fn a_point_that_is_not_a_number_reads_nothing_or_the_edge() {
    for sampling in table() {
        let value = sample_reference(sampling, [2, 2], &[1.0f32; 4], [f32::NAN, f32::INFINITY]);
        assert!(value.is_nan() || value == 0.0 || value == 1.0, "{sampling:?}: {value}");
    }
}

#[test]
fn threads_do_not_matter() {
    let g = Geometry { batch: 1, channels: 3, input: [60, 70], points: 9000, layout: Layout::Planar };
    let (x, grid) = (random(3 * 4200, 8), random(18_000, 9));
    let sampling = Sampling { filter: Filter::Bilinear, padding: Padding::Border, align_corners: false };
    let run = |threads| {
        with_threads(threads, || {
            let (mut y, mut back) = (vec![0.0; 27_000], vec![0.0; x.len()]);
            forward(&g, sampling, &x, &grid, &mut y);
            pullback_input(&g, sampling, &grid, &y, &mut back);
            let mut points = vec![0.0; grid.len()];
            pullback_grid(&g, sampling, SampledAt { input: &x, grid: &grid }, &y, &mut points);
            (y, back, points)
        })
    };
    assert!(run(1) == run(2) && run(1) == run(3));
}
