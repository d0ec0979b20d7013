//! The feature pyramid: each stage's map narrowed to the same channels, plus the coarser level's doubled in size, smoothed.

use super::super::blueprint::attributes;
use super::super::draft::Draft;
use super::super::layers::Conv;
use super::super::resnet::EPSILON;
use super::{CHANNELS, Variant};
use crate::op::Attribute;

/// The maps, finest first; the fifth drops every other pixel of the fourth.
pub(super) fn draw(draft: &mut Draft<'_>, net: &Variant, stages: &[String; 4]) -> Vec<String> {
    let mut maps = vec![String::new(); 4];
    let mut coarser: Option<String> = None;
    for level in (0..4).rev() {
        let conv = Conv::new(CHANNELS << level, CHANNELS, 1);
        let mut inner = block(draft, net, &stages[level], &format!("inner_blocks.{level}"), conv);
        if let Some(coarser) = coarser {
            let doubled = enlarged(draft, &coarser, &inner, &format!("fpn.doubled.{level}"));
            inner = draft.plain("Add", &format!("fpn.inner.{level}"), &[&inner, &doubled]);
        }
        let conv = Conv::new(CHANNELS, CHANNELS, 3);
        let map = block(draft, net, &inner, &format!("layer_blocks.{level}"), conv);
        maps[level] = draft.plain("Identity", &format!("fpn.{level}"), &[&map]);
        coarser = Some(inner);
    }
    let last = draft.max_pool(&maps[3], "fpn.pool", (1, 2, 0));
    maps.push(last);
    maps
}

/// A convolution with bias, or without one and with a norm.
fn block(draft: &mut Draft<'_>, net: &Variant, x: &str, path: &str, conv: Conv) -> String {
    let path = format!("backbone.fpn.{path}");
    if net.second {
        let y = draft.conv(x, &format!("{path}.0"), conv);
        return draft.norm(&y, &format!("{path}.1"), conv.outputs, EPSILON);
    }
    let path = draft.either(net.coco, &path, &format!("{path}.0"));
    draft.conv(x, &path, conv.bias())
}

/// `x` at the size of `like`, each pixel repeated.
fn enlarged(draft: &mut Draft<'_>, x: &str, like: &str, name: &str) -> String {
    let shape = draft.plain("Shape", &format!("{name}.size"), &[like]);
    let text = |value: &str| Attribute::Text(value.into());
    let with = attributes([
        ("mode", text("nearest")),
        ("coordinate_transformation_mode", text("asymmetric")),
        ("nearest_mode", text("floor")),
    ]);
    draft.step("Resize", name, &[x, "", "", &shape], with)
}
