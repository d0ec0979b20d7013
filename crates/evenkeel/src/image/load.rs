//! Reading pictures: PNG and JPEG of 8 and 16 bits, grey, palette or colour, with EXIF orientation.
//!
//! The header is judged before anything of the picture's size is allocated. Alpha is left out (the colours under it are kept),
//! as the data sets' own readers do. A CMYK JPEG is refused: without its ink profile its colours would be a guess.

use std::io::Cursor;
use std::path::Path;

use ::image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, metadata::Orientation};

use super::{Image, jpeg, planar};
use crate::error::{Error, Result};

/// More pixels than this, in millions, are refused.
pub const MAX_MEGAPIXELS: usize = 100;
/// What a PNG may hold beside its pixels: profiles and texts, as unpacked.
const PNG_EXTRA_BYTES: u64 = 64 << 20;

/// A picture as its file holds it, for those who change its size before anything else.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// Eight-bit colour, interleaved `[h, w, 3]`.
    Rgb8 {
        /// Pixels down.
        height: usize,
        /// Pixels across.
        width: usize,
        /// The values.
        bytes: Vec<u8>,
    },
    /// Everything else, as planes already.
    Planes(Image),
}

impl Picture {
    /// Reads a PNG or JPEG file.
    ///
    /// # Errors
    /// As [`Image::load`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::decode(&std::fs::read(path).map_err(Error::io(path))?, path)
    }

    fn decode(bytes: &[u8], path: &Path) -> Result<Self> {
        let (mut picture, orientation) = match format_of(bytes, path)? {
            ImageFormat::Jpeg => jpeg::decode(bytes, path)?,
            _ => decode_png(bytes, path)?,
        };
        picture.apply_orientation(orientation);
        Ok(match picture {
            DynamicImage::ImageRgb8(rgb) => {
                let (height, width) = (rgb.height() as usize, rgb.width() as usize);
                Self::Rgb8 { height, width, bytes: rgb.into_raw() }
            }
            other => Self::Planes(from_dynamic(&other, path)?),
        })
    }

    /// The picture as planes of values in [0, 1].
    ///
    /// # Errors
    /// If the bytes are not those of a picture of this size.
    pub fn into_image(self) -> Result<Image> {
        match self {
            Self::Rgb8 { height, width, bytes } => Image::from_rgb8(height, width, &bytes),
            Self::Planes(image) => Ok(image),
        }
    }
}

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
        Picture::decode(bytes, path.as_ref())?.into_image()
    }
}

fn decode_png(bytes: &[u8], path: &Path) -> Result<(DynamicImage, Orientation)> {
    let mut decoder = png_decoder(bytes, path)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let picture = DynamicImage::from_decoder(decoder).map_err(|e| Error::picture(path, damaged(e)))?;
    Ok((picture, orientation))
}

/// The decoder of a PNG whose header and size are in order.
pub(super) fn png_decoder<'b>(bytes: &'b [u8], path: &Path) -> Result<impl ImageDecoder + 'b> {
    let (height, width) =
        png_size(bytes).ok_or_else(|| Error::picture(path, "cut short inside its header"))?;
    check_size(path, height, width)?;
    let mut reader = ImageReader::with_format(Cursor::new(bytes), ImageFormat::Png);
    // a colour profile is compressed and may unpack to a thousand times its size, whatever the header announces
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(PNG_EXTRA_BYTES + 8 * (height * width) as u64);
    reader.limits(limits);
    reader.into_decoder().map_err(|e| Error::picture(path, damaged(e)))
}

pub(super) fn damaged(error: impl std::fmt::Display) -> String {
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
