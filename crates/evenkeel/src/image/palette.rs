//! Colours of classes: what a label map is painted with, and what a painted one is read by.

use crate::error::{Error, Result};
use crate::image::label_map::IGNORED;

/// A colour for each class, in class order; ignored pixels are black.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Palette {
    colours: Vec<[u8; 3]>,
}

impl Palette {
    /// The given colours in class order.
    ///
    /// # Errors
    /// If there are none, or two classes share a colour.
    pub fn new(colours: Vec<[u8; 3]>) -> Result<Self> {
        if colours.is_empty() {
            return Err(Error::setting("palette", "has no colours"));
        }
        for (i, colour) in colours.iter().enumerate() {
            if let Some(j) = colours[..i].iter().position(|c| c == colour) {
                let reason =
                    format!("classes {j} and {i} share the colour {colour:?}; they could not be told apart");
                return Err(Error::setting("palette", reason));
            }
        }
        Ok(Self { colours })
    }

    /// The Pascal VOC colours: bit `b` of the three channels, highest first, comes from bits 3b, 3b+1, 3b+2 of the label.
    pub fn of_voc(classes: usize) -> Self {
        let colour = |label: usize| {
            let bit = |channel: usize, b: usize| ((label >> (3 * b + channel)) & 1) << (7 - b);
            std::array::from_fn(|channel| (0..3).map(|b| bit(channel, b)).sum::<usize>() as u8)
        };
        Self { colours: (0..classes).map(colour).collect() }
    }

    /// The nineteen Cityscapes training classes in their usual colours.
    pub fn of_cityscapes() -> Self {
        let hex: [u32; 19] = [
            0x804080, 0xf423e8, 0x464646, 0x66669c, 0xbe9999, 0x999999, 0xfaaa1e, 0xdcdc00, 0x6b8e23,
            0x98fb98, 0x4682b4, 0xdc143c, 0xff0000, 0x00008e, 0x000046, 0x003c64, 0x005064, 0x0000e6,
            0x770b20,
        ];
        Self { colours: hex.iter().map(|h| [(h >> 16) as u8, (h >> 8) as u8, *h as u8]).collect() }
    }

    /// The colours in class order.
    pub fn colours(&self) -> &[[u8; 3]] {
        &self.colours
    }

    /// The colour of a label; black for ignored pixels.
    ///
    /// # Errors
    /// If the label has no colour.
    pub fn colour(&self, label: u16) -> Result<[u8; 3]> {
        match self.colours.get(usize::from(label)) {
            Some(colour) => Ok(*colour),
            None if label == IGNORED => Ok([0; 3]),
            None => Err(Error::UnknownClass {
                what: "palette".into(),
                label: usize::from(label),
                classes: self.colours.len(),
            }),
        }
    }

    /// The class painted in a colour. Black and white stand for ignored pixels if no class has them.
    pub fn label(&self, colour: [u8; 3]) -> Option<u16> {
        match self.colours.iter().position(|c| *c == colour) {
            Some(label) => Some(label as u16),
            None => matches!(colour, [0, 0, 0] | [255, 255, 255] | [224, 224, 192]).then_some(IGNORED),
        }
    }
}
