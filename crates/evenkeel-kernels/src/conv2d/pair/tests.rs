//! One pass gives the bytes of two, on any number of threads.

use super::*;
use crate::conv2d;
use crate::epilogue::Epilogue;
use crate::seeded::{random, with_threads};

fn geometries() -> Vec<[Geometry; 2]> {
    let mut all = Vec::new();
    for (in_c, mid_c, size) in [(16, 96, [23, 24]), (5, 20, [9, 17]), (70, 40, [14, 14]), (24, 16, [30, 57])]
    {
        for (kernel, step, pads) in [
            (3, 1, [1, 1, 1, 1]),
            (3, 2, [0, 0, 1, 1]),
            (5, 1, [2, 2, 2, 2]),
            (5, 2, [1, 2, 2, 1]),
            (4, 1, [0; 4]),
        ] {
            let first = Geometry {
                batch: 2,
                in_h: size[0],
                in_w: size[1],
                in_c,
                out_c: mid_c,
                kernel: [1, 1],
                stride: [1, 1],
                dilation: [1, 1],
                pads: [0; 4],
                groups: 1,
            };
            let second = Geometry {
                in_c: mid_c,
                kernel: [kernel, kernel],
                stride: [step, step],
                pads,
                groups: mid_c,
                ..first
            };
            all.push([first, second]);
        }
    }
    all
}

#[test]
fn one_pass_gives_the_bytes_of_two() {
    let mut served = 0;
    for [a, b] in geometries() {
        if !pair_serves(&a, &b) {
            continue;
        }
        served += 1;
        let weights = [a, b].map(|g| {
            let count = g.out_c * (g.in_c / g.groups) * g.kernel[0] * g.kernel[1];
            Weights::new(random(count, 3), g.out_c, g.in_c, g.kernel, g.groups)
        });
        let biases = [random(a.out_c, 4), random(b.out_c, 5)];
        let activations = [Activation::Clip(-0.5, 1.5), Activation::Relu];
        let smooths = [
            (served % 2 == 0).then_some(Function::Silu { beta: 1.0 }),
            (served % 3 == 0).then_some(Function::Gelu),
        ];
        let x = random(a.batch * a.in_h * a.in_w * stride(a.in_c), 6);
        let mut between = vec![f32::NAN; b.batch * b.in_h * b.in_w * stride(b.in_c)];
        let mut expected = vec![f32::NAN; b.batch * b.out_h() * b.out_w() * stride(b.out_c)];
        let epilogue = |i: usize| Epilogue {
            bias: Some(&biases[i]),
            activation: activations[i],
            smooth: smooths[i],
            ..Epilogue::default()
        };
        conv2d::forward(&a, &weights[0], &x, &mut between, epilogue(0));
        conv2d::forward(&b, &weights[1], &between, &mut expected, epilogue(1));
        let [first, second] = [(0, &a), (1, &b)].map(|(i, geometry)| Layer {
            geometry,
            weights: &weights[i],
            bias: &biases[i],
            activation: activations[i],
            smooth: smooths[i],
        });
        for threads in [1, 2, 3] {
            let mut got = vec![f32::NAN; expected.len()];
            with_threads(threads, || pair_forward(first, second, &x, &mut got));
            let same = got.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{b:?} on {threads} threads");
        }
    }
    // Elsewhere the two kernels do the work.
    let expected = if crate::cpu::avx2().is_some() { 15..=20 } else { 0..=0 };
    assert!(expected.contains(&served), "{served} pairs");
}
