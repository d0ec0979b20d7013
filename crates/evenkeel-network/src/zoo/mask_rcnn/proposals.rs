//! Region proposals: three anchors at every pixel of every level, scored and refined by a small head; of each level the best thousand, without those
//! a better one overlaps by more than 0.7; of all levels the best thousand.
//!
//! `rpn.objectness.{level}` `[n, anchors]` and `rpn.deltas.{level}` `[n, anchors, 4]` are the head's answers in the order of `rpn.anchors.{level}`
//! `[anchors, 4]`; `proposals` `[k, 4]` are the regions.

use super::super::blueprint::attributes;
use super::super::draft::Draft;
use super::super::layers::Conv;
use super::boxes::{self, Suppression};
use super::{CHANNELS, Sizes, Variant};
use crate::op::Attribute;
use crate::tensor::Tensor;

/// The side of each level's square anchor.
const SIDES: [f32; 5] = [32.0, 64.0, 128.0, 256.0, 512.0];
/// Height over width of the three anchors.
const RATIOS: [f32; 3] = [0.5, 1.0, 2.0];
/// Regions kept of a level, and of all.
const MOST: i64 = 1000;
const OVERLAP: f32 = 0.7;
/// Below any logit.
const LEAST_LOGIT: f32 = -1e30;
/// Sides below this make no region.
const LEAST_SIDE: f32 = 1e-3;

/// The regions, best first: `[k, 4]`.
pub(super) fn draw(draft: &mut Draft<'_>, net: &Variant, maps: &[String], sizes: &Sizes) -> String {
    let mut kept = Vec::new();
    for (level, map) in maps.iter().enumerate() {
        let (objectness, deltas) = head(draft, net, map, level);
        let anchors = anchors(draft, map, level, sizes);
        kept.push(of_level(draft, level, [&objectness, &deltas, &anchors], sizes));
    }
    let join = |draft: &mut Draft<'_>, i: usize, name: &str| {
        let parts: Vec<&str> = kept.iter().map(|pair| &*pair[i]).collect();
        draft.along("Concat", name, &parts, 0)
    };
    let (regions, scores) = (join(draft, 0, "rpn.regions"), join(draft, 1, "rpn.scores"));
    let [_, places] = boxes::best(draft, &scores, "rpn.all", MOST);
    draft.along("Gather", "proposals", &[&regions, &places], 0)
}

/// What the head says of a level: objectness and deltas of each anchor.
fn head(draft: &mut Draft<'_>, net: &Variant, map: &str, level: usize) -> (String, String) {
    let mut x = map.to_string();
    for depth in 0..if net.second { 2 } else { 1 } {
        let path = format!("rpn.head.conv.{depth}.0");
        let path = draft.either(net.coco, "rpn.head.conv", &path);
        x = draft.conv(&x, &path, Conv::new(CHANNELS, CHANNELS, 3).bias());
        x = draft.relu(&x, "rpn.head.relu");
    }
    let anchors = RATIOS.len();
    let objectness = draft.conv(&x, "rpn.head.cls_logits", Conv::new(CHANNELS, anchors, 1).bias());
    let deltas = draft.conv(&x, "rpn.head.bbox_pred", Conv::new(CHANNELS, 4 * anchors, 1).bias());
    let mut by_pixel = |x: &str, name: String, shape: &[i64]| {
        let with = attributes([("perm", Attribute::Ints(vec![0, 2, 3, 1]))]);
        let x = draft.step("Transpose", &format!("{name}.by_pixel"), &[x], with);
        let shape = draft.integers(&format!("{name}.shape"), shape);
        draft.plain("Reshape", &name, &[&x, &shape])
    };
    let objectness = by_pixel(&objectness, format!("rpn.objectness.{level}"), &[0, -1]);
    let deltas = by_pixel(&deltas, format!("rpn.deltas.{level}"), &[0, -1, 4]);
    (objectness, deltas)
}

/// The anchors around the origin: each side over ratio, rounded.
fn cell(level: usize) -> Vec<f32> {
    let corners = RATIOS.iter().flat_map(|ratio| {
        let (height, width) = (ratio.sqrt(), 1.0 / ratio.sqrt());
        let (w, h) = (width * SIDES[level], height * SIDES[level]);
        [-w, -h, w, h].map(|corner| (corner / 2.0).round_ties_even())
    });
    corners.collect()
}

