//! The YOLO-seg head on small made-up outputs: decoding, suppression, and the loss against central differences.

use super::*;
use crate::random::Random;

const SIZE: (usize, usize) = (32, 32);

fn rule() -> InstanceRule {
    InstanceRule { head: "yolo-seg".into(), confidence: 0.1, overlap: 0.5, most: 10, classes: None }
}

/// A box, class probabilities and coefficients.
type Anchor = ([f32; 4], [f32; 3], [f32; 2]);

/// Such anchors over two prototypes of 8x8: all ones, and −1 left, +1 right.
fn scores(anchors: &[Anchor]) -> Tensor {
    let row = |pick: &dyn Fn(&Anchor) -> f32| anchors.iter().map(pick).collect::<Vec<_>>();
    let mut predictions = Vec::new();
    (0..4).for_each(|k| predictions.extend(row(&|a| a.0[k])));
    (0..3).for_each(|k| predictions.extend(row(&|a| a.1[k])));
    (0..2).for_each(|k| predictions.extend(row(&|a| a.2[k])));
    let mut prototypes = vec![1.0; 64];
    prototypes.extend((0..64).map(|i| if i % 8 < 4 { -1.0 } else { 1.0 }));
    Tensor::joined(vec![
        Tensor::new(vec![1, 9, anchors.len()], predictions).unwrap(),
        Tensor::new(vec![1, 2, 8, 8], prototypes).unwrap(),
    ])
}

fn filled(class: usize, left: usize, top: usize, right: usize, bottom: usize) -> Instance {
    let window = (bottom - top, right - left);
    Instance::truth(class, Mask::new(SIZE, (top, left), window, vec![true; window.0 * window.1]).unwrap())
}

#[test]
fn boxes_masks_and_suppression() {
    let scores = scores(&[
        ([16.0, 16.0, 16.0, 8.0], [0.1, 0.9, 0.2], [0.0, 1.0]),
        ([16.5, 16.0, 16.0, 8.0], [0.1, 0.8, 0.2], [1.0, 0.0]),
        ([16.5, 16.0, 16.0, 8.0], [0.7, 0.3, 0.2], [1.0, 0.0]),
        ([4.0, 4.0, 8.0, 8.0], [0.05, 0.05, 0.05], [1.0, 0.0]),
    ]);
    let found = YoloSeg.instances(&scores, SIZE, &rule()).unwrap();
    let summary: Vec<(usize, f32)> = found.iter().map(|i| (i.class, i.score)).collect();
    assert_eq!(summary, [(1, 0.9), (0, 0.7)], "one box a class; the faint one is dropped");
    assert_eq!(found[0].corners, [8.0, 12.0, 24.0, 20.0]);
    assert_eq!(found[0].mask, filled(1, 16, 12, 24, 20).mask_on(&found[0].mask), "the right half of its box");
    assert_eq!(found[1].mask.area(), 16 * 8);
    let task = Instances::new(rule(), None).unwrap();
    assert_eq!(task.classes(&scores).unwrap(), 3);
    assert!(Instances::new(InstanceRule { head: "other".into(), ..rule() }, None).is_err());
    let plain = Tensor::new(vec![1, 9, 4], vec![0.0; 36]).unwrap();
    assert!(task.predict(&plain, SIZE).unwrap_err().to_string().contains("YOLO-seg"));
}

impl Instance {
    /// The same pixels in another mask's window.
    fn mask_on(&self, other: &Mask) -> Mask {
        let (origin, window) = other.window();
        let pixels = (0..window.0 * window.1).map(|i| (origin.0 + i / window.1, origin.1 + i % window.1));
        let inside = pixels.map(|(y, x)| self.mask.contains(y, x)).collect();
        Mask::new(other.size(), origin, window, inside).unwrap()
    }
}

#[test]
fn quality_counts_pairs_false_and_missed() {
    let is = [filled(1, 0, 0, 8, 8), filled(2, 16, 16, 24, 24)];
    assert_eq!(panoptic_quality(&is, &is), 1.0);
    assert_eq!(panoptic_quality(&[], &[]), 1.0);
    assert_eq!(panoptic_quality(&[], &is), 0.0);
    assert_eq!(panoptic_quality(&is[..1], &is), 2.0 / 3.0);
    assert_eq!(panoptic_quality(&[filled(3, 0, 0, 8, 8)], &is[..1]), 0.0, "another class is wrong");
    let faint = Instance { score: 0.2, ..is[0].clone() };
    assert_eq!(panoptic_quality(&[faint], &[]), 1.0, "what is not confident is not said");
    assert_eq!(without(&is, 1), is[1..]);
    assert_eq!(recast(&is, 1, 2)[0].class, 2);
}

#[test]
fn the_loss_has_the_derivative_of_its_value() {
    let mut random = Random::new(4);
    let mut between = |low: f32, high: f32| random.uniform(low, high);
    let anchors: Vec<Anchor> = (0..14)
        .map(|_| {
            let centre = [between(8.0, 24.0), between(8.0, 24.0), between(6.0, 14.0), between(6.0, 14.0)];
            let classes = [between(0.1, 0.9), between(0.1, 0.9), between(0.1, 0.9)];
            (centre, classes, [between(-1.0, 1.0), between(-1.0, 1.0)])
        })
        .collect();
    let scores = scores(&anchors);
    let truth = [filled(0, 4, 4, 15, 17), filled(2, 13, 12, 27, 26)];
    let (value, cotangent) = YoloSeg.loss(&scores, &truth).unwrap();
    assert!(value > 0.0);
    let at = |i: usize, step: f32| {
        let mut parts = scores.split().unwrap();
        let first = parts[0].data().len();
        let (part, place) = if i < first { (0, i) } else { (1, i - first) };
        let mut data = parts[part].data().to_vec();
        data[place] += step;
        parts[part] = Tensor::new(parts[part].shape().to_vec(), data).unwrap();
        YoloSeg.loss(&Tensor::joined(parts), &truth).unwrap().0
    };
    let (mut checked, mut apart) = (0, 0);
    for i in 0..scores.data().len() {
        let central = (at(i, 1e-3) - at(i, -1e-3)) / 2e-3;
        let far = (central - f64::from(cotangent[i])).abs();
        checked += 1;
        // where the matching flips within the step there is no derivative to speak of
        apart += usize::from(far > 1e-2 * central.abs().max(0.05));
    }
    assert!(apart * 50 <= checked, "{apart} of {checked} derivatives are off");
    let wild = [filled(7, 0, 0, 8, 8)];
    assert!(YoloSeg.loss(&scores, &wild).is_err());
    assert!(YoloSeg.loss(&scores, &[]).unwrap().0 > 0.0, "with nothing there, every anchor should be silent");
}
