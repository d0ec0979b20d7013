//! Common corruptions: the fifteen of ImageNet-C and four extras, severities 1 to 5, on images of any size from 32x32 up.
//!
//! Used to ask whether a detector notices weather, cameras and compression. Each is a function of the image, a severity and a
//! seed only: random numbers come from one stream per row, so the pixels do not depend on threads. A grey image stays grey.
//! Frost is grown here; the photographs that the original pastes are not.

mod blur;
mod canvas;
mod colour;
mod digital;
mod frost;
mod jpeg;
mod noise;
mod plasma;
mod spatter;
mod weather;

#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::image::Image;
use crate::random::Random;
use canvas::Canvas;

/// The smallest side a corruption accepts.
pub const MIN_SIDE: usize = 32;

/// One kind of corruption.
pub struct Corruption {
    /// Its published name.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Whether it is one of the fifteen that benchmarks average over; the others are extras.
    pub standard: bool,
    apply: fn(&mut Canvas, usize, &Random),
}

/// Every corruption: first the fifteen in their published order, then the extras.
pub static CORRUPTIONS: [Corruption; 19] = [
    standard("gaussian_noise", "normal noise on every value", noise::gaussian),
    standard("shot_noise", "Poisson noise, as of few photons", noise::shot),
    standard("impulse_noise", "values set to black or white at random", noise::impulse),
    standard("defocus_blur", "blurred by a disk", blur::defocus),
    standard("glass_blur", "pixels swapped with near ones", blur::glass),
    standard("motion_blur", "blurred along a line", blur::motion),
    standard("zoom_blur", "averaged over zooms", blur::zoom),
    standard("snow", "falling snow", weather::snow),
    standard("frost", "a layer of procedurally grown frost", frost::frost),
    standard("fog", "a plasma fractal as fog", weather::fog),
    standard("brightness", "brighter", colour::brightness),
    standard("contrast", "less contrast", colour::contrast),
    standard("elastic_transform", "warped by a smooth random field", digital::elastic),
    standard("pixelate", "shrunk and enlarged again", digital::pixelate),
    standard("jpeg_compression", "compressed as JPEG", jpeg::compress),
    extra("speckle_noise", "noise in proportion to the value", noise::speckle),
    extra("gaussian_blur", "blurred by a Gaussian", blur::gaussian),
    extra("saturate", "more or less saturated", colour::saturate),
    extra("spatter", "drops of water or mud on the lens", spatter::spatter),
];

const fn standard(
    name: &'static str,
    about: &'static str,
    apply: fn(&mut Canvas, usize, &Random),
) -> Corruption {
    Corruption { name, about, standard: true, apply }
}

const fn extra(
    name: &'static str,
    about: &'static str,
    apply: fn(&mut Canvas, usize, &Random),
) -> Corruption {
    Corruption { name, about, standard: false, apply }
}

impl Corruption {
    /// The corruption of this name.
    ///
    /// # Errors
    /// Listing the names there are.
    pub fn named(name: &str) -> Result<&'static Self> {
        CORRUPTIONS.iter().find(|c| c.name == name).ok_or_else(|| {
            let names: Vec<_> = CORRUPTIONS.iter().map(|c| c.name).collect();
            Error::setting(format!("corruption {name}"), format!("is not one of {}", names.join(", ")))
        })
    }

    /// The corrupted image, in [0, 1].
    ///
    /// # Errors
    /// If the severity is not 1 to 5 or a side is shorter than [`MIN_SIDE`].
    pub fn apply(&self, image: &Image, severity: usize, seed: u64) -> Result<Image> {
        if !(1..=5).contains(&severity) {
            return Err(Error::setting("severity", format!("{severity} is not 1 to 5")));
        }
        let (height, width) = image.size();
        if height.min(width) < MIN_SIDE {
            let reason =
                format!("needs at least {MIN_SIDE}x{MIN_SIDE} pixels, the image has {width}x{height}");
            return Err(Error::setting(format!("corruption {}", self.name), reason));
        }
        let mut canvas = Canvas::of(image);
        (self.apply)(&mut canvas, severity - 1, &Random::new(seed));
        canvas.into_image()
    }
}

/// What JPEG of a quality from 1 to 100 leaves of an image of any size.
pub(crate) fn jpeg_compressed(image: &Image, quality: u32) -> Image {
    let mut canvas = Canvas::of(image);
    jpeg::at_quality(&mut canvas, quality.clamp(1, 100));
    canvas.into_image().unwrap_or_else(|_| image.clone())
}
