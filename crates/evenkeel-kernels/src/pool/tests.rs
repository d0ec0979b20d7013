//! The fast pools answer to the reference, linear ones satisfy the adjoint identity, curved ones central differences, and
//! threads never matter.

use super::max::RowWinners;
use super::*;
use crate::epilogue::{Epilogue, Mask};
use crate::layout::Extents;
use crate::seeded::{assert_close, random, with_threads};
use crate::taps::Reach;

fn geometry(channels: usize, kernel: [usize; 2], stride: [usize; 2], dilation: [usize; 2]) -> Geometry {
    let (in_h, in_w, pads) = (11, 13, [1, 0, 1, 1]);
    let out = |i: usize, input: usize| {
        (input + pads[i] + pads[i + 2] - dilation[i] * (kernel[i] - 1) - 1).div_ceil(stride[i]) + 1
    };
    let (out_h, out_w) = (out(0, in_h), out(1, in_w));
    Geometry { batch: 2, channels, in_h, in_w, out_h, out_w, kernel, stride, dilation, pads }
}

fn table() -> Vec<Geometry> {
    let mut all = Vec::new();
    for channels in [3, 8, 21] {
        for (kernel, stride, dilation) in [
            ([2, 2], [2, 2], [1, 1]),
            ([3, 3], [2, 2], [1, 1]),
            ([3, 2], [1, 3], [1, 1]),
            ([3, 3], [1, 2], [2, 3]),
            ([5, 5], [1, 1], [1, 1]),
        ] {
            all.push(geometry(channels, kernel, stride, dilation));
        }
    }
    all
}

fn real_lanes(values: &[f32], channels: usize) -> Vec<f32> {
    values.chunks(stride(channels)).flat_map(|pixel| pixel[..channels].to_vec()).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

#[test]
fn max_and_its_winners_are_the_references() {
    for g in table() {
        let mut input = random(g.in_len(), 1);
        input[3] = f32::NAN;
        let (mut fast, mut bytes) = (vec![0.0; g.out_len()], vec![0; g.out_len()]);
        max(&g, &input, &mut fast, Some(WinnersMut::Bytes(&mut bytes)));
        let (mut bare, mut words) = (vec![0.0; g.out_len()], vec![0; g.out_len()]);
        max(&g, &input, &mut bare, None);
        let step = stride(g.channels);
        let mut plain = vec![0.0; g.out_len()];
        let reach = Reach::forward(g.axes());
        for (i, (out, words)) in plain.chunks_mut(step).zip(words.chunks_mut(step)).enumerate() {
            let mut cells = Vec::new();
            reach.gather(i / g.out_w % g.out_h, i % g.out_w, &mut cells);
            let image = &input[i / (g.out_h * g.out_w) * g.in_h * g.in_w * step..];
            reference::max_pixel(image, &cells, out, RowWinners::Words(words));
        }
        let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&fast), bits(&plain), "{g:?}");
        assert_eq!(bits(&bare), bits(&plain), "{g:?}");
        assert!(bytes.iter().zip(&words).all(|(&a, &b)| u32::from(a) == b), "{g:?}");
    }
}

#[test]
fn max_pullback_sends_each_gradient_to_its_winner() {
    for g in table() {
        let input = random(g.in_len(), 1);
        let (mut out, mut bytes) = (vec![0.0; g.out_len()], vec![0; g.out_len()]);
        max(&g, &input, &mut out, Some(WinnersMut::Bytes(&mut bytes)));
        let grad_out = random(g.out_len(), 2);
        let step = stride(g.channels);
        let mut expected = vec![0.0; g.in_len()];
        for (at, &winner) in bytes.iter().enumerate() {
            let (pixel, c) = (at / step, at % step);
            let (n, y, x) = (pixel / (g.out_h * g.out_w), pixel / g.out_w % g.out_h, pixel % g.out_w);
            let [vertical, horizontal] = g.axes();
            let tap = winner as usize;
            let (Some(y), Some(x)) =
                (vertical.source(y, tap / g.kernel[1]), horizontal.source(x, tap % g.kernel[1]))
            else {
                continue;
            };
            expected[((n * g.in_h + y) * g.in_w + x) * step + c] += grad_out[at];
        }
        let words: Vec<u32> = bytes.iter().map(|&b| b.into()).collect();
        for winners in [Winners::Bytes(&bytes), Winners::Words(&words)] {
            let mut grad_in = vec![f32::NAN; g.in_len()];
            max_pullback(&g, winners, &grad_out, &mut grad_in, Epilogue::default());
            assert_close(&grad_in, &expected, 1e-6, &format!("{g:?}"));
        }
    }
}

#[test]
fn the_pullback_accumulates_and_masks() {
    let g = geometry(9, [3, 3], [2, 2], [1, 1]);
    let (mut out, mut bytes) = (vec![0.0; g.out_len()], vec![0; g.out_len()]);
    max(&g, &random(g.in_len(), 1), &mut out, Some(WinnersMut::Bytes(&mut bytes)));
    let grad_out = random(g.out_len(), 2);
    let mut plain = vec![0.0; g.in_len()];
    max_pullback(&g, Winners::Bytes(&bytes), &grad_out, &mut plain, Epilogue::default());
    let before = random(g.in_len(), 3);
    let bits: Vec<u8> = (0..g.in_len() / 8).map(|i| (i * 37) as u8).collect();
    let mask = Mask { bits: &bits, on: 1.0, off: 0.1 };
    let mut fused = before.clone();
    let epilogue = Epilogue { accumulate: true, mask: Some(mask), ..Epilogue::default() };
    max_pullback(&g, Winners::Bytes(&bytes), &grad_out, &mut fused, epilogue);
    for i in 0..plain.len() {
        assert_eq!(fused[i], (plain[i] + before[i]) * mask.slope(i));
    }
}

