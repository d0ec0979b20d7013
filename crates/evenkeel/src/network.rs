//! The seam to frozen networks: forward to named tensors with a tape, and the pullback of cotangents to the image.
//!
//! A [`Network`] takes an RGB image in [0, 1]; how pixels become its input (mean, deviation, channel order) happens behind the
//! seam, so a gradient is always with respect to the image. One image at a time: an answer never depends on a batch.

use crate::error::{Error, Result};
use crate::image::Image;

/// What stands between the names of tensors that are asked for as one: `"a + b"`.
pub const JOINT: &str = " + ";

/// A dense tensor of one image, row by row; the leading dimension of one is kept. Several tensors asked for as one come joined:
/// their values one after the other, under the shape `[1, values]`, each part with the shape it had.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    data: Vec<f32>,
    /// The shapes of the parts; none unless there are several.
    parts: Vec<Vec<usize>>,
}

impl Tensor {
    /// A tensor of these values.
    ///
    /// # Errors
    /// If their number is not the product of the shape.
    pub fn new(shape: Vec<usize>, data: Vec<f32>) -> Result<Self> {
        if shape.iter().product::<usize>() != data.len() {
            return Err(Error::mismatch(
                format!("values of a tensor {shape:?}"),
                shape.iter().product::<usize>(),
                data.len(),
            ));
        }
        Ok(Self { shape, data, parts: Vec::new() })
    }

    /// Several tensors as one; a single one stays what it is.
    pub fn joined(mut tensors: Vec<Self>) -> Self {
        if tensors.len() == 1 {
            return tensors.remove(0);
        }
        let data: Vec<f32> = tensors.iter().flat_map(|tensor| tensor.data.iter().copied()).collect();
        let parts = tensors.into_iter().map(|tensor| tensor.shape).collect();
        Self { shape: vec![1, data.len()], data, parts }
    }

    /// Shape and values of each part; a plain tensor is its own only part.
    pub fn parts(&self) -> Vec<(&[usize], &[f32])> {
        let shapes: &[Vec<usize>] =
            if self.parts.is_empty() { std::slice::from_ref(&self.shape) } else { &self.parts };
        let mut rest = self.data.as_slice();
        let mut part = |shape: &'_ Vec<usize>| {
            let (own, after) = rest.split_at(shape.iter().product());
            rest = after;
            own
        };
        shapes.iter().map(|shape| (shape.as_slice(), part(shape))).collect()
    }

    /// The parts as tensors of their own, if there are several.
    pub fn split(&self) -> Option<Vec<Self>> {
        let own = |(shape, data): (&[usize], &[f32])| Self {
            shape: shape.to_vec(),
            data: data.to_vec(),
            parts: Vec::new(),
        };
        (!self.parts.is_empty()).then(|| self.parts().into_iter().map(own).collect())
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The tensor as a map of one image: (channels, height, width). `[1, c]` and `[c]` are maps of one cell.
    ///
    /// # Errors
    /// If it holds more than one image or has another rank; `name` is used in the sentence.
    pub fn extents(&self, name: &str) -> Result<Extents> {
        if !self.parts.is_empty() {
            let got = format!("{} tensors joined", self.parts.len());
            return Err(Error::mismatch(format!("tensor {name}"), "one map or vector", got));
        }
        match *self.shape.as_slice() {
            [1, channels, height, width] => Ok(Extents { channels, height, width }),
            [1, channels] | [channels] => Ok(Extents { channels, height: 1, width: 1 }),
            _ => Err(Error::mismatch(
                format!("tensor {name}"),
                "a map [1, c, h, w] or a vector [1, c]",
                format!("{:?}", self.shape),
            )),
        }
    }

    /// Refuses NaN and infinity.
    ///
    /// # Errors
    /// Naming the tensor.
    pub fn check_finite(&self, name: &str) -> Result<()> {
        match self.data.iter().all(|v| v.is_finite()) {
            true => Ok(()),
            false => Err(Error::NotFinite(format!("tensor {name}"))),
        }
    }
}

/// Channels, height and width of a feature map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Channels.
    pub channels: usize,
    /// Cells down.
    pub height: usize,
    /// Cells across.
    pub width: usize,
}

impl Extents {
    /// (height, width).
    pub fn size(self) -> (usize, usize) {
        (self.height, self.width)
    }

    /// Cells of one channel.
    pub fn cells(self) -> usize {
        self.height * self.width
    }

    /// All values.
    pub fn len(self) -> usize {
        self.channels * self.cells()
    }

    /// Whether there are no values.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// What a pass kept so that cotangents can be led back to the image, as often as wanted.
pub trait Tape: Send {
    /// The gradient `[3, h, w]` of the sum of the products of the traced tensors (named by their place in the request) with
    /// their cotangents.
    ///
    /// # Errors
    /// If a place or a length is wrong, or the network fails.
    fn pullback(&self, cotangents: &[(usize, &[f32])]) -> Result<Vec<f32>>;
}

/// The tensors of a pass, in the order asked for, and the way back.
pub struct Traced<'n> {
    /// The tensors asked for.
    pub tensors: Vec<Tensor>,
    /// The way back.
    pub tape: Box<dyn Tape + 'n>,
}

/// A frozen network that looks at one image.
pub trait Network: Send + Sync {
    /// The only (height, width) it accepts, if there is only one.
    fn fixed_size(&self) -> Option<(usize, usize)>;

    /// The named tensors for an image; names joined by [`JOINT`] give one joined tensor. No tape is kept.
    ///
    /// # Errors
    /// If there is no such tensor or the network refuses the image's size.
    fn run(&self, image: &Image, tensors: &[&str]) -> Result<Vec<Tensor>>;

    /// The named tensors for an image, and the way back.
    ///
    /// # Errors
    /// As [`Network::run`].
    fn trace(&self, image: &Image, tensors: &[&str]) -> Result<Traced<'_>>;
}
