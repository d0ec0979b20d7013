//! Pictures of a run: in files beside the log, if they are asked for, and packed in the log.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use evenkeel::Image;

use super::worker::Shared;
use crate::experiment::{Work, as_file_name};
use crate::{Error, Result};

/// Where the pictures of one work on one image go.
pub(super) struct Album {
    folder: PathBuf,
}

impl Album {
    pub(super) fn new(shared: &Shared<'_>, work: &Work, id: &str) -> Self {
        let card = &shared.study.design.subjects[work.subject];
        let root = shared.store.lock().unwrap_or_else(|e| e.into_inner()).0.folder().join("images");
        let lens = work.lens.map_or(String::new(), |row| format!(" through {}", card.rows[row].label));
        let column = format!("{}{lens} {}", card.columns[work.column].label, work.draw);
        Self {
            folder: root
                .join(as_file_name(&card.rule.name))
                .join(as_file_name(&column))
                .join(as_file_name(id)),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{}.png", as_file_name(name)))
    }

    pub(super) fn save(&self, name: &str, image: &Image) -> Result<()> {
        std::fs::create_dir_all(&self.folder).map_err(|e| Error::io(&self.folder, e))?;
        Ok(image.save_png(self.path(name))?)
    }
}

/// An eight-bit image, small: height, width, deflated bytes.
pub(super) fn packed(image: &Image) -> Result<Vec<u8>> {
    let mut bytes = [image.height() as u32, image.width() as u32].map(u32::to_le_bytes).concat();
    let mut encoder = flate2::write::ZlibEncoder::new(&mut bytes, flate2::Compression::fast());
    let done = encoder.write_all(&image.to_rgb8()).and_then(|()| encoder.finish().map(|_| ()));
    done.map_err(|e| Error::io(Path::new("picture"), e))?;
    Ok(bytes)
}

/// The image again.
pub(super) fn unpacked(bytes: &[u8]) -> Result<Image> {
    let broken =
        || Error::Request("a stored picture cannot be read; run the study into another folder".into());
    let (head, body) = bytes.split_at_checked(8).ok_or_else(broken)?;
    let side = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
    let mut samples = Vec::new();
    flate2::read::ZlibDecoder::new(body).read_to_end(&mut samples).map_err(|_| broken())?;
    Ok(Image::from_rgb8(side(0), side(4), &samples)?)
}
