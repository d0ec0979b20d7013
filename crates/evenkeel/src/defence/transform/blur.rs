//! `gaussian-blur`: every value the weighted mean of its neighbours, beyond the border the nearest pixel. Linear; the way back is its transpose.

use evenkeel_kernels::parallel;

use super::Transform;
use crate::image::Image;

/// Weights are cut off at this many deviations.
const REACH: f64 = 3.0;
/// Rows that make a piece of work worth handing to another thread.
const GRAIN: usize = 16;

/// A blur of the same deviation in both directions.
#[derive(Clone, Copy, Debug)]
pub(in crate::defence) struct GaussianBlur {
    /// The deviation in pixels.
    pub(in crate::defence) sigma: f64,
}

/// For every position of a line, what it is made of: positions and weights.
struct Taps(Vec<Vec<(usize, f32)>>);

impl Taps {
    fn new(count: usize, sigma: f64) -> Self {
        let radius = (REACH * sigma).ceil().max(1.0) as isize;
        let weight = |i: isize| (-0.5 * (i as f64 / sigma).powi(2)).exp();
        let sum: f64 = (-radius..=radius).map(weight).sum();
        let line = |at: usize| {
            let near = |i: isize| (at as isize + i).clamp(0, count as isize - 1) as usize;
            (-radius..=radius).map(|i| (near(i), (weight(i) / sum) as f32)).collect()
        };
        Self((0..count).map(line).collect())
    }

    /// The transpose, as what each input position receives.
    fn transposed(&self) -> Self {
        let mut back = vec![Vec::new(); self.0.len()];
        for (to, taps) in self.0.iter().enumerate() {
            taps.iter().for_each(|(from, weight)| back[*from].push((to, *weight)));
        }
        Self(back)
    }
}

/// Planes `[n, h, w]` filtered down, then across.
fn filtered(planes: &[f32], (height, width): (usize, usize), down: &Taps, across: &Taps) -> Vec<f32> {
    let mut half = vec![0.0; planes.len()];
    parallel::rows(&mut half, width, GRAIN, |first, rows| {
        for (i, row) in rows.chunks_mut(width).enumerate() {
            let (plane, y) = ((first + i) / height, (first + i) % height);
            for (from, weight) in &down.0[y] {
                let line = &planes[(plane * height + from) * width..][..width];
                row.iter_mut().zip(line).for_each(|(o, v)| *o += weight * v);
            }
        }
    });
    let mut out = vec![0.0; planes.len()];
    parallel::rows(&mut out, width, GRAIN, |first, rows| {
        for (i, row) in rows.chunks_mut(width).enumerate() {
            let line = &half[(first + i) * width..][..width];
            row.iter_mut().zip(&across.0).for_each(|(o, taps)| {
                *o = taps.iter().map(|(from, weight)| weight * line[*from]).sum();
            });
        }
    });
    out
}

impl GaussianBlur {
    fn taps(&self, (height, width): (usize, usize)) -> (Taps, Taps) {
        (Taps::new(height, self.sigma), Taps::new(width, self.sigma))
    }
}

impl Transform for GaussianBlur {
    fn apply(&self, image: &Image) -> Image {
        let (down, across) = self.taps(image.size());
        let mut out = image.clone();
        let blurred = filtered(image.pixels(), image.size(), &down, &across);
        // weights sum to one but for rounding
        out.pixels_mut().iter_mut().zip(blurred).for_each(|(o, v)| *o = v.clamp(0.0, 1.0));
        out
    }

    fn pullback(&self, image: &Image, cotangent: Vec<f32>) -> Vec<f32> {
        let (down, across) = self.taps(image.size());
        filtered(&cotangent, image.size(), &down.transposed(), &across.transposed())
    }
}
