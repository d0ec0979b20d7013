//! The networks we ship, as they are trained.
//!
//! The segmenter follows DRN: a stem to 1/8, then dilated residual blocks instead of further strides; thin branches at 1/4 and 1/2
//! bring back edges before the class scores. The instance segmenter has the same trunk and a head like YOLO's. The
//! classifier is a small residual network. Each names the tensor that views are compared on.

use crate::goal::{Goal, Task};
use crate::layer::conv::Conv;
use crate::net::{Net, Place};
use evenkeel::Random;

/// The tensor of class scores.
pub const SCORES: &str = "scores";
/// The map that views are compared on: the classifier's last before it is pooled, the instance segmenter's at a quarter of the size.
pub const FEATURES: &str = "features";
/// The instance segmenter's boxes.
pub const BOXES: &str = "boxes";
/// The instance segmenter's class scores.
pub const CLASSES: &str = "classes";
/// The instance segmenter's mask coefficients.
pub const COEFFICIENTS: &str = "coefficients";
/// The instance segmenter's prototypes.
pub const PROTOTYPES: &str = "prototypes";
/// How many prototypes there are.
pub const PROTOTYPE_COUNT: usize = 12;

/// How much rare classes of rendered scenes weigh in the loss: road, pavement, grass, building, fence, pole, sign, tree, person, car, sky.
const SCENE_WEIGHTS: [f32; 11] = [1.0, 1.1, 1.0, 1.0, 1.8, 2.0, 2.0, 1.0, 2.5, 1.3, 1.0];

/// How much each class of the rendered pictures weighs in the loss.
pub fn scene_weights(goal: &Goal) -> Vec<f32> {
    match goal.task {
        Task::Semantic => SCENE_WEIGHTS.to_vec(),
        _ => vec![1.0; goal.classes.len()],
    }
}

fn conv3(in_c: usize, out_c: usize, stride: usize, dilation: usize) -> Conv {
    Conv { in_c, out_c, kernel: 3, stride, dilation }
}

fn conv1(in_c: usize, out_c: usize, stride: usize) -> Conv {
    Conv { in_c, out_c, kernel: 1, stride, dilation: 1 }
}

/// Convolution, batch norm, ReLU.
fn plain(net: &mut Net, name: &str, from: Place, conv: Conv, random: &mut Random) -> Place {
    let raw = net.conv(&format!("{name}.conv"), from, conv, false, random);
    net.norm(&format!("{name}.norm"), raw, None, true)
}

/// Two convolutions and a skip, which gets a 1x1 convolution of its own where the shape changes.
fn residual(net: &mut Net, name: &str, from: Place, first: Conv, random: &mut Random) -> Place {
    let skip = if first.in_c != first.out_c || first.stride != 1 {
        let raw = net.conv(
            &format!("{name}.skip"),
            from,
            conv1(first.in_c, first.out_c, first.stride),
            false,
            random,
        );
        net.norm(&format!("{name}.skip_norm"), raw, None, false)
    } else {
        from
    };
    let inner = plain(net, &format!("{name}.a"), from, first, random);
    let second = conv3(first.out_c, first.out_c, 1, first.dilation);
    let raw = net.conv(&format!("{name}.b.conv"), inner, second, false, random);
    net.norm(&format!("{name}.b.norm"), raw, Some(skip), true)
}

/// What the segmenters share: a map of 48 channels at a quarter of the image's size, and one of 24 at half.
fn trunk(net: &mut Net, random: &mut Random) -> (Place, Place) {
    let at2 = plain(net, "stem", 0, conv3(3, 16, 2, 1), random);
    let at4 = plain(net, "level1", at2, conv3(16, 32, 2, 1), random);
    let at4 = residual(net, "level2", at4, conv3(32, 32, 1, 1), random);
    let mut at8 = residual(net, "level3", at4, conv3(32, 64, 2, 1), random);
    for (k, dilation) in [2, 4, 8].into_iter().enumerate() {
        at8 = residual(net, &format!("level{}", 4 + k), at8, conv3(64, 64, 1, dilation), random);
    }
    let deep = net.conv("narrow.conv", at8, conv1(64, 32, 1), false, random);
    let deep = net.norm("narrow.norm", deep, None, false);
    let deep = net.enlarge(deep, 2);
    let edge = net.conv("edge.conv", at4, conv1(32, 32, 1), false, random);
    let joint = net.norm("edge.norm", edge, Some(deep), true);
    let joint = residual(net, "joint", joint, conv3(32, 48, 1, 1), random);
    let deep = net.conv("narrower.conv", joint, conv1(48, 24, 1), false, random);
    let deep = net.norm("narrower.norm", deep, None, false);
    let deep = net.enlarge(deep, 2);
    let edge = net.conv("finer.conv", at2, conv1(16, 24, 1), false, random);
    let fine = net.norm("finer.norm", edge, Some(deep), true);
    (joint, plain(net, "fine", fine, conv3(24, 24, 1, 1), random))
}

