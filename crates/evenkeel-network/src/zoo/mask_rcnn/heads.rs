//! What is said of regions: each is cut out of the level of the pyramid that fits its size, as a small map, and goes through the box head
//! (which class, and a better box for each class) or the mask head (a 28x28 mask for each class).
//!
//! A region of side s (the root of its area) belongs to level floor(4 + log2(s / 224)) of 2 to 5, so the bounds between levels are at 112, 224 and 448
//! pixels.

use super::super::blueprint::attributes;
use super::super::draft::Draft;
use super::super::layers::Conv;
use super::super::resnet::EPSILON;
use super::{CHANNELS, Variant, boxes};
use crate::op::Attribute;
use crate::tensor::Tensor;

/// Sides from which the next level takes over. The small part less is torchvision's guard against rounding.
fn bounds() -> [f32; 3] {
    [112.0, 224.0, 448.0].map(|side: f64| (side * (-1e-6f64).exp2()) as f32)
}

const REPRESENTATION: usize = 1024;
const BOX_SIDE: usize = 7;
const MASK_SIDE: usize = 14;

/// Class scores `[k, classes]` and deltas `[k, 4 * classes]` of regions `[k, 4]`.
pub(super) fn boxes(
    draft: &mut Draft<'_>,
    net: &Variant,
    maps: &[String],
    (regions, classes): (&str, usize),
) -> (String, String) {
    let mut x = pool(draft, maps, regions, "box_pool", BOX_SIDE);
    let cells = CHANNELS * BOX_SIDE * BOX_SIDE;
    if net.second {
        x = convolved(draft, net, &x, "roi_heads.box_head");
        let flat = draft.flat(&x, "box_head.flat");
        x = draft.linear(&flat, "roi_heads.box_head.5", cells, REPRESENTATION);
        x = draft.relu(&x, "box_head.relu");
    } else {
        x = draft.flat(&x, "box_head.flat");
        for (path, inputs) in [("fc6", cells), ("fc7", REPRESENTATION)] {
            x = draft.linear(&x, &format!("roi_heads.box_head.{path}"), inputs, REPRESENTATION);
            x = draft.relu(&x, "box_head.relu");
        }
    }
    let scores = draft.linear(&x, "roi_heads.box_predictor.cls_score", REPRESENTATION, classes);
    let deltas = draft.linear(&x, "roi_heads.box_predictor.bbox_pred", REPRESENTATION, classes * 4);
    (scores, deltas)
}

/// Mask logits `[k, classes, 28, 28]` of regions `[k, 4]`.
pub(super) fn masks(
    draft: &mut Draft<'_>,
    net: &Variant,
    maps: &[String],
    (regions, classes): (&str, usize),
) -> String {
    let x = pool(draft, maps, regions, "mask_pool", MASK_SIDE);
    let x = convolved(draft, net, &x, "roi_heads.mask_head");
    let path = "roi_heads.mask_predictor.conv5_mask";
    let weight = draft.weight(&format!("{path}.weight"), &[CHANNELS, CHANNELS, 2, 2]);
    let bias = draft.weight(&format!("{path}.bias"), &[CHANNELS]);
    let with =
        attributes([("kernel_shape", Attribute::Ints(vec![2; 2])), ("strides", Attribute::Ints(vec![2; 2]))]);
    let x = draft.step("ConvTranspose", path, &[&x, &weight, &bias], with);
    let x = draft.relu(&x, "mask_predictor.relu");
    draft.conv(&x, "roi_heads.mask_predictor.mask_fcn_logits", Conv::new(CHANNELS, classes, 1).bias())
}

