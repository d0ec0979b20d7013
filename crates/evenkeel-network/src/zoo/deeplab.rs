//! Segmenters on a trunk: FCN and DeepLabV3 with torchvision's names, DeepLabV3+ and LR-ASPP.
//!
//! DeepLab looks at the trunk's map through parallel dilated convolutions and its mean (ASPP); DeepLabV3+ adds an early map for the
//! edges; LR-ASPP weighs the map by its mean and adds an early one. All scores are resized to the image bilinearly.

use super::IMAGE;
use super::draft::Draft;
use super::layers::Conv;
use super::mobilenet_v2::{self, Origin};
use super::mobilenet_v3;
use super::resnet::{self, EPSILON, ResNet};

/// Classes of PASCAL VOC with background, on which the common checkpoints were trained.
const DEFAULT_CLASSES: usize = 21;
/// Channels inside ASPP and after it.
const INNER: usize = 256;

/// The network whose maps are scored.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trunk {
    ResNet(ResNet),
    MobileNetV2 { output_stride: usize, origin: Origin },
    MobileNetV3,
}

/// How they are scored.
#[derive(Clone, Copy, Debug)]
pub(super) enum Head {
    /// One convolution.
    Fcn,
    /// ASPP with these dilations.
    DeepLabV3([usize; 3]),
    /// ASPP with these dilations, and an early map.
    DeepLabV3Plus([usize; 3]),
    /// The same in jfzhang's program: other names, a second convolution after the early map, and corners aligned wherever maps are resized.
    DeepLabV3PlusAligned([usize; 3]),
    /// The map weighed by its mean, and an early map.
    LrAspp,
}

/// A segmenter.
pub(super) fn draw(draft: &mut Draft<'_>, trunk: &Trunk, head: &Head) {
    draft.ignore("aux_classifier.");
    let (early, last) = match trunk {
        Trunk::ResNet(net) => {
            let [first, .., last] = resnet::trunk(draft, "backbone.", net);
            ((first, net.channels(0)), (last, net.channels(3)))
        }
        Trunk::MobileNetV2 { output_stride, origin } => mobilenet_v2::trunk(draft, *output_stride, *origin),
        Trunk::MobileNetV3 => mobilenet_v3::trunk(draft, "backbone."),
    };
    let scores = match *head {
        Head::Fcn => fcn(draft, &last),
        Head::DeepLabV3(dilations) => deeplab(draft, &last, dilations),
        Head::DeepLabV3Plus(dilations) => deeplab_plus(draft, &early, &last, dilations),
        Head::DeepLabV3PlusAligned(dilations) => deeplab_plus_aligned(draft, &early, &last, dilations),
        Head::LrAspp => lr_aspp(draft, &early, &last),
    };
    let scores = match head {
        Head::DeepLabV3PlusAligned(_) => draft.resize_aligned(&scores, IMAGE, "upsample"),
        _ => draft.resize_like(&scores, IMAGE, "upsample"),
    };
    draft.logits(&scores, 4);
}

/// A map and its channels.
type Map = (String, usize);

/// A convolution, its norm and a ReLU: modules `0` and `1` of `path`.
fn block(draft: &mut Draft<'_>, x: &str, path: &str, conv: Conv) -> String {
    let y = draft.conv(x, &format!("{path}.0"), conv);
    let y = draft.norm(&y, &format!("{path}.1"), conv.outputs, EPSILON);
    draft.relu(&y, path)
}

fn fcn(draft: &mut Draft<'_>, (x, channels): &Map) -> String {
    let inner = channels / 4;
    let classes = draft.extent("classifier.4.weight", 0, DEFAULT_CLASSES);
    let x = block(draft, x, "classifier", Conv::new(*channels, inner, 3));
    draft.conv(&x, "classifier.4", Conv::new(inner, classes, 1).bias())
}

fn deeplab(draft: &mut Draft<'_>, last: &Map, dilations: [usize; 3]) -> String {
    let classes = draft.extent("classifier.4.weight", 0, DEFAULT_CLASSES);
    let x = aspp(draft, last, "classifier.0", dilations);
    let x = draft.conv(&x, "classifier.1", Conv::new(INNER, INNER, 3));
    let x = draft.norm(&x, "classifier.2", INNER, EPSILON);
    let x = draft.relu(&x, "classifier.3");
    draft.conv(&x, "classifier.4", Conv::new(INNER, classes, 1).bias())
}

fn deeplab_plus(draft: &mut Draft<'_>, early: &Map, last: &Map, dilations: [usize; 3]) -> String {
    const EARLY: usize = 48;
    let classes = draft.extent("classifier.classifier.3.weight", 0, DEFAULT_CLASSES);
    let edges = block(draft, &early.0, "classifier.project", Conv::new(early.1, EARLY, 1));
    let context = aspp(draft, last, "classifier.aspp", dilations);
    let context = draft.resize_like(&context, &edges, "classifier.resized");
    let both = draft.along("Concat", "classifier.concat", &[&edges, &context], 1);
    let x = block(draft, &both, "classifier.classifier", Conv::new(EARLY + INNER, INNER, 3));
    draft.conv(&x, "classifier.classifier.3", Conv::new(INNER, classes, 1).bias())
}

