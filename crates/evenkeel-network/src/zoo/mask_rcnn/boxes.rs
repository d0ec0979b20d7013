//! Arithmetic on boxes `[.., 4]` of corners x1, y1, x2, y2.

use super::super::blueprint::attributes;
use super::super::draft::Draft;
use super::Sizes;
use crate::op::Attribute;
use crate::tensor::{DType, Tensor};

/// The largest logarithm by which a box may grow: 1000 pixels from 16.
fn most_growth() -> f32 {
    (1000f64 / 16.0).ln() as f32
}

/// The two halves of the last axis: upper left and lower right, or shift and growth.
pub(super) fn halves(draft: &mut Draft<'_>, x: &str, name: &str) -> [String; 2] {
    let split = draft.integers(&format!("{name}.two"), &[2, 2]);
    let names = [format!("{name}.first"), format!("{name}.second")];
    let with = attributes([("axis", Attribute::Int(-1))]);
    let made = draft.steps("Split", &[&names[0], &names[1]], &[x, &split], with);
    [made[0].clone(), made[1].clone()]
}

/// Boxes moved and grown: centre + shift * size / `weights[0]`, size * exp(growth / `weights[1]`).
pub(super) fn decode(
    draft: &mut Draft<'_>,
    deltas: &str,
    boxes: &str,
    name: &str,
    weights: [f32; 2],
) -> String {
    let [low, high] = halves(draft, boxes, &format!("{name}.box"));
    let [shift, growth] = halves(draft, deltas, &format!("{name}.delta"));
    let size = draft.plain("Sub", &format!("{name}.size"), &[&high, &low]);
    let half = draft.number(&format!("{name}.half"), 0.5);
    let to_centre = draft.plain("Mul", &format!("{name}.to_centre"), &[&half, &size]);
    let centre = draft.plain("Add", &format!("{name}.centre"), &[&low, &to_centre]);
    let weights = weights.map(|weight| draft.number(&format!("{name}.weight"), weight));
    let shift = draft.plain("Div", &format!("{name}.shift"), &[&shift, &weights[0]]);
    let shift = draft.plain("Mul", &format!("{name}.shifted"), &[&shift, &size]);
    let centre = draft.plain("Add", &format!("{name}.moved"), &[&shift, &centre]);
    let growth = draft.plain("Div", &format!("{name}.growth"), &[&growth, &weights[1]]);
    let most = draft.number(&format!("{name}.most"), most_growth());
    let growth = draft.plain("Min", &format!("{name}.bounded"), &[&growth, &most]);
    let growth = draft.plain("Exp", &format!("{name}.factor"), &[&growth]);
    let size = draft.plain("Mul", &format!("{name}.grown"), &[&growth, &size]);
    let reach = draft.plain("Mul", &format!("{name}.reach"), &[&half, &size]);
    let low = draft.plain("Sub", &format!("{name}.low"), &[&centre, &reach]);
    let high = draft.plain("Add", &format!("{name}.high"), &[&centre, &reach]);
    draft.along("Concat", &format!("{name}.decoded"), &[&low, &high], -1)
}

/// Boxes cut to the image.
pub(super) fn clip(draft: &mut Draft<'_>, boxes: &str, name: &str, sizes: &Sizes) -> String {
    let order = draft.integers(&format!("{name}.order"), &[1, 0, 1, 0]);
    let limits = draft.along("Gather", &format!("{name}.limits"), &[&sizes.image, &order], 0);
    let limits = float(draft, &limits, &format!("{name}.limits"));
    let zero = draft.number(&format!("{name}.zero"), 0.0);
    let below = draft.plain("Min", &format!("{name}.below"), &[boxes, &limits]);
    draft.plain("Max", name, &[&below, &zero])
}

/// Whether both sides are at least `least`: the shape without the last axis.
pub(super) fn large_enough(draft: &mut Draft<'_>, boxes: &str, name: &str, least: f32) -> String {
    let [low, high] = halves(draft, boxes, name);
    let size = draft.plain("Sub", &format!("{name}.size"), &[&high, &low]);
    let with = attributes([("axes", Attribute::Ints(vec![-1])), ("keepdims", Attribute::Int(0))]);
    let smaller = draft.step("ReduceMin", &format!("{name}.smaller"), &[&size], with);
    let least = draft.number(&format!("{name}.least"), least);
    draft.plain("GreaterOrEqual", &format!("{name}.enough"), &[&smaller, &least])
}

/// Integers as floats.
pub(super) fn float(draft: &mut Draft<'_>, x: &str, name: &str) -> String {
    cast(draft, x, &format!("{name}.float"), DType::F32)
}

/// Values as f32 (ONNX's type 1) or i64 (7).
pub(super) fn cast(draft: &mut Draft<'_>, x: &str, name: &str, to: DType) -> String {
    let code = if to == DType::F32 { 1 } else { 7 };
    draft.step("Cast", name, &[x], attributes([("to", Attribute::Int(code))]))
}

/// The best `most` of scores `[k]`, best first: scores and places.
pub(super) fn best(draft: &mut Draft<'_>, scores: &str, name: &str, most: i64) -> [String; 2] {
    let count = draft.plain("Shape", &format!("{name}.count"), &[scores]);
    let most = draft.integers(&format!("{name}.most"), &[most]);
    let count = draft.plain("Min", &format!("{name}.kept"), &[&count, &most]);
    let names = [format!("{name}.best"), format!("{name}.places")];
    let with = attributes([("axis", Attribute::Int(0))]);
    let made = draft.steps("TopK", &[&names[0], &names[1]], &[scores, &count], with);
    [made[0].clone(), made[1].clone()]
}

/// What suppression takes: boxes `[groups, k, 4]`, scores `[groups, 1, k]`, the most kept of a group, the overlap allowed, the least score.
pub(super) struct Suppression {
    pub(super) most: i64,
    pub(super) overlap: f32,
    pub(super) least: Option<f32>,
}

/// The places of the boxes that no better one of their group overlaps too much: `[kept, 3]`, group first and place last.
pub(super) fn suppress(
    draft: &mut Draft<'_>,
    boxes: &str,
    scores: &str,
    name: &str,
    rule: &Suppression,
) -> String {
    let most = draft.integers(&format!("{name}.most"), &[rule.most]);
    let overlap = draft.constant(&format!("{name}.overlap"), Tensor::new(&[1], vec![rule.overlap]));
    let mut inputs = vec![boxes.to_string(), scores.to_string(), most, overlap];
    if let Some(least) = rule.least {
        inputs.push(draft.constant(&format!("{name}.least"), Tensor::new(&[1], vec![least])));
    }
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    draft.plain("NonMaxSuppression", name, &inputs)
}

/// One column of a matrix of integers, as a list.
pub(super) fn column(draft: &mut Draft<'_>, matrix: &str, name: &str, at: i64) -> String {
    let at = draft.constant(&format!("{name}.column"), Tensor::scalar(at));
    draft.along("Gather", name, &[matrix, &at], 1)
}