/// Four convolutions, each with a ReLU.
fn convolved(draft: &mut Draft<'_>, net: &Variant, x: &str, path: &str) -> String {
    let mut x = x.to_string();
    for i in 0..4 {
        let conv = Conv::new(CHANNELS, CHANNELS, 3);
        let new = format!("{path}.{i}.0");
        if net.second {
            x = draft.conv(&x, &new, conv);
            x = draft.norm(&x, &format!("{path}.{i}.1"), CHANNELS, EPSILON);
        } else {
            let path = draft.either(net.coco, &format!("{path}.mask_fcn{}", i + 1), &new);
            x = draft.conv(&x, &path, conv.bias());
        }
        x = draft.relu(&x, &format!("{path}.{i}"));
    }
    x
}

/// Each region as a map `[k, c, side, side]`, from the level that fits its size.
fn pool(draft: &mut Draft<'_>, maps: &[String], regions: &str, name: &str, side: usize) -> String {
    let [low, high] = boxes::halves(draft, regions, &format!("{name}.corners"));
    let extent = draft.plain("Sub", &format!("{name}.extent"), &[&high, &low]);
    let with = attributes([("axes", Attribute::Ints(vec![-1])), ("keepdims", Attribute::Int(0))]);
    let area = draft.step("ReduceProd", &format!("{name}.area"), &[&extent], with);
    let length = draft.plain("Sqrt", &format!("{name}.length"), &[&area]);
    // For each bound, whether the region is at least as large.
    let reached = bounds().map(|bound| {
        let bound = draft.number(&format!("{name}.bound"), bound);
        draft.plain("GreaterOrEqual", &format!("{name}.reached"), &[&length, &bound])
    });
    let (mut pooled, mut places) = (Vec::new(), Vec::new());
    for (level, map) in maps.iter().take(4).enumerate() {
        let name = format!("{name}.{level}");
        let below = (level < 3).then(|| draft.plain("Not", &format!("{name}.below"), &[&reached[level]]));
        let here = match (level.checked_sub(1).map(|bound| &reached[bound]), below) {
            (Some(reached), Some(below)) => draft.plain("And", &format!("{name}.here"), &[reached, &below]),
            (Some(reached), None) => reached.clone(),
            (None, below) => below.unwrap_or_default(),
        };
        let place = draft.plain("NonZero", &format!("{name}.nonzero"), &[&here]);
        let first = draft.integers(&format!("{name}.first"), &[0]);
        let place = draft.plain("Squeeze", &format!("{name}.places"), &[&place, &first]);
        let of_level = draft.along("Gather", &format!("{name}.regions"), &[regions, &place], 0);
        // All of the one image.
        let image = draft.plain("Sub", &format!("{name}.image"), &[&place, &place]);
        let with = attributes([
            ("output_height", Attribute::Int(side as i64)),
            ("output_width", Attribute::Int(side as i64)),
            ("sampling_ratio", Attribute::Int(2)),
            ("spatial_scale", Attribute::Float(0.25 / (1 << level) as f32)),
            ("coordinate_transformation_mode", Attribute::Text("output_half_pixel".into())),
        ]);
        pooled.push(draft.step("RoiAlign", &name, &[map, &of_level, &image], with));
        places.push(place);
    }
    in_order(draft, &pooled, &places, name)
}

/// Rows that were taken from `places`, put back where they came from.
fn in_order(draft: &mut Draft<'_>, rows: &[String], places: &[String], name: &str) -> String {
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    let rows = draft.along("Concat", &format!("{name}.rows"), &rows, 0);
    let places = draft.along("Concat", &format!("{name}.places"), &places, 0);
    let count = draft.plain("Size", &format!("{name}.count"), &[&places]);
    let (zero, one) = (
        draft.constant(&format!("{name}.from"), Tensor::scalar(0i64)),
        draft.constant(&format!("{name}.by"), Tensor::scalar(1i64)),
    );
    let numbers = draft.plain("Range", &format!("{name}.numbers"), &[&zero, &count, &one]);
    let back = draft.along("ScatterElements", &format!("{name}.back"), &[&places, &places, &numbers], 0);
    draft.along("Gather", name, &[&rows, &back], 0)
}
