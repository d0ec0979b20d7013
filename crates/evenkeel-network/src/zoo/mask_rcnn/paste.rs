//! Masks in the image: each detection's 28x28 mask, with a border of zeros, stretched bilinearly over its box.
//!
//! Stretching is linear and separable: mask in the image = R m C, with row p of R the bilinear weights of image row p on the mask's rows,
//! max(0, 1 - |s(p) - j|) for source coordinate s(p) = (p - low + 1/2) 30 / size - 1/2 held within 0..29, and zero outside the box. The box
//! grows with the border and its corners are cut to whole pixels, as torchvision does.

use super::super::blueprint::attributes;
use super::super::draft::Draft;
use super::Sizes;
use super::boxes;
use super::detections::Found;
use crate::op::Attribute;
use crate::tensor::{DType, Tensor};

/// The side of a mask, without and with its border.
const SIDE: f32 = 28.0;
const BORDERED: f32 = 30.0;

/// Masks `[k, 1, h, w]` from logits `[k, classes, 28, 28]`.
pub(super) fn draw(draft: &mut Draft<'_>, logits: &str, found: &Found, sizes: &Sizes) -> String {
    let masks = of_labels(draft, logits, &found.labels);
    let pads = draft.integers("paste.pads", &[0, 1, 1, 0, 1, 1]);
    let zero = draft.number("paste.zero", 0.0);
    let with = attributes([("mode", Attribute::Text("constant".into()))]);
    let masks = draft.step("Pad", "paste.bordered", &[&masks, &pads, &zero], with);
    let [low, high] = corners(draft, &found.boxes);
    let rows = weights(draft, (&low, &high), &sizes.image, ("paste.rows", 1));
    let columns = weights(draft, (&low, &high), &sizes.image, ("paste.columns", 0));
    let with = attributes([("perm", Attribute::Ints(vec![0, 2, 1]))]);
    let columns = draft.step("Transpose", "paste.columns.turned", &[&columns], with);
    let stretched = draft.plain("MatMul", "paste.tall", &[&rows, &masks]);
    let stretched = draft.plain("MatMul", "paste.stretched", &[&stretched, &columns]);
    let second = draft.integers("paste.channel", &[1]);
    draft.plain("Unsqueeze", "paste", &[&stretched, &second])
}

/// The mask of each detection's class, as probabilities `[k, 28, 28]`: called `mask_probabilities`.
fn of_labels(draft: &mut Draft<'_>, logits: &str, labels: &str) -> String {
    let count = draft.plain("Size", "paste.count", &[labels]);
    let zero = draft.constant("paste.from", Tensor::scalar(0i64));
    let one = draft.constant("paste.by", Tensor::scalar(1i64));
    let numbers = draft.plain("Range", "paste.numbers", &[&zero, &count, &one]);
    let axis = draft.integers("paste.last", &[1]);
    let numbers = draft.plain("Unsqueeze", "paste.number", &[&numbers, &axis]);
    let labels = draft.plain("Unsqueeze", "paste.label", &[labels, &axis]);
    let pairs = draft.along("Concat", "paste.pairs", &[&numbers, &labels], 1);
    let masks = draft.plain("GatherND", "paste.logits", &[logits, &pairs]);
    draft.plain("Sigmoid", "mask_probabilities", &[&masks])
}

/// The grown boxes' corners in whole pixels, `[k, 2]` each, as floats.
fn corners(draft: &mut Draft<'_>, detected: &str) -> [String; 2] {
    let [low, high] = boxes::halves(draft, detected, "paste.box");
    let half = draft.number("paste.half", 0.5);
    let size = draft.plain("Sub", "paste.size", &[&high, &low]);
    let reach = draft.plain("Mul", "paste.reach", &[&size, &half]);
    let sum = draft.plain("Add", "paste.sum", &[&high, &low]);
    let centre = draft.plain("Mul", "paste.centre", &[&sum, &half]);
    let growth = draft.number("paste.growth", BORDERED / SIDE);
    let reach = draft.plain("Mul", "paste.grown", &[&reach, &growth]);
    ["Sub", "Add"].map(|side| {
        let corner = draft.plain(side, "paste.corner", &[&centre, &reach]);
        let whole = boxes::cast(draft, &corner, "paste.whole", DType::I64);
        boxes::float(draft, &whole, "paste.whole")
    })
}

