//! The one rule by which images change size: bilinear with antialiasing, as Pillow's BILINEAR and the field's data pipelines do it.
//!
//! Output pixel i looks at input position c = (i + 0.5)·s with s = old/new; input pixel j weighs
//! max(0, 1 - |j + 0.5 - c| / max(s, 1)), normalised (the kernels' `Sampling::ANTIALIASED`). Rows first (few rows remain), then columns, and only
//! inside the window that is wanted. Eight-bit pictures are taken as they come, three channels at a time. Invariant: weights add up to one, so a
//! constant image stays constant. Views of an image are drawn without antialiasing ([`Sampler`](crate::view::Sampler)), as the method says.

use super::Image;
use evenkeel_kernels::resample::{AxisMap, Sampling};

/// A rectangle of the resized image: the size it is part of, its upper left corner, its own size, all (rows, columns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Size of the whole resized image.
    pub whole: (usize, usize),
    /// Upper left corner of the window in it.
    pub origin: (usize, usize),
    /// Size of the window.
    pub size: (usize, usize),
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
        let map = AxisMap::resize(old, new, new as f64 / old as f64, Sampling::ANTIALIASED);
        let lists = || (origin..origin + count).map(|i| map.list(i));
        let reach = lists().map(<[_]>::len).max().unwrap_or(0);
        let mut taps = Self { reach, first: Vec::with_capacity(count), weights: vec![0.0; count * reach] };
        for (i, list) in lists().enumerate() {
            let first = list.first().map_or(0, |&(source, _)| source as usize).min(old - reach);
            for &(source, weight) in list {
                taps.weights[i * reach + source as usize - first] = weight;
            }
            taps.first.push(first);
        }
        taps
    }

    fn of(&self, i: usize) -> &[f32] {
        &self.weights[i * self.reach..][..self.reach]
    }

    /// Weighs one row; the count of weights is made a constant where it is small, as it nearly always is.
    fn apply(&self, row: &[f32], out: &mut [f32]) {
        match self.reach {
            2 => self.apply_constant::<2>(row, out),
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
}

impl Window {
    /// The whole of an image resized to this (height, width).
    pub fn whole(size: (usize, usize)) -> Self {
        Self { whole: size, origin: (0, 0), size }
    }

    /// The weights down and across for images of this (height, width).
    fn taps(&self, (h, w): (usize, usize)) -> (Taps, Taps) {
        let down = Taps::new(h, self.whole.0, self.origin.0, self.size.0);
        (down, Taps::new(w, self.whole.1, self.origin.1, self.size.1))
    }

    /// The window of this image.
    ///
    /// # Panics
    /// If the window is empty or does not lie in the whole.
    pub fn of(&self, image: &Image) -> Image {
        let (height, width) = self.size;
        let (down, across) = self.taps(image.size());
        let w = image.width();
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

    /// The window of an interleaved eight-bit picture of this (height, width).
    ///
    /// # Panics
    /// As [`Window::of`], or if there are not 3·h·w bytes.
    pub fn of_rgb8(&self, bytes: &[u8], (h, w): (usize, usize)) -> Image {
        let (height, width) = self.size;
        let (down, across) = self.taps((h, w));
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
                2 => across.apply_colours::<2>(&row, left, targets),
                3 => across.apply_colours::<3>(&row, left, targets),
                4 => across.apply_colours::<4>(&row, left, targets),
                5 => across.apply_colours::<5>(&row, left, targets),
                6 => across.apply_colours::<6>(&row, left, targets),
                _ => across.apply_wide_colours(&row, left, targets),
            }
        }
        out
    }
}

impl Image {
    /// The image at another size.
    ///
    /// # Panics
    /// If a side is zero.
    pub fn resized(&self, height: usize, width: usize) -> Self {
        match self.size() == (height, width) {
            true => self.clone(),
            false => Window::whole((height, width)).of(self),
        }
    }
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
                Window::whole((40, 60)),
                Window { whole: (5, 7), origin: (1, 0), size: (4, 7) },
            ] {
                let (one, other) = (window.of(&image), window.of_rgb8(&bytes, (h, w)));
                let far = one.pixels().iter().zip(other.pixels()).map(|(a, b)| (a - b).abs());
                assert!(far.fold(0.0, f32::max) < 1e-6, "{h}x{w} to {window:?}");
            }
        }
    }

    /// Where an image grows there is nothing to smooth: the views' sampling gives the same.
    #[test]
    fn growing_is_plain_bilinear() {
        let image = Image::new(5, 7, (0..105).map(|i| (i * 37 % 101) as f32 / 100.0).collect()).unwrap();
        let expected = crate::view::Sampler::resize((5, 7), (12, 21)).apply(image.pixels(), 3);
        let found = image.resized(12, 21);
        let far = found.pixels().iter().zip(&expected).map(|(a, b)| (a - b).abs());
        assert!(far.fold(0.0, f32::max) < 1e-6);
    }
}
