//! Fast rows answer to the f64 formulas, the formulas' pullbacks to central differences, threads never matter.

use super::*;
use crate::layout::Extents;
use crate::seeded::{random, with_threads};

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| x.into()).collect()
}

/// Layer norms, and group norms of 6 channels in 1, 2, 3 and 6 groups.
fn each_case(mut task: impl FnMut(Rows<'_>, usize)) {
    let (scale, bias) = (random(100, 1), random(100, 2));
    for length in [1, 5, 8, 19, 100] {
        let affine = Affine { scale: &scale[..length], bias: Some(&bias[..length]), run: 1 };
        task(Rows { length, epsilon: 1e-5, affine: Some(affine) }, 4 * length);
        task(Rows { length, epsilon: 1e-3, affine: Some(Affine { bias: None, ..affine }) }, 4 * length);
        task(Rows { length, epsilon: 1e-5, affine: None }, 4 * length);
    }
    for groups in [1, 2, 3, 6] {
        let affine = Affine { scale: &scale[..6], bias: Some(&bias[..6]), run: 35 };
        task(Rows { length: 6 / groups * 35, epsilon: 1e-5, affine: Some(affine) }, 2 * 6 * 35);
    }
}

#[test]
fn values_and_gradients_are_the_f64_formulas() {
    each_case(|rows, len| {
        // Far from zero, where a one-pass variance would cancel.
        let x: Vec<f32> = random(len, 3).iter().map(|x| x * 2.0 + 50.0).collect();
        let g = random(len, 4);
        let (mut y, mut back) = (vec![0.0; len], vec![0.0; len]);
        let mut moments = vec![Moments::default(); len / rows.length];
        forward(&rows, &x, &mut y, Some(&mut moments));
        pullback(&rows, &x, &moments, &g, &mut back);
        let truth = reference::forward(rows.length, rows.epsilon.into(), rows.affine, &wide(&x));
        let true_back =
            reference::pullback(rows.length, rows.epsilon.into(), rows.affine, &wide(&x), &wide(&g));
        // A mean of 50 is only known to 2e-6; single elements are all mean, and epsilon magnifies it.
        let bound = if rows.length == 1 { 1e-2 } else { 3e-5 };
        for i in 0..len {
            assert!((f64::from(y[i]) - truth[i]).abs() < bound, "{rows:?} {i}: {} {}", y[i], truth[i]);
            assert!(
                (f64::from(back[i]) - true_back[i]).abs() < bound,
                "{rows:?} {i}: {} {}",
                back[i],
                true_back[i]
            );
        }
    });
}

#[test]
fn pullbacks_follow_central_differences() {
    each_case(|rows, len| {
        let (x, g) = (wide(&random(len, 5)), wide(&random(len, 6)));
        let epsilon = 0.1;
        let back = reference::pullback(rows.length, epsilon, rows.affine, &x, &g);
        for i in (0..len).step_by(7) {
            let moved = |by: f64| {
                let mut x = x.clone();
                x[i] += by;
                let y = reference::forward(rows.length, epsilon, rows.affine, &x);
                y.iter().zip(&g).map(|(y, g)| y * g).sum::<f64>()
            };
            let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            assert!((slope - back[i]).abs() < 1e-7, "{rows:?} {slope} {}", back[i]);
        }
    });
}

#[test]
fn lrn_is_its_formula_and_its_pullback_the_derivative() {
    let extents = Extents { batch: 2, channels: 7, pixels: 3 };
    for size in [1, 2, 3, 5, 9] {
        let constants = Lrn { size, alpha: 0.8, beta: 0.75, bias: 1.5 };
        let (x, g) = (wide(&random(42, 7)), wide(&random(42, 8)));
        let value = |x: &[f64]| {
            let mut y = vec![0.0; 42];
            lrn(constants, extents, x, &mut y);
            y
        };
        let (c, p) = (3usize, 1);
        let window = c.saturating_sub((size - 1) / 2)
            ..(c + size.div_ceil(2).max(1) - usize::from(size % 2 == 1) + 1).min(7);
        let sum: f64 = window.map(|c| x[c * 3 + p] * x[c * 3 + p]).sum();
        let expected = x[c * 3 + p] / (1.5 + f64::from(0.8f32) / size as f64 * sum).powf(0.75);
        assert!((value(&x)[c * 3 + p] - expected).abs() < 1e-12, "size {size}");
        let mut back = vec![0.0; 42];
        lrn_pullback(constants, extents, &x, &g, &mut back);
        for i in 0..42 {
            let moved = |by: f64| {
                let mut x = x.clone();
                x[i] += by;
                value(&x).iter().zip(&g).map(|(y, g)| y * g).sum::<f64>()
            };
            let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            assert!((slope - back[i]).abs() < 1e-8, "size {size}: {slope} {}", back[i]);
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let rows = Rows { length: 77, epsilon: 1e-5, affine: None };
    let x = random(77 * 900, 9);
    let run = |threads| {
        with_threads(threads, || {
            let (mut y, mut back, mut moments) =
                (vec![0.0; x.len()], vec![0.0; x.len()], vec![Moments::default(); 900]);
            forward(&rows, &x, &mut y, Some(&mut moments));
            pullback(&rows, &x, &moments, &y, &mut back);
            (y, back)
        })
    };
    assert!(run(1) == run(2) && run(1) == run(3));
}