/// The bilinear weights of every image row (or column) on the rows of the masks: `[k, extent, 30]`. Corners are x, y; sizes h, w.
fn weights(
    draft: &mut Draft<'_>,
    (low, high): (&str, &str),
    size: &str,
    (name, axis): (&str, i64),
) -> String {
    let at = draft.constant(&format!("{name}.corner"), Tensor::scalar(axis));
    let edge = |draft: &mut Draft<'_>, corners: &str, part: &str| {
        let edge = draft.along("Gather", &format!("{name}.{part}"), &[corners, &at], 1);
        let axes = draft.integers(&format!("{name}.{part}.axes"), &[1, 2]);
        draft.plain("Unsqueeze", &format!("{name}.{part}.edge"), &[&edge, &axes]) // [k, 1, 1]
    };
    let (low, high) = (edge(draft, low, "low"), edge(draft, high, "high"));
    let one = draft.number(&format!("{name}.one"), 1.0);
    let half = draft.number(&format!("{name}.half"), 0.5);
    let extent = draft.plain("Sub", &format!("{name}.extent"), &[&high, &low]);
    let extent = draft.plain("Add", &format!("{name}.pixels"), &[&extent, &one]);
    let extent = draft.plain("Max", &format!("{name}.at_least_one"), &[&extent, &one]);
    let bordered = draft.number(&format!("{name}.bordered"), BORDERED);
    let scale = draft.plain("Div", &format!("{name}.scale"), &[&bordered, &extent]);
    let pixels = pixels(draft, size, name, 1 - axis); // [extent, 1]
    let from = draft.plain("Sub", &format!("{name}.inside"), &[&pixels, &low]); // [k, extent, 1]
    let source = draft.plain("Add", &format!("{name}.middle"), &[&from, &half]);
    let source = draft.plain("Mul", &format!("{name}.scaled"), &[&source, &scale]);
    let source = draft.plain("Sub", &format!("{name}.source"), &[&source, &half]);
    let zero = draft.number(&format!("{name}.zero"), 0.0);
    let last = draft.number(&format!("{name}.last"), BORDERED - 1.0);
    let source = draft.plain("Clip", &format!("{name}.held"), &[&source, &zero, &last]);
    let rows =
        Tensor::new(&[BORDERED as usize], (0..BORDERED as usize).map(|j| j as f32).collect::<Vec<_>>());
    let rows = draft.constant(&format!("{name}.rows"), rows);
    let apart = draft.plain("Sub", &format!("{name}.apart"), &[&source, &rows]);
    let apart = draft.plain("Abs", &format!("{name}.distance"), &[&apart]);
    let weights = draft.plain("Sub", &format!("{name}.near"), &[&one, &apart]);
    let weights = draft.relu(&weights, &format!("{name}.weights"));
    let begun = draft.plain("GreaterOrEqual", &format!("{name}.begun"), &[&pixels, &low]);
    let open = draft.plain("LessOrEqual", &format!("{name}.open"), &[&pixels, &high]);
    let covered = draft.plain("And", &format!("{name}.covered"), &[&begun, &open]);
    draft.plain("Where", name, &[&covered, &weights, &zero])
}

/// The numbers of the image's rows (axis 0) or columns, as floats `[extent, 1]`.
fn pixels(draft: &mut Draft<'_>, size: &str, name: &str, axis: i64) -> String {
    let at = draft.constant(&format!("{name}.axis"), Tensor::scalar(axis));
    let count = draft.along("Gather", &format!("{name}.count"), &[size, &at], 0);
    let zero = draft.constant(&format!("{name}.from"), Tensor::scalar(0i64));
    let one = draft.constant(&format!("{name}.by"), Tensor::scalar(1i64));
    let numbers = draft.plain("Range", &format!("{name}.range"), &[&zero, &count, &one]);
    let shape = draft.integers(&format!("{name}.line"), &[-1, 1]);
    let numbers = draft.plain("Reshape", &format!("{name}.numbers"), &[&numbers, &shape]);
    boxes::float(draft, &numbers, &format!("{name}.numbers"))
}
