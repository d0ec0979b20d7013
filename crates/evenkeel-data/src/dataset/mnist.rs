//! MNIST and Fashion-MNIST: idx files, plain or gzipped.
//!
//! An idx file is a big-endian header (0, 0, type 8 = bytes, number of dimensions, the dimensions) and then the bytes.

use super::packed::{PackedSource, Pixels, cut_off, read};
use super::{Kind, Listing, Offender, Preparation, Request, names, voc_palette};
use crate::{Error, Result};
use flate2::read::GzDecoder;
use std::io::Read;
use std::path::{Path, PathBuf};

const LAYOUT: &str = "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, plain or .gz (SPLIT train: train-images… and train-labels…)";

pub(super) const MNIST: Kind = Kind {
    name: "mnist",
    about: "28x28 digits, 10 classes",
    layout: LAYOUT,
    preparation: Preparation::Native,
    far: None,
    list: |root, request| list(root, request, &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]),
};

pub(super) const FASHION: Kind = Kind {
    name: "fashion-mnist",
    about: "28x28 articles of clothing, 10 classes",
    layout: LAYOUT,
    preparation: Preparation::Native,
    far: None,
    list: |root, request| {
        let classes = [
            "t-shirt",
            "trouser",
            "pullover",
            "dress",
            "coat",
            "sandal",
            "shirt",
            "sneaker",
            "bag",
            "ankle boot",
        ];
        list(root, request, &classes)
    },
};

fn list(root: &Path, request: &Request, classes: &[&str; 10]) -> Result<Listing> {
    let prefix = match request.split.as_deref() {
        None | Some("test") => "t10k",
        Some(other) => other,
    };
    let (image_file, images) = idx(root, prefix, "images", 3)?;
    let (label_file, labels) = idx(root, prefix, "labels", 1)?;
    let (count, height, width) = (images.dimensions[0], images.dimensions[1], images.dimensions[2]);
    if labels.dimensions[0] != count {
        return Err(cut_off(
            &label_file,
            format!("has {} labels for {count} pictures", labels.dimensions[0]),
        ));
    }
    let source = PackedSource {
        file: image_file,
        height,
        width,
        pixels: Pixels::Grey,
        pictures: images.bytes,
        classes: labels.bytes,
        class_count: classes.len(),
    };
    let palette = voc_palette(classes.len());
    Ok(Listing { source: Box::new(source), classes: names(classes), palette, offenders: Vec::new() })
}

struct Idx {
    dimensions: Vec<usize>,
    bytes: Vec<u8>,
}

/// Finds and reads one idx file in any of its usual spellings.
fn idx(root: &Path, prefix: &str, what: &str, rank: usize) -> Result<(PathBuf, Idx)> {
    let spellings = [format!("{prefix}-{what}-idx{rank}-ubyte"), format!("{prefix}-{what}.idx{rank}-ubyte")];
    let candidates = spellings.iter().flat_map(|name| [root.join(name), root.join(format!("{name}.gz"))]);
    let path = candidates.clone().find(|path| path.is_file()).ok_or_else(|| {
        let first = root.join(&spellings[0]);
        Error::Offenders(vec![Offender::new(
            first,
            "there is no such file",
            format!("the layout is {LAYOUT}"),
        )])
    })?;
    let mut bytes = read(&path, LAYOUT)?;
    if path.extension().is_some_and(|e| e == "gz") {
        let mut plain = Vec::new();
        GzDecoder::new(bytes.as_slice())
            .read_to_end(&mut plain)
            .map_err(|e| cut_off(&path, format!("does not unpack: {e}")))?;
        bytes = plain;
    }
    let content = parse(&bytes, rank).map_err(|fault| cut_off(&path, fault))?;
    Ok((path, content))
}

fn parse(bytes: &[u8], rank: usize) -> std::result::Result<Idx, String> {
    let header = 4 + 4 * rank;
    if bytes.len() < header || bytes[..4] != [0, 0, 8, rank as u8] {
        return Err(format!("does not begin like an idx file of bytes in {rank} dimension(s)"));
    }
    let dimensions: Vec<usize> = bytes[4..header]
        .chunks_exact(4)
        .map(|d| u32::from_be_bytes([d[0], d[1], d[2], d[3]]) as usize)
        .collect();
    let expected = dimensions.iter().try_fold(1usize, |product, &d| product.checked_mul(d));
    let body = &bytes[header..];
    if expected != Some(body.len()) {
        return Err(format!("announces {dimensions:?} but holds {} bytes", body.len()));
    }
    Ok(Idx { dimensions, bytes: body.to_vec() })
}
