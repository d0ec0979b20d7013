//! Pictures: RGB in [0, 1] as planar f32, and label maps; how they come from and go to files.
//!
//! The first station of the flow. An [`Image`] holds `[3, h, w]`: all red, then all green, then all blue. Eight-bit files are
//! divided by 255 and sixteen-bit ones by 65535, so saving and loading at the same depth gives the same numbers back. A file
//! is written under a temporary name and renamed, so nothing partial is ever left behind.

mod jpeg;
mod label_map;
mod load;
mod palette;
mod resample;
mod save;
mod text;

pub use label_map::{IGNORED, LabelMap};
pub use load::{MAX_MEGAPIXELS, Picture};
pub use palette::Palette;
pub use resample::Window;
pub use save::write_atomically;
pub use text::{TEXT_HEIGHT, draw_text, text_width};

use crate::error::{Error, Result};

/// An RGB picture, planar `[3, h, w]`, values in [0, 1] by contract of whoever fills it.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    height: usize,
    width: usize,
    pixels: Vec<f32>,
}

impl Image {
    /// A picture from its planes `[3, h, w]`.
    ///
    /// # Errors
    /// If a side is zero or the number of values is not 3·h·w.
    pub fn new(height: usize, width: usize, pixels: Vec<f32>) -> Result<Self> {
        let expected = height.checked_mul(width).and_then(|n| n.checked_mul(3)).unwrap_or(0);
        if expected == 0 || expected != pixels.len() {
            let what = format!("values of a {width}x{height} image");
            return Err(Error::mismatch(what, format!("{expected} (at least 3)"), pixels.len()));
        }
        Ok(Self { height, width, pixels })
    }

    /// A picture of one value.
    ///
    /// # Panics
    /// If a side is zero.
    pub fn filled(height: usize, width: usize, value: f32) -> Self {
        assert!(height > 0 && width > 0, "an image has at least one pixel");
        Self { height, width, pixels: vec![value; 3 * height * width] }
    }

    /// A picture from interleaved eight-bit RGB.
    ///
    /// # Errors
    /// If the number of bytes is not 3·h·w.
    pub fn from_rgb8(height: usize, width: usize, bytes: &[u8]) -> Result<Self> {
        if bytes.len() != 3 * height * width {
            return Err(Error::mismatch("bytes of an RGB image", 3 * height * width, bytes.len()));
        }
        Self::new(height, width, planar(bytes, 3, |&b| f32::from(b) / 255.0))
    }

    /// Interleaved eight-bit RGB, rounded to nearest and clipped.
    pub fn to_rgb8(&self) -> Vec<u8> {
        let plane = self.height * self.width;
        (0..plane).flat_map(|i| (0..3).map(move |c| eight_bits(self.pixels[c * plane + i]))).collect()
    }

    /// What remains after saving to an eight-bit file: every value rounded to a multiple of 1/255.
    pub fn rounded_to_8_bits(&self) -> Self {
        let pixels = self.pixels.iter().map(|&v| f32::from(eight_bits(v)) / 255.0).collect();
        Self { pixels, ..*self }
    }

    /// Pixels down.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Pixels across.
    pub fn width(&self) -> usize {
        self.width
    }

    /// (height, width).
    pub fn size(&self) -> (usize, usize) {
        (self.height, self.width)
    }

    /// The planes `[3, h, w]`.
    pub fn pixels(&self) -> &[f32] {
        &self.pixels
    }

    /// The planes `[3, h, w]`, to be changed.
    pub fn pixels_mut(&mut self) -> &mut [f32] {
        &mut self.pixels
    }

    /// The planes `[3, h, w]`, given away.
    pub fn into_pixels(self) -> Vec<f32> {
        self.pixels
    }

    /// One of the three planes, `[h, w]`.
    pub fn plane(&self, channel: usize) -> &[f32] {
        &self.pixels[channel * self.height * self.width..][..self.height * self.width]
    }
}

fn eight_bits(value: f32) -> u8 {
    (value.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Interleaved samples with `channels` per pixel to planes of their values; grey is repeated, alpha left out.
fn planar<T>(samples: &[T], channels: usize, value: impl Fn(&T) -> f32) -> Vec<f32> {
    let mut pixels = Vec::with_capacity(samples.len() / channels * 3);
    for channel in 0..3 {
        let from = if channels > 2 { channel } else { 0 };
        match channels {
            // The usual case with its stride known, which makes the loop several times faster.
            3 => pixels.extend(samples.as_chunks::<3>().0.iter().map(|pixel| value(&pixel[from]))),
            _ => pixels.extend(samples.chunks_exact(channels).map(|pixel| value(&pixel[from]))),
        }
    }
    pixels
}

#[cfg(test)]
mod tests;
