//! The JPEG decoder behind [`Image::decode`](super::Image::decode): `zune-jpeg`, called directly.
//!
//! Going through the `image` crate would compile the decoder's inner loops with that crate's settings and read the header three times.
//! What the decoder would quietly fill with grey (a file cut short) or guess (ink colours) is refused before it starts.

use std::path::Path;

use ::image::{DynamicImage, GrayImage, RgbImage, metadata::Orientation};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions};

use super::load::{check_size, damaged};
use crate::error::{Error, Result};

/// The picture as it is stored, and how it is to be turned.
pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<(DynamicImage, Orientation)> {
    if components(bytes) == Some(4) {
        return Err(Error::picture(path, "a CMYK JPEG (four components); convert it to RGB first"));
    }
    if !is_whole(bytes) {
        return Err(Error::picture(path, "cut short: the JPEG ends before its last line"));
    }
    let options =
        DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|e| Error::picture(path, damaged(e)))?;
    let (width, height) = decoder.dimensions().unwrap_or((0, 0));
    check_size(path, height, width)?;
    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let colours = if grey { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(options.jpeg_set_out_colorspace(colours));
    let samples = decoder.decode().map_err(|e| Error::picture(path, damaged(e)))?;
    let orientation = decoder.exif().and_then(|exif| Orientation::from_exif_chunk(exif));
    let (across, down) = (width as u32, height as u32); // a JPEG's sides have sixteen bits
    let picture = match grey {
        true => GrayImage::from_raw(across, down, samples).map(DynamicImage::from),
        false => RgbImage::from_raw(across, down, samples).map(DynamicImage::from),
    };
    let picture = picture.ok_or_else(|| Error::picture(path, damaged("too few samples")))?;
    Ok((picture, orientation.unwrap_or(Orientation::NoTransforms)))
}

/// Whether an end-of-image marker follows the first scan. The decoder itself fills what is missing with grey.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(scan) = segment(bytes, |marker| marker == 0xda) else {
        return true; // no scan was found: the decoder will say why
    };
    // Inside a scan 0xff is always followed by 0 or a restart marker, so this pair is the end and nothing else.
    bytes[scan..].windows(2).rev().any(|pair| pair == [0xff, 0xd9])
}

/// The number of components in a JPEG's frame header, if one is found.
fn components(bytes: &[u8]) -> Option<u8> {
    // A frame header: any SOF but the table markers that share its range.
    let frame = |marker: u8| matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
    bytes.get(segment(bytes, frame)? + 9).copied()
}

/// Where the first segment with a wanted marker begins.
fn segment(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
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
