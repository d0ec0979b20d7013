//! Objects that the network finds itself: four tensors `boxes [n, 4]`, `labels [n]`, `scores [n]` and `masks [n, 1, h, w]`, as torchvision's Mask R-CNN gives them.
//!
//! What an attacker can raise without the network's training losses: minus the mean, over the true objects, of the score of the surest found object of the same class
//! whose box overlaps the true one by half or more. It is 0 where nothing true is found, and so is its gradient.

use super::{Instance, InstanceHead, InstanceRule, Mask};
use crate::error::{Error, Result};
use crate::network::Tensor;

/// A pixel belongs to an instance from here on.
const INSIDE: f32 = 0.5;
/// A found box is that of a true object from this overlap on.
const SAME: f32 = 0.5;

/// The head of networks that give objects.
#[derive(Debug)]
pub struct Detections;

struct Found<'a> {
    boxes: &'a [[f32; 4]],
    labels: &'a [f32],
    scores: &'a [f32],
    masks: &'a [f32],
    size: (usize, usize),
}

fn found(scores: &Tensor) -> Result<Found<'_>> {
    let parts = scores.parts();
    let fail = || {
        let got = parts.iter().map(|(shape, _)| format!("{shape:?}")).collect::<Vec<_>>().join(", ");
        Error::mismatch("output", "boxes [n, 4], labels [n], scores [n], masks [n, 1, h, w]", got)
    };
    let [(_, boxes), (_, labels), (_, scores), (&[count, 1, height, width], masks)] = parts[..] else {
        return Err(fail());
    };
    let boxes = boxes.as_chunks().0;
    if boxes.len() != count || labels.len() != count || scores.len() != count {
        return Err(fail());
    }
    Ok(Found { boxes, labels, scores, masks, size: (height, width) })
}

/// Intersection over union of two boxes.
fn overlap(a: [f32; 4], b: [f32; 4]) -> f32 {
    let side = |low: usize| (a[low + 2].min(b[low + 2]) - a[low].max(b[low])).max(0.0);
    let area = |c: [f32; 4]| (c[2] - c[0]).max(0.0) * (c[3] - c[1]).max(0.0);
    let both = side(0) * side(1);
    both / (area(a) + area(b) - both).max(1e-9)
}

impl InstanceHead for Detections {
    fn classes(&self, _: &Tensor, rule: &InstanceRule) -> Result<usize> {
        rule.classes.ok_or_else(|| {
            Error::setting("instance.classes", "is needed with the head detections, background counted")
        })
    }

    fn instances(&self, scores: &Tensor, size: (usize, usize), rule: &InstanceRule) -> Result<Vec<Instance>> {
        let found = found(scores)?;
        if found.size != size && !found.scores.is_empty() {
            let words = |(h, w): (usize, usize)| format!("{w}x{h}");
            return Err(Error::mismatch("size of the masks", words(size), words(found.size)));
        }
        let pixels = size.0 * size.1;
        let mut order: Vec<usize> =
            (0..found.scores.len()).filter(|&i| found.scores[i] > rule.confidence).collect();
        order.sort_by(|a, b| found.scores[*b].total_cmp(&found.scores[*a]));
        let one = |&i: &usize| {
            let inside: Vec<bool> =
                found.masks[i * pixels..][..pixels].iter().map(|&v| v >= INSIDE).collect();
            Ok(Instance {
                class: found.labels[i] as usize,
                score: found.scores[i],
                corners: found.boxes[i],
                mask: Mask::from_full(size, &inside)?,
            })
        };
        order.iter().take(rule.most).map(one).collect()
    }

    fn loss(&self, scores: &Tensor, truth: &[Instance]) -> Result<(f64, Vec<f32>)> {
        let found = found(scores)?;
        let start = found.boxes.len() * 4 + found.labels.len();
        let (mut value, mut cotangent) = (0.0, vec![0.0; scores.len()]);
        let share = 1.0 / truth.len().max(1) as f32;
        for object in truth {
            let same = |i: &usize| {
                found.labels[*i] as usize == object.class && overlap(found.boxes[*i], object.corners) >= SAME
            };
            let surest = (0..found.scores.len())
                .filter(same)
                .max_by(|a, b| found.scores[*a].total_cmp(&found.scores[*b]));
            if let Some(i) = surest {
                value -= f64::from(share * found.scores[i]);
                cotangent[start + i] -= share;
            }
        }
        Ok((value, cotangent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(scores: [f32; 3]) -> Tensor {
        let boxes = vec![0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0, 4.0, 4.0];
        let masks = (0..48).map(|i| if i % 4 < 2 { 0.9 } else { 0.1 }).collect();
        Tensor::joined(vec![
            Tensor::new(vec![3, 4], boxes).unwrap(),
            Tensor::new(vec![3], vec![1.0, 1.0, 2.0]).unwrap(),
            Tensor::new(vec![3], scores.to_vec()).unwrap(),
            Tensor::new(vec![3, 1, 4, 4], masks).unwrap(),
        ])
    }

    fn rule() -> InstanceRule {
        InstanceRule { head: "detections".into(), confidence: 0.25, overlap: 1.0, most: 2, classes: Some(3) }
    }

    #[test]
    fn the_surest_come_first_and_the_unsure_not_at_all() {
        let all = Detections.instances(&output([0.5, 0.7, 0.2]), (4, 4), &rule()).unwrap();
        assert_eq!(all.iter().map(|one| one.score).collect::<Vec<_>>(), [0.7, 0.5]);
        assert_eq!(all[0].mask.area(), 8);
        assert!(Detections.instances(&output([0.5; 3]), (5, 4), &rule()).is_err());
        assert!(Detections.classes(&output([0.5; 3]), &InstanceRule { classes: None, ..rule() }).is_err());
    }

    #[test]
    fn the_loss_is_the_score_of_what_is_true_and_its_gradient() {
        let truth = Detections.instances(&output([0.5, 0.4, 0.2]), (4, 4), &rule()).unwrap();
        let other = Instance { class: 0, ..truth[0].clone() };
        let truth = [truth[0].clone(), other];
        let at = |scores| Detections.loss(&output(scores), &truth).unwrap();
        let (value, cotangent) = at([0.5, 0.7, 0.2]);
        assert!((value + 0.35).abs() < 1e-7);
        for i in 0..3 {
            let mut up = [0.5, 0.7, 0.2];
            up[i] += 1e-3;
            let slope = (at(up).0 - value) / 1e-3;
            assert!((slope - f64::from(cotangent[12 + 3 + i])).abs() < 1e-3);
        }
        assert_eq!(cotangent.iter().filter(|c| **c != 0.0).count(), 1);
    }
}
