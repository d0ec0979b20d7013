//! Writing pictures: PNG of 8 or 16 bits and JPEG, whole or not at all.

use std::io::Write;
use std::path::Path;

use super::{Image, eight_bits};
use crate::error::{Error, Result};

/// Writes a file under a temporary name beside its place and renames it, so that readers see all of it or nothing.
///
/// # Errors
/// If the folder is not there or cannot be written; no part of the file stays behind.
pub fn write_atomically(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(Error::io(path))?;
    // into the file itself: through its guard, a full disk would be reported under the temporary name
    file.as_file_mut().write_all(bytes).map_err(Error::io(path))?;
    open_to_all(file.as_file()).map_err(Error::io(path))?;
    file.persist(path).map_err(|e| Error::Io { path: path.to_owned(), source: e.error })?;
    Ok(())
}

/// A temporary file is private by default; a result should have the permissions of any other new file.
#[cfg(unix)]
fn open_to_all(file: &std::fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn open_to_all(_: &std::fs::File) -> std::io::Result<()> {
    Ok(())
}

/// How the samples of a PNG are laid out.
pub(super) struct Layout<'a> {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) colour: png::ColorType,
    pub(super) depth: png::BitDepth,
    pub(super) palette: Option<&'a [u8]>,
}

/// A PNG file in memory from samples in file order (sixteen bits big-endian).
pub(super) fn encode_png(layout: &Layout<'_>, samples: &[u8], path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, layout.width as u32, layout.height as u32);
    encoder.set_color(layout.colour);
    encoder.set_depth(layout.depth);
    if let Some(palette) = layout.palette {
        encoder.set_palette(palette.to_vec());
    }
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(samples));
    written.map_err(|e| Error::picture(path, e))?;
    Ok(bytes)
}

impl Image {
    /// Writes an eight-bit RGB PNG; values are rounded to nearest.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save_png(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save(path.as_ref(), png::BitDepth::Eight, &self.to_rgb8())
    }

    /// Writes a sixteen-bit RGB PNG; values are rounded to nearest.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save_png16(&self, path: impl AsRef<Path>) -> Result<()> {
        let plane = self.height * self.width;
        let sample =
            |i: usize, c: usize| (self.pixels[c * plane + i].clamp(0.0, 1.0) * 65535.0).round() as u16;
        let samples: Vec<u8> =
            (0..plane).flat_map(|i| (0..3).flat_map(move |c| sample(i, c).to_be_bytes())).collect();
        self.save(path.as_ref(), png::BitDepth::Sixteen, &samples)
    }

    /// The eight-bit RGB PNG file in memory.
    ///
    /// # Errors
    /// If the encoder fails.
    pub fn encode_png(&self) -> Result<Vec<u8>> {
        encode_png(&self.layout(png::BitDepth::Eight), &self.to_rgb8(), Path::new("image"))
    }

    /// Writes a JPEG of this quality, 1 to 100; what is read back differs a little.
    ///
    /// # Errors
    /// If the picture has sides beyond what a JPEG can hold, or the file cannot be written.
    pub fn save_jpeg(&self, path: impl AsRef<Path>, quality: u8) -> Result<()> {
        let path = path.as_ref();
        let mut bytes = Vec::new();
        let (Ok(width), Ok(height)) = (u16::try_from(self.width), u16::try_from(self.height)) else {
            return Err(Error::picture(
                path,
                format!("{}x{} is too large for a JPEG", self.width, self.height),
            ));
        };
        let mut encoder =
            ::image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, quality.clamp(1, 100));
        let colour = ::image::ExtendedColorType::Rgb8;
        let written = encoder.encode(&self.to_rgb8(), width.into(), height.into(), colour);
        written.map_err(|e| Error::picture(path, e))?;
        write_atomically(path, &bytes)
    }

    /// The picture as one grey plane would be seen: each pixel's mean of three, eight bits.
    pub fn to_grey8(&self) -> Vec<u8> {
        let plane = self.height * self.width;
        (0..plane)
            .map(|i| eight_bits((0..3).map(|c| self.pixels[c * plane + i]).sum::<f32>() / 3.0))
            .collect()
    }

    fn layout(&self, depth: png::BitDepth) -> Layout<'static> {
        Layout { height: self.height, width: self.width, colour: png::ColorType::Rgb, depth, palette: None }
    }

    fn save(&self, path: &Path, depth: png::BitDepth, samples: &[u8]) -> Result<()> {
        write_atomically(path, &encode_png(&self.layout(depth), samples, path)?)
    }
}
