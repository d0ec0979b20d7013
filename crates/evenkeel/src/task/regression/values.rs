//! A map of real values: one or more channels on a grid, or a vector (a grid of one cell). NaN marks what is not known.
//!
//! In files: NumPy arrays `[h, w]`, `[c, h, w]` or `[n]`, exact; grey PNGs of one channel, whose numbers n mean n·step, or low + n·(high − low)/(2^bits − 1)
//! where a range is declared. A PNG number that stands for "unknown" becomes NaN.

use std::path::Path;

use evenkeel_network::format::npz;

use super::RegressionRule;
use crate::error::{Error, Result};
use crate::image::{LabelMap, write_atomically};
use crate::network::Extents;
use crate::view::{Letterbox, Sampler};

/// Real values on a grid, `[channels, h, w]`; NaN where nothing is known.
#[derive(Clone, Debug)]
pub struct ValueMap {
    extents: Extents,
    values: Vec<f32>,
}

impl ValueMap {
    /// A map from its values, channel by channel in reading order.
    ///
    /// # Errors
    /// If a side is zero or the number of values is not channels·h·w.
    pub fn new(extents: Extents, values: Vec<f32>) -> Result<Self> {
        if extents.is_empty() || extents.len() != values.len() {
            return Err(Error::mismatch(format!("values of {extents:?}"), extents.len(), values.len()));
        }
        Ok(Self { extents, values })
    }

    /// A vector.
    ///
    /// # Errors
    /// If it is empty.
    pub fn vector(values: Vec<f32>) -> Result<Self> {
        Self::new(Extents { channels: values.len(), height: 1, width: 1 }, values)
    }

    /// Channels, height and width.
    pub fn extents(&self) -> Extents {
        self.extents
    }

    /// (height, width).
    pub fn size(&self) -> (usize, usize) {
        self.extents.size()
    }

    /// The values, channel by channel in reading order.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Whether it is a vector: values of the whole image.
    pub fn is_vector(&self) -> bool {
        self.extents.cells() == 1
    }

    /// The least and the greatest known value.
    pub fn bounds(&self) -> Option<(f32, f32)> {
        let known = self.values.iter().copied().filter(|v| v.is_finite());
        known.fold(None, |found, v| {
            Some(found.map_or((v, v), |(low, high): (f32, f32)| (low.min(v), high.max(v))))
        })
    }

    fn each_plane(&self, size: (usize, usize), change: impl Fn(&[f32]) -> Vec<f32>) -> Result<Self> {
        let values = self.values.chunks(self.extents.cells()).flat_map(change).collect();
        Self::new(Extents { channels: self.extents.channels, height: size.0, width: size.1 }, values)
    }

    /// At another size, bilinearly; a vector has none.
    ///
    /// # Errors
    /// If a side is zero.
    pub fn resized(&self, size: (usize, usize)) -> Result<Self> {
        if self.is_vector() || size == self.size() {
            return Ok(self.clone());
        }
        let sampler = Sampler::resize(self.size(), size);
        self.each_plane(size, |plane| sampler.apply(plane, 1))
    }

    /// At another size, each cell taking the value its centre falls on, so that nothing unknown spreads.
    ///
    /// # Errors
    /// If a side is zero.
    pub fn nearest(&self, size: (usize, usize)) -> Result<Self> {
        if self.is_vector() || size == self.size() {
            return Ok(self.clone());
        }
        let stretched = Letterbox::stretched(self.size(), size);
        self.each_plane(size, |plane| stretched.framed_values(plane, f32::NAN))
    }

    /// Values on the image, as they lie in the frame; borders are unknown.
    ///
    /// # Errors
    /// If the map has another size than the image.
    pub fn framed(&self, frame: &Letterbox) -> Result<Self> {
        self.moved(frame.image(), frame.frame(), |plane| frame.framed_values(plane, f32::NAN))
    }

    /// What was said of the frame, on the image; what the frame does not show is unknown.
    ///
    /// # Errors
    /// If the map has another size than the frame.
    pub fn unframed(&self, frame: &Letterbox) -> Result<Self> {
        self.moved(frame.frame(), frame.image(), |plane| frame.unframed_values(plane, f32::NAN))
    }

    fn moved(
        &self,
        from: (usize, usize),
        to: (usize, usize),
        change: impl Fn(&[f32]) -> Vec<f32>,
    ) -> Result<Self> {
        if self.is_vector() {
            return Ok(self.clone());
        }
        if self.size() != from {
            let words = |(h, w): (usize, usize)| format!("{w}x{h}");
            return Err(Error::mismatch("map of values", words(from), words(self.size())));
        }
        self.each_plane(to, change)
    }

