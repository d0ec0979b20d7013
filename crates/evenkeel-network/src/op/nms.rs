//! NonMaxSuppression: for each image and class, the boxes of highest score that overlap no better one too much.
//!
//! Overlap is intersection over union. Among equal scores the lower index comes first. No gradient passes.

use super::registry::{Entry, entry};
use super::strided::Real;
use super::{Answer, Call, Definition, Operator};
use crate::error::Fault;
use crate::tensor::{Data, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("NonMaxSuppression", false, build)];

/// See the [module](self).
#[derive(Debug)]
struct NonMaxSuppression {
    /// Boxes are centre and size instead of two corners.
    centred: bool,
}

fn build(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(NonMaxSuppression { centred: definition.attributes.flag("center_point_box", false)? }))
}

/// Edges of a box.
#[derive(Clone, Copy)]
struct Edges {
    low: [f64; 2],
    high: [f64; 2],
}

impl Edges {
    fn of(b: &[f64], centred: bool) -> Edges {
        if centred {
            let (half_w, half_h) = (b[2] / 2.0, b[3] / 2.0);
            return Edges { low: [b[0] - half_w, b[1] - half_h], high: [b[0] + half_w, b[1] + half_h] };
        }
        Edges { low: [b[0].min(b[2]), b[1].min(b[3])], high: [b[0].max(b[2]), b[1].max(b[3])] }
    }

    fn area(&self) -> f64 {
        (self.high[0] - self.low[0]) * (self.high[1] - self.low[1])
    }

    fn overlap(&self, other: &Edges) -> f64 {
        let side = |i: usize| self.high[i].min(other.high[i]) - self.low[i].max(other.low[i]);
        if side(0) <= 0.0 || side(1) <= 0.0 {
            return 0.0;
        }
        let common = side(0) * side(1);
        let union = self.area() + other.area() - common;
        if self.area() <= 0.0 || other.area() <= 0.0 || union <= 0.0 { 0.0 } else { common / union }
    }
}

fn doubles(call: &Call<'_>, i: usize) -> Result<Vec<f64>, Fault> {
    let tensor = call.input(i)?;
    match tensor.data() {
        Data::F32(v) => Ok(v.iter().map(|v| v.f64()).collect()),
        Data::F64(v) => Ok(v.to_vec()),
        _ => Err(Fault::Type { input: i, expected: "floats", got: tensor.dtype() }),
    }
}

fn threshold(call: &Call<'_>, i: usize) -> Result<Option<f64>, Fault> {
    if call.optional(i).is_none() {
        return Ok(None);
    }
    Ok(doubles(call, i)?.first().copied())
}

/// The boxes kept, best first.
fn keep(boxes: &[Edges], scores: &[f64], most: usize, (overlap, least): (f64, Option<f64>)) -> Vec<usize> {
    let mut order: Vec<usize> =
        (0..boxes.len()).filter(|&i| least.is_none_or(|least| scores[i] > least)).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    let mut kept: Vec<usize> = Vec::new();
    for candidate in order {
        if kept.len() >= most {
            break;
        }
        if kept.iter().all(|&better| boxes[candidate].overlap(&boxes[better]) <= overlap) {
            kept.push(candidate);
        }
    }
    kept
}

impl Operator for NonMaxSuppression {
    fn folds_up_to(&self) -> usize {
        1 << 12
    }

    fn passes_gradient(&self, _: usize) -> bool {
        false
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (of_boxes, of_scores) = (call.input(0)?.shape().to_vec(), call.input(1)?.shape().to_vec());
        let (&[images, count, 4], &[batch, classes, scored]) = (&*of_boxes, &*of_scores) else {
            return Err(Fault::Mismatch { left: of_boxes, right: of_scores, verb: "give boxes and scores" });
        };
        if images != batch || count != scored {
            return Err(Fault::Mismatch { left: of_boxes, right: of_scores, verb: "give boxes and scores" });
        }
        let most = match call.optional(2) {
            Some(_) => call.integers(2)?.first().map_or(0, |&most| usize::try_from(most).unwrap_or(0)),
            None => 0,
        };
        let thresholds = (threshold(&call, 3)?.unwrap_or(0.0), threshold(&call, 4)?);
        let (boxes, scores) = (doubles(&call, 0)?, doubles(&call, 1)?);
        let mut chosen: Vec<i64> = Vec::new();
        for image in 0..images {
            let of_image = boxes[image * count * 4..(image + 1) * count * 4].chunks_exact(4);
            let edges: Vec<Edges> = of_image.map(|b| Edges::of(b, self.centred)).collect();
            for class in 0..if count == 0 { 0 } else { classes } {
                let first = (image * classes + class) * count;
                let kept = keep(&edges, &scores[first..first + count], most, thresholds);
                chosen.extend(kept.iter().flat_map(|&i| [image as i64, class as i64, i as i64]));
            }
        }
        Ok(Answer::one(Tensor::new(&[chosen.len() / 3, 3], chosen)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Operator;
    use super::super::proof::{build, outputs};
    use crate::tensor::Tensor;

    #[test]
    fn overlapping_boxes_give_way_to_better_ones() {
        let boxes: Vec<f32> = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 10.0, 1.0, 11.0]].concat();
        let inputs = [
            Some(Tensor::new(&[1, 3, 4], boxes)),
            Some(Tensor::new(&[1, 2, 3], vec![0.9f32, 0.75, 0.6, 0.1, 0.8, 0.05])),
            Some(Tensor::scalar(2i64)),
            Some(Tensor::scalar(0.5f32)),
            Some(Tensor::scalar(0.08f32)),
        ];
        let op: Arc<dyn Operator> = build("NonMaxSuppression", 11, &[], 5).into();
        let y = outputs(&op, &inputs, 1);
        assert_eq!(y[0].values::<i64>(), Some(&[0, 0, 0, 0, 0, 2, 0, 1, 1][..]));
    }
}
