//! ResNets for small images, of two schools: three stages of 16, 32 and 64 channels whose shortcuts drop every other pixel and pad
//! channels with zeros (He et al.'s option A), and four stages of 64 to 512 channels with convolved shortcuts. Both have a 3x3 stem, no
//! pooling before the end, and a classifier called `linear`.

use super::IMAGE;
use super::blueprint::attributes;
use super::draft::Draft;
use super::layers::Conv;
use super::resnet::{EPSILON, convolutions};
use crate::op::Attribute;
use crate::tensor::Tensor;

const DEFAULT_CLASSES: usize = 10;

/// What tells one from another.
#[derive(Clone, Copy, Debug)]
pub(super) struct CifarResNet {
    /// Blocks in each stage.
    pub(super) blocks: &'static [usize],
    /// Channels of the first stage; each next has twice as many.
    pub(super) channels: usize,
    /// Blocks of three convolutions with four times the channels.
    pub(super) bottleneck: bool,
    /// Shortcuts have weights.
    pub(super) convolved: bool,
}

/// A classifier.
pub(super) fn draw(draft: &mut Draft<'_>, net: &CifarResNet) {
    let x = draft.conv(IMAGE, "conv1", Conv::new(3, net.channels, 3));
    let x = draft.norm(&x, "bn1", net.channels, EPSILON);
    let mut x = draft.relu(&x, "relu");
    let mut inputs = net.channels;
    for (stage, &blocks) in net.blocks.iter().enumerate() {
        let planes = net.channels << stage;
        let name = format!("layer{}", stage + 1);
        for i in 0..blocks {
            let stride = if i == 0 && stage > 0 { 2 } else { 1 };
            let out = if i + 1 == blocks { name.clone() } else { format!("{name}.{i}") };
            x = residual(draft, &x, (&format!("{name}.{i}"), &out), net, (inputs, planes, stride));
            inputs = if net.bottleneck { planes * 4 } else { planes };
        }
    }
    let pooled = draft.global_mean(&x, "avgpool");
    let flat = draft.flat(&pooled, "flatten");
    let classes = draft.extent("linear.weight", 0, DEFAULT_CLASSES);
    let logits = draft.linear(&flat, "linear", inputs, classes);
    draft.logits(&logits, 2);
}

fn residual(
    draft: &mut Draft<'_>,
    x: &str,
    (path, out): (&str, &str),
    net: &CifarResNet,
    (inputs, planes, stride): (usize, usize, usize),
) -> String {
    let outputs = if net.bottleneck { planes * 4 } else { planes };
    let branch = if net.bottleneck {
        let three = [
            Conv::new(inputs, planes, 1),
            Conv::new(planes, planes, 3).stride(stride),
            Conv::new(planes, outputs, 1),
        ];
        convolutions(draft, x, path, &three, EPSILON)
    } else {
        let two = [Conv::new(inputs, planes, 3).stride(stride), Conv::new(planes, planes, 3)];
        convolutions(draft, x, path, &two, EPSILON)
    };
    let shortcut = if stride == 1 && inputs == outputs {
        x.to_string()
    } else if net.convolved {
        let x = draft.conv(x, &format!("{path}.shortcut.0"), Conv::new(inputs, outputs, 1).stride(stride));
        draft.norm(&x, &format!("{path}.shortcut.1"), outputs, EPSILON)
    } else {
        thinned(draft, x, &format!("{path}.shortcut"), outputs - inputs)
    };
    let sum = draft.plain("Add", &format!("{path}.add"), &[&branch, &shortcut]);
    draft.relu(&sum, out)
}

/// Every other pixel, and `more` channels of zeros, half of them before and half behind.
fn thinned(draft: &mut Draft<'_>, x: &str, name: &str, more: usize) -> String {
    let starts = draft.integers(&format!("{name}.starts"), &[0, 0]);
    let ends = draft.integers(&format!("{name}.ends"), &[i64::MAX, i64::MAX]);
    let axes = draft.integers(&format!("{name}.axes"), &[2, 3]);
    let steps = draft.integers(&format!("{name}.steps"), &[2, 2]);
    let x = draft.plain("Slice", &format!("{name}.slice"), &[x, &starts, &ends, &axes, &steps]);
    let half = (more / 2) as i64;
    let pads = draft.integers(&format!("{name}.pads"), &[0, half, 0, 0, 0, half, 0, 0]);
    let zero = draft.constant(&format!("{name}.zero"), Tensor::scalar(0f32));
    let with = attributes([("mode", Attribute::Text("constant".into()))]);
    draft.step("Pad", name, &[&x, &pads, &zero], with)
}
