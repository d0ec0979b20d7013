//! A pipeline as a network: scores for an image, and a pullback whose estimator is chosen.
//!
//! `identity` (BPDA) hands the gradient at the image that is shown to the image that was given; `exact` leads it through the defence's steps. Where the
//! alarm is silent both are exact, and so is the way back through a vote and through an input transform that has a derivative. Scores are those of the answer, other tensors those of the image shown.

use super::Pipeline;
use super::framed::{fits, framed, framed_tape};
use super::unrolled::{Unrolled, Visit};
use crate::attack::Estimator;
use crate::defence::Transform;
use crate::error::Result;
use crate::image::Image;
use crate::network::{Cotangents, Network, Tape, Tensor, Traced};
use crate::view::Placed;

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

    /// The image that is shown to the network, and whether it is answered as an alarm is.
    fn shown(&self, image: &Image) -> Result<(Image, bool)> {
        let alarm = self.pipeline.raises_alarm(image)?;
        Ok((self.pipeline.defend(image, alarm, self.seed)?.image, alarm))
    }

    /// The tensors of an image that is shown, and the way back to it.
    fn answered(&self, shown: &Image, alarm: bool, tensors: &[&str]) -> Result<Traced<'a>> {
        let model = &*self.pipeline.model;
        let traced = |shown: &Image| match self.pipeline.vote().filter(|_| alarm) {
            Some(answer) => answer.network(model, self.seed).trace_image(shown, tensors),
            None => model.network.trace_one(shown, tensors),
        };
        match self.frame(shown, alarm) {
            Some(frame) => framed_tape(model, shown, frame.clone(), tensors, traced(&frame.apply(shown))?),
            None => traced(shown),
        }
    }

    /// The view that the network is shown, where its scores can be undone.
    fn frame(&self, shown: &Image, alarm: bool) -> Option<Placed> {
        self.pipeline.frame(shown, alarm, self.seed).filter(|_| fits(&self.pipeline.model))
    }

    fn traced(&self, image: &Image, tensors: &[&str]) -> Result<Traced<'a>> {
        let pipeline = self.pipeline;
        if let Some(transform) = pipeline.defence.as_ref().and_then(|defence| defence.transform.as_deref()) {
            let (shown, alarm) = self.shown(image)?;
            let Traced { tensors, tape } = self.answered(&shown, alarm, tensors)?;
            let tape: Box<dyn Tape + 'a> = match alarm {
                true => Box::new(TransformTape { inner: tape, transform, origin: image.clone() }),
                false => tape,
            };
            return Ok(Traced { tensors, tape });
        }
        let defence = match (&pipeline.defence, self.estimator) {
            (Some(defence), Estimator::Exact) if pipeline.raises_alarm(image)? => defence,
            _ => {
                let (shown, alarm) = self.shown(image)?;
                return self.answered(&shown, alarm, tensors);
            }
        };
        let unrolled = Unrolled::new(&pipeline.model, defence, self.sharpness)?;
        let (end, visits) = unrolled.run(image, self.seed)?;
        let Traced { tensors, tape } = self.answered(&end, true, tensors)?;
        let tape = UnrolledTape { inner: tape, unrolled, origin: image.clone(), visits, end };
        Ok(Traced { tensors, tape: Box::new(tape) })
    }

    fn run_image(&self, image: &Image, tensors: &[&str]) -> Result<Vec<Tensor>> {
        let (shown, alarm) = self.shown(image)?;
        let model = &*self.pipeline.model;
        let run = |shown: &Image| match self.pipeline.vote().filter(|_| alarm) {
            Some(answer) => answer.network(model, self.seed).run_image(shown, tensors),
            None => model.network.run_one(shown, tensors),
        };
        match self.frame(&shown, alarm) {
            Some(frame) => framed(model, &shown, &frame, tensors, run(&frame.apply(&shown))?),
            None => run(&shown),
        }
    }
}

/// The way back through a transform: exact where it has a derivative.
struct TransformTape<'a> {
    inner: Box<dyn Tape + 'a>,
    transform: &'a dyn Transform,
    origin: Image,
}

impl Tape for TransformTape<'_> {
    fn pullback(&self, cotangents: Cotangents) -> Result<Vec<f32>> {
        Ok(self.transform.pullback(&self.origin, self.inner.pullback(cotangents)?))
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
        images.iter().map(|image| self.run_image(image, tensors)).collect()
    }

    fn trace(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Traced<'_>>> {
        images.iter().map(|image| self.traced(image, tensors)).collect()
    }
}
