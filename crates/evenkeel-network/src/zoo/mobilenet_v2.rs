//! MobileNetV2 as the trunk of DeepLabV3+, with that code's names: `backbone.low_level_features.0` to `.3`, then `backbone.high_level_features.4`
//! to `.17`. The stem has no padding, and a block pads its input before it widens it, so that the border sees the widened zeros.

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

/// One inverted residual: widen, filter each channel, narrow.
#[derive(Clone, Copy)]
struct Block {
    inputs: usize,
    outputs: usize,
    widening: usize,
    stride: usize,
    dilation: usize,
}

/// An early map and the last one, each with its channels. Strides beyond `output_stride` become dilations.
pub(super) fn trunk(draft: &mut Draft<'_>, output_stride: usize) -> ((String, usize), (String, usize)) {
    let path = |i: usize| {
        let part = if i <= EARLY { "low" } else { "high" };
        format!("backbone.{part}_level_features.{i}")
    };
    let mut x = conv6(draft, IMAGE, &path(0), Conv::new(3, 32, 3).stride(2).padding(0));
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
            let (stride, dilation) = if i == 0 { (first, before) } else { (1, dilation) };
            number += 1;
            x = inverted(draft, &x, &path(number), Block { inputs, outputs, widening, stride, dilation });
            inputs = outputs;
            if number == EARLY {
                early = (x.clone(), outputs);
            }
        }
    }
    (early, (x, inputs))
}

/// A convolution, its norm, and a ReLU that stops at 6.
fn conv6(draft: &mut Draft<'_>, x: &str, path: &str, conv: Conv) -> String {
    let y = draft.conv(x, &format!("{path}.0"), conv);
    let y = draft.norm(&y, &format!("{path}.1"), conv.outputs, EPSILON);
    let low = draft.number(&format!("{path}.low"), 0.0);
    let high = draft.number(&format!("{path}.high"), 6.0);
    draft.plain("Clip", &format!("{path}.2"), &[&y, &low, &high])
}

fn inverted(draft: &mut Draft<'_>, x: &str, path: &str, block: Block) -> String {
    let Block { inputs, outputs, widening, stride, dilation } = block;
    let wide = inputs * widening;
    let margin = dilation as i64;
    let pads = draft.integers(&format!("{path}.pads"), &[0, 0, margin, margin, 0, 0, margin, margin]);
    let zero = draft.number(&format!("{path}.zero"), 0.0);
    let with = attributes([("mode", Attribute::Text("constant".into()))]);
    let mut y = draft.step("Pad", &format!("{path}.pad"), &[x, &pads, &zero], with);
    let mut next = 0;
    if widening != 1 {
        y = conv6(draft, &y, &format!("{path}.conv.0"), Conv::new(inputs, wide, 1));
        next = 1;
    }
    let each = Conv::new(wide, wide, 3).stride(stride).dilation(dilation).depthwise().padding(0);
    y = conv6(draft, &y, &format!("{path}.conv.{next}"), each);
    y = draft.conv(&y, &format!("{path}.conv.{}", next + 1), Conv::new(wide, outputs, 1));
    let residual = stride == 1 && inputs == outputs;
    let norm = format!("{path}.conv.{}", next + 2);
    y = draft.norm(&y, &norm, outputs, EPSILON);
    if residual { draft.plain("Add", path, &[x, &y]) } else { y }
}
