//! The seam to frozen networks: images in, named tensors out, and the pullback of cotangents to each image.
//!
//! A [`Network`] takes RGB images in [0, 1]; how pixels become its input (mean, deviation, channel order) happens behind the seam, so a
//! gradient is always with respect to the image. A call may hold several images of different sizes; an answer never depends on the
//! other images of its call. An [`Executor`] runs a network on input that is prepared already; [`Preprocessed`] puts the pixel rule in
//! front of any executor and makes it a [`Network`].

mod cosines;
mod executor;
mod interruptible;
mod names;
mod preprocessed;
mod softmax;
mod tensor;

pub use cosines::{ComparedThere, Comparison, CosineRule};
pub use executor::Executor;
pub use interruptible::Interruptible;
pub use names::TensorNames;
pub use preprocessed::{PixelRule, Preprocessed};
pub(crate) use softmax::{log_softmax, pull_softmax, softmax};
pub use tensor::{Extents, SharedValues, Tensor};

use crate::error::{Error, Result};
use crate::image::Image;

/// Cotangents of traced tensors, each with the tensor's place in the request.
pub type Cotangents = Vec<(usize, Vec<f32>)>;

/// What a pass kept so that cotangents can be led back to its input, as often as wanted.
pub trait Tape: Send {
    /// The gradient, with respect to the input, of the sum of the products of the traced tensors with their cotangents. The input of a
    /// [`Network`] is the image, `[3, h, w]`; that of an [`Executor`] is the prepared tensor.
    ///
    /// # Errors
    /// If a place or a length is wrong, or the network fails.
    fn pullback(&self, cotangents: Cotangents) -> Result<Vec<f32>>;
}

/// The tensors of a pass, in the order asked for, and the way back.
pub struct Traced<'n> {
    /// The tensors asked for, one for each name.
    pub tensors: Vec<Tensor>,
    /// The way back.
    pub tape: Box<dyn Tape + 'n>,
}

/// What a pass over several inputs kept so that the cotangents of all of them can be led back at once.
pub trait BatchTape: Send {
    /// For each input of the pass, in order, what [`Tape::pullback`] gives for its cotangents.
    ///
    /// # Errors
    /// If there are not as many lists of cotangents as inputs, or as [`Tape::pullback`].
    fn pullback(&self, cotangents: Vec<Cotangents>) -> Result<Vec<Vec<f32>>>;
}

/// Tapes that share nothing.
impl BatchTape for Vec<Box<dyn Tape + '_>> {
    fn pullback(&self, cotangents: Vec<Cotangents>) -> Result<Vec<Vec<f32>>> {
        if cotangents.len() != self.len() {
            return Err(Error::mismatch("lists of cotangents", self.len(), cotangents.len()));
        }
        self.iter().zip(cotangents).map(|(tape, own)| tape.pullback(own)).collect()
    }
}

/// The tensors of a pass over several inputs, those of each in the order asked for, and the common way back.
pub struct TracedBatch<'n> {
    /// For each input, its tensors.
    pub tensors: Vec<Vec<Tensor>>,
    /// The way back.
    pub tape: Box<dyn BatchTape + 'n>,
}

impl<'n> From<Vec<Traced<'n>>> for TracedBatch<'n> {
    fn from(traced: Vec<Traced<'n>>) -> Self {
        let (tensors, tapes): (Vec<_>, Vec<Box<dyn Tape + 'n>>) =
            traced.into_iter().map(|Traced { tensors, tape }| (tensors, tape)).unzip();
        Self { tensors, tape: Box::new(tapes) }
    }
}

/// A frozen network that answers to images.
pub trait Network: Send + Sync {
    /// The only (height, width) it accepts, if there is only one.
    fn fixed_size(&self) -> Option<(usize, usize)>;

    /// For each image, its named tensors, one for each name. No tape is kept. Images may run side by side, so what a call takes in memory
    /// grows with their number.
    ///
    /// # Errors
    /// If there is no such tensor or the network refuses the size of an image.
    fn run(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Vec<Tensor>>>;

    /// For each image, its named tensors and the way back.
    ///
    /// # Errors
    /// As [`Network::run`].
    fn trace(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Traced<'_>>>;

    /// Whether one call with several images costs much less than a call for each, as with a framework's module: the views of a step
    /// then come in one call. Our engine runs them side by side anyway.
    fn prefers_batches(&self) -> bool {
        false
    }

    /// For each image, its named tensors, and one way back for all.
    ///
    /// # Errors
    /// As [`Network::run`].
    fn trace_batch(&self, images: &[&Image], tensors: &[&str]) -> Result<TracedBatch<'_>> {
        Ok(self.trace(images, tensors)?.into())
    }

    /// Whether it can make a [`Comparison`] where its tensors are, and that is worth it: on a device to which features would have to cross.
    fn compares(&self) -> bool {
        false
    }

    /// Makes a comparison of the first image with views of it, the other images, and gives named tensors of the first.
    ///
    /// # Errors
    /// As [`Network::run`], and if the network makes none.
    fn compare(&self, _: &[&Image], _: &[&str], _: &Comparison) -> Result<ComparedThere<'_>> {
        Err(makes_none())
    }

    /// The named tensors of one image.
    ///
    /// # Errors
    /// As [`Network::run`].
    fn run_one(&self, image: &Image, tensors: &[&str]) -> Result<Vec<Tensor>> {
        only(self.run(&[image], tensors)?)
    }

    /// The named tensors of one image, and the way back.
    ///
    /// # Errors
    /// As [`Network::run`].
    fn trace_one(&self, image: &Image, tensors: &[&str]) -> Result<Traced<'_>> {
        only(self.trace(&[image], tensors)?)
    }
}

fn makes_none() -> Error {
    Error::setting("comparison", "this network makes none")
}

/// The answer to the only image of a call.
fn only<T>(mut answers: Vec<T>) -> Result<T> {
    match answers.len() {
        1 => Ok(answers.remove(0)),
        count => Err(Error::mismatch("answers of a network to one image", 1, count)),
    }
}
