//! MobileNetV2 as the trunk of DeepLabV3+, with those programs' names: `backbone.low_level_features.0` to `.3`, then `backbone.high_level_features.4`
//! to `.17`. A block pads its input before it widens it, so that the border sees the widened zeros. The two programs differ in the stem's padding,
//! in how a block's layers are numbered, and in where a dilation begins.

use super::IMAGE;
use super::blueprint::attributes;
use super::draft::Draft;
use super::layers::Conv;
use super::resnet::EPSILON;
use crate::op::Attribute;

/// Widening, channels, blocks and stride of each stage.
const STAGES: [(usize, usize, usize, usize); 7] = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
];
/// The block whose map is the early one.
const EARLY: usize = 3;

/// Whose MobileNetV2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// VainF's: no padding in the stem, each convolution a module of its own, the first block of a dilated stage as before.
    VainF,
    /// jfzhang's: a padded stem, all layers of a block in one list, the stage after a dilated one dilated from its first block.
    Jfzhang,
}

/// One inverted residual: widen, filter each channel, narrow.
#[derive(Clone, Copy)]
struct Block {
    inputs: usize,
    outputs: usize,
    widening: usize,
    stride: usize,
    dilation: usize,
    origin: Origin,
}

/// An early map and the last one, each with its channels. Strides beyond `output_stride` become dilations.
pub(super) fn trunk(
    draft: &mut Draft<'_>,
    output_stride: usize,
    origin: Origin,
) -> ((String, usize), (String, usize)) {
    // The same weights once more, which nobody runs.
    draft.ignore("backbone.features.");
    let path = |i: usize| {
        let part = if i <= EARLY { "low" } else { "high" };
        format!("backbone.{part}_level_features.{i}")
    };
    let margin = usize::from(origin == Origin::Jfzhang);
    let stem = (format!("{}.0", path(0)), format!("{}.1", path(0)));
    let mut x = conv6(draft, IMAGE, (&stem.0, &stem.1), Conv::new(3, 32, 3).stride(2).padding(margin));
    let (mut inputs, mut reached, mut dilation, mut number) = (32, 2, 1, 0);
    let mut early = (x.clone(), inputs);
    for (widening, outputs, blocks, stride) in STAGES {
        let before = dilation;
        let mut first = stride;
        if reached == output_stride {
            dilation *= stride;
            first = 1;
        } else {
            reached *= stride;
        }
        for i in 0..blocks {
            let stride = if i == 0 { first } else { 1 };
            let dilation = if i == 0 || origin == Origin::Jfzhang { before } else { dilation };
            number += 1;
            let block = Block { inputs, outputs, widening, stride, dilation, origin };
            x = inverted(draft, &x, &path(number), block);
            inputs = outputs;
            if number == EARLY {
                early = (x.clone(), outputs);
            }
        }
    }
    (early, (x, inputs))
}

/// A convolution, its norm, and a ReLU that stops at 6.
fn conv6(draft: &mut Draft<'_>, x: &str, (path, norm): (&str, &str), conv: Conv) -> String {
    let y = draft.conv(x, path, conv);
    let y = draft.norm(&y, norm, conv.outputs, EPSILON);
    let low = draft.number(&format!("{path}.low"), 0.0);
    let high = draft.number(&format!("{path}.high"), 6.0);
    draft.plain("Clip", &format!("{path}.clipped"), &[&y, &low, &high])
}

fn inverted(draft: &mut Draft<'_>, x: &str, path: &str, block: Block) -> String {
    let Block { inputs, outputs, widening, stride, dilation, origin } = block;
    let wide = inputs * widening;
    let margin = dilation as i64;
    let pads = draft.integers(&format!("{path}.pads"), &[0, 0, margin, margin, 0, 0, margin, margin]);
    let zero = draft.number(&format!("{path}.zero"), 0.0);
    let with = attributes([("mode", Attribute::Text("constant".into()))]);
    let mut y = draft.step("Pad", &format!("{path}.pad"), &[x, &pads, &zero], with);
    // Names of the convolutions and their norms: widening, filtering, narrowing.
    let first = usize::from(widening == 1);
    let names: [(String, String); 3] = [0, 1, 2].map(|k: usize| {
        let place = k.wrapping_sub(first);
        match (origin, k) {
            (Origin::VainF, 2) => (place.to_string(), (place + 1).to_string()),
            (Origin::VainF, _) => (format!("{place}.0"), format!("{place}.1")),
            (Origin::Jfzhang, _) => {
                (place.wrapping_mul(3).to_string(), place.wrapping_mul(3).wrapping_add(1).to_string())
            }
        }
    });
    let [widen, filter, narrow] =
        names.map(|(conv, norm)| (format!("{path}.conv.{conv}"), format!("{path}.conv.{norm}")));
    if widening != 1 {
        y = conv6(draft, &y, (&widen.0, &widen.1), Conv::new(inputs, wide, 1));
    }
    let each = Conv::new(wide, wide, 3).stride(stride).dilation(dilation).depthwise().padding(0);
    y = conv6(draft, &y, (&filter.0, &filter.1), each);
    y = draft.conv(&y, &narrow.0, Conv::new(wide, outputs, 1));
    y = draft.norm(&y, &narrow.1, outputs, EPSILON);
    let residual = stride == 1 && inputs == outputs;
    if residual { draft.plain("Add", path, &[x, &y]) } else { y }
}
