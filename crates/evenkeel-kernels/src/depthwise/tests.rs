//! The fast kernel answers to the reference in both directions, the reference to the formula, the pullback to the adjoint
//! identity, and threads never matter.

use super::*;
use crate::activation::{Function, apply_in_place};
use crate::epilogue::{Activation, Mask};
use crate::seeded::{assert_close, random, with_threads};

fn geometry(channels: usize, size: [usize; 2], kernel: usize, stride: usize, dilation: usize) -> Geometry {
    Geometry {
        batch: 2,
        in_h: size[0],
        in_w: size[1],
        in_c: channels,
        out_c: channels,
        kernel: [kernel, kernel],
        stride: [stride, stride],
        dilation: [dilation, dilation],
        pads: [dilation * (kernel / 2), dilation * (kernel / 2), dilation * (kernel / 2), kernel / 2],
        groups: channels,
    }
}

fn table() -> Vec<Geometry> {
    let mut all = Vec::new();
    for channels in [3, 8, 21] {
        for size in [[7, 7], [5, 19], [12, 34], [6, 4]] {
            for (kernel, stride, dilation) in
                [(3, 1, 1), (3, 2, 1), (5, 1, 1), (5, 2, 1), (7, 1, 1), (3, 1, 2), (3, 2, 3), (2, 3, 1)]
            {
                all.push(geometry(channels, size, kernel, stride, dilation));
            }
        }
    }
    all.retain(|g| g.out_h() > 0 && g.out_w() > 0);
    all
}

fn lens(g: &Geometry) -> [usize; 2] {
    let pixels = [g.in_h * g.in_w * stride(g.in_c), g.out_h() * g.out_w() * stride(g.out_c)];
    pixels.map(|len| g.batch * len)
}

fn weights(g: &Geometry) -> Packed {
    Packed::new(&random(g.out_c * g.kernel[0] * g.kernel[1], 11), g.out_c, g.kernel)
}

