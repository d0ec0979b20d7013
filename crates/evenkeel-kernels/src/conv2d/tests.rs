//! The fast kernels against the reference over shapes that straddle their blocks, in both directions and with every epilogue.

use super::*;
use crate::activation::Function;
use crate::epilogue::{Activation, Mask};

/// Numbers that look random, from a linear congruence.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.bits() as usize % n
    }

    pub(crate) fn values(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.bits() as f32 / (1u64 << 30) as f32 - 1.0).collect()
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.bits() as u8).collect()
    }
}

/// A channels-last map whose padding lanes hold NaN, so that a kernel that reads them is found out.
pub(crate) fn map(pixels: usize, channels: usize, numbers: &mut Numbers) -> Vec<f32> {
    let stride = layout::stride(channels);
    let mut values = numbers.values(pixels * stride);
    for pixel in values.chunks_mut(stride.max(1)) {
        pixel[channels..].fill(f32::NAN);
    }
    values
}

pub(crate) fn weights(g: &Geometry, numbers: &mut Numbers) -> Weights {
    let n = g.out_c * (g.in_c / g.groups) * g.kernel[0] * g.kernel[1];
    Weights::new(numbers.values(n), g.out_c, g.in_c, g.kernel, g.groups)
}

fn geometry(numbers: &mut Numbers) -> Geometry {
    let groups = [1, 1, 1, 2, 3, 4][numbers.below(6)];
    let wide = if groups == 1 { 40 } else { 11 };
    let pads = [numbers.below(4), numbers.below(4), numbers.below(4), numbers.below(4)];
    Geometry {
        batch: 1 + numbers.below(2),
        in_h: 1 + numbers.below(13),
        in_w: 1 + numbers.below(17),
        in_c: groups * (1 + numbers.below(wide)),
        out_c: groups * (1 + numbers.below(wide)),
        kernel: [1 + numbers.below(4), 1 + numbers.below(4)],
        stride: [1 + numbers.below(3), 1 + numbers.below(3)],
        dilation: [1 + numbers.below(3), 1 + numbers.below(3)],
        pads,
        groups,
    }
}

/// What an epilogue borrows.
pub(crate) struct Parts {
    bias: Vec<f32>,
    residual: Vec<f32>,
    mask: Vec<u8>,
    choice: usize,
}

impl Parts {
    pub(crate) fn new(pixels: usize, channels: usize, choice: usize, numbers: &mut Numbers) -> Parts {
        let len = pixels * layout::stride(channels);
        Parts {
            bias: numbers.values(channels),
            residual: numbers.values(len),
            mask: numbers.bytes(len / 8),
            choice,
        }
    }

    pub(crate) fn epilogue<'a>(&'a self, bits: &'a mut [u8]) -> Epilogue<'a> {
        let on = |bit: usize| self.choice >> bit & 1 == 1;
        let activations =
            [Activation::None, Activation::Relu, Activation::LeakyRelu(0.1), Activation::Clip(-0.5, 0.75)];
        Epilogue {
            bias: on(0).then_some(&self.bias),
            residual: on(1).then_some(&self.residual),
            accumulate: on(2),
            mask: on(3).then_some(Mask { bits: &self.mask, on: 0.5, off: 0.25 }),
            bits: on(4).then_some(bits),
            activation: activations[self.choice >> 5 & 3],
            smooth: on(7).then_some(Function::Silu { beta: 1.5 }),
        }
    }
}

/// Asserts that the real lanes agree, and the bits wherever a value is not on the activation's edge.
pub(crate) fn agree(
    channels: usize,
    got: (&[f32], &[u8]),
    want: (&[f32], &[u8]),
    tolerance: f32,
    what: &str,
) {
    let stride = layout::stride(channels);
    for i in 0..want.0.len() {
        if i % stride < channels {
            let (a, b) = (got.0[i], want.0[i]);
            assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: element {i}: {a} for {b}");
        }
    }
    let differ = (0..want.0.len())
        .filter(|i| i % stride < channels && (got.1[i / 8] ^ want.1[i / 8]) >> (i % 8) & 1 == 1)
        .count();
    assert!(differ <= want.0.len() / 1000, "{what}: {differ} bits differ");
}

/// Runs `algorithm` and the reference on the same convolution and compares them.
pub(crate) fn answers(algorithm: Algorithm, g: &Geometry, choice: usize, tolerance: f32, seed: u64) {
    let numbers = &mut Numbers::new(seed);
    let weights = weights(g, numbers);
    let (ins, outs) = (g.batch * g.in_h * g.in_w, g.batch * g.out_h() * g.out_w());
    for direction in [Direction::Forward, Direction::Pullback] {
        let (from, to, channels) = match direction {
            Direction::Forward => (map(ins, g.in_c, numbers), outs, g.out_c),
            Direction::Pullback => (map(outs, g.out_c, numbers), ins, g.in_c),
        };
        let parts = Parts::new(to, channels, choice, numbers);
        let before = map(to, channels, numbers);
        let answer = |algorithm| {
            let mut out = before.clone();
            let mut bits = vec![0; out.len() / 8];
            run((algorithm, direction), g, &weights, &from, &mut out, parts.epilogue(&mut bits));
            (out, bits)
        };
        let (got, want) = (answer(algorithm), answer(Algorithm::Reference));
        let what = format!("{algorithm:?} {direction:?} {g:?} epilogue {choice:#b}");
        agree(channels, (&got.0, &got.1), (&want.0, &want.1), tolerance, &what);
    }
}

