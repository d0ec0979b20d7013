//! Mask R-CNN on a ResNet-50 with a feature pyramid, with torchvision's names: from one image to boxes, labels, scores and masks, all as one
//! graph.
//!
//! `fpn` makes maps at a quarter to a sixty-fourth of the image (`fpn.0` to `fpn.3` and `fpn.pool`), `proposals` scores anchors on them and
//! keeps the best regions, `heads` pools each region and says what it is, `detections` keeps the best of those, and `paste` puts their masks
//! into the image. The pyramid works on any batch; what follows it on one image. Images are taken at the size they have; torchvision would first
//! resize them to a shorter side of 800.
//!
//! Outputs: `boxes` `[k, 4]` (x1, y1, x2, y2 in pixels), `labels` `[k]`, `scores` `[k]` in descending order, `masks` `[k, 1, h, w]` in 0..1.

mod boxes;
mod detections;
mod detector;
mod fpn;
mod goals;
mod heads;
mod losses;
mod matching;
mod paste;
mod proposals;
mod training;

pub use detector::{Detections, Detector};
pub use training::{Instance, LossHeads, Losses, Sampling, Seen};

use super::IMAGE;
use super::blueprint::{Blueprint, attributes};
use super::draft::Draft;
use super::resnet::{self, EPSILON, ResNet};
use super::weights::Weights;
use crate::op::Attribute;
use crate::tensor::{DType, Tensor};

/// Channels of the pyramid.
const CHANNELS: usize = 256;
/// Classes of COCO with background and gaps.
const DEFAULT_CLASSES: usize = 91;
/// Both sides of what the trunk sees are multiples of this.
const MULTIPLE: i64 = 32;

/// What tells one from another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    /// Norms in the pyramid and the heads, two convolutions before the anchors' scores, four before the boxes'.
    pub(super) second: bool,
    /// torchvision's own weights for COCO: older names, and batch norms without an epsilon.
    pub(super) coco: bool,
}

impl Variant {
    fn trunk(&self) -> ResNet {
        ResNet { epsilon: if self.coco { 0.0 } else { EPSILON }, ..ResNet::bottleneck([3, 4, 6, 3]) }
    }
}

/// The height and width of the image, and of the padded image, as integers `[2]`.
struct Sizes {
    image: String,
    padded: String,
}

/// The whole detector.
pub(super) fn draw(draft: &mut Draft<'_>, net: &Variant) {
    let (padded, sizes) = pad(draft);
    let stages = resnet::trunk_of(draft, &padded, "backbone.body.", &net.trunk());
    let maps = fpn::draw(draft, net, &stages);
    let regions = proposals::draw(draft, net, &maps, &sizes);
    let classes = draft.extent("roi_heads.box_predictor.cls_score.weight", 0, DEFAULT_CLASSES);
    let (scores, deltas) = heads::boxes(draft, net, &maps, (&regions, classes));
    let found = detections::draw(draft, (&scores, &deltas), (&regions, classes), &sizes);
    // One region more than detections, so that the mask head never has none; nobody reads its mask.
    let spare = draft.constant("spare", Tensor::new(&[1, 4], vec![0f32, 0.0, 1.0, 1.0]));
    let regions = draft.along("Concat", "detected_and_spare", &[&found.boxes, &spare], 0);
    let logits = heads::masks(draft, net, &maps, (&regions, classes));
    let masks = paste::draw(draft, &logits, &found, &sizes);
    draft.output(&found.boxes, "boxes", DType::F32, 2);
    draft.output(&found.labels, "labels", DType::I64, 1);
    draft.output(&found.scores, "scores", DType::F32, 1);
    draft.output(&masks, "masks", DType::F32, 4);
}

/// The box head alone: maps `fpn.0` to `fpn.3` and `regions` `[k, 4]` in, `class_logits` `[k, classes]` and `box_deltas` `[k, 4 classes]` out.
fn box_head(weights: &Weights, net: &Variant) -> Blueprint {
    head(weights, |draft, maps| {
        let classes = draft.extent("roi_heads.box_predictor.cls_score.weight", 0, DEFAULT_CLASSES);
        let (scores, deltas) = heads::boxes(draft, net, maps, (REGIONS, classes));
        draft.output(&scores, "class_logits", DType::F32, 2);
        draft.output(&deltas, "box_deltas", DType::F32, 2);
    })
}

/// The mask head alone: maps and `regions` in, `mask_logits` `[k, classes, 28, 28]` out.
fn mask_head(weights: &Weights, net: &Variant) -> Blueprint {
    head(weights, |draft, maps| {
        let classes = draft.extent("roi_heads.box_predictor.cls_score.weight", 0, DEFAULT_CLASSES);
        let logits = heads::masks(draft, net, maps, (REGIONS, classes));
        draft.output(&logits, "mask_logits", DType::F32, 4);
    })
}

/// The input of a head that says where to look.
const REGIONS: &str = "regions";

fn head(weights: &Weights, draw: impl FnOnce(&mut Draft<'_>, &[String])) -> Blueprint {
    let maps: Vec<String> = (0..4).map(|level| format!("fpn.{level}")).collect();
    let mut draft = Draft::of_inputs("a head of Mask R-CNN", weights);
    for map in &maps {
        draft.input(map, &["n", "c", "h", "w"]);
    }
    draft.input(REGIONS, &["k", "4"]);
    draw(&mut draft, &maps);
    draft.unchecked()
}

/// The image with zeros to the right and below, so that every level of the pyramid halves exactly.
fn pad(draft: &mut Draft<'_>) -> (String, Sizes) {
    let with = attributes([("start", Attribute::Int(2)), ("end", Attribute::Int(4))]);
    let image = draft.step("Shape", "image.size", &[IMAGE], with);
    let (less, multiple) =
        (draft.integers("pad.less", &[MULTIPLE - 1]), draft.integers("pad.multiple", &[MULTIPLE]));
    let steps = draft.plain("Add", "pad.above", &[&image, &less]);
    let steps = draft.plain("Div", "pad.steps", &[&steps, &multiple]);
    let padded = draft.plain("Mul", "padded.size", &[&steps, &multiple]);
    let missing = draft.plain("Sub", "pad.missing", &[&padded, &image]);
    let none = draft.integers("pad.none", &[0; 6]);
    let pads = draft.along("Concat", "pad.pads", &[&none, &missing], 0);
    let zero = draft.number("pad.zero", 0.0);
    let with = attributes([("mode", Attribute::Text("constant".into()))]);
    (draft.step("Pad", "padded", &[IMAGE, &pads, &zero], with), Sizes { image, padded })
}