/// All anchors of a level: the cell at every pixel, as far apart as the padded image holds pixels for the map.
fn anchors(draft: &mut Draft<'_>, map: &str, level: usize, sizes: &Sizes) -> String {
    let name = format!("rpn.anchors.{level}");
    let with = attributes([("start", Attribute::Int(2)), ("end", Attribute::Int(4))]);
    let grid = draft.step("Shape", &format!("{name}.grid"), &[map], with);
    let stride = draft.plain("Div", &format!("{name}.stride"), &[&sizes.padded, &grid]);
    let cell = Tensor::new(&[1, 1, RATIOS.len(), 4], cell(level));
    let mut all = draft.constant(&format!("{name}.cell"), cell);
    for (axis, shape, moved) in
        [(0, [-1, 1, 1, 1], [0f32, 1.0, 0.0, 1.0]), (1, [1, -1, 1, 1], [1.0, 0.0, 1.0, 0.0])]
    {
        let at = draft.constant(&format!("{name}.axis"), Tensor::scalar(axis));
        let count = draft.along("Gather", &format!("{name}.count"), &[&grid, &at], 0);
        let step = draft.along("Gather", &format!("{name}.step"), &[&stride, &at], 0);
        let zero = draft.constant(&format!("{name}.from"), Tensor::scalar(0i64));
        let one = draft.constant(&format!("{name}.by"), Tensor::scalar(1i64));
        let shifts = draft.plain("Range", &format!("{name}.range"), &[&zero, &count, &one]);
        let shifts = draft.plain("Mul", &format!("{name}.shifts"), &[&shifts, &step]);
        let shape = draft.integers(&format!("{name}.shape"), &shape);
        let shifts = draft.plain("Reshape", &format!("{name}.line"), &[&shifts, &shape]);
        let shifts = boxes::float(draft, &shifts, &name);
        let moved = draft.constant(&format!("{name}.moved"), Tensor::new(&[4], moved.to_vec()));
        let shifts = draft.plain("Mul", &format!("{name}.corners"), &[&shifts, &moved]);
        all = draft.plain("Add", &format!("{name}.sum"), &[&all, &shifts]);
    }
    let shape = draft.integers(&format!("{name}.flat"), &[-1, 4]);
    draft.plain("Reshape", &name, &[&all, &shape])
}

/// The regions of a level and their scores.
fn of_level(
    draft: &mut Draft<'_>,
    level: usize,
    [objectness, deltas, anchors]: [&str; 3],
    sizes: &Sizes,
) -> [String; 2] {
    let name = format!("rpn.level.{level}");
    let first = draft.integers(&format!("{name}.image"), &[0]);
    let objectness = draft.plain("Squeeze", &format!("{name}.objectness"), &[objectness, &first]);
    let deltas = draft.plain("Squeeze", &format!("{name}.deltas"), &[deltas, &first]);
    let [best, places] = boxes::best(draft, &objectness, &name, MOST);
    let deltas = draft.along("Gather", &format!("{name}.moves"), &[&deltas, &places], 0);
    let anchors = draft.along("Gather", &format!("{name}.anchors"), &[anchors, &places], 0);
    let regions = boxes::decode(draft, &deltas, &anchors, &name, [1.0, 1.0]);
    let regions = boxes::clip(draft, &regions, &format!("{name}.clipped"), sizes);
    // Too small ones get a score no suppression lets through. Logits rank as probabilities do, without rounding to 1.
    let enough = boxes::large_enough(draft, &regions, &format!("{name}.sides"), LEAST_SIDE);
    let out = draft.number(&format!("{name}.out"), 2.0 * LEAST_LOGIT);
    let judged = draft.plain("Where", &format!("{name}.judged"), &[&enough, &best, &out]);
    let front = draft.integers(&format!("{name}.front"), &[0]);
    let fronts = draft.integers(&format!("{name}.fronts"), &[0, 1]);
    let grouped = draft.plain("Unsqueeze", &format!("{name}.group"), &[&regions, &front]);
    let judged = draft.plain("Unsqueeze", &format!("{name}.group_scores"), &[&judged, &fronts]);
    let rule = Suppression { most: MOST, overlap: OVERLAP, least: Some(LEAST_LOGIT) };
    let kept = boxes::suppress(draft, &grouped, &judged, &format!("{name}.nms"), &rule);
    let kept = boxes::column(draft, &kept, &format!("{name}.kept_places"), 2);
    [(&regions, "regions"), (&best, "kept_scores")]
        .map(|(values, part)| draft.along("Gather", &format!("{name}.{part}"), &[values, &kept], 0))
}
