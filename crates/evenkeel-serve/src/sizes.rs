//! Sizes of images, judged before anything of that size is allocated: what the headers of files announce, and what a network takes.

use evenkeel::model::Model;

use crate::error::{Error, Result};
use crate::question::Source;

/// Refuses encoded images that together announce more pixels than the limit; tensors were counted before their images were made.
pub(crate) fn check_announced(images: &[Source], limit: usize) -> Result<()> {
    let pixels = |source: &Source| match source {
        Source::Encoded(bytes) => announced(bytes).map_or(0, |(height, width)| height.saturating_mul(width)),
        Source::Pixels(_) | Source::Tensor(_) => 0,
    };
    match images.iter().map(pixels).fold(0, usize::saturating_add) > limit {
        true => Err(Error::TooLarge { what: "images", limit, unit: "pixels" }),
        false => Ok(()),
    }
}

/// (height, width) as the header of a PNG or JPEG announces them; what is neither is refused later, by the decoder.
fn announced(bytes: &[u8]) -> Option<(usize, usize)> {
    let four = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
    let two = |at: usize| Some(usize::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    if bytes.starts_with(b"\x89PNG") {
        return Some((four(20)?, four(16)?));
    }
    if !bytes.starts_with(&[0xff, 0xd8]) {
        return None;
    }
    let mut at = 2;
    loop {
        while *bytes.get(at)? == 0xff && *bytes.get(at + 1)? == 0xff {
            at += 1;
        }
        match (*bytes.get(at)?, *bytes.get(at + 1)?) {
            (0xff, 0xc4 | 0xc8 | 0xcc) => at += 2 + two(at + 2)?,
            (0xff, 0xc0..=0xcf) => return Some((two(at + 5)?, two(at + 7)?)),
            (0xff, 0x01 | 0xd0..=0xd7) => at += 2,
            (0xff, 0xda | 0xd9) => return None,
            (0xff, _) => at += 2 + two(at + 2)?,
            _ => return None,
        }
    }
}

/// Refuses sizes that the network does not take; a tensor is not resized.
pub(crate) fn check_size(model: &Model, (height, width): (usize, usize)) -> Result<()> {
    let wrong = |wanted: String| {
        let reason = format!(
            "is {width} wide and {height} high; the network takes {wanted}; encoded images (BYTES) are resized"
        );
        Err(Error::malformed("image", reason))
    };
    match model.size {
        Some((h, w)) if (h, w) != (height, width) => wrong(format!("{w}x{h}")),
        None if height % model.multiple != 0 || width % model.multiple != 0 || height.min(width) < 8 => {
            wrong(format!("multiples of {}, at least 8", model.multiple))
        }
        _ => Ok(()),
    }
}

/// Refuses an image that would be shown as it is, by a network without a size of its own, and has more pixels than the limit.
pub(crate) fn check_shown(model: &Model, (height, width): (usize, usize), limit: usize) -> Result<()> {
    match model.size.is_none() && height.saturating_mul(width) > limit {
        true => Err(Error::TooLarge {
            what: "image for a network without a size of its own",
            limit,
            unit: "pixels",
        }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel::image::Image;

    #[test]
    fn headers_are_judged_before_anything_is_decoded() {
        let png = Image::filled(20, 30, 0.5).encode_png().unwrap();
        assert_eq!(announced(&png), Some((20, 30)));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jpg");
        Image::filled(24, 40, 0.5).save_jpeg(&path, 90).unwrap();
        let jpeg = std::fs::read(path).unwrap();
        assert_eq!(announced(&jpeg), Some((24, 40)));
        assert_eq!(announced(b"<svg/>"), None);
        (0..jpeg.len().min(700)).for_each(|n| {
            let _ = announced(&jpeg[..n]);
        });
        let mut huge = png.clone();
        huge[16..20].copy_from_slice(&60_000u32.to_be_bytes());
        assert!(check_announced(&[Source::Encoded(huge.into())], 1_000_000).is_err());
        let files = vec![Source::Encoded(png.into()); 3];
        assert!(check_announced(&files, 1800).is_ok() && check_announced(&files, 1799).is_err(), "together");
    }
}
