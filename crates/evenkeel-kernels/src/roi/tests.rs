//! Worked values, both layouts alike, the adjoint identity and central differences, threads without effect.

use super::*;
use crate::layout::{Extents, from_planar};
use crate::seeded::{assert_close, random, with_threads};

const MAPS: Maps = Maps { batch: 2, channels: 11, size: [9, 12], layout: Layout::Planar };

fn poolings() -> Vec<Pooling> {
    let mut all = Vec::new();
    for mode in [Mode::Average, Mode::Max] {
        for half_pixel in [false, true] {
            for sampling_ratio in [0, 2] {
                all.push(Pooling { cells: [3, 2], sampling_ratio, spatial_scale: 0.5, half_pixel, mode });
            }
        }
    }
    all
}

fn regions() -> Vec<Region> {
    let region = |image, corners| Region { image, corners };
    vec![
        region(1, [2.0, 3.0, 17.0, 14.0]),
        region(0, [-4.0, -3.0, 6.0, 40.0]),
        region(1, [5.0, 5.0, 5.0, 5.0]),
        region(1, [f32::NAN, 0.0, f32::INFINITY, 3.0]),
        region(0, [0.0, 0.0, 23.0, 17.0]),
    ]
}

#[test]
fn a_whole_map_in_one_cell_is_its_mean() {
    let maps = Maps { batch: 1, channels: 1, size: [2, 2], layout: Layout::Planar };
    let pooling = Pooling {
        cells: [1, 1],
        sampling_ratio: 2,
        spatial_scale: 1.0,
        half_pixel: true,
        mode: Mode::Average,
    };
    let region = Region { image: 0, corners: [0.0, 0.0, 2.0, 2.0] };
    let mut out = [0.0];
    forward(&maps, &pooling, &[region], &[1.0, 2.0, 3.0, 6.0], &mut out);
    assert_eq!(out, [3.0]);
}

#[test]
fn layouts_agree() {
    let x = random(2 * 11 * 108, 1);
    let mut map = vec![0.0; 2 * 108 * 16];
    from_planar(Extents { batch: 2, channels: 11, pixels: 108 }, &x, &mut map);
    let last = Maps { layout: Layout::ChannelsLast, ..MAPS };
    let g = random(5 * 11 * 6, 2);
    let mut g_map = vec![0.0; 5 * 6 * 16];
    from_planar(Extents { batch: 5, channels: 11, pixels: 6 }, &g, &mut g_map);
    for pooling in poolings() {
        let (mut y, mut y_map, mut expected) =
            (vec![0.0; g.len()], vec![0.0; g_map.len()], vec![0.0; g_map.len()]);
        forward(&MAPS, &pooling, &regions(), &x, &mut y);
        forward(&last, &pooling, &regions(), &map, &mut y_map);
        from_planar(Extents { batch: 5, channels: 11, pixels: 6 }, &y, &mut expected);
        assert_close(&y_map, &expected, 0.0, &format!("{pooling:?}"));
        let (mut back, mut back_map, mut expected) =
            (vec![0.0; x.len()], vec![0.0; map.len()], vec![0.0; map.len()]);
        pullback(&MAPS, &pooling, &regions(), PooledAt { grad_out: &g, features: &x }, &mut back);
        pullback(&last, &pooling, &regions(), PooledAt { grad_out: &g_map, features: &map }, &mut back_map);
        from_planar(Extents { batch: 2, channels: 11, pixels: 108 }, &back, &mut expected);
        assert_close(&back_map, &expected, 0.0, &format!("{pooling:?}"));
    }
}

#[test]
fn the_pullback_is_the_derivative() {
    let (x, g) = (random(2 * 11 * 108, 3), random(5 * 11 * 6, 4));
    for pooling in poolings() {
        let value = |x: &[f32]| {
            let mut y = vec![0.0; g.len()];
            forward(&MAPS, &pooling, &regions(), x, &mut y);
            y.iter().zip(&g).map(|(&y, &g)| f64::from(y) * f64::from(g)).sum::<f64>()
        };
        let mut back = vec![0.0; x.len()];
        pullback(&MAPS, &pooling, &regions(), PooledAt { grad_out: &g, features: &x }, &mut back);
        // Both modes are homogeneous: the value is the gradient's product with the input.
        let product: f64 = x.iter().zip(&back).map(|(&x, &b)| f64::from(x) * f64::from(b)).sum();
        assert!((value(&x) - product).abs() < 1e-4, "{pooling:?}: {} {product}", value(&x));
        if pooling.mode == Mode::Average {
            for i in (0..x.len()).step_by(101) {
                let moved = |by: f32| {
                    let mut x = x.clone();
                    x[i] += by;
                    value(&x)
                };
                let slope = (moved(0.5) - moved(-0.5)) / 1.0;
                assert!((slope - f64::from(back[i])).abs() < 1e-4, "{pooling:?}");
            }
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let (x, g) = (random(2 * 11 * 108, 5), random(5 * 11 * 6, 6));
    for pooling in poolings() {
        let run = |threads| {
            with_threads(threads, || {
                let (mut y, mut back) = (vec![0.0; g.len()], vec![0.0; x.len()]);
                forward(&MAPS, &pooling, &regions(), &x, &mut y);
                pullback(&MAPS, &pooling, &regions(), PooledAt { grad_out: &g, features: &x }, &mut back);
                (y, back)
            })
        };
        assert!(run(1) == run(2) && run(1) == run(3));
    }
}
