//! Sampling a feature map at given points (GridSample), with gradients to the map and to the points.
//!
//! A point `(x, y)` in [-1, 1] lies at a pixel coordinate `u`; the output is `sum over taps of w_t(u) * input[i_t]`, so for fixed points the
//! whole is a sparse linear map of pixels, an [`AxisMap`], whose transpose is the pullback to the input. The pullback to the points is
//! `sum over channels of g * sum over taps of w_t'(u) * input[i_t]`, times `du/dx`.

mod reference;
mod stencil;
#[cfg(test)]
mod tests;

use crate::disjoint::Disjoint;
use crate::layout::stride;
use crate::parallel;
use crate::resample::AxisMap;
use stencil::Stencil;

pub use reference::{sample_reference, sample_reference_slopes};

/// How a point's neighbours are weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Four neighbours, by distance.
    Bilinear,
    /// The nearest one, of two the even.
    Nearest,
    /// Sixteen, by cubic convolution with coefficient -0.75.
    Bicubic,
}

/// What lies outside the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Zeros.
    Zeros,
    /// The nearest edge pixel.
    Border,
    /// The map, mirrored.
    Reflection,
}

/// How a map is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// How neighbours are weighed.
    pub filter: Filter,
    /// What lies outside.
    pub padding: Padding,
    /// Whether -1 and 1 are the middles of the edge pixels instead of their outer sides.
    pub align_corners: bool,
}

/// How feature maps lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `[n][c][pixels]`.
    Planar,
    /// `[n][pixels][stride(c)]`.
    ChannelsLast,
}

impl Layout {
    /// Elements of one image, and from one pixel and one channel to the next.
    pub(crate) fn steps(self, channels: usize, pixels: usize) -> [usize; 3] {
        match self {
            Layout::Planar => [channels * pixels, 1, pixels],
            Layout::ChannelsLast => [pixels * stride(channels), stride(channels), 1],
        }
    }
}

/// The sizes of one sampling, and the layout of its maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Images.
    pub batch: usize,
    /// Channels.
    pub channels: usize,
    /// The sampled map's height and width.
    pub input: [usize; 2],
    /// Points for each image.
    pub points: usize,
    /// How input and output maps lie in memory.
    pub layout: Layout,
}

impl Geometry {
    fn pixels(&self) -> usize {
        self.input[0] * self.input[1]
    }

    fn check(&self, input: usize, grid: usize, output: usize) {
        let [image_in, ..] = self.layout.steps(self.channels, self.pixels());
        let [image_out, ..] = self.layout.steps(self.channels, self.points);
        assert_eq!(input, self.batch * image_in, "input of {self:?}");
        assert_eq!(grid, self.batch * self.points * 2, "grid of {self:?}");
        assert_eq!(output, self.batch * image_out, "output of {self:?}");
    }

    /// The points of one image as a map of its pixels.
    fn map(&self, sampling: Sampling, grid: &[f32]) -> AxisMap {
        AxisMap::from_fn(self.pixels(), self.points, |p, list| {
            let stencil = Stencil::at(sampling, self.input, [grid[2 * p], grid[2 * p + 1]]);
            list.extend(stencil.taps().map(|tap| (tap.pixel, f64::from(tap.weight))));
        })
    }

    fn apply(&self, map: &AxisMap, from: &[f32], into: &mut [f32]) {
        match self.layout {
            Layout::Planar => map.apply(self.channels, 1, from, into),
            Layout::ChannelsLast => map.apply(1, stride(self.channels), from, into),
        }
    }
}

/// Samples `input` at the points of `grid`, `[n][points][x, y]`.
///
/// # Panics
/// If a slice's length does not fit.
pub fn forward(geometry: &Geometry, sampling: Sampling, input: &[f32], grid: &[f32], output: &mut [f32]) {
    geometry.check(input.len(), grid.len(), output.len());
    let [image_in, ..] = geometry.layout.steps(geometry.channels, geometry.pixels());
    let [image_out, ..] = geometry.layout.steps(geometry.channels, geometry.points);
    for n in 0..geometry.batch {
        let map = geometry.map(sampling, &grid[n * geometry.points * 2..][..geometry.points * 2]);
        geometry.apply(&map, &input[n * image_in..][..image_in], &mut output[n * image_out..][..image_out]);
    }
}

/// The gradient of [`forward`] with respect to its input.
///
/// # Panics
/// If a slice's length does not fit.
pub fn pullback_input(
    geometry: &Geometry,
    sampling: Sampling,
    grid: &[f32],
    grad_out: &[f32],
    grad_in: &mut [f32],
) {
    geometry.check(grad_in.len(), grid.len(), grad_out.len());
    let [image_in, ..] = geometry.layout.steps(geometry.channels, geometry.pixels());
    let [image_out, ..] = geometry.layout.steps(geometry.channels, geometry.points);
    for n in 0..geometry.batch {
        let map =
            geometry.map(sampling, &grid[n * geometry.points * 2..][..geometry.points * 2]).transposed();
        geometry.apply(
            &map,
            &grad_out[n * image_out..][..image_out],
            &mut grad_in[n * image_in..][..image_in],
        );
    }
}

/// What the gradient with respect to the points is taken at.
#[derive(Clone, Copy, Debug)]
pub struct SampledAt<'a> {
    /// The sampled map.
    pub input: &'a [f32],
    /// The points.
    pub grid: &'a [f32],
}

/// The gradient of [`forward`] with respect to the points.
///
/// # Panics
/// If a slice's length does not fit.
pub fn pullback_grid(
    geometry: &Geometry,
    sampling: Sampling,
    at: SampledAt<'_>,
    grad_out: &[f32],
    grad_grid: &mut [f32],
) {
    geometry.check(at.input.len(), at.grid.len(), grad_out.len());
    assert_eq!(grad_grid.len(), at.grid.len(), "gradient of the grid of {geometry:?}");
    let steps_in = geometry.layout.steps(geometry.channels, geometry.pixels());
    let steps_out = geometry.layout.steps(geometry.channels, geometry.points);
    let parts = Disjoint::new(grad_grid);
    let grain = ((1 << 13) / (geometry.channels.max(1) * 4)).max(1);
    parallel::ranges(geometry.batch * geometry.points, grain, |range| {
        for i in range {
            let (n, p) = (i / geometry.points, i % geometry.points);
            let stencil = Stencil::at(sampling, geometry.input, [at.grid[2 * i], at.grid[2 * i + 1]]);
            let (input, grads) = (&at.input[n * steps_in[0]..], &grad_out[n * steps_out[0]..]);
            let mut sums = [0.0; 2];
            for c in 0..geometry.channels {
                let g = grads[p * steps_out[1] + c * steps_out[2]];
                for tap in stencil.taps() {
                    let x = input[tap.pixel * steps_in[1] + c * steps_in[2]];
                    sums[0] += g * x * tap.slope[0];
                    sums[1] += g * x * tap.slope[1];
                }
            }
            // SAFETY: one point belongs to one task.
            unsafe { parts.part(2 * i..2 * i + 2) }.copy_from_slice(&sums);
        }
    });
}
