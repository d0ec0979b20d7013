//! Bilinear enlargement by a whole factor (half-pixel centres, as the engine's Resize has it), and the mean of a map.

use crate::map::Map;
use rayon::prelude::*;

/// Where an output row or column reads: two places and the share of the second.
struct Taps {
    low: Vec<usize>,
    high: Vec<usize>,
    share: Vec<f32>,
}

impl Taps {
    fn new(from: usize, factor: usize) -> Self {
        let place = |i: usize| ((i as f32 + 0.5) / factor as f32 - 0.5).max(0.0);
        let low: Vec<usize> = (0..from * factor).map(|i| place(i) as usize).collect();
        let share = low.iter().enumerate().map(|(i, &l)| place(i) - l as f32).collect();
        let high = low.iter().map(|l| (l + 1).min(from - 1)).collect();
        Self { low, high, share }
    }
}

/// Enlarges a map.
pub(crate) fn enlarge(x: &Map, factor: usize) -> Map {
    let mut y = Map::zeros(x.batch, x.height * factor, x.width * factor, x.channels);
    let (rows, columns) = (Taps::new(x.height, factor), Taps::new(x.width, factor));
    let (stride, width) = (x.stride(), y.width);
    let (len, height) = (x.image_len(), y.height);
    y.values.par_chunks_mut(width * stride).enumerate().for_each(|(line, out)| {
        let (image, oy) = (line / height, line % height);
        let from = &x.values[image * len..][..len];
        let (top, bottom) = (rows.low[oy] * x.width, rows.high[oy] * x.width);
        let t = rows.share[oy];
        for (ox, out) in out.chunks_exact_mut(stride).enumerate() {
            let (l, r, s) = (columns.low[ox], columns.high[ox], columns.share[ox]);
            let at = |row: usize, column: usize| &from[(row + column) * stride..][..stride];
            let (a, b, c, d) = (at(top, l), at(top, r), at(bottom, l), at(bottom, r));
            for k in 0..stride {
                let upper = a[k] + s * (b[k] - a[k]);
                let lower = c[k] + s * (d[k] - c[k]);
                out[k] = upper + t * (lower - upper);
            }
        }
    });
    y
}

/// Adds the gradient of [`enlarge`] to `gx`.
pub(crate) fn enlarge_back(gy: &Map, factor: usize, gx: &mut Map) {
    let (rows, columns) = (Taps::new(gx.height, factor), Taps::new(gx.width, factor));
    let (stride, width) = (gx.stride(), gx.width);
    let (len, from_len) = (gx.image_len(), gy.image_len());
    gx.values.par_chunks_mut(len).enumerate().for_each(|(image, gx)| {
        let from = &gy.values[image * from_len..][..from_len];
        for oy in 0..gy.height {
            let t = rows.share[oy];
            for ox in 0..gy.width {
                let g = &from[(oy * gy.width + ox) * stride..][..stride];
                let s = columns.share[ox];
                for (row, u) in [(rows.low[oy], 1.0 - t), (rows.high[oy], t)] {
                    for (column, v) in [(columns.low[ox], 1.0 - s), (columns.high[ox], s)] {
                        let to = &mut gx[(row * width + column) * stride..][..stride];
                        let k = u * v;
                        to.iter_mut().zip(g).for_each(|(a, b)| *a += k * b);
                    }
                }
            }
        }
    });
}

/// The mean over each image.
pub(crate) fn average(x: &Map) -> Map {
    let mut y = Map::zeros(x.batch, 1, 1, x.channels);
    let (stride, cells) = (x.stride(), (x.height * x.width) as f32);
    for (out, image) in y.values.chunks_exact_mut(stride).zip(x.values.chunks_exact(x.image_len())) {
        for pixel in image.chunks_exact(stride) {
            out.iter_mut().zip(pixel).for_each(|(a, b)| *a += b);
        }
        out.iter_mut().for_each(|v| *v /= cells);
    }
    y
}

/// Adds the gradient of [`average`] to `gx`.
pub(crate) fn average_back(gy: &Map, gx: &mut Map) {
    let (stride, cells, len) = (gx.stride(), (gx.height * gx.width) as f32, gx.image_len());
    for (g, image) in gy.values.chunks_exact(stride).zip(gx.values.chunks_exact_mut(len)) {
        for pixel in image.chunks_exact_mut(stride) {
            pixel.iter_mut().zip(g).for_each(|(a, b)| *a += b / cells);
        }
    }
}
