//! A model: a frozen network with what must be known to use it: task, tensors, classes, and how pixels become its input.
//!
//! Attacks, defences and detectors take a model and an image at the network's own size ([`Model::fit`] makes one). Nothing here
//! guesses: what the contract file beside the network does not say is refused.

mod contract;
mod engine;
mod file;
mod names;
mod pixels;
pub mod propose;

#[cfg(test)]
mod tests;

pub use crate::view::Letterbox;
pub use contract::{Classes, Contract, InputRule, Order, PaletteRule, ResizeRule};
pub use engine::Engine;
pub use file::ModelFile;
pub use names::{CLASS_SETS, ClassSet, NamesRule, coco_ids};
pub use pixels::{PIXEL_PRESETS, PixelPreset};
pub use propose::Proposal;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use evenkeel_network::zoo::Checkpoint;

use crate::error::{Error, Result};
use crate::image::{Image, LabelMap, Palette};
use crate::network::{Executor, Interruptible, Network, Preprocessed, Tensor, TensorNames};
use crate::task::{ClassInfo, Prediction, Task, TaskKind};

/// Images with a shorter side than this are refused, unless a network takes no other: nothing is left of them in a smaller view.
const SMALLEST: usize = 8;

/// A frozen network and what it means. Cloning shares the network.
#[derive(Clone)]
pub struct Model {
    /// The network, which takes RGB images in [0, 1].
    pub network: Arc<dyn Network>,
    /// What its scores mean.
    pub task: Arc<dyn Task>,
    /// The tensors of scores.
    pub output: TensorNames,
    /// The tensors of features that views are compared on, each by itself.
    pub feature: TensorNames,
    /// Sides must be multiples of this.
    pub multiple: usize,
    /// How an image is brought to the network's size.
    pub resize: ResizeRule,
    /// The size images are brought to; `None` keeps theirs.
    pub size: Option<(usize, usize)>,
    /// How many classes it tells apart; 0 if it was never tried.
    pub classes: usize,
    /// The names of the classes, if given.
    pub class_names: Vec<String>,
    /// The colours of the classes, for label maps.
    pub palette: Option<Palette>,
    /// The numbers that the data set gives the classes; empty if they are 0, 1, 2…
    pub class_ids: Vec<i64>,
    /// A fingerprint of the network's file; empty if there is none.
    pub hash: String,
}

impl Model {
    /// A model without a file, of a network that takes RGB images in [0, 1].
    pub fn new(
        network: Box<dyn Network>,
        task: Box<dyn Task>,
        output: impl Into<TensorNames>,
        feature: impl Into<TensorNames>,
    ) -> Self {
        let size = network.fixed_size();
        Self {
            network: network.into(),
            task: task.into(),
            output: output.into(),
            feature: feature.into(),
            multiple: 1,
            resize: ResizeRule::Refuse,
            size,
            classes: 0,
            class_names: Vec::new(),
            palette: None,
            class_ids: Vec::new(),
            hash: String::new(),
        }
    }

