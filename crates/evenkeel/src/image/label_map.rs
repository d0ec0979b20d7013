//! Label maps: one class index per pixel, `[h, w]`; 255 marks pixels that count for nothing.
//!
//! In files: a grey or palette PNG of up to 16 bits, whose stored numbers are the labels, or a colour PNG painted with a known
//! palette. Out: the same numbers with the palette attached, or painted, alone or over the image.

use std::io::Cursor;
use std::path::Path;

use ::image::ImageFormat;

use super::load::{check_size, format_of};
use super::save::{Layout, encode_png, write_atomically};
use super::{Image, Palette};
use crate::error::{Error, Result};

/// The label of pixels that count for nothing.
pub const IGNORED: u16 = 255;

/// A class index per pixel, `[h, w]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelMap {
    height: usize,
    width: usize,
    labels: Vec<u16>,
}

impl LabelMap {
    /// A map from its labels in reading order.
    ///
    /// # Errors
    /// If a side is zero or the number of labels is not h·w.
    pub fn new(height: usize, width: usize, labels: Vec<u16>) -> Result<Self> {
        if height * width == 0 || labels.len() != height * width {
            return Err(Error::mismatch(
                format!("labels of a {width}x{height} map"),
                height * width,
                labels.len(),
            ));
        }
        Ok(Self { height, width, labels })
    }

    /// Pixels down.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Pixels across.
    pub fn width(&self) -> usize {
        self.width
    }

    /// (height, width).
    pub fn size(&self) -> (usize, usize) {
        (self.height, self.width)
    }

    /// The labels in reading order.
    pub fn labels(&self) -> &[u16] {
        &self.labels
    }

    /// Refuses labels that are neither a class nor ignored; `what` names the map in the sentence.
    ///
    /// # Errors
    /// Naming the first such label.
    pub fn check_classes(&self, classes: usize, what: &str) -> Result<()> {
        match self.labels.iter().find(|&&l| usize::from(l) >= classes && l != IGNORED) {
            None => Ok(()),
            Some(&label) => {
                Err(Error::UnknownClass { what: what.into(), label: usize::from(label), classes })
            }
        }
    }

    /// The map at another size: each new pixel takes the label its centre falls on.
    pub fn resized(&self, height: usize, width: usize) -> Self {
        let from = |i: usize, old: usize, new: usize| ((2 * i + 1) * old / (2 * new)).min(old - 1);
        let labels = (0..height * width)
            .map(|i| {
                let (y, x) = (from(i / width, self.height, height), from(i % width, self.width, width));
                self.labels[y * self.width + x]
            })
            .collect();
        Self { height, width, labels }
    }

