//! Dilated residual networks with the names of their authors' code: a 7x7 stem and eight levels of 16, 32, 64, 128, 256, 512, 512, 512 channels,
//! three of them halving the size, then dilations 2 and 4, and two last levels without residuals that smooth the dilations out.
//!
//! Variant C has residual blocks in levels 1, 2, 7 and 8, variant D plain convolutions. As a classifier the stages are `layer0` to
//! `layer8`, and `fc` is a 1x1 convolution on the mean of the map. As a segmenter they are the children `base.0` onwards, scored by `seg` at
//! an eighth of the size and upsampled by the transposed convolution `up`, one 16x16 filter a class.

use super::IMAGE;
use super::blueprint::attributes;
use super::draft::Draft;
use super::layers::Conv;
use super::resnet::{EPSILON, convolutions};
use crate::op::Attribute;

const CHANNELS: [usize; 8] = [16, 32, 64, 128, 256, 512, 512, 512];
const IMAGENET_CLASSES: usize = 1000;
const CITYSCAPES_CLASSES: usize = 19;

/// What tells one from another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drn {
    /// Blocks in each level.
    pub(super) blocks: [usize; 8],
    /// Levels 3 to 6 have blocks of three convolutions with four times the channels.
    pub(super) bottleneck: bool,
    /// Residual blocks instead of plain convolutions at both ends.
    pub(super) variant_c: bool,
    /// With `base`, `seg` and `up` instead of `fc`.
    pub(super) segments: bool,
}

/// One level.
#[derive(Clone, Copy)]
struct Level {
    planes: usize,
    blocks: usize,
    stride: usize,
    dilation: usize,
    bottleneck: bool,
    residual: bool,
}

impl Drn {
    fn level(&self, number: usize) -> Level {
        Level {
            planes: CHANNELS[number - 1],
            blocks: self.blocks[number - 1],
            stride: if (2..=4).contains(&number) { 2 } else { 1 },
            dilation: [1, 1, 1, 1, 2, 4, 2, 1][number - 1],
            bottleneck: self.bottleneck && (3..=6).contains(&number),
            residual: number < 7,
        }
    }

    /// The module of a level. Among a segmenter's children, variant C has its stem's convolution, norm and activation before the levels.
    fn path(&self, number: usize) -> String {
        match (self.segments, self.variant_c) {
            (false, _) => format!("layer{number}"),
            (true, false) => format!("base.{number}"),
            (true, true) => format!("base.{}", number + 2),
        }
    }
}

/// A classifier or segmenter.
pub(super) fn draw(draft: &mut Draft<'_>, net: &Drn) {
    let features = levels(draft, net);
    if net.segments {
        let classes = draft.extent("seg.weight", 0, CITYSCAPES_CLASSES);
        let scores = draft.conv(&features, "seg", Conv::new(CHANNELS[7], classes, 1).bias());
        let filters = draft.weight("up.weight", &[classes, 1, 16, 16]);
        let with = attributes([
            ("kernel_shape", Attribute::Ints(vec![16; 2])),
            ("strides", Attribute::Ints(vec![8; 2])),
            ("pads", Attribute::Ints(vec![4; 4])),
            ("group", Attribute::Int(classes as i64)),
        ]);
        let scores = draft.step("ConvTranspose", "up", &[&scores, &filters], with);
        draft.logits(&scores, 4);
    } else {
        let classes = draft.extent("fc.weight", 0, IMAGENET_CLASSES);
        let pooled = draft.global_mean(&features, "avgpool");
        let scores = draft.conv(&pooled, "fc", Conv::new(CHANNELS[7], classes, 1).bias());
        let flat = draft.flat(&scores, "flatten");
        draft.logits(&flat, 2);
    }
}

fn levels(draft: &mut Draft<'_>, net: &Drn) -> String {
    let (conv, norm) = match (net.segments, net.variant_c) {
        (false, true) => ("conv1", "bn1"),
        (false, false) => ("layer0.0", "layer0.1"),
        (true, true) => ("base.0", "base.1"),
        (true, false) => ("base.0.0", "base.0.1"),
    };
    let x = draft.conv(IMAGE, conv, Conv::new(3, CHANNELS[0], 7));
    let x = draft.norm(&x, norm, CHANNELS[0], EPSILON);
    let mut x = draft.relu(&x, "stem");
    let mut inputs = CHANNELS[0];
    for number in 1..=8 {
        let (level, path) = (net.level(number), net.path(number));
        let plain = !net.variant_c && !(3..=6).contains(&number);
        x = if plain {
            convolved(draft, &x, &path, inputs, level)
        } else {
            residuals(draft, &x, &path, inputs, level)
        };
        inputs = if level.bottleneck { level.planes * 4 } else { level.planes };
    }
    x
}

/// Plain convolutions, each with norm and ReLU.
fn convolved(draft: &mut Draft<'_>, x: &str, path: &str, inputs: usize, level: Level) -> String {
    let (mut x, mut inputs) = (x.to_string(), inputs);
    for i in 0..level.blocks {
        let stride = if i == 0 { level.stride } else { 1 };
        let conv = Conv::new(inputs, level.planes, 3).stride(stride).dilation(level.dilation);
        x = draft.conv(&x, &format!("{path}.{}", 3 * i), conv);
        x = draft.norm(&x, &format!("{path}.{}", 3 * i + 1), level.planes, EPSILON);
        let out = if i + 1 == level.blocks { path.to_string() } else { format!("{path}.{}", 3 * i + 2) };
        x = draft.relu(&x, &out);
        inputs = level.planes;
    }
    x
}

/// Blocks of two or three convolutions, added to their input where the level has residuals.
fn residuals(draft: &mut Draft<'_>, x: &str, path: &str, inputs: usize, level: Level) -> String {
    let Level { planes, dilation, .. } = level;
    let outputs = if level.bottleneck { planes * 4 } else { planes };
    let (mut x, mut inputs) = (x.to_string(), inputs);
    for i in 0..level.blocks {
        let block = format!("{path}.{i}");
        let stride = if i == 0 { level.stride } else { 1 };
        let middle = |inputs| Conv::new(inputs, planes, 3).stride(stride).dilation(dilation);
        let convs = if level.bottleneck {
            vec![Conv::new(inputs, planes, 1), middle(planes), Conv::new(planes, outputs, 1)]
        } else {
            vec![middle(inputs), Conv::new(planes, planes, 3).dilation(dilation)]
        };
        let mut sum = convolutions(draft, &x, &block, &convs, EPSILON);
        if level.residual {
            let shortcut = if stride != 1 || inputs != outputs {
                let conv = Conv::new(inputs, outputs, 1).stride(stride);
                let shortcut = draft.conv(&x, &format!("{block}.downsample.0"), conv);
                draft.norm(&shortcut, &format!("{block}.downsample.1"), outputs, EPSILON)
            } else {
                x
            };
            sum = draft.plain("Add", &format!("{block}.add"), &[&sum, &shortcut]);
        }
        x = draft.relu(&sum, if i + 1 == level.blocks { path } else { &block });
        inputs = outputs;
    }
    x
}
