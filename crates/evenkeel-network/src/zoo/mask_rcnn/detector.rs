//! Mask R-CNN in use: instances found in an image, and the five training losses on true instances with their gradient to the image.

use std::path::Path;

use super::training::{Instance, LossHeads, Losses, Sampling, Seen, variant};
use crate::error::{Error, Result};
use crate::network::Network;
use crate::tensor::{Limits, Tensor};
use crate::zoo::{IMAGE, Weights, find, load};

/// Mask R-CNN: the whole graph, and its heads alone.
#[derive(Clone, Debug)]
pub struct Detector {
    network: Network,
    heads: LossHeads,
}

/// What is found in an image, best first.
#[derive(Clone, Debug)]
pub struct Detections {
    /// `[k, 4]` of f32: x1, y1, x2, y2 in pixels.
    pub boxes: Tensor,
    /// `[k]` of i64.
    pub labels: Tensor,
    /// `[k]` of f32.
    pub scores: Tensor,
    /// `[k, 1, h, w]` of f32 in 0..1; one half and more is the instance.
    pub masks: Tensor,
}

impl Detector {
    /// The detector of weights in a safetensors file or PyTorch checkpoint.
    ///
    /// # Errors
    /// If the file cannot be read or its weights are not those of a Mask R-CNN.
    pub fn load(path: &Path, limits: Limits) -> Result<Detector> {
        let checkpoint = load(path)?;
        let architecture = checkpoint.blueprint(None)?.architecture();
        Detector::new(architecture, &checkpoint.weights, limits)
    }

    /// The detector of this architecture with these weights.
    ///
    /// # Errors
    /// If it is not a Mask R-CNN or the weights are not its own.
    pub fn new(architecture: &str, weights: &Weights, limits: Limits) -> Result<Detector> {
        variant(architecture)?;
        Ok(Detector {
            network: find(architecture)?.blueprint(weights)?.network(limits)?,
            heads: LossHeads::new(architecture, weights, limits)?,
        })
    }

    /// The same detector in double precision.
    ///
    /// # Errors
    /// If a weight cannot be widened.
    pub fn widened(&self) -> Result<Detector> {
        Ok(Detector { network: self.network.widened()?, heads: self.heads.widened()? })
    }

    /// The whole graph, for features (`fpn.0` to `fpn.3`, `fpn.pool`) and outputs by name.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The instances in an image `[1, 3, h, w]`.
    ///
    /// # Errors
    /// If the image is not one, or the limits are passed.
    pub fn detect(&self, image: &Tensor) -> Result<Detections> {
        let names = ["boxes", "labels", "scores", "masks"];
        let found = self.network.run(&[(IMAGE, image.clone())], &names)?;
        match <[Tensor; 4]>::try_from(found) {
            Ok([boxes, labels, scores, masks]) => Ok(Detections { boxes, labels, scores, masks }),
            Err(found) => Err(Error::Graph(format!("{} outputs instead of four", found.len()))),
        }
    }

    /// The losses of an image `[1, 3, h, w]` on its true instances, and the gradient of their sum with respect to the image.
    ///
    /// # Errors
    /// If an instance's mask is not of the image's size or its label is 0 or unknown, a given anchor does not exist, or the network refuses
    /// the image.
    pub fn losses(
        &self,
        image: &Tensor,
        truth: &[Instance],
        sampling: Sampling<'_>,
    ) -> Result<(Losses, Tensor)> {
        let &[1, 3, height, width] = image.shape() else {
            let (expected, got) = ("[1, 3, h, w]".into(), image.describe());
            return Err(Error::Input { name: IMAGE.into(), expected, got });
        };
        let names = LossHeads::tensors(matches!(sampling, Sampling::Seeded(_)));
        let asked: Vec<&str> = names.iter().map(String::as_str).collect();
        let trace = self.network.trace(&[(IMAGE, image.clone())], &asked)?;
        let seen: Vec<(String, Tensor)> =
            names.iter().cloned().zip(trace.tensors().iter().cloned()).collect();
        let (losses, cotangents) = self.heads.evaluate(Seen::new(&seen), (height, width), truth, sampling)?;
        let cotangents: Vec<(&str, Tensor)> =
            cotangents.iter().map(|(name, t)| (&**name, t.clone())).collect();
        let gradient = trace.pullback(&cotangents)?.into_iter().find(|(name, _)| name == IMAGE);
        let zeros = || Tensor::new(image.shape(), vec![0f32; image.len()]);
        Ok((losses, gradient.map_or_else(zeros, |(_, gradient)| gradient)))
    }
}