    /// Reads a network (ONNX, or a zoo network's weights) and the contract beside it (`net.onnx` and `net.evenkeel.toml`), and tries it once.
    ///
    /// # Errors
    /// If either cannot be read, they do not fit each other, or the network's answer is not finite.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        std::fs::metadata(path).map_err(Error::io(path))?;
        Self::with_contract(path, &Contract::beside(path)?)
    }

    /// Reads a network under a given contract.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn with_contract(path: impl AsRef<Path>, contract: &Contract) -> Result<Self> {
        ModelFile::read(path)?.model(contract)
    }

    /// A network in memory under a contract; `path` is used in messages.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn from_bytes(bytes: &[u8], path: &Path, contract: &Contract) -> Result<Self> {
        ModelFile::from_bytes(bytes, path).model(contract)
    }

    /// The network that an executor runs, under a contract: the contract's pixel rule stands in front of it. It is tried once.
    ///
    /// # Errors
    /// If they do not fit each other, or the network's answer is not finite; if the contract asks for a head that needs the
    /// network's weights (Mask R-CNN's), which an executor does not give.
    pub fn from_executor(executor: impl Executor + 'static, contract: &Contract) -> Result<Self> {
        Self::assemble(executor, None, contract)
    }

    /// As [`Model::from_executor`]; `weights` are the network's own with the name of their architecture, for heads that need them.
    fn assemble(
        executor: impl Executor + 'static,
        weights: Option<&Checkpoint>,
        contract: &Contract,
    ) -> Result<Self> {
        contract.check()?;
        executor.check_tensors(&contract.output.list())?;
        executor.check_tensors(&contract.feature.list())?;
        let network = Preprocessed::new(executor, contract.input.pixels())?;
        let size = match (network.fixed_size(), contract.input.size) {
            (Some(fixed), Some([h, w])) if fixed != (h, w) => {
                let words = |(h, w): (usize, usize)| format!("{w}x{h}");
                return Err(Error::mismatch("size in the contract", words(fixed), words((h, w))));
            }
            (fixed, declared) => fixed.or(declared.map(|[h, w]| (h, w))),
        };
        let task = TaskKind::find(&contract.task)?.make(contract.own_table(), weights)?;
        let mut model = Self {
            size,
            multiple: contract.input.multiple,
            resize: contract.input.resize,
            class_names: contract.class_names()?,
            palette: contract.palette()?,
            class_ids: contract.classes.ids.clone(),
            ..Self::new(Box::new(network), task, contract.output.clone(), contract.feature.clone())
        };
        model.classes = model.try_once()?;
        Ok(model)
    }

    /// The same model, whose passes fail with [`Error::Interrupted`] once the flag is raised.
    #[must_use]
    pub fn interruptible(&self, stop: Arc<AtomicBool>) -> Self {
        let network = Arc::new(Interruptible::new(self.network.clone(), stop));
        Self { network, ..self.clone() }
    }

    /// One pass over a grey image: scores must be finite and have as many classes as there are names and colours. Gives their number.
    fn try_once(&self) -> Result<usize> {
        let side = 64usize.div_ceil(self.multiple) * self.multiple;
        let size = self.size.unwrap_or((side, side));
        let scores = self.scores(&Image::filled(size.0, size.1, 0.5))?;
        let classes = self.task.classes(&scores)?;
        self.task.predict(&scores, size)?;
        for (what, count) in [
            ("names in the contract", self.class_names.len()),
            ("colours in the contract", self.palette.as_ref().map_or(0, |p| p.colours().len())),
            ("class numbers in the contract", self.class_ids.len()),
        ] {
            if count != 0 && count < classes {
                return Err(Error::mismatch(what, format!("{classes}, one per class"), count));
            }
        }
        Ok(classes)
    }

    /// The (height, width) that an image of this one is brought to.
    fn wanted(&self, (h, w): (usize, usize)) -> Result<(usize, usize)> {
        let cut = |side: usize| side / self.multiple * self.multiple;
        let wanted = self.size.unwrap_or((cut(h), cut(w)));
        let least = self.multiple.max(SMALLEST);
        if h.min(w) < least && wanted != (h, w) || h.min(w) < SMALLEST && self.size != Some((h, w)) {
            let reason = format!("{w}x{h} is too small; at least {least}x{least} is needed");
            return Err(Error::setting("image", reason));
        }
        if wanted != (h, w) && self.resize == ResizeRule::Refuse {
            let words = |(h, w): (usize, usize)| format!("{w}x{h}");
            let what = "size of the image (the contract says resize = \"refuse\"; \"stretch\", \"crop\" or \"letterbox\" there, or `model init --resize`, brings it to size)";
            return Err(Error::mismatch(what, words(wanted), words((h, w))));
        }
        Ok(wanted)
    }

    /// The image at the network's own size, as the contract says, in steps of 1/255: as a file would hold it. So every way to use a model
    /// (a prediction, an attack, a study) starts from the same pixels, and an attack that is rounded alike stays within its budget of them.
    ///
    /// # Errors
    /// If the contract forbids changing the image's size, or the image is too small.
    pub fn fit(&self, image: &Image) -> Result<Image> {
        Ok(self.resized(image)?.rounded_to_8_bits())
    }

    fn resized(&self, image: &Image) -> Result<Image> {
        if self.wanted(image.size())? == image.size() {
            return Ok(image.clone());
        }
        self.framing(image.size())?.apply(image)
    }

    /// The label map of an image, brought to the network's size as [`Model::fit`] brings the image.
    ///
    /// # Errors
    /// As [`Model::fit`].
    pub fn fit_labels(&self, map: &LabelMap) -> Result<LabelMap> {
        self.framing(map.size())?.apply_labels(map)
    }

    /// Where an image of this size stands once [`Model::fit`] has brought it to the network's size: the way back for what is said of it.
    ///
    /// # Errors
    /// As [`Model::fit`].
    pub fn framing(&self, image: (usize, usize)) -> Result<Letterbox> {
        let wanted = self.wanted(image)?;
        Ok(match self.resize {
            _ if wanted == image => Letterbox::stretched(image, image),
            ResizeRule::Letterbox => Letterbox::new(image, wanted),
            ResizeRule::Crop => Letterbox::cropped(image, wanted),
            ResizeRule::Stretch | ResizeRule::Refuse => Letterbox::stretched(image, wanted),
        })
    }

    /// The names, colours and numbers of the classes.
    pub fn class_info(&self) -> ClassInfo<'_> {
        ClassInfo {
            names: &self.class_names,
            palette: self.palette.as_ref(),
            ids: &self.class_ids,
            count: self.classes,
        }
    }

    /// The scores for an image at the network's size.
    ///
    /// # Errors
    /// If the network refuses it.
    pub fn scores(&self, image: &Image) -> Result<Tensor> {
        Ok(Tensor::joined(self.network.run_one(image, &self.output.list())?))
    }

    /// The scores for several images, which may run side by side.
    ///
    /// # Errors
    /// If the network refuses one.
    pub fn scores_of(&self, images: &[&Image]) -> Result<Vec<Tensor>> {
        let answers = self.network.run(images, &self.output.list())?;
        Ok(answers.into_iter().map(Tensor::joined).collect())
    }

    /// The features of an image at the network's size, one tensor for each name.
    ///
    /// # Errors
    /// If the network refuses it.
    pub fn features(&self, image: &Image) -> Result<Vec<Tensor>> {
        self.network.run_one(image, &self.feature.list())
    }

    /// The answer for an image at the network's size.
    ///
    /// # Errors
    /// If the network refuses it or its scores are not finite.
    pub fn predict(&self, image: &Image) -> Result<Prediction> {
        self.task.predict(&self.scores(image)?, image.size())
    }
}
