//! A depth network from the command line: its contract, its answers as files, attacks, a study, and scores of a folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use evenkeel::task::regression::{RegressionRule, ValueMap};
use serde_json::Value;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/regression").join(name)
}

fn run(folder: &Path, args: &[&str]) -> (bool, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(args).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn works(folder: &Path, args: &[&str]) -> String {
    let (ok, out, err) = run(folder, args);
    assert!(ok, "{args:?}: {err}");
    out
}

const INIT: [&str; 18] = [
    "model",
    "init",
    "depth.onnx",
    "--output",
    "depth",
    "--feature",
    "depth",
    "--order",
    "rgb",
    "--scale",
    "1",
    "--mean",
    "0,0,0",
    "--std",
    "1,1,1",
    "--resize",
    "stretch",
    "--multiple=8",
];

/// A folder with the depth network, its contract, two scenes and their depths.
fn scratch() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["depth.onnx", "scene_0.png", "scene_1.png", "scene_0.npy", "scene_1.npy"] {
        std::fs::copy(testdata(name), folder.path().join(name)).unwrap();
    }
    let own = ["--task", "regression", "--unit", "m", "--range", "2,60"];
    works(folder.path(), &[&INIT[..], &own].concat());
    folder
}

fn mean_error(folder: &Path, said: &str, truth: &str) -> f64 {
    let load = |name: &str| ValueMap::load(folder.join(name), &RegressionRule::default()).unwrap();
    let (said, truth) = (load(said), load(truth));
    let off = said.values().iter().zip(truth.values()).map(|(p, t)| f64::from((p - t).abs()));
    off.sum::<f64>() / truth.values().len() as f64
}

#[test]
fn one_channel_is_refused_as_classes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(testdata("depth.onnx"), folder.path().join("depth.onnx")).unwrap();
    for task in ["semantic", "classification"] {
        let (ok, _, err) = run(folder.path(), &[&INIT[..], &["--task", task]].concat());
        assert!(!ok && err.contains("regression"), "{err}");
    }
    let (ok, _, err) = run(folder.path(), &[&INIT[..], &["--task", "regression"]].concat());
    assert!(!ok && err.contains("`unit` or `range`"), "{err}");
    let (ok, _, err) = run(folder.path(), &[&INIT[..], &["--task", "semantic", "--unit", "m"]].concat());
    assert!(!ok && err.contains("--unit"), "{err}");
}

/// Values exactly as .npy, to a step as 16-bit PNG, a picture with a scale bar; and PGD at 2/255 at least triples the error.
#[test]
fn depths_are_written_and_attacked() {
    let scratch = scratch();
    let at = scratch.path();
    let said = works(at, &["predict", "depth.onnx", "scene_0.png", "scene_1.png", "--out", "out", "--json"]);
    let first: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!(first["prediction"]["unit"], "m");
    let exact = ValueMap::load(at.join("out/scene_0.values.npy"), &RegressionRule::default()).unwrap();
    assert_eq!(exact.size(), (48, 64));
    let rule = RegressionRule { range: Some([2.0, 60.0]), ..RegressionRule::default() };
    let rounded = ValueMap::load(at.join("out/scene_0.values.png"), &rule).unwrap();
    assert!(exact.values().iter().zip(rounded.values()).all(|(a, b)| (a - b).abs() < 58.0 / 65535.0));
    assert!(
        evenkeel::Image::load(at.join("out/scene_0.overlay.png")).unwrap().height() > 48,
        "the scale bar"
    );
    works(
        at,
        &[
            "attack",
            "depth.onnx",
            "scene_0.png",
            "scene_1.png",
            "--labels",
            ".",
            "--epsilon",
            "2/255",
            "--steps",
            "20",
            "--out",
            "out",
        ],
    );
    works(
        at,
        &["predict", "depth.onnx", "out/images/scene_0.png", "out/images/scene_1.png", "--out", "after"],
    );
    for k in 0..2 {
        let truth = format!("scene_{k}.npy");
        let before = mean_error(at, &format!("out/scene_{k}.values.npy"), &truth);
        let after = mean_error(at, &format!("after/scene_{k}.values.npy"), &truth);
        assert!(after > 3.0 * before, "scene {k}: {before} m before, {after} m after");
    }
    let (ok, detected, notes) = run(at, &["detect", "depth.onnx", "scene_0.png"]);
    assert!(ok && detected.contains("expected error"), "{detected}{notes}");
    assert!(notes.contains("mean absolute error in m"), "{notes}");
}

/// Views that enlarge make depths nearer: who defends without a word about views is told, and how to do without.
#[test]
fn views_that_change_depths_are_warned_about() {
    let bench = scratch();
    let warned = |flags: &[&str]| {
        let words = [&["defend", "depth.onnx", "scene_0.png", "--defence-steps", "1"], flags].concat();
        let (ok, _, notes) = run(bench.path(), &words);
        assert!(ok, "{notes}");
        notes.contains("enlarge and shrink")
    };
    assert!(warned(&[]));
    assert!(!warned(&["--views", "only-flip", "--answer-views", "only-flip"]));
}