fn real_lanes(values: &[f32], channels: usize) -> Vec<f32> {
    values.chunks(stride(channels)).flat_map(|pixel| pixel[..channels].to_vec()).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

#[test]
fn fast_answers_to_reference_in_both_directions() {
    for g in table() {
        let ([len_in, len_out], w) = (lens(&g), weights(&g));
        let (x, y) = (random(len_in, 1), random(len_out, 2));
        let (mut fast, mut plain) = (vec![f32::NAN; len_out], vec![f32::NAN; len_out]);
        forward(&g, &w, &x, &mut fast, Epilogue::default());
        reference::forward(&g, &w, &x, &mut plain, Epilogue::default());
        assert_close(&real_lanes(&fast, g.out_c), &real_lanes(&plain, g.out_c), 2e-6, &format!("{g:?}"));
        let (mut fast, mut plain) = (vec![f32::NAN; len_in], vec![f32::NAN; len_in]);
        pullback(&g, &w, &y, &mut fast, Epilogue::default());
        reference::pullback(&g, &w, &y, &mut plain, Epilogue::default());
        assert_close(&real_lanes(&fast, g.in_c), &real_lanes(&plain, g.in_c), 2e-6, &format!("{g:?}"));
    }
}

#[test]
fn the_pullback_is_the_adjoint_also_with_a_multiplier() {
    for multiplier in [1, 2, 3] {
        for mut g in table() {
            g.out_c = g.in_c * multiplier;
            let ([len_in, len_out], w) = (lens(&g), weights(&g));
            let (x, y) = (random(len_in, 1), random(len_out, 2));
            let (mut ax, mut aty) = (vec![0.0; len_out], vec![0.0; len_in]);
            forward(&g, &w, &x, &mut ax, Epilogue::default());
            pullback(&g, &w, &y, &mut aty, Epilogue::default());
            let left = dot(&real_lanes(&ax, g.out_c), &real_lanes(&y, g.out_c));
            let right = dot(&real_lanes(&x, g.in_c), &real_lanes(&aty, g.in_c));
            assert!((left - right).abs() < 1e-3, "{g:?}: {left} {right}");
        }
    }
}

#[test]
fn the_reference_is_the_formula() {
    let mut g = geometry(3, [6, 7], 3, 2, 1);
    g.out_c = 6;
    let ([len_in, len_out], oihw) = (lens(&g), random(6 * 9, 3));
    let x = random(len_in, 1);
    let mut out = vec![0.0; len_out];
    reference::forward(&g, &Packed::new(&oihw, 6, [3, 3]), &x, &mut out, Epilogue::default());
    for (i, pixel) in out.chunks(8).enumerate() {
        let (n, oy, ox) = (i / (g.out_h() * g.out_w()), i / g.out_w() % g.out_h(), i % g.out_w());
        for o in 0..6 {
            let mut sum = 0.0;
            for t in 0..9 {
                let (iy, ix) = ((2 * oy + t / 3) as isize - 1, (2 * ox + t % 3) as isize - 1);
                if (0..6).contains(&iy) && (0..7).contains(&ix) {
                    sum += oihw[o * 9 + t] * x[((n * 6 + iy as usize) * 7 + ix as usize) * 8 + o / 2];
                }
            }
            assert!((sum - pixel[o]).abs() < 1e-5);
        }
    }
}

#[test]
fn the_epilogue_is_the_same_fused_and_by_reference() {
    for activation in
        [Activation::None, Activation::Relu, Activation::LeakyRelu(0.2), Activation::Clip(-0.1, 0.3)]
    {
        let g = geometry(21, [9, 13], 3, 2, 1);
        let ([len_in, len_out], w) = (lens(&g), weights(&g));
        // Multiples of 1/64 make every sum exact, so that fused and separate rounding agree and bits compare.
        let exact = |values: Vec<f32>| values.iter().map(|x| (x * 64.0).round() / 64.0).collect::<Vec<f32>>();
        let w = Packed { taps: exact(w.taps), ..w };
        let (x, residual, before) =
            (exact(random(len_in, 1)), exact(random(len_out, 4)), exact(random(len_out, 5)));
        let (bias, masked) =
            (exact(random(21, 6)), (0..len_out / 8).map(|i| (i * 73) as u8).collect::<Vec<_>>());
        let run = |fast: bool| {
            let (mut out, mut bits) = (before.clone(), vec![0; len_out / 8]);
            let epilogue = Epilogue {
                bias: Some(&bias),
                residual: Some(&residual),
                accumulate: true,
                activation,
                bits: Some(&mut bits),
                mask: Some(Mask { bits: &masked, on: 1.0, off: 0.25 }),
                smooth: None,
            };
            let kernel = if fast { forward } else { reference::forward };
            kernel(&g, &w, &x, &mut out, epilogue);
            let real: Vec<u8> =
                bits.chunks(3).flat_map(|pixel| [pixel[0], pixel[1], pixel[2] & 0x1F]).collect();
            (real_lanes(&out, 21), real)
        };
        assert_eq!(run(true), run(false), "{activation:?}");
    }
}

#[test]
fn a_smooth_end_gives_the_bytes_of_a_pass_afterwards() {
    for (function, kernel) in
        [(Function::Silu { beta: 1.0 }, 5), (Function::Gelu, 7), (Function::HardSwish, 3)]
    {
        let g = geometry(21, [9, 13], kernel, 1, 1);
        let ([len_in, len_out], w) = (lens(&g), weights(&g));
        let x = random(len_in, 1);
        let (mut at_once, mut after) = (vec![0.0; len_out], vec![0.0; len_out]);
        forward(&g, &w, &x, &mut at_once, Epilogue { smooth: Some(function), ..Epilogue::default() });
        forward(&g, &w, &x, &mut after, Epilogue::default());
        apply_in_place(function, &mut after);
        assert_eq!(real_lanes(&at_once, 21), real_lanes(&after, 21), "{function:?}");
    }
}

#[test]
fn threads_and_batch_do_not_matter() {
    for size in [[7, 7], [40, 33]] {
        let g = geometry(160, size, 3, 1, 1);
        let ([len_in, len_out], w) = (lens(&g), weights(&g));
        let x = random(len_in, 1);
        let run = |threads| {
            with_threads(threads, || {
                let (mut out, mut back) = (vec![0.0; len_out], vec![0.0; len_in]);
                forward(&g, &w, &x, &mut out, Epilogue::default());
                pullback(&g, &w, &out, &mut back, Epilogue::default());
                (out, back)
            })
        };
        let both = run(1);
        assert!(both == run(2) && both == run(3));
        let one = Geometry { batch: 1, ..g };
        let mut alone = vec![0.0; len_out / 2];
        forward(&one, &w, &x[len_in / 2..], &mut alone, Epilogue::default());
        assert!(alone == both.0[len_out / 2..]);
    }
}
