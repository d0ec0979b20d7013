//! The binary as a person uses it: predict, attack, detect, corrupt, inspect-views and model init, in a temporary folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use evenkeel::image::{Image, LabelMap};
use serde_json::Value;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cli").join(name)
}

fn evenkeel(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(args).current_dir(folder).output().unwrap()
}

fn works(folder: &Path, args: &[&str]) -> String {
    let output = evenkeel(folder, args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The sentence of a refusal: exit code 2, one line, nothing on standard output.
fn refused(folder: &Path, args: &[&str]) -> String {
    let output = evenkeel(folder, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?}");
    said
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{l}: {e}"))).collect()
}

fn picture(height: usize, width: usize) -> Image {
    let wave = |i: usize| {
        let (c, y, x) = (i / (height * width), i / width % height, i % width);
        0.5 + 0.4 * (0.4 * x as f32 + 0.8 * c as f32).sin() * (0.3 * y as f32).cos()
    };
    Image::new(height, width, (0..3 * height * width).map(wave).collect()).unwrap()
}

/// A folder with both networks, their contracts, and some pictures.
fn scratch() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["segmenter", "classifier"] {
        std::fs::copy(testdata(&format!("{name}.onnx")), folder.path().join(format!("{name}.onnx"))).unwrap();
        let task = if name == "segmenter" { "semantic" } else { "classification" };
        let model = format!("{name}.onnx");
        let mut args =
            vec!["model", "init", &model, "--task", task, "--feature", "features", "--order", "rgb"];
        args.extend([
            "--scale",
            "1",
            "--mean",
            "0.5,0.5,0.5",
            "--std",
            "0.25,0.25,0.25",
            "--resize",
            "refuse",
        ]);
        if name == "segmenter" {
            args.extend(["--palette", "voc:4"]);
        }
        assert!(works(folder.path(), &args).contains("written and tried"));
    }
    picture(32, 48).save_png(folder.path().join("scene.png")).unwrap();
    picture(16, 16).save_png(folder.path().join("tile.png")).unwrap();
    folder
}

#[test]
fn predictions_are_said_and_written() {
    let scratch = scratch();
    let said = works(scratch.path(), &["predict", "segmenter.onnx", "scene.png", "--out", "out"]);
    assert!(said.starts_with("scene.png: class "), "{said}");
    let labels = LabelMap::load(scratch.path().join("out/scene.labels.png")).unwrap();
    assert_eq!(labels.size(), (32, 48));
    assert!(Image::load(scratch.path().join("out/scene.overlay.png")).is_ok());
    let args = [
        "predict",
        "classifier.onnx",
        "tile.png",
        "--json",
        "--defence",
        "equivariance",
        "--defence-steps",
        "2",
    ];
    let answers = lines(&works(scratch.path(), &args));
    assert!(answers[0]["prediction"]["class"].as_u64().unwrap() < 3 && answers[0]["defended"] == true);
    assert_eq!(lines(&works(scratch.path(), &args)), answers, "the same seed says the same");
}

/// A vote answers, an attack is aimed through it, a vote over noise says what is certain, and flags without an answer are refused.
#[test]
fn answers_are_voted_certified_and_attacked() {
    let scratch = scratch();
    let vote = ["predict", "segmenter.onnx", "scene.png", "--answer", "vote", "--json"];
    let voted = &lines(&works(scratch.path(), &vote))[0];
    assert!(voted["voted"] == true && voted["defended"] == false, "{voted}");
    let noise = ["predict", "classifier.onnx", "tile.png", "--answer", "noise-vote", "--answer-draws", "20"];
    let said = works(scratch.path(), &noise);
    assert!(
        said.contains("by a vote") && (said.contains("certified") || said.contains("abstains")),
        "{said}"
    );
    let through = [
        "attack",
        "segmenter.onnx",
        "scene.png",
        "--attack",
        "pgd,apgd-ce",
        "--estimator",
        "exact",
        "--epsilon",
        "32/255",
        "--steps",
        "4",
        "--draws",
        "2",
        "--final-draws",
        "2",
        "--answer",
        "vote",
        "--json",
    ];
    let report = &lines(&works(scratch.path(), &through))[0];
    assert!(report["score_after"].as_f64().unwrap() < report["score_before"].as_f64().unwrap(), "{report}");
    let idle = ["predict", "segmenter.onnx", "scene.png", "--answer-combine", "median"];
    assert!(refused(scratch.path(), &idle).contains("--answer-combine: has no effect without --answer"));
    let listed = works(scratch.path(), &["list", "answers"]);
    assert!(listed.contains("noise-vote") && listed.contains("--answer-sigma"), "{listed}");
}

#[test]
fn attacks_fool_and_say_so_after_rounding() {
    let scratch = scratch();
    let args = [
        "attack",
        "segmenter.onnx",
        "scene.png",
        "--epsilon",
        "32/255",
        "--step-size",
        "8/255",
        "--json",
        "--out",
        "out",
    ];
    let report = &lines(&works(scratch.path(), &args))[0];
    assert_eq!(report["still_fools_after_rounding"], true, "{report}");
    assert!(report["score_after"].as_f64().unwrap() < report["score_before"].as_f64().unwrap());
    assert!(report["trace"].as_array().unwrap().len() == 21);
    let (before, after) = (
        picture(32, 48).rounded_to_8_bits(),
        Image::load(scratch.path().join("out/images/scene.png")).unwrap(),
    );
    let most = before.pixels().iter().zip(after.pixels()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(most <= 32.0 / 255.0 + 1e-6, "{most}");
    let args = [
        "attack",
        "classifier.onnx",
        "tile.png",
        "--target",
        "2",
        "--epsilon",
        "0.5",
        "--step-size",
        "0.05",
        "--json",
    ];
    let report = &lines(&works(scratch.path(), &args))[0];
    assert_eq!(report["after"]["class"], 2, "{report}");
    let args = ["attack", "classifier.onnx", "tile.png", "--attack", "bpda,fgsm", "--defence", "random"];
    assert!(works(scratch.path(), &args).contains("score"));
}

#[test]
fn the_alarm_is_calibrated_and_raised() {
    let scratch = scratch();
    std::fs::create_dir(scratch.path().join("clean")).unwrap();
    for i in 0..4 {
        let image = picture(32, 48 + 8 * i);
        image.save_png(scratch.path().join(format!("clean/{i}.png"))).unwrap();
    }
    let args = ["detect", "segmenter.onnx", "scene.png", "--calibrate", "clean"];
    let few = refused(scratch.path(), &args);
    assert!(few.contains("4 images cannot promise 5") && few.contains("it takes 19"), "{few}");
    let args =
        ["detect", "segmenter.onnx", "scene.png", "--calibrate", "clean", "--false-alarms", "0.25", "--json"];
    let verdict = &lines(&works(scratch.path(), &args))[0];
    assert!(verdict["alarm"].is_boolean() && verdict["expected_error"].is_number(), "{verdict}");
    let again = works(scratch.path(), &["detect", "segmenter.onnx", "scene.png", "--json"]);
    assert_eq!(&lines(&again)[0], verdict, "the calibration beside the network is found");
    let one = [&args[..], &["--threads", "1"]].concat();
    assert_eq!(&lines(&works(scratch.path(), &one))[0], verdict, "one thread calibrates and judges alike");
    let args = [
        "predict",
        "segmenter.onnx",
        "scene.png",
        "--detect",
        "--calibration",
        "segmenter.calibration.toml",
        "--defence",
        "random",
    ];
    let said = works(scratch.path(), &args);
    assert!(said.contains("alarm"), "{said}");
    let beside = ["predict", "segmenter.onnx", "scene.png", "--detect", "--defence", "random"];
    assert_eq!(
        works(scratch.path(), &beside),
        said,
        "predict finds the calibration beside the network, as detect does"
    );
    std::fs::copy(
        scratch.path().join("segmenter.calibration.toml"),
        scratch.path().join("classifier.calibration.toml"),
    )
    .unwrap();
    assert!(refused(scratch.path(), &["detect", "classifier.onnx", "tile.png"]).contains("another model"));
}

#[test]
fn views_are_shown_on_one_sheet() {
    let scratch = scratch();
    let said = works(scratch.path(), &["inspect-views", "segmenter.onnx", "scene.png", "--out", "out"]);
    assert_eq!(said.matches("differs on").count(), 8, "{said}");
    assert!(Image::load(scratch.path().join("out/scene.views.png")).unwrap().height() > 9 * 30);
    let warped =
        works(scratch.path(), &["inspect-views", "segmenter.onnx", "scene.png", "--views", "only-elastic"]);
    assert_eq!(warped.matches("elastic, up to 4.0 %: differs on").count(), 8, "{warped}");
    let unknown = ["inspect-views", "segmenter.onnx", "scene.png", "--views", "only-nothing"];
    assert!(refused(scratch.path(), &unknown).contains("only-elastic"));
}

/// Without a terminal, what was done is printed in plain lines on standard error, and results alone on standard output.
#[test]
fn progress_is_told_in_lines() {
    let scratch = scratch();
    let output = evenkeel(scratch.path(), &["predict", "segmenter.onnx", "scene.png", "tile.png", "--json"]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "1/2 images scene.png\n2/2 images tile.png\n");
    assert_eq!(lines(&String::from_utf8(output.stdout).unwrap()).len(), 2);
    assert!(evenkeel(scratch.path(), &["predict", "segmenter.onnx", "scene.png"]).stderr.is_empty());
}

/// Files are the same for any number of threads.
#[test]
fn threads_do_not_change_a_byte() {
    let scratch = scratch();
    let files = |threads: &str| -> Vec<Vec<u8>> {
        let run = |args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
            command.args(args).args(["--out", threads]).current_dir(scratch.path());
            assert!(command.env("RAYON_NUM_THREADS", threads).output().unwrap().status.success(), "{args:?}");
        };
        run(&["predict", "segmenter.onnx", "scene.png", "--defence", "equivariance", "--defence-steps", "3"]);
        run(&[
            "attack",
            "segmenter.onnx",
            "scene.png",
            "--steps",
            "4",
            "--attack",
            "bpda",
            "--defence",
            "random",
        ]);
        run(&["corrupt", "scene.png", "--corruption", "all"]);
        let inside = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
        let top = scratch.path().join(threads);
        let mut paths: Vec<PathBuf> = inside(&top).filter(|path| path.is_dir()).collect();
        paths = paths.iter().flat_map(|folder| inside(folder)).chain(inside(&top)).collect();
        paths.retain(|path| path.is_file());
        paths.sort();
        paths.iter().map(|p| std::fs::read(p).unwrap()).collect()
    };
    let one = files("1");
    assert_eq!(one.len(), 4 + 2 + 15);
    assert!(one == files("3"), "three threads wrote other files than one");
}

#[test]
fn corruptions_are_written() {
    let scratch = scratch();
    let args =
        ["corrupt", "scene.png", "--corruption", "fog,jpeg_compression", "--severity", "1,5", "--out", "out"];
    assert_eq!(works(scratch.path(), &args).lines().count(), 4);
    let plain = Image::load(scratch.path().join("out/fog_5/scene.png")).unwrap();
    for (format, file, most) in [("jpeg", "fog_5/scene.jpg", 0.1), ("png16", "fog_5/scene.png", 0.5 / 255.0)]
    {
        let args = [
            "corrupt",
            "scene.png",
            "--corruption",
            "fog",
            "--severity",
            "5",
            "--out",
            format,
            "--format",
            format,
        ];
        works(scratch.path(), &args);
        let other = Image::load(scratch.path().join(format).join(file)).unwrap();
        let apart = plain.pixels().iter().zip(other.pixels()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart > 0.0 && apart <= most + 1e-6, "{format}: {apart}");
    }
    assert!(
        refused(scratch.path(), &["corrupt", "tile.png", "--corruption", "fog"]).contains("at least 32x32")
    );
    assert!(refused(scratch.path(), &["corrupt", "scene.png", "--corruption", "rain"]).contains("snow"));
}

/// Bad input gives a sentence that says what and where, exit code 2, and leaves nothing behind.
#[test]
fn bad_input_is_refused_in_words() {
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    std::fs::write(at("empty.png"), b"").unwrap();
    std::fs::write(at("cut.png"), &std::fs::read(at("scene.png")).unwrap()[..200]).unwrap();
    let mut huge = std::fs::read(at("scene.png")).unwrap();
    huge[16..24].copy_from_slice(&[0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]);
    std::fs::write(at("huge.png"), huge).unwrap();
    // a frame header of four components is all there need be
    let inks = [&[0xff, 0xd8, 0xff, 0xc0, 0, 20, 8, 0, 16, 0, 16, 4][..], &[0; 40]].concat();
    std::fs::write(at("inks.jpg"), inks).unwrap();
    picture(1, 1).save_png(at("dot.png")).unwrap();
    LabelMap::new(8, 8, vec![0; 64]).unwrap().save_png(at("small_labels.png"), None).unwrap();
    LabelMap::new(32, 48, vec![9; 32 * 48]).unwrap().save_png(at("labels9.png"), None).unwrap();
    std::fs::copy(testdata("poisoned.onnx"), at("poisoned.onnx")).unwrap();
    std::fs::copy(at("classifier.evenkeel.toml"), at("poisoned.evenkeel.toml")).unwrap();
    std::fs::copy(testdata("classifier.onnx"), at("bare.onnx")).unwrap();
    std::fs::create_dir(at("twin")).unwrap();
    std::fs::copy(at("scene.png"), at("twin/scene.png")).unwrap();
    let before = std::fs::read_dir(scratch.path()).unwrap().count();
    for (args, words) in [
        (vec!["predict", "segmenter.onnx", "empty.png"], "empty.png: the file is empty"),
        (vec!["predict", "segmenter.onnx", "cut.png"], "cut.png: cut short"),
        (vec!["predict", "segmenter.onnx", "huge.png"], "huge.png: the header announces 30000x30000"),
        (
            vec!["predict", "segmenter.onnx", "missing.png"],
            "error: missing.png: No such file or directory (os error 2)\n",
        ),
        (vec!["predict", "segmenter.onnx", "inks.jpg"], "inks.jpg: a CMYK JPEG"),
        (
            vec!["detect", "segmenter.onnx", "scene.png", "--calibration", "none.toml"],
            "none.toml: No such file",
        ),
        (vec!["predict", "classifier.onnx", "dot.png"], "dot.png: image: 1x1 is too small"),
        (vec!["predict", "segmenter.onnx", "dot.png"], "dot.png: image: 1x1 is too small"),
        (vec!["predict", "classifier.onnx", "scene.png"], "expected 16x16, got 48x32"),
        (vec!["predict", "poisoned.onnx", "tile.png"], "poisoned.onnx: tensor scores is not a finite number"),
        (vec!["predict", "gone.onnx", "tile.png"], "gone.onnx: No such file"),
        (vec!["predict", "bare.onnx", "tile.png"], "evenkeel model init bare.onnx"),
        (vec!["predict", "scene.png", "scene.png"], "scene"),
        (
            vec!["attack", "segmenter.onnx", "scene.png", "--labels", "small_labels.png"],
            "small_labels.png: is 8x8, the image 48x32",
        ),
        (
            vec!["attack", "segmenter.onnx", "scene.png", "--labels", "labels9.png"],
            "labels9.png: label 9 has no class",
        ),
        (
            vec!["attack", "segmenter.onnx", "scene.png", "--labels", "scene.png"],
            "at row 0, column 0 belongs to no class of the palette",
        ),
        (vec!["attack", "segmenter.onnx", "scene.png", "--attack", "cw-l2", "--l2"], "classifiers"),
        (vec!["attack", "segmenter.onnx", "scene.png", "--epsilon", "lots"], "lots"),
        (vec!["attack", "segmenter.onnx", "scene.png", "--attack", "bpda"], "needs --defence"),
        (vec!["attack", "segmenter.onnx", "scene.png", "--epsilon", "4"], "did you mean 4/255"),
        (
            vec!["attack", "segmenter.onnx", "scene.png", "--attack", "fgsm", "--steps", "3"],
            "does not read `steps`",
        ),
        (vec!["attack", "segmenter.onnx", "scene.png", "--draws", "5"], "needs --defence"),
        (
            vec!["predict", "segmenter.onnx", "scene.png", "--defence-steps", "3"],
            "has no effect without --defence",
        ),
        (vec!["attack", "segmenter.onnx", "scene.png", "--attack", "fab"], "classifiers"),
        (vec!["predict", "segmenter.onnx", "scene.png", "--defence", "rotation"], "head"),
        (
            vec!["predict", "segmenter.onnx", "scene.png", "twin/scene.png", "--out", "out"],
            "scene.png and twin/scene.png have the same name",
        ),
        (vec!["detect", "segmenter.onnx"], "no images"),
        (vec!["model", "init", "segmenter.onnx"], "--force"),
        (vec!["model", "init", "bare.onnx", "--size", "7"], "WIDTHxHEIGHT"),
        (
            vec!["model", "init", "bare.onnx", "--head", "yolo-seg"],
            "--head: the task classification does not read it",
        ),
    ] {
        let said = refused(scratch.path(), &args);
        assert!(said.contains(words), "{args:?} said {said:?}");
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), before, "something was left behind");
}
