//! Usual ways in which pixels become a network's input, by name: input = (pixel·scale − mean) / std.

use super::contract::{InputRule, Order};
use crate::error::{Error, Result};

/// How pixels become input, without sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PixelPreset {
    /// Its name in flags.
    pub name: &'static str,
    /// Who does so, in a line.
    pub about: &'static str,
    /// The order of the channels.
    pub order: Order,
    /// What a pixel in [0, 1] is multiplied by first.
    pub scale: f32,
    /// What is subtracted then, in the network's channel order.
    pub mean: [f32; 3],
    /// What it is divided by then.
    pub std: [f32; 3],
}

const fn preset(
    name: &'static str,
    about: &'static str,
    order: Order,
    [scale, mean, std]: [[f32; 3]; 3],
) -> PixelPreset {
    PixelPreset { name, about, order, scale: scale[0], mean, std }
}

const ONE: [f32; 3] = [1.0; 3];
const ZERO: [f32; 3] = [0.0; 3];
const BYTES: [f32; 3] = [255.0; 3];
const CIFAR_MEAN: [f32; 3] = [0.4914, 0.4822, 0.4465];

/// Every preset. Adding one is a line.
pub static PIXEL_PRESETS: [PixelPreset; 10] = [
    preset(
        "imagenet",
        "RGB in [0, 1] by ImageNet's mean and deviation: torchvision, most of timm",
        Order::Rgb,
        [ONE, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]],
    ),
    preset("unit", "RGB in [0, 1]: YOLO, networks that normalise inside", Order::Rgb, [ONE, ZERO, ONE]),
    preset("bytes", "RGB from 0 to 255: networks that normalise inside", Order::Rgb, [BYTES, ZERO, ONE]),
    preset(
        "minus-one-to-one",
        "RGB in [-1, 1]: TensorFlow's MobileNet, Inception and DeepLab, ViT",
        Order::Rgb,
        [ONE, [0.5; 3], [0.5; 3]],
    ),
    preset(
        "caffe-bgr",
        "BGR from 0 to 255 less 104, 117, 123: Caffe",
        Order::Bgr,
        [BYTES, [104.0, 117.0, 123.0], ONE],
    ),
    preset(
        "efficientnet-lite",
        "RGB from 0 to 255 less 127, by 128",
        Order::Rgb,
        [BYTES, [127.0; 3], [128.0; 3]],
    ),
    preset(
        "cityscapes-espnet",
        "BGR from 0 to 255, by Cityscapes' mean and deviation, by 255: ESPNet",
        Order::Bgr,
        [BYTES, [72.3923, 82.9089, 73.1584], [11_556.396, 11_768.99, 11_453.274]],
    ),
    preset(
        "cifar10",
        "RGB in [0, 1] by CIFAR-10's mean and deviation",
        Order::Rgb,
        [ONE, CIFAR_MEAN, [0.2471, 0.2435, 0.2616]],
    ),
    preset(
        "cifar10-batch",
        "the same with the deviation 0.2023, 0.1994, 0.2010 of many training scripts",
        Order::Rgb,
        [ONE, CIFAR_MEAN, [0.2023, 0.1994, 0.2010]],
    ),
    preset(
        "clip",
        "RGB in [0, 1] by the mean and deviation of CLIP's images",
        Order::Rgb,
        [ONE, [0.481_454_66, 0.457_827_5, 0.408_210_73], [0.268_629_54, 0.261_302_6, 0.275_777_1]],
    ),
];

impl PixelPreset {
    /// The preset of this name.
    ///
    /// # Errors
    /// Listing the names there are.
    pub fn named(name: &str) -> Result<&'static Self> {
        PIXEL_PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| {
            let names: Vec<_> = PIXEL_PRESETS.iter().map(|preset| preset.name).collect();
            Error::setting(format!("pixels {name}"), format!("is not one of {}", names.join(", ")))
        })
    }

    /// Writes itself into a rule, whose sizes stay.
    pub fn set(&self, rule: &mut InputRule) {
        (rule.order, rule.scale, rule.mean, rule.std) = (self.order, self.scale, self.mean, self.std);
    }

    /// Whether a rule makes input of pixels as this preset does.
    pub fn is(&self, rule: &InputRule) -> bool {
        (rule.order, rule.scale, rule.mean, rule.std) == (self.order, self.scale, self.mean, self.std)
    }
}
