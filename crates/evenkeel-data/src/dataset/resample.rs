//! Resizing images: bilinear with antialiasing, the rule of Pillow's BILINEAR and of the field's data pipelines.
//!
//! Output pixel i looks at input position c = (i + 0.5)·s with s = old/new; input pixel j weighs
//! max(0, 1 - |j + 0.5 - c| / max(s, 1)), normalised. Rows first (few rows remain), then columns, and only inside the
//! window that is wanted. Eight-bit pictures are taken as they come, three channels at a time. Invariant: weights add up to one, so a constant image stays constant.

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

    /// Weighs one interleaved row that begins at value `left`, into a row of each plane, values in [0, 1].
    fn apply_colours<const REACH: usize>(&self, row: &[f32], left: usize, targets: [&mut [f32]; 3]) {
        let (weights, _) = self.weights.as_chunks::<REACH>();
        let [red, green, blue] = targets;
        let outputs = red.iter_mut().zip(green).zip(blue).zip(weights).zip(&self.first);
        for ((((red, green), blue), taps), &first) in outputs {
            let (pixels, _) = row[3 * first - left..][..3 * REACH].as_chunks::<3>();
            let mut sums = [0.0f32; 3];
            for k in 0..REACH {
                (0..3).for_each(|c| sums[c] += taps[k] * pixels[k][c]);
            }
            [*red, *green, *blue] = sums.map(|sum| sum * (1.0 / 255.0));
        }
    }

    /// The same for any count of weights.
    fn apply_wide_colours(&self, row: &[f32], left: usize, targets: [&mut [f32]; 3]) {
        for (channel, target) in targets.into_iter().enumerate() {
            for (i, value) in target.iter_mut().enumerate() {
                let from = row[3 * self.first[i] - left + channel..].iter().step_by(3);
                *value = self.of(i).iter().zip(from).map(|(t, v)| t * v).sum::<f32>() * (1.0 / 255.0);
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

/// The same for an interleaved eight-bit picture of this (height, width), which must have 3·h·w values.
pub(crate) fn resized_window_rgb8(bytes: &[u8], (h, w): (usize, usize), window: Window) -> Image {
    let (height, width) = window.size;
    let down = Taps::new(h, window.whole.0, window.origin.0, height);
    let across = Taps::new(w, window.whole.1, window.origin.1, width);
    // Only the columns that some output looks at.
    let left = across.first.first().map_or(0, |first| 3 * first);
    let right = across.first.last().map_or(0, |first| 3 * (first + across.reach));
    let mut out = Image::filled(height, width, 0.0);
    let [red, green, blue] = planes(out.pixels_mut(), height * width);
    let mut row = vec![0.0f32; right - left];
    for y in 0..height {
        row.fill(0.0);
        for (k, &weight) in down.of(y).iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            let from = &bytes[(down.first[y] + k) * 3 * w..][left..right];
            row.iter_mut().zip(from).for_each(|(sum, value)| *sum += weight * f32::from(*value));
        }
        let line = y * width..(y + 1) * width;
        let targets = [&mut red[line.clone()], &mut green[line.clone()], &mut blue[line]];
        match across.reach {
            3 => across.apply_colours::<3>(&row, left, targets),
            4 => across.apply_colours::<4>(&row, left, targets),
            5 => across.apply_colours::<5>(&row, left, targets),
            6 => across.apply_colours::<6>(&row, left, targets),
            _ => across.apply_wide_colours(&row, left, targets),
        }
    }
    out
}

fn planes(pixels: &mut [f32], plane: usize) -> [&mut [f32]; 3] {
    let (red, rest) = pixels.split_at_mut(plane);
    let (green, blue) = rest.split_at_mut(plane);
    [red, green, blue]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bit_pictures_are_resized_like_planes() {
        for (h, w) in [(30, 47), (200, 9), (24, 24), (61, 350)] {
            let bytes: Vec<u8> = (0..3 * h * w).map(|i| (i * 7919 % 251) as u8).collect();
            let image = Image::from_rgb8(h, w, &bytes).unwrap();
            for window in [
                Window { whole: (16, 20), origin: (2, 5), size: (11, 9) },
                Window { whole: (40, 60), origin: (0, 0), size: (40, 60) },
                Window { whole: (5, 7), origin: (1, 0), size: (4, 7) },
            ] {
                let (one, other) =
                    (resized_window(&image, window), resized_window_rgb8(&bytes, (h, w), window));
                let far = one.pixels().iter().zip(other.pixels()).map(|(a, b)| (a - b).abs());
                assert!(far.fold(0.0, f32::max) < 1e-6, "{h}x{w} to {window:?}");
            }
        }
    }
}
