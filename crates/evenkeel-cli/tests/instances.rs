//! Instance segmentation as a person uses it: a contract, predictions with a results file, scores, attacks, detection, views.

use std::path::{Path, PathBuf};
use std::process::Command;

use evenkeel::image::Image;
use serde_json::{Value, json};

fn evenkeel(folder: &Path, args: &[&str]) -> (bool, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(args).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn works(folder: &Path, args: &[&str]) -> String {
    let (fine, said, complaint) = evenkeel(folder, args);
    assert!(fine, "{args:?}: {complaint}");
    said
}

fn report(folder: &Path, args: &[&str]) -> Value {
    serde_json::from_str(works(folder, args).lines().next().unwrap()).unwrap()
}

/// Grey, 24 high and 32 wide, with a red square and a green one.
fn picture() -> Image {
    let value = |i: usize| {
        let (channel, y, x) = (i / (24 * 32), i / 32 % 24, i % 32);
        let red = (4..12).contains(&y) && (8..16).contains(&x);
        let green = (12..20).contains(&y) && (16..24).contains(&x);
        match (red, green, channel) {
            (true, _, 0) | (_, true, 1) => 0.95,
            (true, ..) | (_, true, _) => 0.1,
            _ => 0.2,
        }
    };
    Image::new(24, 32, (0..3 * 24 * 32).map(value).collect()).unwrap()
}

/// A folder with the network, its contract, the picture and its annotations.
fn scratch() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let network: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cli/instances.onnx");
    std::fs::copy(network, path.join("net.onnx")).unwrap();
    std::fs::write(path.join("names.txt"), "red\ngreen\n").unwrap();
    let flags = "--task instance --head yolo-seg --confidence 0.1 --order rgb --scale 1 --mean 0,0,0 --std 1,1,1 \
                 --resize letterbox --names names.txt --ids 5,7";
    let mut args = vec!["model", "init", "net.onnx"];
    args.extend(flags.split_whitespace());
    args.extend(["--output", "predictions + prototypes", "--feature", "coarse + fine"]);
    assert!(works(path, &args).contains("written and tried"));
    picture().save_png(path.join("000042.png")).unwrap();
    let square = |x: u32, y: u32| json!([[x, y, x + 8, y, x + 8, y + 8, x, y + 8]]);
    let annotation = |id: u32, category: u32, x: u32, y: u32| {
        json!({"id": id, "image_id": 42, "category_id": category, "area": 64, "iscrowd": 0,
               "bbox": [x, y, 8, 8], "segmentation": square(x, y)})
    };
    let truth = json!({
        "images": [{"id": 42, "file_name": "000042.png", "height": 24, "width": 32}],
        "categories": [{"id": 5, "name": "red"}, {"id": 7, "name": "green"}],
        "annotations": [annotation(1, 5, 8, 4), annotation(2, 7, 16, 12)],
    });
    std::fs::write(path.join("truth.json"), truth.to_string()).unwrap();
    folder
}

#[test]
fn what_is_found_scores_fully() {
    let scratch = scratch();
    let flags = ["predict", "net.onnx", "000042.png", "--results", "found.json", "--out", "out", "--json"];
    let said = report(scratch.path(), &flags);
    let names: Vec<&str> = said["prediction"]["instances"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["red", "green"]);
    assert!(scratch.path().join("out/000042.overlay.png").is_file());
    let scored = works(scratch.path(), &["score", "instances", "truth.json", "found.json", "--json"]);
    let scored: Value = serde_json::from_str(&scored).unwrap();
    let precision = scored["figures"]["AP"].as_f64().unwrap();
    assert!(precision > 0.999, "masks go back through the letterbox to the pixel: {precision}");
    assert!(works(scratch.path(), &["predict", "net.onnx", "000042.png"]).contains("1 red, 1 green"));
}

#[test]
fn attacks_hide_everything_or_one_class() {
    let scratch = scratch();
    let budget = ["--epsilon", "120/255", "--step-size", "20/255", "--steps", "12", "--json"];
    let mut args = vec!["attack", "net.onnx", "000042.png", "--labels", "truth.json", "--out", "out"];
    args.extend(budget);
    let all = report(scratch.path(), &args);
    assert_eq!(all["score_before"], 1.0);
    assert!(all["score_after"].as_f64().unwrap() < 0.5, "{all}");
    assert!(scratch.path().join("out/pictures/000042.answer.png").is_file());
    let mut args = vec!["attack", "net.onnx", "000042.png", "--target", "vanish:red"];
    args.extend(budget);
    let one = report(scratch.path(), &args);
    let left = one["after"]["instances"].as_array().unwrap();
    assert!(left.len() == 1 && left[0]["name"] == "green", "{one}");
    let mut args = vec!["attack", "net.onnx", "000042.png", "--target", "recast:red:green"];
    args.extend(["--epsilon", "230/255", "--step-size", "40/255", "--steps", "12", "--json"]);
    let turned = report(scratch.path(), &args);
    let names: Vec<_> =
        turned["after"]["instances"].as_array().unwrap().iter().map(|i| i["name"].clone()).collect();
    assert_eq!(names, ["green", "green"], "{turned}");
}

#[test]
fn defences_detection_and_views_take_several_feature_maps() {
    let scratch = scratch();
    let flags =
        ["predict", "net.onnx", "000042.png", "--defence", "equivariance", "--defence-steps", "2", "--json"];
    assert_eq!(report(scratch.path(), &flags)["defended"], true);
    let seen = report(scratch.path(), &["detect", "net.onnx", "000042.png", "--json"]);
    assert!(seen["score"].as_f64().unwrap() >= 0.0 && seen["expected_error"].is_null(), "{seen}");
    assert!(works(scratch.path(), &["inspect-views", "net.onnx", "000042.png"]).contains("1 red, 1 green"));
    let flags = ["attack", "net.onnx", "000042.png", "--attack", "cw"];
    let (fine, _, complaint) = evenkeel(scratch.path(), &flags);
    assert!(!fine && complaint.contains("its own loss"), "{complaint}");
    let (fine, _, complaint) =
        evenkeel(scratch.path(), &["attack", "net.onnx", "000042.png", "--target", "vanish:blue"]);
    assert!(!fine && complaint.contains("blue"), "{complaint}");
}
