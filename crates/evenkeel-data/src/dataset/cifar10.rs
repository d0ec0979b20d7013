//! CIFAR-10: the binary batches (`test_batch.bin`, `data_batch_1.bin` …, one label byte and 3·32·32 planar bytes each),
//! or a raw pair `images_u8_nhwc.bin` and `labels_u8.bin`.

use super::packed::{PackedSource, Pixels, cut_off, read};
use super::{Kind, Listing, Preparation, Request, names, voc_palette};
use crate::Result;
use std::path::Path;

const CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];
const SIDE: usize = 32;
const PICTURE: usize = 3 * SIDE * SIDE;

pub(super) const KIND: Kind = Kind {
    name: "cifar10",
    about: "32x32 pictures, 10 classes",
    layout: "test_batch.bin (SPLIT train: data_batch_*.bin), also under cifar-10-batches-bin/; or images_u8_nhwc.bin and labels_u8.bin",
    preparation: Preparation::Native,
    far: None,
    list,
};

fn list(root: &Path, request: &Request) -> Result<Listing> {
    let raw = root.join("images_u8_nhwc.bin");
    let source = if raw.is_file() { read_raw(root, &raw)? } else { read_batches(root, request)? };
    let palette = voc_palette(CLASSES.len());
    Ok(Listing { source: Box::new(source), classes: names(&CLASSES), palette, offenders: Vec::new() })
}

fn read_raw(root: &Path, file: &Path) -> Result<PackedSource> {
    let pictures = read(file, KIND.layout)?;
    let labels = root.join("labels_u8.bin");
    let classes = read(&labels, "it belongs beside images_u8_nhwc.bin")?;
    if pictures.len() != classes.len() * PICTURE {
        let fault = format!("{} bytes are not {} pictures of {PICTURE} bytes", pictures.len(), classes.len());
        return Err(cut_off(file, fault));
    }
    Ok(source(file, Pixels::InterleavedRgb, pictures, classes))
}

fn read_batches(root: &Path, request: &Request) -> Result<PackedSource> {
    let inner = root.join("cifar-10-batches-bin");
    let folder = if inner.is_dir() { &inner } else { root };
    let files: Vec<String> = match request.split.as_deref().unwrap_or("test") {
        "train" => (1..=5).map(|k| format!("data_batch_{k}.bin")).collect(),
        split => vec![format!("{split}_batch.bin")],
    };
    let (mut pictures, mut classes) = (Vec::new(), Vec::new());
    for file in &files {
        let path = folder.join(file);
        let bytes = read(&path, &format!("the layout is {}", KIND.layout))?;
        if bytes.is_empty() || bytes.len() % (PICTURE + 1) != 0 {
            return Err(cut_off(
                &path,
                format!("{} bytes are no whole number of {}-byte records", bytes.len(), PICTURE + 1),
            ));
        }
        for record in bytes.chunks_exact(PICTURE + 1) {
            classes.push(record[0]);
            pictures.extend_from_slice(&record[1..]);
        }
    }
    Ok(source(&folder.join(&files[0]), Pixels::PlanarRgb, pictures, classes))
}

fn source(file: &Path, pixels: Pixels, pictures: Vec<u8>, classes: Vec<u8>) -> PackedSource {
    let (file, class_count) = (file.to_path_buf(), CLASSES.len());
    PackedSource { file, height: SIDE, width: SIDE, pixels, pictures, classes, class_count }
}
