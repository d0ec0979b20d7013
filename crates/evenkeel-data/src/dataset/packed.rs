//! Small pictures packed into one file, all of one size: CIFAR-10 and MNIST.

use super::{Offender, Sample, Source, Truth};
use crate::{Error, Result};
use evenkeel::Image;
use std::path::{Path, PathBuf};

/// How the bytes of one picture lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pixels {
    /// `[3, h, w]`.
    PlanarRgb,
    /// `[h, w, 3]`.
    InterleavedRgb,
    /// `[h, w]`.
    Grey,
}

/// Pictures and classes held as the bytes of the file.
pub(crate) struct PackedSource {
    pub(crate) file: PathBuf,
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) pixels: Pixels,
    pub(crate) pictures: Vec<u8>,
    pub(crate) classes: Vec<u8>,
    pub(crate) class_count: usize,
}

impl Source for PackedSource {
    fn len(&self) -> usize {
        self.classes.len()
    }

    fn id(&self, index: usize) -> String {
        format!("{index:05}")
    }

    fn load(&self, index: usize) -> std::result::Result<Sample, Offender> {
        let class = usize::from(self.classes[index]);
        if class >= self.class_count {
            let fault = format!(
                "record {index} has label {class}, which is none of the {} classes",
                self.class_count
            );
            return Err(Offender::new(&self.file, fault, "fetch the file again"));
        }
        let plane = self.height * self.width;
        let size = if self.pixels == Pixels::Grey { plane } else { 3 * plane };
        let bytes = &self.pictures[index * size..][..size];
        let value = |channel: usize, at: usize| match self.pixels {
            Pixels::PlanarRgb => bytes[channel * plane + at],
            Pixels::InterleavedRgb => bytes[at * 3 + channel],
            Pixels::Grey => bytes[at],
        };
        let pixels = (0..3).flat_map(|c| (0..plane).map(move |at| (c, at)));
        let pixels = pixels.map(|(c, at)| f32::from(value(c, at)) / 255.0).collect();
        let image = Image::new(self.height, self.width, pixels)
            .map_err(|e| Offender::new(&self.file, e.to_string(), "fetch the file again"))?;
        Ok(Sample { id: self.id(index), image, truth: Truth::Class(class) })
    }
}

/// Reads a whole file; its absence is an offender with a remedy.
pub(crate) fn read(path: &Path, remedy: &str) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Error::Offenders(vec![Offender::new(path, "there is no such file", remedy)])
        }
        _ => Error::io(path, e),
    })
}

/// A file whose length is not what it should be.
pub(crate) fn cut_off(path: &Path, fault: String) -> Error {
    Error::Offenders(vec![Offender::new(path, fault, "the file was cut off or is another: fetch it again")])
}
