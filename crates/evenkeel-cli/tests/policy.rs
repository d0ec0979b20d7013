//! Policies as a person meets them: a file beside the network that predict and detect obey, `--policy`, `--no-policy`, and refusals.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use evenkeel::{AnswerSpec, DetectorSpec, Image, Model, Policy, policy::Alarm};
use serde_json::Value;

fn evenkeel(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(args).current_dir(folder).output().unwrap()
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let output = evenkeel(folder, args);
    assert!(
        matches!(output.status.code(), Some(0 | 3)),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder with a network, its contract and a picture.
fn scratch() -> (tempfile::TempDir, Model) {
    let folder = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cli");
    let network: PathBuf = folder.path().join("net.onnx");
    std::fs::copy(data.join("segmenter.onnx"), &network).unwrap();
    let init = ["model", "init", "net.onnx", "--task", "semantic", "--feature", "features", "--order", "rgb"];
    let rule = ["--scale", "1", "--mean", "0.5,0.5,0.5", "--std", "0.25,0.25,0.25", "--resize", "stretch"];
    let output = evenkeel(folder.path(), &[&init[..], &rule[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Image::filled(40, 48, 0.4).save_png(folder.path().join("a.png")).unwrap();
    let model = Model::load(&network).unwrap();
    (folder, model)
}

#[test]
fn predict_and_detect_obey_the_policy_beside_the_network() {
    let (folder, model) = scratch();
    let at = folder.path();
    let alarm = |threshold: f64| {
        let detector = DetectorSpec::named("variance").unwrap();
        Some(Alarm { threshold, images: 12, false_alarm_rate: 0.05, detector })
    };
    let answer = Some(AnswerSpec::named("vote").unwrap());
    let policy = Policy { alarm: alarm(-1.0), answer, ..Policy::none(&model) };
    policy.save(&at.join("net.policy.toml")).unwrap();
    let said = json(at, &["predict", "net.onnx", "a.png", "--json"]);
    assert_eq!((&said["voted"], &said["alarm"]), (&true.into(), &true.into()));
    let said = json(at, &["predict", "net.onnx", "a.png", "--json", "--no-policy"]);
    assert_eq!((&said["voted"], &said["alarm"]), (&false.into(), &Value::Null));
    let said = json(at, &["predict", "net.onnx", "a.png", "--json", "--defence", "jpeg"]);
    assert_eq!((&said["voted"], &said["defended"]), (&false.into(), &true.into()));
    assert_eq!(json(at, &["detect", "net.onnx", "a.png", "--json"])["alarm"], true);
    let calm = Policy { alarm: alarm(1e9), ..policy };
    calm.save(&at.join("calm.toml")).unwrap();
    let said = json(at, &["predict", "net.onnx", "a.png", "--json", "--policy", "calm.toml"]);
    assert_eq!((&said["voted"], &said["alarm"]), (&false.into(), &false.into()));
}

#[test]
fn what_cannot_be_obeyed_is_refused_in_a_sentence() {
    let (folder, model) = scratch();
    let at = folder.path();
    let refused = |args: &[&str]| {
        let output = evenkeel(at, args);
        assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    Policy { model: "another".into(), ..Policy::none(&model) }.save(&at.join("net.policy.toml")).unwrap();
    let sentence = refused(&["predict", "net.onnx", "a.png"]);
    assert!(sentence.contains("net.policy.toml") && sentence.contains("another network"), "{sentence}");
    Policy::none(&model).save(&at.join("own.toml")).unwrap();
    let sentence = refused(&["predict", "net.onnx", "a.png", "--policy", "own.toml", "--answer", "vote"]);
    assert!(sentence.contains("--answer and --policy"), "{sentence}");
    assert!(refused(&["detect", "net.onnx", "a.png", "--policy", "nowhere.toml"]).contains("nowhere.toml"));
}
