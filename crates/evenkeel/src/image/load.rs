//! Reading pictures: PNG and JPEG of 8 and 16 bits, grey, palette or colour, with EXIF orientation.
//!
//! The header is judged before anything of the picture's size is allocated. Alpha is left out (the colours under it are kept),
//! as the data sets' own readers do. A CMYK JPEG is refused: without its ink profile its colours would be a guess.

use std::io::Cursor;
use std::path::Path;

use ::image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, metadata::Orientation};

use super::{Image, planar};
use crate::error::{Error, Result};

/// More pixels than this, in millions, are refused.
pub const MAX_MEGAPIXELS: usize = 100;

impl Image {
    /// Reads a PNG or JPEG file.
    ///
    /// # Errors
    /// A sentence naming the file if it cannot be read, is empty, cut short, too large, CMYK, or not a picture.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::decode(&std::fs::read(path).map_err(Error::io(path))?, path)
    }

    /// Reads a PNG or JPEG from memory; `path` is only used to say where it came from.
    ///
    /// # Errors
    /// As [`Image::load`].
    pub fn decode(bytes: &[u8], path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let format = format_of(bytes, path)?;
        if format == ImageFormat::Jpeg && jpeg_components(bytes) == Some(4) {
            return Err(Error::picture(path, "a CMYK JPEG (four components); convert it to RGB first"));
        }
        if format == ImageFormat::Jpeg && !jpeg_is_whole(bytes) {
            return Err(Error::picture(path, "cut short: the JPEG ends before its last line"));
        }
        if format == ImageFormat::Png {
            let (height, width) =
                png_size(bytes).ok_or_else(|| Error::picture(path, "cut short inside its header"))?;
            check_size(path, height, width)?;
        }
        let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
        reader.no_limits();
        let mut decoder = reader.into_decoder().map_err(|e| Error::picture(path, damaged(e)))?;
        let (width, height) = decoder.dimensions();
        check_size(path, height as usize, width as usize)?;
        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        let mut picture =
            DynamicImage::from_decoder(decoder).map_err(|e| Error::picture(path, damaged(e)))?;
        picture.apply_orientation(orientation);
        from_dynamic(&picture, path)
    }
}

fn damaged(error: ::image::ImageError) -> String {
    format!("cut short or damaged: {error}")
}

/// The format by its first bytes; the file's name is not consulted.
pub(super) fn format_of(bytes: &[u8], path: &Path) -> Result<ImageFormat> {
    if bytes.is_empty() {
        return Err(Error::picture(path, "the file is empty"));
    }
    match ::image::guess_format(bytes) {
        Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg)) => Ok(format),
        Ok(other) => Err(Error::picture(path, format!("{other:?} is not read here; PNG and JPEG are"))),
        Err(_) => Err(Error::picture(path, "neither a PNG nor a JPEG file")),
    }
}

/// Refuses absurd sizes.
pub(super) fn check_size(path: &Path, height: usize, width: usize) -> Result<()> {
    if height == 0 || width == 0 {
        return Err(Error::picture(path, format!("the header announces {width}x{height} pixels")));
    }
    if height.saturating_mul(width) > MAX_MEGAPIXELS * 1_000_000 {
        return Err(Error::TooLarge { path: path.to_owned(), width, height, limit: MAX_MEGAPIXELS });
    }
    Ok(())
}

fn from_dynamic(picture: &DynamicImage, path: &Path) -> Result<Image> {
    let (height, width) = (picture.height() as usize, picture.width() as usize);
    let channels = usize::from(picture.color().channel_count());
    let pixels = match picture {
        DynamicImage::ImageLuma8(_)
        | DynamicImage::ImageLumaA8(_)
        | DynamicImage::ImageRgb8(_)
        | DynamicImage::ImageRgba8(_) => planar(picture.as_bytes(), channels, |&b| f32::from(b) / 255.0),
        DynamicImage::ImageLuma16(_)
        | DynamicImage::ImageLumaA16(_)
        | DynamicImage::ImageRgb16(_)
        | DynamicImage::ImageRgba16(_) => {
            let (samples, _) = picture.as_bytes().as_chunks::<2>();
            planar(samples, channels, |&s| f32::from(u16::from_ne_bytes(s)) / 65535.0)
        }
        other => {
            return Err(Error::picture(
                path,
                format!("samples of kind {:?} are not read here", other.color()),
            ));
        }
    };
    Image::new(height, width, pixels)
}

/// (height, width) as the first chunk of a PNG announces them.
fn png_size(bytes: &[u8]) -> Option<(usize, usize)> {
    let side = |at: usize| {
        let four = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(four.try_into().ok()?) as usize)
    };
    Some((side(20)?, side(16)?))
}

/// Whether an end-of-image marker follows the first scan. The decoder itself fills what is missing with grey.
fn jpeg_is_whole(bytes: &[u8]) -> bool {
    let Some(scan) = jpeg_segment(bytes, |marker| marker == 0xda) else {
        return true; // no scan was found: the decoder will say why
    };
    // Inside a scan 0xff is always followed by 0 or a restart marker, so this pair is the end and nothing else.
    bytes[scan..].windows(2).rev().any(|pair| pair == [0xff, 0xd9])
}

/// The number of components in a JPEG's frame header, if one is found.
fn jpeg_components(bytes: &[u8]) -> Option<u8> {
    // A frame header: any SOF but the table markers that share its range.
    let frame = |marker: u8| matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
    bytes.get(jpeg_segment(bytes, frame)? + 9).copied()
}

/// Where the first segment with a wanted marker begins.
fn jpeg_segment(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let mut at = 2;
    while at + 3 < bytes.len() {
        if bytes[at] != 0xff {
            return None;
        }
        let marker = bytes[at + 1];
        match marker {
            0xff => at += 1,
            _ if wanted(marker) => return Some(at),
            0x01 | 0xd0..=0xd8 => at += 2,
            _ => at += 2 + usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]])),
        }
    }
    None
}
