//! The product against its reference, against itself in other company, and against the adjoint identity.

use super::*;
use crate::seeded::{assert_close, random, with_threads};

/// A side of `rows` by `columns`, by columns if `turned`.
fn operand(values: &[f32], rows: usize, columns: usize, turned: bool) -> Operand<'_> {
    if turned {
        Operand::row_major(values, columns, rows).transposed()
    } else {
        Operand::row_major(values, rows, columns)
    }
}

#[test]
fn every_shape_and_layout_answers_to_the_reference() {
    let shapes = [
        [1, 1, 1, 1],
        [1, 1, 100, 37],
        [2, 2, 64, 300],
        [1, 3, 17, 5],
        [3, 4, 16, 600],
        [1, 7, 33, 257],
        [2, 13, 15, 64],
        [1, 50, 48, 0],
        [1, 205, 70, 31],
        [5, 6, 1, 9],
        [1, 100, 300, 520],
    ];
    for (i, [batch, m, n, k]) in shapes.into_iter().enumerate() {
        let shape = Shape { batch, m, n, k };
        let (a, b) = (random(batch * m * k, 1), random(batch * k * n, 2));
        let before = random(batch * m * n, 3);
        for turn in 0..4 {
            let (a, b) = (operand(&a, m, k, turn & 1 == 1), operand(&b, k, n, turn & 2 == 2));
            let scale = if (i + turn) % 2 == 0 { Scale::default() } else { Scale { alpha: 0.5, beta: -2.0 } };
            let (mut got, mut want) = (before.clone(), before.clone());
            gemm(shape, a, b, &mut got, scale);
            reference::gemm(shape, a, b, &mut want, scale);
            assert_close(&got, &want, 1e-4, &format!("{shape:?}, turn {turn}"));

            let b = b.repeated();
            let (mut got, mut want) = (before.clone(), before.clone());
            gemm_packed(shape, a, &Packed::new(k, n, b), &mut got, scale);
            reference::gemm(shape, a, b, &mut want, scale);
            assert_close(&got, &want, 1e-4, &format!("packed {shape:?}, turn {turn}"));
        }
    }
}

#[test]
fn a_zero_beta_does_not_read() {
    let shape = Shape { batch: 1, m: 7, n: 19, k: 3 };
    let (a, b) = (random(21, 1), random(57, 2));
    let mut c = vec![f32::NAN; 7 * 19];
    gemm(shape, Operand::row_major(&a, 7, 3), Operand::row_major(&b, 3, 19), &mut c, Scale::default());
    assert!(c.iter().all(|v| v.is_finite()));
}

#[test]
fn a_row_is_the_same_bytes_alone_and_among_others() {
    let (m, n, k) = (23, 83, 517);
    let (a, b) = (random(m * k, 4), random(k * n, 5));
    let right = Operand::row_major(&b, k, n);
    let bytes = |c: &[f32]| c.iter().map(|v| v.to_bits()).collect::<Vec<u32>>();
    let whole = |threads: usize, packed: bool| {
        let mut c = vec![0.0; m * n];
        let shape = Shape { batch: 1, m, n, k };
        with_threads(threads, || {
            let left = Operand::row_major(&a, m, k);
            match packed {
                true => gemm_packed(shape, left, &Packed::new(k, n, right), &mut c, Scale::default()),
                false => gemm(shape, left, right, &mut c, Scale::default()),
            }
        });
        bytes(&c)
    };
    let expected = whole(1, false);
    for threads in 1..=3 {
        assert!(whole(threads, false) == expected && whole(threads, true) == expected, "{threads} threads");
    }
    for rows in 1..=4 {
        let shape = Shape { batch: 1, m: rows, n, k };
        for first in [0, 5, m - rows] {
            let mut c = vec![0.0; rows * n];
            gemm(shape, Operand::row_major(&a[first * k..], rows, k), right, &mut c, Scale::default());
            assert!(bytes(&c) == expected[first * n..(first + rows) * n], "{rows} rows from {first}");
        }
    }
    // Few columns: the same elements again.
    let shape = Shape { batch: 1, m, n: 9, k };
    let mut c = vec![0.0; m * 9];
    gemm(shape, Operand::row_major(&a, m, k), right, &mut c, Scale::default());
    for row in 0..m {
        assert!(bytes(&c)[row * 9..(row + 1) * 9] == expected[row * n..row * n + 9], "row {row}");
    }
}

#[test]
fn the_transposed_product_is_the_pullback() {
    let (m, n, k) = (9, 21, 34);
    let (x, w, y) = (random(m * k, 6), random(k * n, 7), random(m * n, 8));
    let (mut xw, mut yw) = (vec![0.0; m * n], vec![0.0; m * k]);
    let right = Operand::row_major(&w, k, n);
    gemm(Shape { batch: 1, m, n, k }, Operand::row_major(&x, m, k), right, &mut xw, Scale::default());
    let back = Shape { batch: 1, m, n: k, k: n };
    gemm(back, Operand::row_major(&y, m, n), right.transposed(), &mut yw, Scale::default());
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    assert!((dot(&xw, &y) - dot(&x, &yw)).abs() < 1e-3);
}
