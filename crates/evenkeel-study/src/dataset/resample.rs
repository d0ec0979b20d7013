//! Resizing images: bilinear with antialiasing, the rule of Pillow's BILINEAR and of the field's data pipelines.
//!
//! Output pixel i looks at input position c = (i + 0.5)·s with s = old/new; input pixel j weighs
//! max(0, 1 - |j + 0.5 - c| / max(s, 1)), normalised. Rows first (few rows remain), then columns, and only inside the
//! window that is wanted. Invariant: weights add up to one, so a constant image stays constant.

use evenkeel::Image;

/// A rectangle of the resized image: the size it is part of, its upper left corner, its own size, all (rows, columns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) whole: (usize, usize),
    pub(crate) origin: (usize, usize),
    pub(crate) size: (usize, usize),
}

/// For each output position, `reach` weights and the input position the first of them belongs to.
struct Taps {
    reach: usize,
    first: Vec<usize>,
    weights: Vec<f32>,
}

impl Taps {
    /// Positions `origin..origin + count` of `old` samples resized to `new`.
    fn new(old: usize, new: usize, origin: usize, count: usize) -> Self {
        let scale = old as f64 / new as f64;
        let radius = scale.max(1.0);
        let reach = old.min((2.0 * radius).ceil() as usize + 1);
        let (mut first, mut weights) = (Vec::with_capacity(count), Vec::with_capacity(count * reach));
        for i in origin..origin + count {
            let centre = (i as f64 + 0.5) * scale;
            let low = ((centre - radius + 0.5).max(0.0) as usize).min(old - reach);
            let raw = (low..low + reach).map(|j| (1.0 - ((j as f64 + 0.5 - centre) / radius).abs()).max(0.0));
            let total: f64 = raw.clone().sum();
            first.push(low);
            weights.extend(raw.map(|w| (w / total) as f32));
        }
        Self { reach, first, weights }
    }

    fn of(&self, i: usize) -> &[f32] {
        &self.weights[i * self.reach..][..self.reach]
    }

    /// Weighs one row; the count of weights is made a constant where it is small, as it nearly always is.
    fn apply(&self, row: &[f32], out: &mut [f32]) {
        match self.reach {
            3 => self.apply_constant::<3>(row, out),
            4 => self.apply_constant::<4>(row, out),
            5 => self.apply_constant::<5>(row, out),
            6 => self.apply_constant::<6>(row, out),
            _ => {
                for (i, value) in out.iter_mut().enumerate() {
                    let from = &row[self.first[i]..][..self.reach];
                    *value = self.of(i).iter().zip(from).map(|(t, v)| t * v).sum();
                }
            }
        }
    }

    fn apply_constant<const REACH: usize>(&self, row: &[f32], out: &mut [f32]) {
        let (weights, _) = self.weights.as_chunks::<REACH>();
        for ((value, taps), &first) in out.iter_mut().zip(weights).zip(&self.first) {
            let from: &[f32; REACH] = row[first..][..REACH].try_into().expect("a slice of that length");
            *value = (0..REACH).map(|k| taps[k] * from[k]).sum();
        }
    }
}

/// The image at another size.
pub fn resized(image: &Image, height: usize, width: usize) -> Image {
    let size = (height, width);
    if image.size() == size {
        return image.clone();
    }
    resized_window(image, Window { whole: size, origin: (0, 0), size })
}

/// A window of the image at another size.
pub(crate) fn resized_window(image: &Image, window: Window) -> Image {
    let (h, w) = image.size();
    let (height, width) = window.size;
    let down = Taps::new(h, window.whole.0, window.origin.0, height);
    let across = Taps::new(w, window.whole.1, window.origin.1, width);
    let mut out = Image::filled(height, width, 0.0);
    let mut row = vec![0.0f32; w];
    for channel in 0..3 {
        let plane = image.plane(channel);
        let target = &mut out.pixels_mut()[channel * height * width..][..height * width];
        for (y, line) in target.chunks_exact_mut(width).enumerate() {
            row.fill(0.0);
            for (k, &weight) in down.of(y).iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                let from = &plane[(down.first[y] + k) * w..][..w];
                row.iter_mut().zip(from).for_each(|(sum, value)| *sum += weight * value);
            }
            across.apply(&row, line);
        }
    }
    out
}
