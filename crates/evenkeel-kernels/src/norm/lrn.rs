//! Local response normalisation across channels of planar tensors `[n][c][pixels]`.
//!
//! `y_c = x_c * s_c^-beta` with `s_c = bias + alpha/size * sum of x^2` over the channels from `c - (size-1)/2` (rounded down) to
//! `c + (size-1)/2` (rounded up). Pulled back, `g_c s_c^-beta - 2 alpha beta / size * x_c * sum over the channels j whose window holds c of
//! g_j x_j s_j^(-beta-1)`.

use std::ops::Range;

use crate::layout::Extents;
use crate::parallel;
use crate::real::Real;

/// The constants of a local response normalisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lrn {
    /// Channels in a window.
    pub size: usize,
    /// The weight of the mean square.
    pub alpha: f32,
    /// The exponent.
    pub beta: f32,
    /// Added to the weighted mean square.
    pub bias: f32,
}

impl Lrn {
    /// The channels in the window of `channel`.
    fn window(&self, channel: usize, channels: usize) -> Range<usize> {
        let reach = self.size.saturating_sub(1);
        channel.saturating_sub(reach / 2)..(channel + reach.div_ceil(2) + 1).min(channels)
    }

    /// The channels whose windows hold `channel`.
    fn readers(&self, channel: usize, channels: usize) -> Range<usize> {
        let reach = self.size.saturating_sub(1);
        channel.saturating_sub(reach.div_ceil(2))..(channel + reach / 2 + 1).min(channels)
    }

    /// `s` at one element of one image.
    fn spread<R: Real>(&self, image: &[R], channel: usize, pixel: usize, extents: Extents) -> R {
        let mut sum = R::ZERO;
        for c in self.window(channel, extents.channels) {
            let x = image[c * extents.pixels + pixel];
            sum += x * x;
        }
        R::of(self.bias.into()) + R::of(f64::from(self.alpha) / self.size as f64) * sum
    }
}

/// `output = lrn(input)` on planar images.
///
/// # Panics
/// If a slice's length does not fit.
pub fn lrn<R: Real>(constants: Lrn, extents: Extents, input: &[R], output: &mut [R]) {
    each_channel(extents, &[input.len()], output, |image, channel, out| {
        let image = &input[image..];
        for (pixel, out) in out.iter_mut().enumerate() {
            let spread = constants.spread(image, channel, pixel, extents);
            *out = image[channel * extents.pixels + pixel] * spread.powf(R::of(-f64::from(constants.beta)));
        }
    });
}

/// The gradient of [`lrn`] with respect to its input.
///
/// # Panics
/// If a slice's length does not fit.
pub fn lrn_pullback<R: Real>(
    constants: Lrn,
    extents: Extents,
    input: &[R],
    grad_out: &[R],
    grad_in: &mut [R],
) {
    let beta = f64::from(constants.beta);
    let weight = R::of(2.0 * f64::from(constants.alpha) * beta / constants.size as f64);
    // Each element's share in its neighbours' windows, found once.
    let mut shares = vec![R::ZERO; input.len()];
    each_channel(extents, &[input.len(), grad_out.len()], &mut shares, |image, channel, out| {
        for (pixel, out) in out.iter_mut().enumerate() {
            let at = image + channel * extents.pixels + pixel;
            let spread = constants.spread(&input[image..], channel, pixel, extents);
            *out = grad_out[at] * input[at] * spread.powf(R::of(-beta - 1.0));
        }
    });
    each_channel(extents, &[input.len()], grad_in, |image, channel, out| {
        for (pixel, out) in out.iter_mut().enumerate() {
            let at = image + channel * extents.pixels + pixel;
            let spread = constants.spread(&input[image..], channel, pixel, extents);
            let mut sum = R::ZERO;
            for c in constants.readers(channel, extents.channels) {
                sum += shares[image + c * extents.pixels + pixel];
            }
            *out = grad_out[at] * spread.powf(R::of(-beta)) - weight * input[at] * sum;
        }
    });
}

/// Runs `task(first element of the image, channel, the channel's outputs)` for every channel of every image.
fn each_channel<R: Real>(
    extents: Extents,
    lens: &[usize],
    out: &mut [R],
    task: impl Fn(usize, usize, &mut [R]) + Sync + Send,
) {
    let len = extents.batch * extents.channels * extents.pixels;
    assert!(out.len() == len && lens.iter().all(|&given| given == len), "{extents:?}: {lens:?}");
    if len == 0 {
        return;
    }
    let grain = ((1 << 12) / extents.pixels).max(1);
    parallel::rows(out, extents.pixels, grain, |first, part| {
        for (i, out) in part.chunks_exact_mut(extents.pixels).enumerate() {
            let (image, channel) = ((first + i) / extents.channels, (first + i) % extents.channels);
            task(image * extents.channels * extents.pixels, channel, out);
        }
    });
}
