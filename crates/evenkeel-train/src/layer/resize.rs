//! Bilinear enlargement by a whole factor (the engine's own Resize: half-pixel centres), and the mean of a map.

use crate::map::{self, Map};
use evenkeel_kernels::resample::{AxisMap, Sampling, Separable};
use rayon::prelude::*;

/// The kernels' map of an enlargement of a `height` x `width` map.
fn enlargement((height, width): (usize, usize), factor: usize) -> Separable {
    let along = |side: usize| AxisMap::resize(side, side * factor, factor as f64, Sampling::LINEAR);
    Separable { rows: along(height), columns: along(width) }
}

/// Enlarges a map.
pub(crate) fn enlarge(x: &Map, factor: usize) -> Map {
    let mut y = Map::zeros(x.batch, x.height * factor, x.width * factor, x.channels);
    let map = enlargement((x.height, x.width), factor);
    map.apply_channels_last(x.batch, x.channels, &x.values, &mut y.values);
    y
}

/// Adds the gradient of [`enlarge`] to `gx`.
pub(crate) fn enlarge_back(gy: &Map, factor: usize, gx: &mut Map) {
    let back = enlargement((gx.height, gx.width), factor).transposed();
    let mut sum = map::zeros(gx.values.len());
    back.apply_channels_last(gx.batch, gx.channels, &gy.values, &mut sum);
    let parts = gx.values.par_chunks_mut(1 << 14).zip(sum.par_chunks(1 << 14));
    parts.for_each(|(to, from)| to.iter_mut().zip(from).for_each(|(a, b)| *a += b));
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
