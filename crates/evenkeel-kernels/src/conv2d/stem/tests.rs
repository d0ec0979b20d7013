//! The stem against the reference on turned layouts, its transpose, and its bytes for any threads and batch.

use super::*;
use crate::conv2d::tests::{Numbers, Parts, agree, map, weights};
use crate::seeded::with_threads;

fn geometry(numbers: &mut Numbers) -> Geometry {
    let pads = [numbers.below(4), numbers.below(4), numbers.below(4), numbers.below(4)];
    Geometry {
        batch: 1 + numbers.below(2),
        in_h: 1 + numbers.below(30),
        in_w: 1 + numbers.below(90),
        in_c: 1 + numbers.below(4),
        out_c: 1 + numbers.below(40),
        kernel: [1 + numbers.below(7), 1 + numbers.below(7)],
        stride: [1 + numbers.below(3), 1 + numbers.below(3)],
        dilation: [1 + numbers.below(2), 1 + numbers.below(2)],
        pads,
        groups: 1,
    }
}

fn turned(g: &Geometry, planar: &[f32]) -> Vec<f32> {
    let extents = checked(g, planar.len());
    let mut map = vec![0.0; map_len(extents)];
    layout::from_planar(extents, planar, &mut map);
    map
}

#[test]
fn forwards_answers_to_the_reference() {
    let numbers = &mut Numbers::new(11);
    for _ in 0..120 {
        let g = geometry(numbers);
        let weights = weights(&g, numbers);
        let pixels = g.batch * g.out_h() * g.out_w();
        let x = numbers.values(g.batch * g.in_c * g.in_h * g.in_w);
        let parts = Parts::new(pixels, g.out_c, numbers.below(128), numbers);
        let before = map(pixels, g.out_c, numbers);
        let (mut got, mut want) = (before.clone(), before);
        let (mut got_bits, mut want_bits) = (vec![0; got.len() / 8], vec![0; want.len() / 8]);
        stem_forward(&g, &weights, &x, &mut got, parts.epilogue(&mut got_bits));
        reference::forward(&g, weights.values(), &turned(&g, &x), &mut want, parts.epilogue(&mut want_bits));
        agree(g.out_c, (&got, &got_bits), (&want, &want_bits), 1e-4, &format!("{g:?}"));
    }
}

#[test]
fn pullback_answers_to_the_reference() {
    let numbers = &mut Numbers::new(12);
    for round in 0..120 {
        let g = geometry(numbers);
        let weights = weights(&g, numbers);
        let gy = map(g.batch * g.out_h() * g.out_w(), g.out_c, numbers);
        let mut got = numbers.values(g.batch * g.in_c * g.in_h * g.in_w);
        let accumulate = round % 2 == 0;
        let mut want = turned(&g, &got);
        let epilogue = Epilogue { accumulate, ..Epilogue::default() };
        reference::pullback(&g, weights.values(), &gy, &mut want, epilogue);
        stem_pullback(&g, &weights, &gy, &mut got, accumulate);
        let none = vec![0; want.len() / 8];
        agree(g.in_c, (&turned(&g, &got), &none), (&want, &none), 1e-4, &format!("{g:?}"));
    }
}

#[test]
fn same_bytes_for_any_threads_and_batch() {
    let numbers = &mut Numbers::new(13);
    let one = Geometry { batch: 1, in_h: 41, in_w: 150, in_c: 3, out_c: 20, ..geometry(numbers) };
    let three = Geometry { batch: 3, ..one };
    let weights = weights(&one, numbers);
    let x = numbers.values(3 * 41 * 150);
    let gy = map(one.out_h() * one.out_w(), 20, numbers);
    let answer = |g: &Geometry, threads: usize| {
        let mut y = vec![0.0f32; gy.len() * g.batch];
        let mut gx = vec![0.0f32; x.len() * g.batch];
        with_threads(threads, || {
            stem_forward(g, &weights, &x.repeat(g.batch), &mut y, Epilogue::default());
            stem_pullback(g, &weights, &gy.repeat(g.batch), &mut gx, false);
        });
        let lanes = layout::stride(20);
        let y: Vec<u32> = (0..y.len()).filter(|i| i % lanes < 20).map(|i| y[i].to_bits()).collect();
        (y, gx.iter().map(|v| v.to_bits()).collect::<Vec<u32>>())
    };
    let alone = answer(&one, 1);
    for threads in 1..=3 {
        assert!(answer(&one, threads) == alone, "{threads} threads");
        let (y, gx) = answer(&three, threads);
        assert!(y == alone.0.repeat(3) && gx == alone.1.repeat(3), "batch 3, {threads} threads");
    }
}
