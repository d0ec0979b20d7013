//! One point of one channel sampled in either precision, and its derivative with respect to the point: what proves the rest.

use super::Sampling;
use super::stencil::Stencil;
use crate::real::Real;

/// The sample of one channel `[height * width]` at `[x, y]`.
pub fn sample_reference<R: Real>(sampling: Sampling, size: [usize; 2], channel: &[R], point: [R; 2]) -> R {
    let stencil = Stencil::at(sampling, size, point);
    stencil.taps().fold(R::ZERO, |sum, tap| sum + tap.weight * channel[tap.pixel])
}

/// The derivatives of [`sample_reference`] with respect to the point.
pub fn sample_reference_slopes<R: Real>(
    sampling: Sampling,
    size: [usize; 2],
    channel: &[R],
    point: [R; 2],
) -> [R; 2] {
    let stencil = Stencil::at(sampling, size, point);
    stencil.taps().fold([R::ZERO; 2], |[x, y], tap| {
        [x + tap.slope[0] * channel[tap.pixel], y + tap.slope[1] * channel[tap.pixel]]
    })
}
