//! The one table of architectures. Adding one is a file beside this and a line here.

use super::blueprint::Blueprint;
use super::deeplab::{self, Head, Trunk};
use super::draft::Draft;
use super::drn::{self, Drn};
use super::mask_rcnn::{self, Variant};
use super::misfit::Misfit;
use super::mobilenet_v2::Origin;
use super::resnet::{self, ResNet};
use super::resnet_cifar::{self, CifarResNet};
use super::weights::Weights;
use crate::error::{Error, Result};

/// What a network is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// `logits` is `[n, classes]`.
    Classification,
    /// `logits` is `[n, classes, h, w]`.
    Segmentation,
    /// `boxes`, `labels`, `scores` and `masks` of one image's instances.
    Instances,
}

#[derive(Clone, Copy, Debug)]
enum Family {
    ResNet(ResNet),
    CifarResNet(CifarResNet),
    Drn(Drn),
    Segmenter(Trunk, Head),
    MaskRcnn(Variant),
}

/// A network that can be built from weights.
#[derive(Clone, Copy, Debug)]
pub struct Architecture {
    /// Its name, as PyTorch's function that makes it where there is one.
    pub name: &'static str,
    /// What it is for.
    pub task: Task,
    family: Family,
}

const fn resnet(name: &'static str, net: ResNet) -> Architecture {
    Architecture { name, task: Task::Classification, family: Family::ResNet(net) }
}

/// He et al.'s for CIFAR, with 6 * blocks + 2 layers.
const fn thin(name: &'static str, blocks: &'static [usize]) -> Architecture {
    let net = CifarResNet { blocks, channels: 16, bottleneck: false, convolved: false };
    Architecture { name, task: Task::Classification, family: Family::CifarResNet(net) }
}

/// The ImageNet ones with a small stem.
const fn small_stem(name: &'static str, blocks: &'static [usize], bottleneck: bool) -> Architecture {
    let net = CifarResNet { blocks, channels: 64, bottleneck, convolved: true };
    Architecture { name, task: Task::Classification, family: Family::CifarResNet(net) }
}

/// The depth of a DRN, by the blocks of its levels.
const DRN_22: ([usize; 8], bool) = ([1, 1, 2, 2, 2, 2, 1, 1], false);
const DRN_38: ([usize; 8], bool) = ([1, 1, 3, 4, 6, 3, 1, 1], false);
const DRN_54: ([usize; 8], bool) = ([1, 1, 3, 4, 6, 3, 1, 1], true);
const DRN_105: ([usize; 8], bool) = ([1, 1, 3, 4, 23, 3, 1, 1], true);

const fn drn(
    name: &'static str,
    (blocks, bottleneck): ([usize; 8], bool),
    variant_c: bool,
    task: Task,
) -> Architecture {
    let segments = matches!(task, Task::Segmentation);
    Architecture { name, task, family: Family::Drn(Drn { blocks, bottleneck, variant_c, segments }) }
}

const fn segmenter(name: &'static str, trunk: Trunk, head: Head) -> Architecture {
    Architecture { name, task: Task::Segmentation, family: Family::Segmenter(trunk, head) }
}

const fn mask_rcnn(name: &'static str, second: bool, coco: bool) -> Architecture {
    Architecture { name, task: Task::Instances, family: Family::MaskRcnn(Variant { second, coco }) }
}

const RESNET50: ResNet = ResNet::bottleneck([3, 4, 6, 3]);
const RESNET101: ResNet = ResNet::bottleneck([3, 4, 23, 3]);
/// The map at an eighth of the image, or at a sixteenth.
const EIGHTH: [bool; 3] = [false, true, true];
const SIXTEENTH: [bool; 3] = [false, false, true];

