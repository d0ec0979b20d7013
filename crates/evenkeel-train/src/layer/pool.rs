//! The largest of each window, and the positive part. A window's gradient goes to the first of its pixels that has the largest value.

use crate::map::Map;
use rayon::prelude::*;

/// The sizes of a pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    /// Side of a window.
    pub(crate) kernel: usize,
    /// Pixels from one window to the next.
    pub(crate) stride: usize,
    /// Rows and columns around the map that count for nothing.
    pub(crate) pad: usize,
}

impl Pool {
    fn side(&self, side: usize) -> usize {
        (side + 2 * self.pad).saturating_sub(self.kernel) / self.stride + 1
    }

    /// The pixels of a window that lie inside.
    fn window(self, (y, x): (usize, usize), map: &Map) -> impl Iterator<Item = usize> {
        let along = move |at: usize, side: usize| {
            let first = (at * self.stride).saturating_sub(self.pad);
            first..(at * self.stride + self.kernel).saturating_sub(self.pad).min(side)
        };
        let (width, columns) = (map.width, along(x, map.width));
        along(y, map.height).flat_map(move |row| columns.clone().map(move |column| row * width + column))
    }

    pub(crate) fn forward(self, x: &Map) -> Map {
        let mut y = Map::zeros(x.batch, self.side(x.height), self.side(x.width), x.channels);
        let (stride, width, height) = (x.stride(), y.width, y.height);
        y.values.par_chunks_mut(width * stride).enumerate().for_each(|(line, out)| {
            let image = &x.values[line / height * x.image_len()..][..x.image_len()];
            for (column, out) in out.chunks_exact_mut(stride).enumerate() {
                out.fill(f32::NEG_INFINITY);
                for pixel in self.window((line % height, column), x) {
                    let from = &image[pixel * stride..][..stride];
                    out.iter_mut().zip(from).for_each(|(a, b)| *a = a.max(*b));
                }
            }
        });
        y
    }

    /// Adds the gradient of [`Pool::forward`] to `gx`.
    pub(crate) fn backward(self, x: &Map, y: &Map, gy: &Map, gx: &mut Map) {
        let (stride, len) = (x.stride(), x.image_len());
        gx.values.par_chunks_mut(len).enumerate().for_each(|(n, gx)| {
            let image = &x.values[n * len..][..len];
            for cell in 0..y.height * y.width {
                let at = n * y.image_len() + cell * stride;
                for c in 0..x.channels {
                    let mut window = self.window((cell / y.width, cell % y.width), x);
                    if let Some(pixel) = window.find(|pixel| image[pixel * stride + c] == y.values[at + c]) {
                        gx[pixel * stride + c] += gy.values[at + c];
                    }
                }
            }
        });
    }
}

/// The positive part.
pub(crate) fn relu(x: &Map) -> Map {
    let mut y = x.clone();
    y.values.par_chunks_mut(1 << 14).for_each(|part| part.iter_mut().for_each(|v| *v = v.max(0.0)));
    y
}
