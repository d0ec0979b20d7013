//! `evenkeel model init` as a person uses it on a network of their own: proposals with reasons, presets, names, sizes, and every question at once.

mod program;

use std::path::{Path, PathBuf};

use program::{complained, evenkeel, said};

/// A folder with one of the exports in it, as `net.onnx`.
fn export(name: &str) -> tempfile::TempDir {
    let from = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/propose").join(name);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(from, folder.path().join("net.onnx")).expect("copied");
    folder
}

fn contract(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("net.evenkeel.toml")).expect("a contract")
}

const EXPORTS: [(&str, &str); 4] = [
    ("resnet18_legacy.onnx", "/layer4/layer4.1/relu_1/Relu_output_0"),
    ("resnet18_dynamo.onnx", "relu_16"),
    ("deeplabv3_mobilenet_v3_large_legacy.onnx", "/classifier/classifier.4/Conv_output_0"),
    ("deeplabv3_mobilenet_v3_large_dynamo.onnx", "conv2d_69"),
];

#[test]
fn with_a_preset_no_question_is_left() {
    for (name, feature) in EXPORTS {
        let folder = export(name);
        let output = evenkeel(folder.path(), &["model", "init", "net.onnx", "--pixels", "imagenet"]);
        assert!(output.status.success(), "{name}: {}", complained(&output));
        let (told, written) = (said(&output), contract(folder.path()));
        assert!(told.contains(feature) && told.contains("  or"), "{name}: {told}");
        assert!(written.contains(&format!("feature = \"{feature}\"")), "{name}: {written}");
        assert!(written.contains("mean = [0.485, 0.456, 0.406]"), "{written}");
        let names = if name.starts_with("resnet") { "imagenet" } else { "voc" };
        assert!(written.contains(&format!("names = \"{names}\"")), "{written}");
        let again = evenkeel(folder.path(), &["model", "init", "net.onnx", "--pixels", "unit"]);
        assert!(complained(&again).contains("--force"), "{}", complained(&again));
    }
}

#[test]
fn what_cannot_be_known_is_listed_together() {
    let folder = export("resnet18_dynamo.onnx");
    let output = evenkeel(folder.path(), &["model", "init", "net.onnx"]);
    assert_eq!(output.status.code(), Some(2));
    let complaint = complained(&output);
    assert!(complaint.contains("--pixels") && complaint.contains("minus-one-to-one"), "{complaint}");
    assert!(complaint.contains("--try PHOTO"), "{complaint}");
    let output = evenkeel(folder.path(), &["model", "init", "net.onnx", "--order", "rgb", "--scale", "1"]);
    let complaint = complained(&output);
    assert!(complaint.contains("--mean") && complaint.contains("--std"), "{complaint}");
    assert!(!complaint.contains("--order "), "{complaint}");
    assert!(!folder.path().join("net.evenkeel.toml").exists());
}

#[test]
fn numbers_are_taken_with_commas_and_with_spaces() {
    for words in
        [&["--mean", "0.1,0.2,0.3"][..], &["--mean", "0.1", "0.2", "0.3"], &["--mean", "0.1 0.2 0.3"]]
    {
        let folder = export("resnet18_legacy.onnx");
        let rest = ["--std", "1,1,1", "--order", "bgr", "--scale", "255"];
        let output = evenkeel(folder.path(), &[&["model", "init", "net.onnx"], words, &rest[..]].concat());
        assert!(output.status.success(), "{words:?}: {}", complained(&output));
        assert!(contract(folder.path()).contains("mean = [0.1, 0.2, 0.3]"), "{}", contract(folder.path()));
    }
    let folder = export("resnet18_legacy.onnx");
    let output =
        evenkeel(folder.path(), &["model", "init", "net.onnx", "--mean", "0.1,0.2", "--pixels", "unit"]);
    assert!(complained(&output).contains("three numbers"), "{}", complained(&output));
}

#[test]
fn names_come_by_set_by_file_or_not_at_all() {
    let cases = [("none", "names = []"), ("imagenet", "names = \"imagenet\"")];
    for (given, expected) in cases {
        let folder = export("resnet18_legacy.onnx");
        let words = ["model", "init", "net.onnx", "--pixels", "imagenet", "--names", given];
        let output = evenkeel(folder.path(), &words);
        assert!(output.status.success(), "{}", complained(&output));
        assert!(contract(folder.path()).contains(expected), "{}", contract(folder.path()));
    }
    let folder = export("resnet18_legacy.onnx");
    let words = ["model", "init", "net.onnx", "--pixels", "imagenet", "--names", "klingon"];
    let complaint = complained(&evenkeel(folder.path(), &words));
    assert!(
        complaint.contains("neither a file nor one of") && complaint.contains("cityscapes"),
        "{complaint}"
    );
}

#[test]
fn sizes_are_width_first_and_errors_name_the_cure() {
    let folder = export("resnet18_legacy.onnx");
    let init = |size: &str| {
        let words = ["model", "init", "net.onnx", "--pixels", "imagenet", "--size", size];
        complained(&evenkeel(folder.path(), &words))
    };
    assert!(init("100x100").contains("224x224 only"), "{}", init("100x100"));
    assert!(init("7").contains("WIDTHxHEIGHT"), "{}", init("7"));
}

#[test]
fn a_photo_shows_the_answer_under_every_preset() {
    let folder = export("resnet18_dynamo.onnx");
    let picture = evenkeel::Image::filled(48, 64, 0.3);
    picture.save_png(folder.path().join("photo.png")).expect("written");
    let output = evenkeel(folder.path(), &["model", "init", "net.onnx", "--try", "photo.png"]);
    assert!(output.status.success(), "{}", complained(&output));
    for preset in ["imagenet", "unit", "caffe-bgr", "clip"] {
        assert!(said(&output).lines().any(|line| line.trim_start().starts_with(preset)), "{}", said(&output));
    }
    assert!(!folder.path().join("net.evenkeel.toml").exists(), "nothing is written");
}

#[test]
fn tensors_are_listed_with_shapes_and_marks() {
    let folder = export("deeplabv3_mobilenet_v3_large_dynamo.onnx");
    let output = evenkeel(folder.path(), &["model", "inspect", "net.onnx", "--tensors"]);
    let told = said(&output);
    let line = told.lines().find(|line| line.contains("conv2d_69 ")).expect("listed");
    assert!(line.contains("1x21x14x14") && line.contains("proposed feature"), "{line}");
    assert!(!told.contains("weight"), "weights are no tensors to compare views on");
}