/// Every architecture. Of two with the same weights the first is the one [recognised](super::recognise).
pub const ARCHITECTURES: &[Architecture] = &[
    resnet("resnet18", ResNet::basic([2, 2, 2, 2])),
    resnet("resnet34", ResNet::basic([3, 4, 6, 3])),
    resnet("resnet50", ResNet::bottleneck([3, 4, 6, 3])),
    resnet("resnet101", ResNet::bottleneck([3, 4, 23, 3])),
    resnet("resnet152", ResNet::bottleneck([3, 8, 36, 3])),
    resnet("wide_resnet50_2", ResNet::bottleneck([3, 4, 6, 3]).wide(128)),
    resnet("wide_resnet101_2", ResNet::bottleneck([3, 4, 23, 3]).wide(128)),
    thin("cifar_resnet20", &[3, 3, 3]),
    thin("cifar_resnet32", &[5, 5, 5]),
    thin("cifar_resnet44", &[7, 7, 7]),
    thin("cifar_resnet56", &[9, 9, 9]),
    thin("cifar_resnet110", &[18, 18, 18]),
    small_stem("cifar_resnet18", &[2, 2, 2, 2], false),
    small_stem("cifar_resnet34", &[3, 4, 6, 3], false),
    small_stem("cifar_resnet50", &[3, 4, 6, 3], true),
    small_stem("cifar_resnet101", &[3, 4, 23, 3], true),
    small_stem("cifar_resnet152", &[3, 8, 36, 3], true),
    drn("drn_c_26", DRN_22, true, Task::Classification),
    drn("drn_d_22", DRN_22, false, Task::Classification),
    drn("drn_d_38", DRN_38, false, Task::Classification),
    drn("drn_d_54", DRN_54, false, Task::Classification),
    drn("drn_d_105", DRN_105, false, Task::Classification),
    drn("drnseg_c_26", DRN_22, true, Task::Segmentation),
    drn("drnseg_d_22", DRN_22, false, Task::Segmentation),
    drn("drnseg_d_38", DRN_38, false, Task::Segmentation),
    drn("drnseg_d_54", DRN_54, false, Task::Segmentation),
    drn("drnseg_d_105", DRN_105, false, Task::Segmentation),
    segmenter("fcn_resnet50", Trunk::ResNet(RESNET50.dilated(EIGHTH)), Head::Fcn),
    segmenter("fcn_resnet101", Trunk::ResNet(RESNET101.dilated(EIGHTH)), Head::Fcn),
    segmenter("deeplabv3_resnet50", Trunk::ResNet(RESNET50.dilated(EIGHTH)), Head::DeepLabV3([12, 24, 36])),
    segmenter("deeplabv3_resnet101", Trunk::ResNet(RESNET101.dilated(EIGHTH)), Head::DeepLabV3([12, 24, 36])),
    segmenter("deeplabv3_mobilenet_v3_large", Trunk::MobileNetV3, Head::DeepLabV3([12, 24, 36])),
    segmenter("lraspp_mobilenet_v3_large", Trunk::MobileNetV3, Head::LrAspp),
    segmenter(
        "deeplabv3plus_resnet50",
        Trunk::ResNet(RESNET50.dilated(SIXTEENTH)),
        Head::DeepLabV3Plus([6, 12, 18]),
    ),
    segmenter(
        "deeplabv3plus_resnet101",
        Trunk::ResNet(RESNET101.dilated(SIXTEENTH)),
        Head::DeepLabV3Plus([6, 12, 18]),
    ),
    segmenter(
        "deeplabv3plus_mobilenet",
        Trunk::MobileNetV2 { output_stride: 16, origin: Origin::VainF },
        Head::DeepLabV3Plus([6, 12, 18]),
    ),
    segmenter(
        "deeplabv3plus_resnet50_os8",
        Trunk::ResNet(RESNET50.dilated(EIGHTH)),
        Head::DeepLabV3Plus([12, 24, 36]),
    ),
    segmenter(
        "deeplabv3plus_resnet101_os8",
        Trunk::ResNet(RESNET101.dilated(EIGHTH)),
        Head::DeepLabV3Plus([12, 24, 36]),
    ),
    segmenter(
        "deeplabv3plus_mobilenet_os8",
        Trunk::MobileNetV2 { output_stride: 8, origin: Origin::VainF },
        Head::DeepLabV3Plus([12, 24, 36]),
    ),
    segmenter(
        "deeplabv3plus_jfzhang_resnet50",
        Trunk::ResNet(RESNET50.dilated(SIXTEENTH).multigrid()),
        Head::DeepLabV3PlusAligned([6, 12, 18]),
    ),
    segmenter(
        "deeplabv3plus_jfzhang_resnet101",
        Trunk::ResNet(RESNET101.dilated(SIXTEENTH).multigrid()),
        Head::DeepLabV3PlusAligned([6, 12, 18]),
    ),
    segmenter(
        "deeplabv3plus_jfzhang_mobilenet",
        Trunk::MobileNetV2 { output_stride: 16, origin: Origin::Jfzhang },
        Head::DeepLabV3PlusAligned([6, 12, 18]),
    ),
    mask_rcnn("maskrcnn_resnet50_fpn", false, false),
    mask_rcnn("maskrcnn_resnet50_fpn_v2", true, false),
    mask_rcnn("maskrcnn_resnet50_fpn_coco", false, true),
];

impl Architecture {
    /// The blueprint of this architecture with these weights.
    ///
    /// # Errors
    /// If the weights are not exactly those it asks for.
    pub fn blueprint(&self, weights: &Weights) -> Result<Blueprint> {
        self.fit(weights).map_err(Error::Weights)
    }

    /// Which Mask R-CNN it is, if it is one.
    pub(super) fn mask_rcnn(&self) -> Option<&Variant> {
        if let Family::MaskRcnn(variant) = &self.family { Some(variant) } else { None }
    }

    /// The blueprint, or how the weights differ.
    pub(super) fn fit(&self, weights: &Weights) -> Result<Blueprint, Box<Misfit>> {
        let mut draft = Draft::new(self.name, weights);
        match &self.family {
            Family::ResNet(net) => resnet::draw(&mut draft, net),
            Family::CifarResNet(net) => resnet_cifar::draw(&mut draft, net),
            Family::Drn(net) => drn::draw(&mut draft, net),
            Family::Segmenter(trunk, head) => deeplab::draw(&mut draft, trunk, head),
            Family::MaskRcnn(net) => mask_rcnn::draw(&mut draft, net),
        }
        draft.finish()
    }
}
