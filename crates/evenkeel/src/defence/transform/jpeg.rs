//! `jpeg`: what is left after compression at a quality, without the file. Coefficients are rounded, so the way back is the identity.

use super::Transform;
use crate::corrupt::jpeg_compressed;
use crate::image::Image;

/// Baseline JPEG with the colours halved.
#[derive(Clone, Copy, Debug)]
pub(in crate::defence) struct Jpeg {
    /// From 1 to 100.
    pub(in crate::defence) quality: u32,
}

impl Transform for Jpeg {
    fn has_derivative(&self) -> bool {
        false
    }

    fn apply(&self, image: &Image) -> Image {
        jpeg_compressed(image, self.quality)
    }
}
