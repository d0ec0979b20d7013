//! JPEG compression without the file: everything baseline JPEG loses, nothing of what it keeps.
//!
//! RGB to YCbCr, colour halved in both directions, each 8x8 block through the cosine transform, divided by the standard tables
//! scaled to the quality, rounded, and all the way back. Entropy coding loses nothing and is left out.

use rayon::prelude::*;

use super::canvas::{Canvas, nearest};
use crate::random::Random;

const BRIGHT: [u8; 64] = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17,
    22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78,
    87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
];
const COLOUR: [u8; 64] = [
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
];

/// Quality 25, 18, 15, 10, 7.
pub(super) fn compress(canvas: &mut Canvas, severity: usize, _: &Random) {
    at_quality(canvas, [25, 18, 15, 10, 7][severity]);
}

/// What is left at a quality from 1 to 100.
pub(super) fn at_quality(canvas: &mut Canvas, quality: u32) {
    let (height, width, plane) = (canvas.height, canvas.width, canvas.plane());
    let mut bytes: Vec<f32> = canvas.data.iter().map(|v| (v.clamp(0.0, 1.0) * 255.0).round()).collect();
    if canvas.channels == 1 {
        through_blocks(&mut bytes, height, width, &scaled(&BRIGHT, quality));
        canvas.data = bytes.iter().map(|v| v / 255.0).collect();
        return;
    }
    let (mut luma, mut blue, mut red) = (vec![0.0; plane], vec![0.0; plane], vec![0.0; plane]);
    for i in 0..plane {
        let (r, g, b) = (bytes[i], bytes[plane + i], bytes[2 * plane + i]);
        luma[i] = (0.299 * r + 0.587 * g + 0.114 * b).round();
        blue[i] = (128.0 - 0.168_736 * r - 0.331_264 * g + 0.5 * b).round();
        red[i] = (128.0 + 0.5 * r - 0.418_688 * g - 0.081_312 * b).round();
    }
    through_blocks(&mut luma, height, width, &scaled(&BRIGHT, quality));
    let (blue, red) =
        (halved_colour(&blue, height, width, quality), halved_colour(&red, height, width, quality));
    for i in 0..plane {
        let (y, b, r) = (luma[i], blue[i] - 128.0, red[i] - 128.0);
        canvas.data[i] = (y + 1.402 * r).round() / 255.0;
        canvas.data[plane + i] = (y - 0.344_136 * b - 0.714_136 * r).round() / 255.0;
        canvas.data[2 * plane + i] = (y + 1.772 * b).round() / 255.0;
    }
}

/// The standard table at a quality: 5000/q below 50, 200 − 2q above, in percent.
fn scaled(table: &[u8; 64], quality: u32) -> [f32; 64] {
    let percent = if quality < 50 { 5000 / quality } else { 200 - 2 * quality };
    table.map(|v| ((u32::from(v) * percent + 50) / 100).clamp(1, 255) as f32)
}

/// A colour plane at half size through the blocks and back, interpolated.
fn halved_colour(plane: &[f32], height: usize, width: usize, quality: u32) -> Vec<f32> {
    let (low, narrow) = (height.div_ceil(2), width.div_ceil(2));
    let at = |y: usize, x: usize| plane[y.min(height - 1) * width + x.min(width - 1)];
    let mut half: Vec<f32> = (0..low * narrow)
        .map(|i| {
            let (y, x) = (2 * (i / narrow), 2 * (i % narrow));
            ((at(y, x) + at(y, x + 1) + at(y + 1, x) + at(y + 1, x + 1)) / 4.0).round()
        })
        .collect();
    through_blocks(&mut half, low, narrow, &scaled(&COLOUR, quality));
    // each full-size pixel takes three quarters of its own half-size pixel and one of the neighbour it leans to, per axis
    let near = |i: usize, count: usize| {
        (i / 2, nearest((i / 2) as isize + if i.is_multiple_of(2) { -1 } else { 1 }, count))
    };
    (0..height * width)
        .map(|i| {
            let ((y, next_y), (x, next_x)) = (near(i / width, low), near(i % width, narrow));
            let line = |y: usize| 0.75 * half[y * narrow + x] + 0.25 * half[y * narrow + next_x];
            (0.75 * line(y) + 0.25 * line(next_y)).round()
        })
        .collect()
}

/// Every 8x8 block through transform, rounding to the table's steps, and back, clipped to bytes. Edges are repeated outwards.
fn through_blocks(plane: &mut [f32], height: usize, width: usize, table: &[f32; 64]) {
    let cosines = cosines();
    let source = plane.to_vec();
    let bands: Vec<_> = plane.chunks_mut(8 * width).enumerate().collect();
    bands.into_par_iter().for_each(|(band, rows)| {
        let first_row = 8 * band;
        let mut block = [0.0; 64];
        for left in (0..width).step_by(8) {
            for (i, v) in block.iter_mut().enumerate() {
                let (y, x) = ((first_row + i / 8).min(height - 1), (left + i % 8).min(width - 1));
                *v = source[y * width + x] - 128.0;
            }
            let mut spectrum = transform(&block, &cosines, false);
            spectrum.iter_mut().zip(table).for_each(|(s, q)| *s = (*s / q).round() * q);
            let back = transform(&spectrum, &cosines, true);
            for (y, row) in rows.chunks_mut(width).enumerate() {
                let span = 8.min(width - left);
                for x in 0..span {
                    row[left + x] = (back[8 * y + x] + 128.0).round().clamp(0.0, 255.0);
                }
            }
        }
    });
}

/// cosines[u][x] = c(u)/2 · cos((2x+1)uπ/16), an orthonormal matrix.
fn cosines() -> [[f32; 8]; 8] {
    std::array::from_fn(|u| {
        std::array::from_fn(|x| {
            let norm = if u == 0 { 0.125f64.sqrt() } else { 0.5 };
            (norm * ((2 * x + 1) as f64 * u as f64 * std::f64::consts::PI / 16.0).cos()) as f32
        })
    })
}

/// C·B·Cᵀ, or its inverse Cᵀ·B·C.
fn transform(block: &[f32; 64], cosines: &[[f32; 8]; 8], inverse: bool) -> [f32; 64] {
    let weight = |k: usize, i: usize| if inverse { cosines[i][k] } else { cosines[k][i] };
    let (mut half, mut out) = ([0.0; 64], [0.0; 64]);
    for k in 0..8 {
        for i in 0..8 {
            let w = weight(k, i);
            (0..8).for_each(|x| half[8 * k + x] += w * block[8 * i + x]);
        }
    }
    for k in 0..8 {
        for i in 0..8 {
            let w = weight(k, i);
            (0..8).for_each(|y| out[8 * y + k] += w * half[8 * y + i]);
        }
    }
    out
}
