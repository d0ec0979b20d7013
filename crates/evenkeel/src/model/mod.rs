//! A model: a frozen network with what must be known to use it: task, tensors, classes, and how pixels become its input.
//!
//! Attacks, defences and detectors take a model and an image at the network's own size ([`Model::fit`] makes one). Nothing here
//! guesses: what the contract file beside the network does not say is refused.

mod contract;
mod onnx;

#[cfg(test)]
mod tests;

pub use contract::{Classes, Contract, InputRule, Order, PaletteRule, ResizeRule};
pub use onnx::Onnx;

use std::path::Path;

use crate::error::{Error, Result};
use crate::image::{Image, Palette};
use crate::network::{Network, Tensor};
use crate::task::{Prediction, Task, task_named};
use crate::view::Sampler;

/// A frozen network and what it means.
pub struct Model {
    /// The network, which takes RGB images in [0, 1].
    pub network: Box<dyn Network>,
    /// What its scores mean.
    pub task: Box<dyn Task>,
    /// The tensor of scores.
    pub output: String,
    /// The tensor of features that views are compared on.
    pub feature: String,
    /// Sides must be multiples of this.
    pub multiple: usize,
    /// How an image is brought to the network's size.
    pub resize: ResizeRule,
    /// The size images are brought to; `None` keeps theirs.
    pub size: Option<(usize, usize)>,
    /// The names of the classes, if given.
    pub class_names: Vec<String>,
    /// The colours of the classes, for label maps.
    pub palette: Option<Palette>,
    /// A fingerprint of the network's file; empty if there is none.
    pub hash: String,
}

impl Model {
    /// A model without a file.
    pub fn new(network: Box<dyn Network>, task: Box<dyn Task>, output: &str, feature: &str) -> Self {
        let size = network.fixed_size();
        Self {
            network,
            task,
            output: output.into(),
            feature: feature.into(),
            multiple: 1,
            resize: ResizeRule::Refuse,
            size,
            class_names: Vec::new(),
            palette: None,
            hash: String::new(),
        }
    }

    /// Reads an ONNX network and the contract beside it (`net.onnx` and `net.evenkeel.toml`), and tries it once.
    ///
    /// # Errors
    /// If either cannot be read, they do not fit each other, or the network's answer is not finite.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::with_contract(path, &Contract::beside(path)?)
    }

    /// Reads an ONNX network under a given contract.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn with_contract(path: impl AsRef<Path>, contract: &Contract) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::io(path))?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        let network = Onnx::new(bytes, path, contract)?;
        network.check_tensors(&[&contract.output, &contract.feature])?;
        let size = match (network.fixed_size(), contract.input.size) {
            (Some(fixed), Some([h, w])) if fixed != (h, w) => {
                let words = |(h, w): (usize, usize)| format!("{w}x{h}");
                return Err(Error::mismatch("size in the contract", words(fixed), words((h, w))));
            }
            (fixed, declared) => fixed.or(declared.map(|[h, w]| (h, w))),
        };
        let model = Self {
            size,
            multiple: contract.input.multiple,
            resize: contract.input.resize,
            class_names: contract.classes.names.clone(),
            palette: contract.palette()?,
            hash,
            ..Self::new(Box::new(network), task_named(&contract.task)?, &contract.output, &contract.feature)
        };
        model.try_once()?;
        Ok(model)
    }

    /// One look at a grey image: scores must be finite and have as many classes as there are names and colours.
    fn try_once(&self) -> Result<()> {
        let side = 64usize.div_ceil(self.multiple) * self.multiple;
        let size = self.size.unwrap_or((side, side));
        let scores = self.scores(&Image::filled(size.0, size.1, 0.5))?;
        self.task.predict(&scores, size)?;
        let classes = scores.extents(&self.output)?.channels;
        for (what, count) in [
            ("names in the contract", self.class_names.len()),
            ("colours in the contract", self.palette.as_ref().map_or(0, |p| p.colours().len())),
        ] {
            if count != 0 && count < classes {
                return Err(Error::mismatch(what, format!("{classes}, one per class"), count));
            }
        }
        Ok(())
    }

    /// The image at the network's own size, as the contract says.
    ///
    /// # Errors
    /// If the contract forbids changing the image's size, or the image is too small.
    pub fn fit(&self, image: &Image) -> Result<Image> {
        let (h, w) = image.size();
        let wanted = match self.size {
            Some(size) => size,
            None => {
                let cut = |side: usize| side / self.multiple * self.multiple;
                (cut(h), cut(w))
            }
        };
        if wanted.0 == 0 || wanted.1 == 0 {
            let reason =
                format!("{w}x{h} is smaller than the {m}x{m} that the network needs", m = self.multiple);
            return Err(Error::setting("image", reason));
        }
        if wanted == (h, w) {
            return Ok(image.clone());
        }
        let from = match self.resize {
            ResizeRule::Refuse => {
                let words = |(h, w): (usize, usize)| format!("{w}x{h}");
                let what = "size of the image (the contract says resize = \"refuse\")";
                return Err(Error::mismatch(what, words(wanted), words((h, w))));
            }
            ResizeRule::Stretch => image.clone(),
            ResizeRule::Crop => middle(image, wanted)?,
        };
        let pixels = Sampler::resize(from.size(), wanted).apply(from.pixels(), 3);
        Image::new(wanted.0, wanted.1, pixels)
    }

    /// The scores for an image at the network's size.
    ///
    /// # Errors
    /// If the network refuses it.
    pub fn scores(&self, image: &Image) -> Result<Tensor> {
        Ok(self.network.run(image, &[&self.output])?.remove(0))
    }

    /// The answer for an image at the network's size.
    ///
    /// # Errors
    /// If the network refuses it or its scores are not finite.
    pub fn predict(&self, image: &Image) -> Result<Prediction> {
        self.task.predict(&self.scores(image)?, image.size())
    }
}

/// The largest middle part of an image with the proportions of `wanted`.
fn middle(image: &Image, wanted: (usize, usize)) -> Result<Image> {
    let (h, w) = image.size();
    let scale = (h as f64 / wanted.0 as f64).min(w as f64 / wanted.1 as f64);
    let side = |n: usize, most: usize| ((n as f64 * scale).round() as usize).clamp(1, most);
    let (height, width) = (side(wanted.0, h), side(wanted.1, w));
    let (top, left) = ((h - height) / 2, (w - width) / 2);
    let rows = (0..3).flat_map(|c| (0..height).map(move |y| (c, y)));
    let pixels = rows.flat_map(|(c, y)| image.plane(c)[(top + y) * w + left..][..width].iter().copied());
    Image::new(height, width, pixels.collect())
}