#[test]
fn direct_and_grouped_answer_to_the_reference() {
    let numbers = &mut Numbers::new(1);
    for seed in 0..300 {
        let g = geometry(numbers);
        let choice = numbers.below(256);
        for algorithm in [Algorithm::Direct, Algorithm::Grouped] {
            if algorithm.serves(&g) {
                answers(algorithm, &g, choice, 1e-4, seed);
            }
        }
    }
}

#[test]
fn the_chosen_algorithm_answers_to_the_reference() {
    let numbers = &mut Numbers::new(2);
    for seed in 0..40 {
        let (groups, in_c, out_c) = [(1, 16, 24), (1, 33, 16), (9, 9, 18), (20, 20, 20)][numbers.below(4)];
        let dilation = 1 + numbers.below(2);
        let g = Geometry {
            batch: 1 + numbers.below(2),
            in_h: 9 + numbers.below(12),
            in_w: 9 + numbers.below(20),
            in_c,
            out_c,
            kernel: [3, 3],
            stride: [1, 1],
            dilation: [dilation; 2],
            pads: [numbers.below(3); 4],
            groups,
        };
        for algorithm in [choose(&g, Direction::Forward), choose(&g, Direction::Pullback)] {
            answers(algorithm, &g, numbers.below(256), 1e-3, seed);
        }
    }
}

#[test]
fn direct_answers_where_a_sum_is_cut_into_spans() {
    for (in_c, kernel) in [(600, [1, 1]), (257, [2, 2]), (100, [3, 3])] {
        let g = Geometry {
            batch: 1,
            in_h: 5,
            in_w: 5,
            in_c,
            out_c: 33,
            kernel,
            stride: [1, 1],
            dilation: [1, 1],
            pads: [1, 1, 1, 1],
            groups: 1,
        };
        if Algorithm::Direct.serves(&g) {
            answers(Algorithm::Direct, &g, 0b11111, 1e-3, 7);
        }
    }
}

#[test]
fn the_reference_pullback_is_the_transpose() {
    let numbers = &mut Numbers::new(5);
    for _ in 0..60 {
        let g = geometry(numbers);
        let w: Vec<f64> = weights(&g, numbers).values().iter().map(|&v| v.into()).collect();
        let maps = [(g.batch * g.in_h * g.in_w, g.in_c), (g.batch * g.out_h() * g.out_w(), g.out_c)];
        let [x, y] = maps.map(|(pixels, c)| -> Vec<f64> {
            let map = map(pixels, c, numbers);
            map.iter().map(|&v| if v.is_nan() { 0.0 } else { v.into() }).collect()
        });
        let (mut ax, mut aty) = (vec![0.0; y.len()], vec![0.0; x.len()]);
        reference::forward(&g, &w, &x, &mut ax, Epilogue::default());
        reference::pullback(&g, &w, &y, &mut aty, Epilogue::default());
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (left, right) = (dot(&ax, &y), dot(&x, &aty));
        assert!((left - right).abs() <= 1e-10 * (1.0 + left.abs()), "{left} {right} {g:?}");
    }
}

#[test]
fn same_bytes_for_any_threads_and_batch() {
    same_bytes(20, 36, 2);
    same_bytes(20, 12, 4);
    same_bytes(20, 36, 1);
}

fn same_bytes(in_c: usize, out_c: usize, groups: usize) {
    let one = Geometry {
        batch: 1,
        in_h: 31,
        in_w: 29,
        in_c,
        out_c,
        kernel: [3, 3],
        stride: [2, 1],
        dilation: [1, 2],
        pads: [1, 2, 1, 2],
        groups,
    };
    let three = Geometry { batch: 3, ..one };
    let numbers = &mut Numbers::new(3);
    let weights = weights(&one, numbers);
    for direction in [Direction::Forward, Direction::Pullback] {
        let (from, to, channels) = match direction {
            Direction::Forward => (map(31 * 29, in_c, numbers), one.out_h() * one.out_w(), out_c),
            Direction::Pullback => (map(one.out_h() * one.out_w(), out_c, numbers), 31 * 29, in_c),
        };
        let answer = |g: &Geometry, threads: usize| {
            let from = from.repeat(g.batch);
            let mut out = vec![0.0f32; g.batch * to * layout::stride(channels)];
            let mut bits = vec![0u8; out.len() / 8];
            let epilogue =
                Epilogue { activation: Activation::Relu, bits: Some(&mut bits), ..Epilogue::default() };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| match direction {
                Direction::Forward => forward(g, &weights, &from, &mut out, epilogue),
                Direction::Pullback => pullback(g, &weights, &from, &mut out, epilogue),
            });
            let lanes = layout::stride(channels);
            let out: Vec<u32> = (0..out.len())
                .filter(|i| i % lanes < channels)
                .map(|i| out[i].to_bits() ^ u32::from(bits[i / 8] >> (i % 8) & 1))
                .collect();
            out
        };
        let alone = answer(&one, 1);
        for threads in 1..=3 {
            assert!(answer(&one, threads) == alone, "{threads} threads, {direction:?}");
            assert!(answer(&three, threads) == alone.repeat(3), "batch 3, {threads} threads, {direction:?}");
        }
    }
}
