//! Mask R-CNN of the zoo: the graph gives instances itself; the loss is the sum of its five training losses.
//!
//! The contract's output lists the four answers (`boxes`, `labels`, `scores`, `masks`) and the tensors the losses are made of ([`output`] gives it). The losses run the
//! box and mask heads on sampled regions, so this head needs the weights, which only a checkpoint or what `evenkeel model import` writes
//! has by name. Class 0 is background. Anchors and regions are drawn with one seed, the same at every step.

use std::sync::Arc;

use evenkeel_network as engine;
use evenkeel_network::zoo::Checkpoint;
use evenkeel_network::zoo::mask_rcnn::{Instance as TrueInstance, LossHeads, Sampling, Seen};

use super::{Instance, InstanceHead, InstanceRule, Mask};
use crate::error::{Error, Result};
use crate::network::{Tensor, TensorNames};

/// The answers, which stand before the losses' tensors.
const ANSWERS: [&str; 4] = ["boxes", "labels", "scores", "masks"];
/// The levels of the pyramid, each of which is undone and compared by itself.
const PYRAMID: [&str; 4] = ["fpn.0", "fpn.1", "fpn.2", "fpn.3"];
/// A pixel belongs to an instance from here on.
const INSIDE: f32 = 0.5;
const SEED: u64 = 0;

/// The tensors of the contract's output.
pub(super) fn output() -> TensorNames {
    let answers = ANSWERS.into_iter().map(str::to_owned);
    answers.chain(LossHeads::tensors(true)).collect::<Vec<_>>().into()
}

/// The tensors of the contract's features.
pub(super) fn feature() -> TensorNames {
    PYRAMID.map(str::to_owned).to_vec().into()
}

/// The head of torchvision's Mask R-CNNs.
#[derive(Debug)]
pub struct MaskRcnn {
    heads: LossHeads,
    /// The losses' tensors.
    names: Vec<String>,
}

/// The head of a network of these weights.
pub(super) fn of_weights(weights: Option<&Checkpoint>) -> Result<Arc<dyn InstanceHead>> {
    let refused = |reason: &dyn std::fmt::Display| {
        let what = "needs the weights of a Mask R-CNN: a PyTorch checkpoint, or what `evenkeel model import` makes of one";
        Error::setting("instance.head mask-rcnn", format!("{what} ({reason})"))
    };
    let weights = weights.ok_or_else(|| refused(&"the network comes without named weights"))?;
    let architecture = weights.architecture.as_deref().unwrap_or_default();
    let limits = engine::Limits::default();
    let heads = LossHeads::new(architecture, &weights.weights, limits).map_err(|e| refused(&e))?;
    Ok(Arc::new(MaskRcnn { heads, names: LossHeads::tensors(true) }))
}

/// The four answers of such a network for one image.
struct Answers<'a> {
    boxes: &'a [[f32; 4]],
    labels: &'a [f32],
    scores: &'a [f32],
    masks: &'a [f32],
    size: (usize, usize),
}

type Part<'a> = (&'a [usize], &'a [f32]);

impl MaskRcnn {
    fn parts<'a>(&self, scores: &'a Tensor) -> Result<(Answers<'a>, Vec<Part<'a>>)> {
        let mut parts = scores.parts();
        let count = parts.len();
        let fail = || {
            let got = format!("{count} tensors");
            Error::mismatch(
                "output of a Mask R-CNN",
                format!("the {} of `{}`", 4 + self.names.len(), output()),
                got,
            )
        };
        if count != ANSWERS.len() + self.names.len() {
            return Err(fail());
        }
        let losses = parts.split_off(ANSWERS.len());
        let [(_, boxes), (_, labels), (_, confidences), (&[found, 1, height, width], masks)] = parts[..]
        else {
            return Err(fail());
        };
        let boxes = boxes.as_chunks().0;
        if boxes.len() != found || labels.len() != found || confidences.len() != found {
            return Err(fail());
        }
        Ok((Answers { boxes, labels, scores: confidences, masks, size: (height, width) }, losses))
    }
}

impl InstanceHead for MaskRcnn {
    fn classes(&self, _: &Tensor, _: &InstanceRule) -> Result<usize> {
        Ok(self.heads.classes())
    }

    fn instances(&self, scores: &Tensor, size: (usize, usize), rule: &InstanceRule) -> Result<Vec<Instance>> {
        let (answers, _) = self.parts(scores)?;
        if answers.size != size {
            return Err(Error::mismatch(
                "size of the masks",
                format!("{size:?}"),
                format!("{:?}", answers.size),
            ));
        }
        let pixels = size.0 * size.1;
        let sure = (0..answers.scores.len()).filter(|&i| answers.scores[i] > rule.confidence);
        sure.take(rule.most)
            .map(|i| {
                let inside: Vec<bool> =
                    answers.masks[i * pixels..][..pixels].iter().map(|&v| v >= INSIDE).collect();
                Ok(Instance {
                    class: answers.labels[i] as usize,
                    score: answers.scores[i],
                    corners: answers.boxes[i],
                    mask: Mask::from_full(size, &inside)?,
                })
            })
            .collect()
    }

    fn loss(&self, scores: &Tensor, truth: &[Instance]) -> Result<(f64, Vec<f32>)> {
        let (answers, parts) = self.parts(scores)?;
        let seen: Vec<(String, engine::Tensor)> = self
            .names
            .iter()
            .zip(&parts)
            .map(|(name, (shape, values))| (name.clone(), engine::Tensor::new::<f32>(shape, values.to_vec())))
            .collect();
        let truth: Vec<TrueInstance> = truth.iter().map(as_truth).collect();
        let (losses, cotangents) = self
            .heads
            .evaluate(Seen::new(&seen), answers.size, &truth, Sampling::Seeded(SEED))
            .map_err(Error::network)?;
        let mut all = vec![0.0; scores.len()];
        let first = all.len() - parts.iter().map(|(_, values)| values.len()).sum::<usize>();
        for (name, cotangent) in &cotangents {
            let before = self.names.iter().take_while(|own| *own != name).count();
            let start = first + parts[..before].iter().map(|(_, values)| values.len()).sum::<usize>();
            let values = cotangent.values::<f32>().unwrap_or_default();
            all[start..][..values.len()].iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        Ok((f64::from(losses.sum()), all))
    }
}

fn as_truth(instance: &Instance) -> TrueInstance {
    let mask = instance.mask.to_full().into_iter().map(|inside| f32::from(u8::from(inside))).collect();
    TrueInstance { corners: instance.corners, label: instance.class, mask }
}
