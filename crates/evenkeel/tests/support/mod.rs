//! The networks and images of the shared data folder, for trials and for a test that skips without them.
#![allow(dead_code, unreachable_pub)] // each test program and example uses a part of it

use std::path::{Path, PathBuf};

use evenkeel::image::{Image, LabelMap};
use evenkeel::model::{Classes, Contract, InputRule, Model, Order, ResizeRule};

/// $EVENKEEL_DATA, or the folder beside the workspace.
pub fn data() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("EVENKEEL_DATA").map_or(beside, PathBuf::from);
    folder.join("models").is_dir().then_some(folder)
}

/// A network of the folder: file, scores, features, mean and deviation.
pub struct Net {
    pub file: &'static str,
    pub output: &'static str,
    pub feature: &'static str,
    pub mean: [f32; 3],
    pub std: [f32; 3],
}

const CIFAR_MEAN: [f32; 3] = [0.4914, 0.4822, 0.4465];

/// The CIFAR-10 classifiers, features at the last map before the head.
pub const CIFAR: [Net; 4] = [
    Net { file: "resnet_2b", output: "33", feature: "29", mean: CIFAR_MEAN, std: [0.2471, 0.2435, 0.2616] },
    Net { file: "resnet_4b", output: "54", feature: "50", mean: CIFAR_MEAN, std: [0.2471, 0.2435, 0.2616] },
    Net {
        file: "sri_resnet_a",
        output: "output",
        feature: "94",
        mean: CIFAR_MEAN,
        std: [0.2023, 0.1994, 0.2010],
    },
    Net {
        file: "resnet20_cifar10",
        output: "logits",
        feature: "/layer3/layer3.2/Relu_1_output_0",
        mean: [0.485, 0.456, 0.406],
        std: [0.229, 0.224, 0.225],
    },
];

pub fn cifar_model(folder: &Path, net: &Net) -> Model {
    let contract = Contract {
        task: "classification".into(),
        output: net.output.into(),
        feature: net.feature.into(),
        input: InputRule {
            order: Order::Rgb,
            scale: 1.0,
            mean: net.mean,
            std: net.std,
            channels_last: false,
            size: None,
            resize: ResizeRule::Refuse,
            multiple: 1,
        },
        classes: Classes::default(),
        tables: Default::default(),
    };
    Model::with_contract(folder.join("models").join(format!("{}.onnx", net.file)), &contract).unwrap()
}

/// The segmenters of Cityscapes: 19 classes and background.
pub const CITYSCAPES: [&str; 2] = ["espnet", "espnetv2"];

/// One of them; features are the class scores before the last upsampling unless another tensor is named.
pub fn cityscapes_model(folder: &Path, net: &str, feature: Option<&str>) -> Model {
    let bgr = InputRule {
        order: Order::Bgr,
        scale: 255.0,
        mean: [72.3923, 82.9089, 73.1584],
        std: [45.3192, 46.1529, 44.9148].map(|s: f32| 255.0 * s),
        channels_last: false,
        size: None,
        resize: ResizeRule::Refuse,
        multiple: 8,
    };
    let rgb = InputRule {
        order: Order::Rgb,
        scale: 1.0,
        mean: [0.485, 0.456, 0.406],
        std: [0.229, 0.224, 0.225],
        multiple: 1,
        ..bgr.clone()
    };
    let (file, input, scores) = match net {
        "espnet" => ("espnet_p2_q8_city_dynamic", bgr, "/conv/act/PRelu_output_0"),
        "espnetv2" => {
            ("espnetv2_s1.0_city_512x256", rgb, "/bu_dec_l4/merge_layer/merge_layer.3/Conv_output_0")
        }
        other => panic!("no segmenter {other:?}; there are {CITYSCAPES:?}"),
    };
    let contract = Contract {
        task: "semantic".into(),
        output: "logits".into(),
        feature: feature.unwrap_or(scores).into(),
        input,
        classes: Classes::default(),
        tables: Default::default(),
    };
    Model::with_contract(folder.join("models").join(format!("{file}.onnx")), &contract).unwrap()
}

pub fn cifar_images(folder: &Path, count: usize) -> Vec<(Image, usize)> {
    let pixels = std::fs::read(folder.join("cifar10/images_u8_nhwc.bin")).unwrap();
    let labels = std::fs::read(folder.join("cifar10/labels_u8.bin")).unwrap();
    let image = |bytes: &[u8]| Image::from_rgb8(32, 32, bytes).unwrap();
    pixels.chunks(3 * 32 * 32).map(image).zip(labels.iter().map(|l| usize::from(*l))).take(count).collect()
}

pub fn cityscapes(folder: &Path, count: usize) -> Vec<(Image, LabelMap)> {
    let sorted = |sub: &str| {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join("cityscapes").join(sub))
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        files.sort();
        files
    };
    let (images, maps) = (sorted("leftImg8bit"), sorted("labelTrainIds"));
    assert_eq!(images.len(), maps.len());
    let pair = |(i, m): (&PathBuf, &PathBuf)| (Image::load(i).unwrap(), LabelMap::load(m).unwrap());
    images.iter().zip(&maps).take(count).map(pair).collect()
}

/// The overlap of label maps over a data set of 19 classes; answers beyond the truth's classes count as wrong.
pub struct Confusion(evenkeel::task::semantic::ClassOverlap);

impl Default for Confusion {
    fn default() -> Self {
        Self(evenkeel::task::semantic::ClassOverlap::empty(19))
    }
}

impl Confusion {
    pub fn add(&mut self, said: &LabelMap, is: &LabelMap) {
        let image = evenkeel::task::semantic::ClassOverlap::of(said.labels(), is.labels(), 19);
        self.0.add_times(&image, 1);
    }

    pub fn mean_iou(&self) -> f64 {
        self.0.mean_iou().unwrap_or(0.0)
    }
}
