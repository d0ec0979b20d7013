//! The path from an ONNX file to a protected answer, command by command, on every network at hand: two exports each of two torchvision networks, the shipped ones as if they had
//! no contract, and those of $EVENKEEL_DATA where they are. The exports are skeletons; $EVENKEEL_EXPORTS may name a folder with whole ones, with random weights
//! (`python testdata/propose/make.py FOLDER`). No command may ask anything, and `model init` proposes the features that docs/zoo.md and docs/studies use.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use evenkeel::Image;

/// A network: its file, the preset of its pixels ("" where the graph or its head says), its features, the size of its images.
type Case = (&'static str, &'static str, &'static str, (usize, usize));

const EXPORTS: [Case; 4] = [
    ("resnet18_legacy", "imagenet", "/layer4/layer4.1/relu_1/Relu_output_0", (224, 224)),
    ("resnet18_dynamo", "imagenet", "relu_16", (224, 224)),
    ("deeplabv3_mobilenet_v3_large_legacy", "imagenet", "/classifier/classifier.4/Conv_output_0", (224, 224)),
    ("deeplabv3_mobilenet_v3_large_dynamo", "imagenet", "conv2d_69", (224, 224)),
];

const SHIPPED: [Case; 5] = [
    ("scenes_classifier", "unit", "features", (64, 64)),
    ("scenes_classifier_adv", "unit", "features", (64, 64)),
    ("scenes_segmenter", "unit", "scores", (128, 64)),
    ("scenes_segmenter_adv", "unit", "scores", (128, 64)),
    ("scenes_instances", "unit", "features", (128, 64)),
];

const OUTSIDE: [Case; 12] = [
    ("resnet_2b", "cifar10", "29", (32, 32)),
    ("resnet_4b", "cifar10", "50", (32, 32)),
    ("sri_resnet_a", "cifar10-batch", "94", (32, 32)),
    ("resnet20_cifar10", "imagenet", "/layer3/layer3.2/Relu_1_output_0", (32, 32)),
    ("squeezenet_v1.1", "caffe-bgr", "conv10_relu_conv10", (227, 227)),
    ("efficientnet_lite0_224", "efficientnet-lite", "/_swish_1/Clip_output_0", (224, 224)),
    ("espnet_p2_q8_city_dynamic", "cityscapes-espnet", "/conv/act/PRelu_output_0", (256, 128)),
    ("drn_small_city_dynamic", "", "/n/seg/Conv_output_0", (256, 128)),
    (
        "espnetv2_s1.0_city_512x256",
        "imagenet",
        "/bu_dec_l4/merge_layer/merge_layer.3/Conv_output_0",
        (512, 256),
    ),
    (
        "espnetv2_s2.0_pascal_256x256",
        "imagenet",
        "/bu_dec_l4/merge_layer/merge_layer.3/Conv_output_0",
        (256, 256),
    ),
    ("deeplabv3_mnv2_voc_257", "minus-one-to-one", "logits_semantic_BiasAdd", (257, 257)),
    (
        "yolo11n-seg",
        "",
        "/model.16/cv2/act/Mul_output_0 + /model.19/cv2/act/Mul_output_0 + /model.22/cv2/act/Mul_output_0",
        (320, 240),
    ),
];

/// The path, with few steps. An alarm (3) is no failure; a question has nobody to answer it, since there is no input.
const PATH: [(&str, &[i32]); 5] = [
    ("predict net.onnx photos --out out --json", &[0]),
    ("detect net.onnx --calibrate clean --false-alarms 0.4", &[0]),
    ("detect net.onnx photos --json", &[0, 3]),
    ("attack net.onnx photos --steps 1 --out attacked --json", &[0]),
    ("defend net.onnx photos --defence-steps 1 --out safe --json", &[0, 3]),
];

fn run(folder: &Path, line: &str, codes: &[i32]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.current_dir(folder).args(line.split_whitespace()).stdin(Stdio::null());
    let output = command.output().expect("the binary runs");
    let (told, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let code = output.status.code();
    assert!(code.is_some_and(|code| codes.contains(&code)), "{line}: {code:?}: {told}{complaint}");
    told.into_owned()
}

fn picture((width, height): (usize, usize), seed: usize) -> Image {
    let value = |i: usize| {
        let (channel, y, x) = (i / (width * height), i / width % height, i % width);
        ((x * (seed + 1) / 9 + y / 5 + channel * 7) % 16) as f32 / 15.0
    };
    Image::new(height, width, (0..3 * width * height).map(value).collect()).expect("an image")
}

fn walk(file: &Path, (name, preset, feature, size): Case) {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::copy(file, at("net.onnx")).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    for (folder, count) in [("photos", 1), ("clean", 2)] {
        std::fs::create_dir(at(folder)).expect("made");
        for k in 0..count {
            picture(size, k).save_png(at(&format!("{folder}/p{k}.png"))).expect("written");
        }
    }
    let pixels = if preset.is_empty() { String::new() } else { format!(" --pixels {preset}") };
    run(folder.path(), &format!("model init net.onnx{pixels}"), &[0]);
    let contract = std::fs::read_to_string(at("net.evenkeel.toml")).expect("a contract");
    let expected = match feature.split(" + ").map(|name| format!("{name:?}")).collect::<Vec<_>>().as_slice() {
        [one] => format!("feature = {one}"),
        several => format!("feature = [{}]", several.join(", ")),
    };
    assert!(contract.lines().any(|line| line == expected), "{name}: {expected} is not in {contract}");
    for (line, codes) in PATH {
        let told = run(folder.path(), line, codes);
        assert!(!told.contains("class 0 "), "{name}: {line}: a class without its name: {told}");
    }
    for file in ["out", "attacked/images", "attacked/pictures", "safe"] {
        let files = std::fs::read_dir(at(file)).unwrap_or_else(|e| panic!("{name}: {file}: {e}"));
        assert!(files.count() > 0, "{name}: {file} is empty");
    }
    assert!(at("net.calibration.toml").is_file(), "{name}");
}

fn beside(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn exports_of_both_kinds_go_the_whole_path() {
    let exports =
        std::env::var_os("EVENKEEL_EXPORTS").map_or_else(|| beside("testdata/propose"), PathBuf::from);
    for case in EXPORTS {
        walk(&exports.join(format!("{}.onnx", case.0)), case);
    }
}

#[test]
fn shipped_networks_go_the_whole_path() {
    for case in SHIPPED {
        walk(&beside("crates/evenkeel/models").join(format!("{}.onnx", case.0)), case);
    }
}

#[test]
fn networks_from_outside_go_the_whole_path() {
    let data = std::env::var_os("EVENKEEL_DATA").map_or_else(|| beside("../shared/data"), PathBuf::from);
    if !data.join("models").is_dir() {
        eprintln!("skipped: no networks in {}; set EVENKEEL_DATA", data.display());
        return;
    }
    for case in OUTSIDE {
        walk(&data.join("models").join(format!("{}.onnx", case.0)), case);
    }
}
