//! Digital damage: rubber-sheet stretching and coarse pixels. (JPEG has its own file.)

use super::canvas::{Canvas, mirror};
use crate::random::Random;

/// Moves pixels along two smooth random fields; deviation and amplitude grow with the side.
///
/// These are the parameters of the PyPI package (no affine part), which any size can follow; those of the original are for
/// 224x224 only.
pub(super) fn elastic(canvas: &mut Canvas, severity: usize, random: &Random) {
    let alpha = 250.0 * [0.05, 0.065, 0.085, 0.1, 0.12][severity];
    let (height, width) = (canvas.height, canvas.width);
    let most = 0.005 * height as f32;
    let field = |index: u64| {
        let mut layer = Canvas::layer(height, width, vec![0.0; height * width]);
        layer.change_rows(&random.fork(index), |_, stream| stream.uniform(-most, most));
        layer.blur((0.01 * height as f32, 0.01 * width as f32), 3.0, mirror);
        layer.data
    };
    let (right, down) = (field(0), field(1));
    canvas.map_rows(|plane, y, row| {
        for (x, out) in row.iter_mut().enumerate() {
            let at_y = y as f32 + alpha * down[y * width + x];
            let at_x = x as f32 + alpha * right[y * width + x];
            let (top, left) = (at_y.floor(), at_x.floor());
            let rows = [mirror(top as isize, height), mirror(top as isize + 1, height)];
            let columns = [mirror(left as isize, width), mirror(left as isize + 1, width)];
            let (part_y, part_x) = (at_y - top, at_x - left);
            let line = |r: usize| {
                let (a, b) = (plane[r * width + columns[0]], plane[r * width + columns[1]]);
                a + part_x * (b - a)
            };
            let (upper, lower) = (line(rows[0]), line(rows[1]));
            *out = upper + part_y * (lower - upper);
        }
    });
}

/// Averages over boxes, then repeats each box's mean.
pub(super) fn pixelate(canvas: &mut Canvas, severity: usize, _: &Random) {
    let factor = [0.6, 0.5, 0.4, 0.3, 0.25][severity];
    let coarse = |side: usize| ((side as f64 * factor) as usize).max(1);
    let (height, width) = (canvas.height, canvas.width);
    let (rows, columns) = (boxes(height, coarse(height)), boxes(width, coarse(width)));
    canvas.map_rows(|plane, y, row| {
        let (top, bottom) = rows[(2 * y + 1) * rows.len() / (2 * height)];
        for (x, out) in row.iter_mut().enumerate() {
            let (left, right) = columns[(2 * x + 1) * columns.len() / (2 * width)];
            let sum: f32 = (top..bottom).map(|y| plane[y * width..][left..right].iter().sum::<f32>()).sum();
            *out = sum / ((bottom - top) * (right - left)) as f32;
        }
    });
}

/// Which source pixels have their centre in each of `count` equal boxes of a side.
fn boxes(side: usize, count: usize) -> Vec<(usize, usize)> {
    let scale = side as f64 / count as f64;
    let edge = |i: usize| (i as f64 * scale + 0.5) as usize;
    (0..count).map(|i| (edge(i).min(side - 1), edge(i + 1).clamp(edge(i).min(side - 1) + 1, side))).collect()
}
