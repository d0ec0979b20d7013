//! Input transforms: the baselines that every test-time defence is measured against. They change the image without running the network.
//!
//! A transform maps the image to one of the same size (`jpeg`, `bit-depth`, `median-blur`, `gaussian-blur`), or shows the network a view of it whose
//! answer is undone (`rescale`, `random-resize-pad`). The way back is exact where a derivative exists; rounding has none that says anything, so there it
//! is the identity (BPDA). Invariant: the result depends on the image and the seed only, and lies in [0, 1].

mod blur;
mod depth;
mod frame;
mod jpeg;
mod median;

#[cfg(test)]
mod tests;

use crate::image::Image;
use crate::random::Random;
use crate::view::DrawnView;

pub(super) use blur::GaussianBlur;
pub(super) use depth::BitDepth;
pub(super) use frame::{RandomResizePad, Rescale};
pub(super) use jpeg::Jpeg;
pub(super) use median::MedianBlur;

/// A change of the image that asks no network.
pub trait Transform: std::fmt::Debug + Send + Sync {
    /// Whether it depends on the seed.
    fn is_random(&self) -> bool {
        false
    }

    /// Whether its derivative says anything; a staircase's is zero almost everywhere.
    fn has_derivative(&self) -> bool {
        true
    }

    /// The changed image, of the same size.
    fn apply(&self, image: &Image) -> Image {
        image.clone()
    }

    /// The pullback of [`Transform::apply`] at `image`; the identity where there is no useful derivative.
    fn pullback(&self, image: &Image, cotangent: Vec<f32>) -> Vec<f32> {
        let _ = image;
        cotangent
    }

    /// The view that the network is shown instead, whose answer is undone; none, the default, where nothing moves.
    fn view(&self, random: &Random) -> Option<DrawnView> {
        let _ = random;
        None
    }
}
