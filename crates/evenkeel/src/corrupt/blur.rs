//! Blurs: out of focus, through frosted glass, in motion, zooming, and plain Gaussian.

use super::canvas::{Canvas, mirror_about, nearest};
use crate::random::Random;

/// Average over a disk, softened at its rim.
pub(super) fn defocus(canvas: &mut Canvas, severity: usize, _: &Random) {
    let (radius, rim) = [(3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)][severity];
    let (height, width) = (canvas.height, canvas.width);
    // half[d]: how far the disk reaches sideways, d rows from its centre
    let half: Vec<usize> =
        (0..=radius).map(|d: usize| ((radius * radius - d * d) as f64).sqrt() as usize).collect();
    let area: usize = (0..=2 * radius).map(|d| 2 * half[d.abs_diff(radius)] + 1).sum();
    let line = width + 2 * radius + 1;
    let sums = running_sums(canvas, radius, line);
    canvas.data = {
        let mut wide = Canvas { data: std::mem::take(&mut canvas.data), ..*canvas };
        let channels = wide.channels;
        let (plane, sums) = (height * width, &sums);
        let mut out = vec![0.0; channels * plane];
        evenkeel_kernels::parallel::rows(&mut out, width, super::canvas::GRAIN, |first, rows| {
            for (i, row) in rows.chunks_mut(width).enumerate() {
                let (channel, y) = ((first + i) / height, (first + i) % height);
                let mut total = vec![0.0f64; width];
                for d in 0..=2 * radius {
                    let from = mirror_about((y + d) as isize - radius as isize, height);
                    let reach = half[d.abs_diff(radius)];
                    let run = &sums[(channel * height + from) * line..][..line];
                    let (low, high) = (&run[radius - reach..], &run[radius + reach + 1..]);
                    for x in 0..width {
                        total[x] += high[x] - low[x];
                    }
                }
                row.iter_mut().zip(&total).for_each(|(o, t)| *o = (t / area as f64) as f32);
            }
        });
        wide.data = out;
        wide.blur((rim, rim), if radius > 8 { 4.0 } else { 2.0 }, mirror_about);
        wide.data
    };
}

/// For every row, padded by mirroring: the sum of everything before each position, `[channels·h, line]`.
fn running_sums(canvas: &Canvas, radius: usize, line: usize) -> Vec<f64> {
    let mut sums = vec![0.0; canvas.channels * canvas.height * line];
    evenkeel_kernels::parallel::rows(&mut sums, line, super::canvas::GRAIN, |first, rows| {
        for (i, run) in rows.chunks_mut(line).enumerate() {
            let row = &canvas.data[(first + i) * canvas.width..][..canvas.width];
            let mut sum = 0.0;
            for (x, slot) in run.iter_mut().enumerate() {
                *slot = sum;
                sum += f64::from(row[mirror_about(x as isize - radius as isize, canvas.width)]);
            }
        }
    });
    sums
}

/// Blur, pixels copied from near by, blur again.
pub(super) fn glass(canvas: &mut Canvas, severity: usize, random: &Random) {
    let (sigma, offset, passes) = [(0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)][severity];
    canvas.blur((sigma, sigma), 4.0, nearest);
    let (height, width, plane) = (canvas.height, canvas.width, canvas.plane());
    let span = 2 * offset;
    for pass in 0..passes {
        // in place from the last pixel to the first: what is copied may itself have been copied
        for y in (offset + 1..=height - offset).rev() {
            let mut stream = random.fork((pass * height + y) as u64);
            for x in (offset + 1..=width - offset).rev() {
                let from_y = y + stream.below(span) - offset;
                let from_x = x + stream.below(span) - offset;
                if y < height && x < width {
                    for channel in 0..canvas.channels {
                        canvas.data[channel * plane + y * width + x] =
                            canvas.data[channel * plane + from_y * width + from_x];
                    }
                }
            }
        }
    }
    canvas.blur((sigma, sigma), 4.0, nearest);
}

/// A trail of half-normal weights in a direction within 45° of level.
pub(super) fn motion(canvas: &mut Canvas, severity: usize, random: &Random) {
    let (radius, sigma) = [(10, 3.0), (15, 5.0), (15, 8.0), (15, 12.0), (20, 15.0)][severity];
    let angle = random.fork(0).uniform(-45.0, 45.0);
    trail(canvas, radius, sigma, angle);
}