    /// Reads a grey or palette PNG whose stored numbers are the labels; no palette is looked up.
    ///
    /// # Errors
    /// A sentence naming the file if it is not such a picture.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::read(path.as_ref(), None)
    }

    /// Reads a label map that may also be painted: a colour PNG is matched against the palette.
    ///
    /// # Errors
    /// A sentence naming the file, and the first colour that belongs to no class.
    pub fn load_painted(path: impl AsRef<Path>, palette: &Palette) -> Result<Self> {
        Self::read(path.as_ref(), Some(palette))
    }

    fn read(path: &Path, palette: Option<&Palette>) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(Error::io(path))?;
        if format_of(&bytes, path)? != ImageFormat::Png {
            return Err(Error::picture(
                path,
                "label maps must be PNG files; JPEG does not keep numbers exactly",
            ));
        }
        let mut decoder = png::Decoder::new(Cursor::new(&bytes));
        decoder.set_transformations(png::Transformations::IDENTITY);
        let mut reader = decoder.read_info().map_err(|e| Error::picture(path, e))?;
        let (height, width) = (reader.info().height as usize, reader.info().width as usize);
        check_size(path, height, width)?;
        let room = reader.output_buffer_size().ok_or_else(|| Error::picture(path, "its size overflows"))?;
        let mut data = vec![0; room];
        let frame = reader
            .next_frame(&mut data)
            .map_err(|e| Error::picture(path, format!("cut short or damaged: {e}")))?;
        let rows =
            Rows { data: &data, line: frame.line_size, depth: frame.bit_depth as usize, height, width };
        let labels = match (frame.color_type, palette) {
            (png::ColorType::Grayscale | png::ColorType::Indexed, _) => rows.numbers(1),
            (png::ColorType::GrayscaleAlpha, _) => rows.numbers(2),
            (png::ColorType::Rgb | png::ColorType::Rgba, Some(palette)) if rows.depth == 8 => {
                rows.painted(frame.color_type.samples(), palette, path)?
            }
            _ => {
                let reason = "a colour picture, not a label map; it needs a palette to be read by";
                return Err(Error::picture(path, reason));
            }
        };
        Self::new(height, width, labels)
    }

    /// Writes the labels as a PNG: with the palette attached when one is given, else grey of 8 or 16 bits as needed.
    ///
    /// # Errors
    /// If a label has no colour in the palette, or the file cannot be written.
    pub fn save_png(&self, path: impl AsRef<Path>, palette: Option<&Palette>) -> Result<()> {
        write_atomically(path.as_ref(), &self.encoded(palette, path.as_ref())?)
    }

    /// The same file in memory.
    ///
    /// # Errors
    /// If a label has no colour in the palette.
    pub fn encode_png(&self, palette: Option<&Palette>) -> Result<Vec<u8>> {
        self.encoded(palette, Path::new("label map"))
    }

    /// The labels as a grey PNG of 16 bits, in memory.
    ///
    /// # Errors
    /// If the encoder fails.
    pub fn encode_png16(&self) -> Result<Vec<u8>> {
        let layout = Layout {
            height: self.height,
            width: self.width,
            colour: png::ColorType::Grayscale,
            depth: png::BitDepth::Sixteen,
            palette: None,
        };
        let samples: Vec<u8> = self.labels.iter().flat_map(|l| l.to_be_bytes()).collect();
        encode_png(&layout, &samples, Path::new("label map"))
    }

    fn encoded(&self, palette: Option<&Palette>, path: &Path) -> Result<Vec<u8>> {
        let wide = self.labels.iter().any(|&l| l > 255);
        let mut layout = Layout {
            height: self.height,
            width: self.width,
            colour: png::ColorType::Grayscale,
            depth: if wide { png::BitDepth::Sixteen } else { png::BitDepth::Eight },
            palette: None,
        };
        if wide {
            let samples: Vec<u8> = self.labels.iter().flat_map(|l| l.to_be_bytes()).collect();
            return encode_png(&layout, &samples, path);
        }
        let mut colours = vec![0; 3 * 256];
        if let Some(palette) = palette {
            self.check_classes(palette.colours().len(), &path.display().to_string())?;
            palette
                .colours()
                .iter()
                .take(256)
                .enumerate()
                .for_each(|(i, c)| colours[3 * i..][..3].copy_from_slice(c));
            layout.colour = png::ColorType::Indexed;
            layout.palette = Some(&colours);
        }
        let samples: Vec<u8> = self.labels.iter().map(|&l| l as u8).collect();
        encode_png(&layout, &samples, path)
    }

    /// The map painted with the palette.
    ///
    /// # Errors
    /// If a label has no colour.
    pub fn painted(&self, palette: &Palette) -> Result<Image> {
        let colours = self.labels.iter().map(|&l| palette.colour(l)).collect::<Result<Vec<_>>>()?;
        Image::from_rgb8(self.height, self.width, colours.as_flattened())
    }

    /// The painted map laid over the image: `opacity` 1 hides it. Ignored pixels show the image itself.
    ///
    /// # Errors
    /// If the sizes differ or a label has no colour.
    pub fn overlaid(&self, image: &Image, palette: &Palette, opacity: f32) -> Result<Image> {
        if self.size() != image.size() {
            let size = |(h, w): (usize, usize)| format!("{w}x{h}");
            return Err(Error::mismatch("label map over image", size(image.size()), size(self.size())));
        }
        let mut out = self.painted(palette)?;
        let plane = self.labels.len();
        for (i, (over, under)) in out.pixels_mut().iter_mut().zip(image.pixels()).enumerate() {
            let ignored =
                self.labels[i % plane] == IGNORED && palette.colours().len() <= usize::from(IGNORED);
            *over = if ignored { *under } else { opacity * *over + (1.0 - opacity) * under };
        }
        Ok(out)
    }
}

/// The raw lines of a PNG as the file stores them.
struct Rows<'a> {
    data: &'a [u8],
    line: usize,
    depth: usize,
    height: usize,
    width: usize,
}

impl Rows<'_> {
    /// The first sample of every pixel, `samples` apart, at whatever bit depth.
    fn numbers(&self, samples: usize) -> Vec<u16> {
        let number = |y: usize, x: usize| {
            let line = &self.data[y * self.line..];
            match self.depth {
                16 => u16::from_be_bytes([line[2 * x * samples], line[2 * x * samples + 1]]),
                8 => u16::from(line[x * samples]),
                depth => {
                    let per_byte = 8 / depth;
                    let shift = 8 - depth * (x % per_byte + 1);
                    u16::from(line[x / per_byte] >> shift) & ((1 << depth) - 1)
                }
            }
        };
        (0..self.height * self.width).map(|i| number(i / self.width, i % self.width)).collect()
    }

    fn painted(&self, samples: usize, palette: &Palette, path: &Path) -> Result<Vec<u16>> {
        let label = |i: usize| {
            let (y, x) = (i / self.width, i % self.width);
            let at = y * self.line + x * samples;
            let colour = [self.data[at], self.data[at + 1], self.data[at + 2]];
            palette.label(colour).ok_or_else(|| {
                let reason = format!(
                    "the colour {colour:?} at row {y}, column {x} belongs to no class of the palette"
                );
                Error::picture(path, reason)
            })
        };
        (0..self.height * self.width).map(label).collect()
    }
}
