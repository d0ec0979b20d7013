//! What corruptions paint on: one plane for a grey image, three for a colour one, and the filters they share.
//!
//! Filters work plane by plane and row by row; each output row depends on the input only, never on how rows were dealt out.

use evenkeel_kernels::parallel;

use crate::error::Result;
use crate::image::Image;
use crate::random::Random;

/// Rows that make a piece of work worth handing to another thread.
pub(super) const GRAIN: usize = 16;

/// Planes `[channels, h, w]`, with one or three channels.
#[derive(Clone)]
pub(super) struct Canvas {
    pub(super) channels: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) data: Vec<f32>,
}

impl Canvas {
    pub(super) fn of(image: &Image) -> Self {
        let grey = image.plane(0) == image.plane(1) && image.plane(0) == image.plane(2);
        let data = if grey { image.plane(0).to_vec() } else { image.pixels().to_vec() };
        Self { channels: if grey { 1 } else { 3 }, height: image.height(), width: image.width(), data }
    }

    pub(super) fn layer(height: usize, width: usize, data: Vec<f32>) -> Self {
        debug_assert_eq!(data.len(), height * width);
        Self { channels: 1, height, width, data }
    }

    pub(super) fn into_image(self) -> Result<Image> {
        let clip = |v: f32| v.clamp(0.0, 1.0);
        let repeats = 3 / self.channels;
        let pixels = (0..repeats).flat_map(|_| self.data.iter().map(|&v| clip(v))).collect();
        Image::new(self.height, self.width, pixels)
    }

    pub(super) fn plane(&self) -> usize {
        self.height * self.width
    }

    /// Brightness as the eye weighs it, `[h, w]`.
    pub(super) fn luma(&self) -> Vec<f32> {
        if self.channels == 1 {
            return self.data.clone();
        }
        let n = self.plane();
        (0..n)
            .map(|i| 0.299 * self.data[i] + 0.587 * self.data[n + i] + 0.114 * self.data[2 * n + i])
            .collect()
    }

    /// Replaces every value by `change(value, its row's own stream)`.
    pub(super) fn change_rows(
        &mut self,
        random: &Random,
        change: impl Fn(f32, &mut Random) -> f32 + Sync + Send,
    ) {
        parallel::rows(&mut self.data, self.width, GRAIN, |first, rows| {
            for (i, row) in rows.chunks_mut(self.width).enumerate() {
                let mut stream = random.fork((first + i) as u64);
                row.iter_mut().for_each(|v| *v = change(*v, &mut stream));
            }
        });
    }

    /// Replaces the planes: each new row is made from its plane, given the row's number.
    pub(super) fn map_rows(&mut self, make: impl Fn(&[f32], usize, &mut [f32]) + Sync + Send) {
        let mut out = vec![0.0; self.data.len()];
        parallel::rows(&mut out, self.width, GRAIN, |first, rows| {
            for (i, row) in rows.chunks_mut(self.width).enumerate() {
                let (channel, y) = ((first + i) / self.height, (first + i) % self.height);
                make(&self.data[channel * self.plane()..][..self.plane()], y, row);
            }
        });
        self.data = out;
    }

    /// Gaussian blur with deviations down and across, weights cut off at `reach` deviations, borders by `edge`.
    pub(super) fn blur(&mut self, sigma: (f32, f32), reach: f32, edge: fn(isize, usize) -> usize) {
        let (height, width) = (self.height, self.width);
        let down = gaussian_weights(sigma.0, reach);
        self.map_rows(|plane, y, row| {
            for (k, weight) in down.iter().enumerate() {
                let from = edge(y as isize + k as isize - (down.len() / 2) as isize, height);
                row.iter_mut().zip(&plane[from * width..]).for_each(|(o, v)| *o += weight * v);
            }
        });
        let across = gaussian_weights(sigma.1, reach);
        let radius = across.len() / 2;
        self.map_rows(|plane, y, row| {
            let line = &plane[y * width..][..width];
            let padded: Vec<f32> =
                (0..width + 2 * radius).map(|x| line[edge(x as isize - radius as isize, width)]).collect();
            for (k, weight) in across.iter().enumerate() {
                row.iter_mut().zip(&padded[k..]).for_each(|(o, v)| *o += weight * v);
            }
        });
    }
}

/// Normal weights of the given deviation out to `reach` deviations, summing to one.
fn gaussian_weights(sigma: f32, reach: f32) -> Vec<f32> {
    let radius = (reach * sigma + 0.5) as isize;
    let weights: Vec<f32> = (-radius..=radius).map(|i| (-0.5 * (i as f32 / sigma).powi(2)).exp()).collect();
    let sum: f32 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

/// Beyond the border, the nearest pixel.
pub(super) fn nearest(i: isize, count: usize) -> usize {
    i.clamp(0, count as isize - 1) as usize
}

/// Beyond the border, the mirror image with the border pixel repeated.
pub(super) fn mirror(i: isize, count: usize) -> usize {
    let period = 2 * count as isize;
    let i = i.rem_euclid(period);
    i.min(period - 1 - i) as usize
}

/// Beyond the border, the mirror image about the border pixel.
pub(super) fn mirror_about(i: isize, count: usize) -> usize {
    let period = (2 * count as isize - 2).max(1);
    let i = i.rem_euclid(period);
    i.min(period - i) as usize
}