#[test]
fn average_is_the_mean_and_its_pullback_the_adjoint() {
    for g in table() {
        for count_padding in [false, true] {
            let (x, y) = (random(g.in_len(), 4), random(g.out_len(), 5));
            let (mut ax, mut aty) = (vec![0.0; g.out_len()], vec![0.0; g.in_len()]);
            average(&g, count_padding, &x, &mut ax);
            average_pullback(&g, count_padding, &y, &mut aty, Epilogue::default());
            let (ax, y) = (real_lanes(&ax, g.channels), real_lanes(&y, g.channels));
            if ax.iter().any(|v| v.is_nan()) {
                continue; // a window wholly outside has no mean
            }
            let (left, right) =
                (dot(&ax, &y), dot(&real_lanes(&x, g.channels), &real_lanes(&aty, g.channels)));
            assert!((left - right).abs() < 1e-4, "{g:?}: {left} {right}");
        }
    }
}

#[test]
fn padding_counts_only_when_asked() {
    let g = Geometry {
        batch: 1,
        channels: 1,
        in_h: 2,
        in_w: 2,
        out_h: 2,
        out_w: 2,
        kernel: [2, 2],
        stride: [2, 2],
        dilation: [1, 1],
        pads: [1, 1, 0, 0],
    };
    let mut out = vec![0.0; g.out_len()];
    average(&g, true, &vec![1.0; g.in_len()], &mut out);
    // The last row and column of windows hang over the unpadded edge, and what hangs over never counts.
    assert_eq!([out[0], out[8], out[16], out[24]], [0.25, 0.5, 0.5, 1.0]);
    average(&g, false, &vec![1.0; g.in_len()], &mut out);
    assert_eq!([out[0], out[8], out[16], out[24]], [1.0; 4]);
}

#[test]
fn global_pools_and_their_pullbacks() {
    let extents = Extents { batch: 2, channels: 13, pixels: 150 };
    let x = random(2 * 150 * 16, 6);
    let (mut mean, mut best, mut winners) = (vec![0.0; 32], vec![0.0; 32], vec![0; 32]);
    global_average(extents, &x, &mut mean);
    global_max(extents, &x, &mut best, Some(&mut winners));
    for i in 0..32 {
        let channel = (0..150).map(|p| x[(i / 16 * 150 + p) * 16 + i % 16]);
        assert!((channel.clone().sum::<f32>() / 150.0 - mean[i]).abs() < 1e-6);
        assert_eq!(channel.clone().fold(f32::NEG_INFINITY, f32::max), best[i]);
        assert_eq!(channel.clone().nth(winners[i] as usize), Some(best[i]));
    }
    let y = random(32, 7);
    let mut grad = vec![0.0; x.len()];
    global_average_pullback(extents, &y, &mut grad, Epilogue::default());
    assert!((dot(&mean, &y) - dot(&x, &grad)).abs() < 1e-5);
    global_max_pullback(extents, &winners, &y, &mut grad, Epilogue::default());
    assert!((dot(&best, &y) - dot(&x, &grad)).abs() < 1e-5);
}

#[test]
fn lp_pullback_follows_central_differences() {
    for p in [1.0, 2.0, 3.0] {
        let g = geometry(3, [3, 2], [1, 3], [1, 1]);
        let x = random(g.in_len(), 8);
        let grad_out = random(g.out_len(), 9);
        let value = |x: &[f32]| {
            let mut out = vec![0.0; g.out_len()];
            lp(&g, p, x, &mut out);
            dot(&out, &grad_out)
        };
        let mut output = vec![0.0; g.out_len()];
        lp(&g, p, &x, &mut output);
        let mut grad = vec![0.0; g.in_len()];
        lp_pullback(&g, LpTape { p, input: &x, output: &output }, &grad_out, &mut grad, Epilogue::default());
        for at in (0..x.len()).step_by(97) {
            let moved = |by: f32| {
                let mut x = x.clone();
                x[at] += by;
                value(&x)
            };
            let slope = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            assert!((slope - f64::from(grad[at])).abs() < 2e-2, "p {p}: {slope} {}", grad[at]);
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let g = Geometry {
        batch: 3,
        in_h: 40,
        in_w: 50,
        out_h: 20,
        out_w: 25,
        ..geometry(24, [3, 3], [2, 2], [1, 1])
    };
    let (x, y) = (random(g.in_len(), 1), random(g.out_len(), 2));
    let run = |threads| {
        with_threads(threads, || {
            let (mut out, mut bytes) = (vec![0.0; g.out_len()], vec![0; g.out_len()]);
            max(&g, &x, &mut out, Some(WinnersMut::Bytes(&mut bytes)));
            let (mut grad, mut mean, mut spread) =
                (vec![0.0; g.in_len()], out.clone(), vec![0.0; g.in_len()]);
            max_pullback(&g, Winners::Bytes(&bytes), &y, &mut grad, Epilogue::default());
            average(&g, true, &x, &mut mean);
            average_pullback(&g, true, &y, &mut spread, Epilogue::default());
            (out, bytes, grad, mean, spread)
        })
    };
    assert!(run(1) == run(2) && run(1) == run(3));
}