    /// Reads a `.npy` file, or a grey PNG under the rule's step or range.
    ///
    /// # Errors
    /// If the file is neither, or a PNG and the rule does not say what its numbers mean.
    pub fn load(path: impl AsRef<Path>, rule: &RegressionRule) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::io(path))?;
        if bytes.starts_with(b"\x93NUMPY") {
            return Self::from_npy(&bytes)
                .map_err(|e| Error::File { path: path.to_owned(), reason: e.to_string() });
        }
        let ((height, width), values) = png_values(path, rule)?;
        let values = values.into_iter().map(|v| v as f32).collect();
        Self::new(Extents { channels: 1, height, width }, values)
    }

    /// The map of a `.npy` file's bytes.
    ///
    /// # Errors
    /// If they are damaged, or the array has another form than `[n]`, `[h, w]`, `[c, h, w]` or `[1, c, h, w]`.
    pub fn from_npy(bytes: &[u8]) -> Result<Self> {
        let array = npz::array(bytes).map_err(Error::network)?;
        let values = as_f32(&array).ok_or_else(|| {
            Error::mismatch("elements of an array", "numbers", format!("{:?}", array.dtype()))
        })?;
        let extents = match *array.shape() {
            [channels] | [1, channels] if array.rank() == 1 => Extents { channels, height: 1, width: 1 },
            [height, width] => Extents { channels: 1, height, width },
            [channels, height, width] | [1, channels, height, width] => Extents { channels, height, width },
            _ => {
                let got = format!("{:?}", array.shape());
                return Err(Error::mismatch("shape of an array", "[n], [h, w] or [c, h, w]", got));
            }
        };
        Self::new(extents, values)
    }

    /// The map as a `.npy` file of 32-bit numbers: `[n]`, `[h, w]` or `[c, h, w]`.
    pub fn to_npy(&self) -> Vec<u8> {
        let Extents { channels, height, width } = self.extents;
        let shape = match (self.is_vector(), channels) {
            (true, n) => format!("({n},)"),
            (_, 1) => format!("({height}, {width})"),
            _ => format!("({channels}, {height}, {width})"),
        };
        let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        // values begin at a multiple of 64 bytes, the header ends in a new line
        let padding = 63 - (10 + header.len()) % 64;
        header += &" ".repeat(padding);
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(self.values.iter().flat_map(|v| v.to_le_bytes()));
        bytes
    }

    /// Writes [`ValueMap::to_npy`].
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        write_atomically(path, &self.to_npy())
    }

    /// A map of one channel as a grey PNG of 16 bits, rounded to the rule's step or range; nothing for other maps and without such a rule.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn to_png16(&self, rule: &RegressionRule) -> Result<Option<Vec<u8>>> {
        let Some((low, step)) =
            rule.png_scale(16).filter(|_| self.extents.channels == 1 && !self.is_vector())
        else {
            return Ok(None);
        };
        let number = |v: &f32| match v.is_finite() {
            true => ((f64::from(*v) - low) / step).round().clamp(0.0, 65535.0) as u16,
            false => rule.unknown.unwrap_or(0),
        };
        let numbers = self.values.iter().map(number).collect();
        let map = LabelMap::new(self.extents.height, self.extents.width, numbers)?;
        map.encode_png16().map(Some)
    }
}

/// The (height, width) and the values of a grey PNG under the rule's step or range; NaN for the number that stands for "unknown".
///
/// # Errors
/// If it is no such PNG, or the rule does not say what its numbers mean.
pub fn png_values(path: impl AsRef<Path>, rule: &RegressionRule) -> Result<((usize, usize), Vec<f64>)> {
    let path = path.as_ref();
    let map = LabelMap::load(path)?;
    let bytes = std::fs::read(path).map_err(Error::io(path))?;
    // a PNG's header holds its bits a sample here
    let bits = bytes.get(24).copied().unwrap_or(8);
    let (low, step) = rule.png_scale(bits).ok_or_else(|| Error::File {
        path: path.to_owned(),
        reason: "a PNG's numbers mean nothing without `step` or `range` in the contract's [regression]"
            .into(),
    })?;
    let value = |n: &u16| match rule.unknown {
        Some(unknown) if unknown == *n => f64::NAN,
        _ => low + step * f64::from(*n),
    };
    Ok((map.size(), map.labels().iter().map(value).collect()))
}

/// The numbers of an array, whatever their type.
fn as_f32(array: &evenkeel_network::Tensor) -> Option<Vec<f32>> {
    let of = |values: Option<Vec<f32>>| values;
    None.or_else(|| of(array.values::<f32>().map(<[f32]>::to_vec)))
        .or_else(|| of(array.values::<f64>().map(|v| v.iter().map(|v| *v as f32).collect())))
        .or_else(|| of(array.values::<i32>().map(|v| v.iter().map(|v| *v as f32).collect())))
        .or_else(|| of(array.values::<i64>().map(|v| v.iter().map(|v| *v as f32).collect())))
        .or_else(|| of(array.values::<u8>().map(|v| v.iter().map(|v| f32::from(*v)).collect())))
}