fn deeplab_plus_aligned(draft: &mut Draft<'_>, early: &Map, last: &Map, dilations: [usize; 3]) -> String {
    const EARLY: usize = 48;
    let classes = draft.extent("decoder.last_conv.8.weight", 0, DEFAULT_CLASSES);
    let step = |draft: &mut Draft<'_>, x: &str, (conv, norm): (&str, &str), shape: Conv| {
        let y = draft.conv(x, conv, shape);
        let y = draft.norm(&y, norm, shape.outputs, EPSILON);
        draft.relu(&y, &format!("{conv}.relu"))
    };
    let (x, channels) = last;
    let mut branches = Vec::new();
    for (i, dilation) in (1..).zip([1].into_iter().chain(dilations)) {
        let names = (format!("aspp.aspp{i}.atrous_conv"), format!("aspp.aspp{i}.bn"));
        let conv = Conv::new(*channels, INNER, if i == 1 { 1 } else { 3 }).dilation(dilation);
        branches.push(step(draft, x, (&names.0, &names.1), conv));
    }
    let mean = draft.global_mean(x, "aspp.global_avg_pool.0");
    let mean = step(
        draft,
        &mean,
        ("aspp.global_avg_pool.1", "aspp.global_avg_pool.2"),
        Conv::new(*channels, INNER, 1),
    );
    branches.push(draft.resize_aligned(&mean, x, "aspp.global_avg_pool"));
    let branches: Vec<&str> = branches.iter().map(String::as_str).collect();
    let joined = draft.along("Concat", "aspp.concat", &branches, 1);
    let context = step(draft, &joined, ("aspp.conv1", "aspp.bn1"), Conv::new(5 * INNER, INNER, 1));
    let edges = step(draft, &early.0, ("decoder.conv1", "decoder.bn1"), Conv::new(early.1, EARLY, 1));
    let context = draft.resize_aligned(&context, &edges, "decoder.resized");
    let both = draft.along("Concat", "decoder.concat", &[&context, &edges], 1);
    let names = ["0", "1", "4", "5"].map(|k| format!("decoder.last_conv.{k}"));
    let y = step(draft, &both, (&names[0], &names[1]), Conv::new(INNER + EARLY, INNER, 3));
    let y = step(draft, &y, (&names[2], &names[3]), Conv::new(INNER, INNER, 3));
    draft.conv(&y, "decoder.last_conv.8", Conv::new(INNER, classes, 1).bias())
}

/// Parallel branches over a map, joined: each pixel, three rings around it, and the mean.
fn aspp(draft: &mut Draft<'_>, (x, channels): &Map, path: &str, dilations: [usize; 3]) -> String {
    let mut branches = vec![block(draft, x, &format!("{path}.convs.0"), Conv::new(*channels, INNER, 1))];
    for (i, dilation) in (1..).zip(dilations) {
        let conv = Conv::new(*channels, INNER, 3).dilation(dilation);
        branches.push(block(draft, x, &format!("{path}.convs.{i}"), conv));
    }
    let mean = draft.global_mean(x, &format!("{path}.convs.4.0"));
    let mean = draft.conv(&mean, &format!("{path}.convs.4.1"), Conv::new(*channels, INNER, 1));
    let mean = draft.norm(&mean, &format!("{path}.convs.4.2"), INNER, EPSILON);
    let mean = draft.relu(&mean, &format!("{path}.convs.4.3"));
    branches.push(draft.resize_like(&mean, x, &format!("{path}.convs.4")));
    let branches: Vec<&str> = branches.iter().map(String::as_str).collect();
    let joined = draft.along("Concat", &format!("{path}.concat"), &branches, 1);
    block(draft, &joined, &format!("{path}.project"), Conv::new(5 * INNER, INNER, 1))
}

fn lr_aspp(draft: &mut Draft<'_>, early: &Map, last: &Map) -> String {
    const INNER: usize = 128;
    let classes = draft.extent("classifier.high_classifier.weight", 0, DEFAULT_CLASSES);
    let x = block(draft, &last.0, "classifier.cbr", Conv::new(last.1, INNER, 1));
    let scale = draft.global_mean(&last.0, "classifier.scale.0");
    let scale = draft.conv(&scale, "classifier.scale.1", Conv::new(last.1, INNER, 1));
    let scale = draft.plain("Sigmoid", "classifier.scale", &[&scale]);
    let x = draft.plain("Mul", "classifier.scaled", &[&x, &scale]);
    let x = draft.resize_like(&x, &early.0, "classifier.resized");
    let low = draft.conv(&early.0, "classifier.low_classifier", Conv::new(early.1, classes, 1).bias());
    let high = draft.conv(&x, "classifier.high_classifier", Conv::new(INNER, classes, 1).bias());
    draft.plain("Add", "classifier", &[&low, &high])
}