/// The segmenter: scores at half the image's size. Sides must be multiples of eight.
pub fn segmenter(classes: usize, random: &mut Random) -> Net {
    let mut net = Net::new(3);
    let (_, fine) = trunk(&mut net, random);
    let scores = net.conv("seg", fine, conv1(24, classes, 1), true, random);
    net.name(scores, SCORES);
    net
}

/// The instance segmenter: at each cell of a quarter of the image's size a box (logarithms of the distances to its left, top, right
/// and lower side), class scores and mask coefficients; prototypes at half. Sides must be multiples of eight.
pub fn instances(classes: usize, random: &mut Random) -> Net {
    let mut net = Net::new(3);
    let (joint, fine) = trunk(&mut net, random);
    net.name(joint, FEATURES);
    let head = plain(&mut net, "head", joint, conv3(48, 48, 1, 1), random);
    let outputs =
        [(BOXES, head, 48, 4), (CLASSES, head, 48, classes), (COEFFICIENTS, head, 48, PROTOTYPE_COUNT)];
    for (name, from, in_c, out_c) in outputs.into_iter().chain([(PROTOTYPES, fine, 24, PROTOTYPE_COUNT)]) {
        let place = net.conv(name, from, conv1(in_c, out_c, 1), true, random);
        net.name(place, name);
    }
    // Boxes start out a few pixels large, and nothing is thought to be anything.
    net.fill_bias(BOXES, 2.0);
    net.fill_bias(CLASSES, -4.0);
    net
}

/// A compact DRN: ordinary 3x3 convolutions to 1/8 of the image's size at four times `width` channels, then residual blocks of dilation 1, 2, 2, 4
/// and 4, then dilation 2 and 1 without skips, so that the grid of the last dilation does not show. Sides must be multiples of eight.
pub fn compact(classes: usize, width: usize, random: &mut Random) -> Net {
    let mut net = Net::new(3);
    let wide = 4 * width;
    let at2 = plain(&mut net, "stem", 0, conv3(3, width, 2, 1), random);
    let at4 = residual(&mut net, "level1", at2, conv3(width, 2 * width, 2, 1), random);
    let mut at8 = residual(&mut net, "level2", at4, conv3(2 * width, wide, 2, 1), random);
    for (k, dilation) in [1, 2, 2, 4, 4].into_iter().enumerate() {
        at8 = residual(&mut net, &format!("level{}", 3 + k), at8, conv3(wide, wide, 1, dilation), random);
    }
    for (k, dilation) in [2, 1].into_iter().enumerate() {
        at8 = plain(&mut net, &format!("smooth{}", 1 + k), at8, conv3(wide, wide, 1, dilation), random);
    }
    let scores = net.conv("seg", at8, conv1(wide, classes, 1), true, random);
    net.name(scores, SCORES);
    net
}

/// The classifier: scores for the whole image from maps of `width` channels at half its size, twice and four times as many at 1/4 and 1/8.
/// Sides must be multiples of eight.
pub fn classifier(classes: usize, width: usize, random: &mut Random) -> Net {
    let mut net = Net::new(3);
    let at2 = plain(&mut net, "stem", 0, conv3(3, width, 2, 1), random);
    let at4 = residual(&mut net, "level1", at2, conv3(width, 2 * width, 2, 1), random);
    let at8 = residual(&mut net, "level2", at4, conv3(2 * width, 4 * width, 2, 1), random);
    let at8 = residual(&mut net, "level3", at8, conv3(4 * width, 4 * width, 1, 1), random);
    net.name(at8, FEATURES);
    let pooled = net.average(at8);
    let scores = net.conv("classes", pooled, conv1(4 * width, classes, 1), true, random);
    net.name(scores, SCORES);
    net
}

/// DRN-D-22: a 7x7 convolution and one of 3x3 at full size, then residual blocks to 1/8 and dilation 2 and 4, up to 512 channels. Sides must be
/// multiples of eight.
pub fn drn_d_22(classes: usize, random: &mut Random) -> Net {
    let mut net = Net::new(3);
    let stem = Conv { in_c: 3, out_c: 16, kernel: 7, stride: 1, dilation: 1 };
    let mut at = plain(&mut net, "layer0", 0, stem, random);
    at = plain(&mut net, "layer1", at, conv3(16, 16, 1, 1), random);
    at = plain(&mut net, "layer2", at, conv3(16, 32, 2, 1), random);
    let levels = [(32, 64, 2, 1), (64, 128, 2, 1), (128, 256, 1, 2), (256, 512, 1, 4)];
    for (k, (from, to, stride, dilation)) in levels.into_iter().enumerate() {
        at = residual(&mut net, &format!("layer{}.0", 3 + k), at, conv3(from, to, stride, dilation), random);
        at = residual(&mut net, &format!("layer{}.1", 3 + k), at, conv3(to, to, 1, dilation), random);
    }
    at = plain(&mut net, "layer7", at, conv3(512, 512, 1, 2), random);
    at = plain(&mut net, "layer8", at, conv3(512, 512, 1, 1), random);
    let scores = net.conv("seg", at, conv1(512, classes, 1), true, random);
    net.name(scores, SCORES);
    net
}
