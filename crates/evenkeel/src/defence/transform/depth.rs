//! `bit-depth`: every value rounded to 2^b levels. round(v·(2^b − 1))/(2^b − 1); a staircase, so the way back is the identity.

use super::Transform;
use crate::image::Image;

/// Fewer levels.
#[derive(Clone, Copy, Debug)]
pub(in crate::defence) struct BitDepth {
    /// Bits of a value.
    pub(in crate::defence) bits: u32,
}

impl Transform for BitDepth {
    fn has_derivative(&self) -> bool {
        false
    }

    fn apply(&self, image: &Image) -> Image {
        let steps = ((1u32 << self.bits) - 1) as f32;
        let mut out = image.clone();
        out.pixels_mut().iter_mut().for_each(|v| *v = (v.clamp(0.0, 1.0) * steps).round() / steps);
        out
    }
}
