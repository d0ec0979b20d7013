//! Gaussian noise as a view: every value of the image plus its own draw of N(0, σ²), nothing moved and nothing clipped.
//!
//! It is what a noise vote sees an image through. Its pullback is the identity; the noise is a function of its seed alone.

use crate::image::Image;
use crate::random::Random;
use crate::view::View;

/// Noise of one draw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    pub(super) sigma: f32,
    pub(super) seed: u64,
}

impl View for Noise {
    fn caption(&self) -> String {
        format!("noise of {:.1}/255", 255.0 * self.sigma)
    }

    fn recolour(&self, image: &Image) -> Option<Image> {
        let mut random = Random::new(self.seed);
        let mut noisy = image.clone();
        noisy.pixels_mut().iter_mut().for_each(|v| *v += self.sigma * random.normal());
        Some(noisy)
    }
}