/// Each pixel becomes a weighted average of the `2·radius + 1` pixels on the line from it at `angle` degrees.
pub(super) fn trail(canvas: &mut Canvas, radius: usize, sigma: f32, angle: f32) {
    let (height, width) = (canvas.height, canvas.width);
    let weights: Vec<f32> = (0..2 * radius + 1).map(|i| (-0.5 * (i as f32 / sigma).powi(2)).exp()).collect();
    let sum: f32 = weights.iter().sum();
    let (sine, cosine) = angle.to_radians().sin_cos();
    let step = |i: usize, part: f32| (i as f32 * part - 0.5).ceil() as isize;
    canvas.map_rows(|plane, y, row| {
        for (i, weight) in weights.iter().enumerate() {
            let (down, right) = (step(i, sine), step(i, cosine));
            if down.unsigned_abs() >= height || right.unsigned_abs() >= width {
                break;
            }
            let line = &plane[nearest(y as isize + down, height) * width..][..width];
            let weight = weight / sum;
            for (x, out) in row.iter_mut().enumerate() {
                *out += weight * line[nearest(x as isize + right, width)];
            }
        }
    });
}

/// The average of the image and its enlargements about the centre.
pub(super) fn zoom(canvas: &mut Canvas, severity: usize, _: &Random) {
    let (count, step) = [(12, 0.01), (16, 0.01), (11, 0.02), (13, 0.02), (11, 0.03)][severity];
    let mut sum = canvas.data.clone();
    for i in 0..count {
        let layer = enlarged(canvas, 1.0 + f64::from(i) * step, (canvas.height, canvas.width));
        sum.iter_mut().zip(&layer.data).for_each(|(s, v)| *s += v);
    }
    sum.iter_mut().for_each(|s| *s /= (count + 1) as f32);
    canvas.data = sum;
}

/// The middle of the canvas enlarged `factor` times, ends on ends, and its first `size` rows and columns.
pub(super) fn enlarged(canvas: &Canvas, factor: f64, size: (usize, usize)) -> Canvas {
    let (rows, columns) = (Stretch::of(canvas.height, factor), Stretch::of(canvas.width, factor));
    let across: Vec<_> = (0..size.1).map(|x| columns.at(x)).collect();
    let mut out = vec![0.0; canvas.channels * size.0 * size.1];
    evenkeel_kernels::parallel::rows(&mut out, size.1, super::canvas::GRAIN, |first, lines| {
        for (i, line) in lines.chunks_mut(size.1).enumerate() {
            let (channel, y) = ((first + i) / size.0, (first + i) % size.0);
            let (low, high, part) = rows.at(y);
            let plane = &canvas.data[channel * canvas.plane()..];
            let (upper, lower) = (&plane[low * canvas.width..], &plane[high * canvas.width..]);
            for (out, &(left, right, along)) in line.iter_mut().zip(&across) {
                let top = upper[left] + along * (upper[right] - upper[left]);
                let bottom = lower[left] + along * (lower[right] - lower[left]);
                *out = top + part * (bottom - top);
            }
        }
    });
    Canvas { channels: canvas.channels, height: size.0, width: size.1, data: out }
}

/// How a side is cut to its middle and stretched.
struct Stretch {
    start: usize,
    kept: usize,
    scale: f64,
}

impl Stretch {
    fn of(side: usize, factor: f64) -> Self {
        let kept = ((side as f64 / factor).ceil() as usize).clamp(1, side);
        let stretched = (kept as f64 * factor).round();
        Self { start: (side - kept) / 2, kept, scale: (kept as f64 - 1.0) / (stretched - 1.0).max(1.0) }
    }

    /// The two source positions of an output position and the share of the second.
    fn at(&self, i: usize) -> (usize, usize, f32) {
        let place = (i as f64 * self.scale).min((self.kept - 1) as f64);
        let low = place as usize;
        (self.start + low, self.start + (low + 1).min(self.kept - 1), (place - low as f64) as f32)
    }
}

/// Plain Gaussian blur.
pub(super) fn gaussian(canvas: &mut Canvas, severity: usize, _: &Random) {
    let sigma = [1.0, 2.0, 3.0, 4.0, 6.0][severity];
    canvas.blur((sigma, sigma), 4.0, nearest);
}
