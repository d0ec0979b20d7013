//! Segmenters on a trunk: FCN and DeepLabV3 with torchvision's names, DeepLabV3+ and LR-ASPP.
//!
//! DeepLab looks at the trunk's map through parallel dilated convolutions and its mean (ASPP); DeepLabV3+ adds an early map for the
//! edges; LR-ASPP weighs the map by its mean and adds an early one. All scores are resized to the image bilinearly.

use super::IMAGE;
use super::draft::Draft;
use super::layers::Conv;
use super::resnet::{self, EPSILON, ResNet};
use super::{mobilenet_v2, mobilenet_v3};

/// Classes of PASCAL VOC with background, on which the common checkpoints were trained.
const DEFAULT_CLASSES: usize = 21;
/// Channels inside ASPP and after it.
const INNER: usize = 256;

/// The network whose maps are scored.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trunk {
    ResNet(ResNet),
    MobileNetV2 { output_stride: usize },
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
        Trunk::MobileNetV2 { output_stride } => mobilenet_v2::trunk(draft, *output_stride),
        Trunk::MobileNetV3 => mobilenet_v3::trunk(draft, "backbone."),
    };
    let scores = match *head {
        Head::Fcn => fcn(draft, &last),
        Head::DeepLabV3(dilations) => deeplab(draft, &last, dilations),
        Head::DeepLabV3Plus(dilations) => deeplab_plus(draft, &early, &last, dilations),
        Head::LrAspp => lr_aspp(draft, &early, &last),
    };
    let scores = draft.resize_like(&scores, IMAGE, "upsample");
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

/// Parallel looks at a map, joined: each pixel, three rings around it, and the mean.
fn aspp(draft: &mut Draft<'_>, (x, channels): &Map, path: &str, dilations: [usize; 3]) -> String {
    let mut looks = vec![block(draft, x, &format!("{path}.convs.0"), Conv::new(*channels, INNER, 1))];
    for (i, dilation) in (1..).zip(dilations) {
        let conv = Conv::new(*channels, INNER, 3).dilation(dilation);
        looks.push(block(draft, x, &format!("{path}.convs.{i}"), conv));
    }
    let mean = draft.global_mean(x, &format!("{path}.convs.4.0"));
    let mean = draft.conv(&mean, &format!("{path}.convs.4.1"), Conv::new(*channels, INNER, 1));
    let mean = draft.norm(&mean, &format!("{path}.convs.4.2"), INNER, EPSILON);
    let mean = draft.relu(&mean, &format!("{path}.convs.4.3"));
    looks.push(draft.resize_like(&mean, x, &format!("{path}.convs.4")));
    let looks: Vec<&str> = looks.iter().map(String::as_str).collect();
    let joined = draft.along("Concat", &format!("{path}.concat"), &looks, 1);
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
