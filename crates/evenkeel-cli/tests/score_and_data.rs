//! `evenkeel score` and `evenkeel data check` as a person uses them: output, exit codes, sentences.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/datasets").join(name)
}

fn evenkeel(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel")).current_dir(folder).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A detection file that repeats the miniature's own annotations, so every object is found.
fn perfect_results(folder: &Path) -> PathBuf {
    let truth = std::fs::read_to_string(testdata("coco/annotations/instances_val2017.json")).unwrap();
    let truth: serde_json::Value = serde_json::from_str(&truth).unwrap();
    let mut results = truth["annotations"].clone();
    for result in results.as_array_mut().unwrap() {
        result["score"] = 0.9.into();
    }
    let path = folder.join("results.json");
    std::fs::write(&path, results.to_string()).unwrap();
    path
}

#[test]
fn perfect_instances_score_one() {
    let folder = tempfile::tempdir().unwrap();
    let truth = testdata("coco/annotations/instances_val2017.json");
    let results = perfect_results(folder.path());
    for regions in ["masks", "boxes"] {
        let arguments =
            ["score", "instances", truth.to_str().unwrap(), results.to_str().unwrap(), "--regions", regions];
        let output = evenkeel(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let report = text(&output.stdout);
        assert!(report.starts_with("3 images, 4 annotations, 4 detections\n"), "{report}");
        assert!(report.lines().nth(1).unwrap().ends_with(" 1.000000"), "{report}");
        assert!(report.contains("AR_large"), "{report}");
    }
}

#[test]
fn results_cut_off_or_for_other_images_are_refused_with_two() {
    let folder = tempfile::tempdir().unwrap();
    let truth = testdata("coco/annotations/instances_val2017.json");
    let results = perfect_results(folder.path());
    let whole = std::fs::read_to_string(&results).unwrap();
    let run = || {
        let output =
            evenkeel(folder.path(), &["score", "instances", truth.to_str().unwrap(), "results.json"]);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    std::fs::write(&results, &whole[..whole.len() / 2]).unwrap();
    let sentence = run();
    assert!(sentence.contains("results.json: the JSON ends in the middle"), "{sentence}");
    std::fs::write(&results, whole.replace("\"image_id\":10", "\"image_id\":99")).unwrap();
    let sentence = run();
    assert!(sentence.contains("3 offenders") && sentence.contains("image 99"), "{sentence}");
}

#[test]
fn semantic_scores_pair_by_name_and_name_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let truth = testdata("camvid/testannot");
    let arguments = |predicted: &'static str| {
        ["score", "semantic", truth.to_str().unwrap(), predicted, "--classes", "11", "--ignore", "11"]
            .map(str::to_string)
    };
    let run = |arguments: &[String]| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        evenkeel(folder.path(), &arguments)
    };
    let predicted = folder.path().join("predicted");
    std::fs::create_dir(&predicted).unwrap();
    std::fs::copy(truth.join("0001TP_000.png"), predicted.join("0001TP_000.png")).unwrap();
    let output = run(&arguments("predicted"));
    assert_eq!(output.status.code(), Some(2));
    let complaint = text(&output.stderr);
    assert!(
        complaint.contains("write 0001TP_001.png there") && complaint.contains("--skip-bad"),
        "{complaint}"
    );
    let output = run(&[&arguments("predicted")[..], &["--skip-bad".to_string()]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    assert!(
        report.contains("mIoU            1.000000") && report.contains("left out as broken: 1"),
        "{report}"
    );
}

#[test]
fn a_sound_data_set_is_counted_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = testdata("coco");
    let output = evenkeel(folder.path(), &["data", "check", "coco", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    for line in ["3 selected, 3 sound, 0 offenders", "24x20 (3)", "4 of 4 present", "crowds         1"] {
        assert!(report.contains(line), "{line} in {report}");
    }
    assert!(folder.path().join("contact-sheet.png").is_file());
    let limited =
        ["data", "check", "coco", path.to_str().unwrap(), "--limit", "1", "--subset-seed", "3", "--no-sheet"];
    assert!(text(&evenkeel(folder.path(), &limited).stdout).contains("1 selected, 1 sound"));
}

#[test]
fn a_broken_data_set_exits_with_two_and_lists_every_offender() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.png", "b.jpg"] {
        std::fs::write(folder.path().join(name), b"not a picture").unwrap();
    }
    std::fs::copy(testdata("folder/a.png"), folder.path().join("good.png")).unwrap();
    let output = evenkeel(folder.path(), &["data", "check", "folder", ".", "--no-sheet"]);
    assert_eq!(output.status.code(), Some(2));
    let sentence = text(&output.stderr);
    assert!(
        sentence.contains("2 offenders") && sentence.contains("a.png") && sentence.contains("b.jpg"),
        "{sentence}"
    );
    let output = evenkeel(folder.path(), &["data", "check", "folder", ".", "--no-sheet", "--skip-bad"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("1 sound, 2 offenders"));
    let output = evenkeel(folder.path(), &["data", "check", "coco", "nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("annotations/instances_val2017.json"));
}

/// The folder of `predict --out` holds answers under names of their own, and pictures of them beside; images without a labelled pixel count for nothing.
#[test]
fn folders_of_answers_are_scored() {
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str, labels: Vec<u16>| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        evenkeel::LabelMap::new(2, 2, labels).unwrap().save_png(path, None).unwrap();
    };
    save("truth/a.png", vec![0, 0, 1, 255]);
    save("truth/blank.png", vec![255; 4]);
    save("out/a.labels.png", vec![0, 1, 1, 0]);
    save("out/a.overlay.png", vec![1; 4]);
    save("out/blank.labels.png", vec![1; 4]);
    let json = |arguments: &[&str]| -> serde_json::Value {
        let output = evenkeel(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let report = json(&["score", "semantic", "truth", "out", "--classes", "2", "--json"]);
    assert_eq!((report["images"].as_u64(), report["unlabelled"].as_u64()), (Some(1), Some(1)));
    assert_eq!(report["mean_iou"], 0.5);
    let values = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/metrics/values");
    let at = |name: &str| values.join(name).to_str().unwrap().to_string();
    let report = json(&["score", "regression", &at("depth/truth"), &at("depth/predicted"), "--json"]);
    assert!((report["figures"]["mae"].as_f64().unwrap() - 1.0145102574723184).abs() < 1e-9, "{report}");
    let report = json(&["score", "classes", &at("labels.csv"), &at("answers.csv"), "--json"]);
    assert_eq!(report["figures"]["top5"], 0.85);
    assert_eq!(report["confusion"].as_array().unwrap().len(), 7);
    let listed = json(&["list", "metrics", "--json"]);
    let mae = listed.as_array().unwrap().iter().find(|m| m["name"] == "mae").unwrap();
    assert_eq!((&mae["tasks"][0], &mae["higher_is_better"]), (&"regression".into(), &false.into()));
}

/// A data set is its own table of labels; a folder that is none is told what would be one.
#[test]
fn answers_are_scored_against_the_data_set_they_are_for() {
    let folder = tempfile::tempdir().unwrap();
    let set = "scenes-objects:5@64x64";
    let run = |arguments: &[&str]| evenkeel(folder.path(), arguments);
    let output = run(&["predict", "embedded:classifier", set, "--out", "out"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = run(&["score", "classes", set, "out"]);
    assert!(text(&output.stdout).contains("5 images, 10 classes"), "{}", text(&output.stderr));
    for (labels, cure) in [("out", "is a folder; write CSV"), ("scenes:5@64x32", "its truth is no class")] {
        let output = run(&["score", "classes", labels, "out"]);
        assert_eq!(output.status.code(), Some(2), "{labels}");
        assert!(text(&output.stderr).contains(cure), "{}", text(&output.stderr));
    }
}
