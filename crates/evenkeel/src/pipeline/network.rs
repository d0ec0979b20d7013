//! A pipeline as a network: scores for an image, and a pullback whose estimator is chosen.
//!
//! `identity` (BPDA) hands the gradient at the image that is shown to the image that was given; `exact` leads it through the defence's steps. Where the
//! alarm is silent both are exact. Tensors are those of the image shown.

use super::Pipeline;
use super::unrolled::{Unrolled, Visit};
use crate::attack::Estimator;
use crate::error::Result;
use crate::image::Image;
use crate::network::{Network, Tape, Tensor, Traced};

/// One draw of a pipeline as a network.
#[derive(Clone, Copy)]
pub struct PipelineNetwork<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) seed: u64,
    pub(super) estimator: Estimator,
    pub(super) sharpness: f32,
}

impl<'a> PipelineNetwork<'a> {
    /// The same with another sharpness of the tanh that stands for a sign in the exact estimator.
    #[must_use]
    pub fn with_sharpness(self, sharpness: f32) -> Self {
        Self { sharpness, ..self }
    }

    /// The image that is shown to the network.
    fn shown(&self, image: &Image) -> Result<Image> {
        let alarm = self.pipeline.raises_alarm(image)?;
        Ok(self.pipeline.defend(image, alarm, self.seed)?.image)
    }

    fn traced(&self, image: &Image, tensors: &[&str]) -> Result<Traced<'a>> {
        let pipeline = self.pipeline;
        let network = &*pipeline.model.network;
        let defence = match (&pipeline.defence, self.estimator) {
            (Some(defence), Estimator::Exact) if pipeline.raises_alarm(image)? => defence,
            _ => return network.trace_one(&self.shown(image)?, tensors),
        };
        let unrolled = Unrolled::new(&pipeline.model, defence, self.sharpness)?;
        let (end, visits) = unrolled.run(image, self.seed)?;
        let Traced { tensors, tape } = network.trace_one(&end, tensors)?;
        let tape = UnrolledTape { inner: tape, unrolled, origin: image.clone(), visits, end };
        Ok(Traced { tensors, tape: Box::new(tape) })
    }
}

struct UnrolledTape<'a> {
    inner: Box<dyn Tape + 'a>,
    unrolled: Unrolled<'a>,
    origin: Image,
    visits: Vec<Visit>,
    end: Image,
}

impl Tape for UnrolledTape<'_> {
    fn pullback(&self, cotangents: Vec<(usize, Vec<f32>)>) -> Result<Vec<f32>> {
        let at_end = self.inner.pullback(cotangents)?;
        self.unrolled.back(&self.origin, &self.visits, at_end, &self.end)
    }
}

impl Network for PipelineNetwork<'_> {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        self.pipeline.model.network.fixed_size()
    }

    fn run(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Vec<Tensor>>> {
        let shown = images.iter().map(|image| self.shown(image)).collect::<Result<Vec<_>>>()?;
        self.pipeline.model.network.run(&shown.iter().collect::<Vec<_>>(), tensors)
    }

    fn trace(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Traced<'_>>> {
        images.iter().map(|image| self.traced(image, tensors)).collect()
    }
}
