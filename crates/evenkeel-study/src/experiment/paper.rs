//! The paper's figures, for settings that are the same as one of its own ("Robust Perception through Equivariance", ICML 2023).
//!
//! A subject names its setting with the key `paper`; only then are these set beside ours. Columns: none, random, rotation, contrastive,
//! invariance, equivariance.

/// One setting of the paper.
pub struct Setting {
    /// What the key `paper` calls it.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Attack, and the figure of each defence in %.
    pub rows: &'static [(&'static str, [f64; 6])],
}

/// The defences in the order of the figures.
const DEFENCES: [&str; 6] = ["none", "random", "rotation", "contrastive", "invariance", "equivariance"];

/// Every setting.
pub const SETTINGS: [Setting; 6] = [
    Setting {
        name: "imagenet-adversarial",
        about: "ImageNet, adversarially trained ResNet-50, accuracy",
        rows: &[
            ("clean", [51.5, 49.4, 49.5, 49.2, 48.8, 49.3]),
            ("pgd", [26.5, 28.0, 28.2, 29.3, 28.6, 32.2]),
            ("cw", [26.6, 28.3, 28.6, 29.8, 32.2, 32.2]),
            ("bpda", [26.5, 28.0, 27.9, 28.8, 28.9, 30.4]),
        ],
    },
    Setting {
        name: "cityscapes-adversarial",
        about: "Cityscapes 680x340, adversarially trained DRN-D-22, mIoU",
        rows: &[
            ("clean", [53.23, 52.96, 51.72, 53.00, 49.04, 48.74]),
            ("ifgsm", [33.06, 33.21, 33.47, 33.59, 32.36, 34.04]),
            ("pgd", [26.61, 27.04, 27.68, 28.14, 27.74, 29.65]),
            ("mim", [26.59, 27.06, 27.72, 28.24, 27.76, 29.56]),
            ("houdini", [23.47, 24.07, 25.56, 26.61, 26.97, 29.80]),
            ("bpda", [26.61, 27.00, 26.37, 28.50, 23.31, 29.83]),
        ],
    },
    Setting {
        name: "cityscapes-standard",
        about: "Cityscapes 680x340, standard DRN-D-22, mIoU",
        rows: &[
            ("clean", [58.29, 52.38, 34.30, 37.22, 33.84, 37.95]),
            ("pgd", [1.31, 1.47, 13.20, 8.44, 14.49, 30.76]),
            ("mim", [1.40, 1.49, 13.80, 8.13, 14.57, 30.10]),
            ("houdini", [0.00, 0.21, 16.31, 10.12, 14.16, 30.52]),
            ("bpda", [1.31, 1.47, 6.20, 4.78, 6.82, 11.64]),
        ],
    },
    Setting {
        name: "voc-standard",
        about: "VOC 480x480, DeepLabV3(+), mIoU",
        rows: &[
            ("clean", [69.52, 68.96, 28.63, 66.92, 63.64, 56.58]),
            ("pgd", [6.46, 6.52, 6.91, 18.72, 39.07, 43.51]),
            ("houdini", [0.02, 0.08, 6.14, 19.11, 31.30, 52.26]),
            ("bpda", [6.46, 6.46, 8.23, 5.45, 15.15, 25.68]),
        ],
    },
    Setting {
        name: "coco-standard",
        about: "COCO 400x400, DeepLabV3-ResNet50, mIoU",
        rows: &[
            ("clean", [63.02, 62.97, 60.92, 57.28, 43.07, 44.71]),
            ("pgd", [2.62, 2.65, 5.79, 14.75, 23.92, 24.51]),
            ("bpda", [2.62, 2.63, 1.15, 2.35, 17.13, 18.69]),
        ],
    },
    Setting {
        name: "coco-mask-rcnn",
        about: "COCO, Mask R-CNN, maskAP",
        rows: &[
            ("clean", [34.5, 33.6, 31.2, 29.7, 14.3, 23.4]),
            ("pgd", [0.0, 1.6, 2.6, 8.9, 12.9, 21.3]),
            ("bpda", [0.0, 0.0, 0.3, 1.7, 8.7, 9.9]),
        ],
    },
];

/// The paper's figure in % for a setting, a kind of attack (`clean` for none) and a kind of defence.
pub fn figure(setting: &str, attack: &str, defence: &str) -> Option<f64> {
    let setting = SETTINGS.iter().find(|s| s.name == setting)?;
    let (_, figures) = setting.rows.iter().find(|(name, _)| *name == attack)?;
    DEFENCES.iter().position(|d| *d == defence).map(|place| figures[place])
}

/// A pair of data sets in the paper's table of foreign images: AUROC x 100 of its detectors.
pub struct Foreign {
    /// The data set of the network.
    pub own: &'static str,
    /// The data set that it sees.
    pub foreign: &'static str,
    /// Rotation, contrastive, invariance, equivariance.
    pub auroc: [f64; 4],
}

impl Foreign {
    /// As the key `paper` of a foreign data set calls it.
    pub fn pair(&self) -> String {
        format!("{}/{}", self.own, self.foreign)
    }

    /// The figure of a detector of ours. The paper's equivariance is measured by the variance of outputs, so both have it.
    pub fn of_detector(&self, detector: &str) -> Option<f64> {
        let place = match detector {
            "rotation" => 0,
            "contrastive" => 1,
            "invariance" => 2,
            "equivariance" | "variance" => 3,
            _ => return None,
        };
        Some(self.auroc[place])
    }
}

/// Every pair of the table.
pub const FOREIGN: [Foreign; 6] = [
    Foreign { own: "cityscapes", foreign: "voc", auroc: [56.0, 72.0, 93.0, 98.0] },
    Foreign { own: "cityscapes", foreign: "coco", auroc: [51.0, 52.0, 91.0, 91.0] },
    Foreign { own: "voc", foreign: "cityscapes", auroc: [67.0, 54.0, 95.0, 71.0] },
    Foreign { own: "voc", foreign: "coco", auroc: [61.0, 85.0, 91.0, 88.0] },
    Foreign { own: "coco", foreign: "cityscapes", auroc: [72.0, 69.0, 51.0, 55.0] },
    Foreign { own: "coco", foreign: "voc", auroc: [93.0, 83.0, 96.0, 99.0] },
];

/// The pair of this name, `cityscapes/coco` say.
pub fn foreign(pair: &str) -> Option<&'static Foreign> {
    FOREIGN.iter().find(|f| f.pair() == pair)
}
