//! The fast rows and columns answer to the f64 formulas, the formulas' pullbacks to central differences, threads never matter.

use super::*;
use crate::seeded::{random, with_threads};

const KINDS: [Kind; 2] = [Kind::Softmax, Kind::LogSoftmax];

fn table() -> Vec<Along> {
    let mut all = Vec::new();
    for length in [1, 2, 7, 8, 9, 21, 1000] {
        for (outer, inner) in [(1, 1), (5, 1), (2, 3), (3, 65), (1, 200)] {
            all.push(Along { outer, length, inner });
        }
    }
    all
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| x.into()).collect()
}

#[test]
fn values_and_gradients_are_the_f64_formulas() {
    for along in table() {
        for kind in KINDS {
            let x: Vec<f32> = random(along.len(), 1).iter().map(|x| x * 20.0).collect();
            let g = random(along.len(), 2);
            let (mut y, mut back) = (vec![0.0; x.len()], vec![0.0; x.len()]);
            forward(kind, along, &x, &mut y);
            pullback(kind, along, &y, &g, &mut back);
            let (mut truth, mut true_back) = (vec![0.0f64; x.len()], vec![0.0f64; x.len()]);
            reference::forward(kind, along, &wide(&x), &mut truth);
            reference::pullback(kind, along, &truth, &wide(&g), &mut true_back);
            for i in 0..x.len() {
                // A logarithm near zero is that of a sum near one, which is only known to a unit in its last place.
                let floor = if kind == Kind::Softmax { 1e-2 } else { 1.0 };
                let bound = (6e-7 + 1e-9 * along.length as f64) * truth[i].abs().max(floor);
                assert!(
                    (f64::from(y[i]) - truth[i]).abs() <= bound,
                    "{along:?} {kind:?}: {} {}",
                    y[i],
                    truth[i]
                );
                // The sum of up to a thousand gradients carries its own rounding.
                assert!((f64::from(back[i]) - true_back[i]).abs() <= 5e-6, "{along:?} {kind:?}");
            }
        }
    }
}

#[test]
fn pullbacks_follow_central_differences() {
    let along = Along { outer: 2, length: 5, inner: 3 };
    let (x, g) = (wide(&random(30, 3)), wide(&random(30, 4)));
    for kind in KINDS {
        let value = |x: &[f64]| {
            let mut y = vec![0.0; 30];
            reference::forward(kind, along, x, &mut y);
            y
        };
        let mut back = vec![0.0; 30];
        reference::pullback(kind, along, &value(&x), &g, &mut back);
        for i in 0..30 {
            let moved = |by: f64| {
                let mut x = x.clone();
                x[i] += by;
                value(&x).iter().zip(&g).map(|(y, g)| y * g).sum::<f64>()
            };
            let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            assert!((slope - back[i]).abs() < 1e-8, "{kind:?} {slope} {}", back[i]);
        }
    }
}

#[test]
fn channels_last_ignores_padding() {
    let (channels, pixels) = (21, 40);
    let dense = random(pixels * channels, 5);
    let mut padded = vec![f32::NAN; pixels * 24];
    for (row, x) in padded.chunks_mut(24).zip(dense.chunks(channels)) {
        row[..channels].copy_from_slice(x);
    }
    let along = Along { outer: pixels, length: channels, inner: 1 };
    for kind in KINDS {
        let (mut y, mut y_padded) = (vec![0.0; dense.len()], vec![0.0; padded.len()]);
        forward(kind, along, &dense, &mut y);
        forward_channels(kind, channels, &padded, &mut y_padded);
        let (mut back, mut back_padded) = (vec![0.0; dense.len()], vec![0.0; padded.len()]);
        pullback(kind, along, &y, &dense, &mut back);
        pullback_channels(kind, channels, &y_padded, &padded, &mut back_padded);
        for p in 0..pixels {
            assert_eq!(y[p * channels..][..channels], y_padded[p * 24..][..channels]);
            assert_eq!(back[p * channels..][..channels], back_padded[p * 24..][..channels]);
        }
    }
}

#[test]
fn threads_do_not_matter() {
    for along in [Along { outer: 3000, length: 19, inner: 1 }, Along { outer: 2, length: 21, inner: 5000 }] {
        let x = random(along.len(), 6);
        let run = |threads| {
            with_threads(threads, || {
                let (mut y, mut back) = (vec![0.0; x.len()], vec![0.0; x.len()]);
                forward(Kind::Softmax, along, &x, &mut y);
                pullback(Kind::Softmax, along, &y, &x, &mut back);
                (y, back)
            })
        };
        assert!(run(1) == run(2) && run(1) == run(3));
    }
}
