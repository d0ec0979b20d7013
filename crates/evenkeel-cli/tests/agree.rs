//! What `predict --out` writes, scored by `score`, and a study of the same images come to the same figure.

use std::path::Path;
use std::process::Command;

use evenkeel::{Image, LabelMap, Random};
use serde_json::json;

fn works(folder: &Path, args: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The first figure that a score prints.
fn scored(folder: &Path, args: &[&str], metric: &str) -> f64 {
    let said = works(folder, args);
    let line = said.lines().find(|line| line.starts_with(metric)).unwrap_or_else(|| panic!("{said}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// The same figure of a study's clean images.
fn studied(folder: &Path, model: &str, table: &str) -> f64 {
    study(folder, model, &format!("data = \"manifest\"\npath = \"{table}\""))
}

fn study(folder: &Path, model: &str, data: &str) -> f64 {
    let experiment = format!(
        "name = \"n\"\n[[subject]]\nname = \"s\"\nmodel = \"{model}\"\n{data}\n[[defence]]\nkind = \"none\"\n"
    );
    std::fs::write(folder.join("study.toml"), experiment).unwrap();
    works(folder, &["study", "run", "study.toml", "--out", model.trim_end_matches(".onnx")]);
    works(folder, &["study", "report", model.trim_end_matches(".onnx")]);
    let table = folder.join(model.trim_end_matches(".onnx")).join("report/s-metrics.csv");
    let text = std::fs::read_to_string(table).unwrap();
    text.lines().nth(1).unwrap().split(',').nth(2).unwrap().parse().unwrap()
}

fn contract(folder: &Path, network: &str, text: &str) {
    let input = "[input]\norder = \"rgb\"\nscale = 1.0\nresize = \"refuse\"\n";
    std::fs::write(folder.join(network).with_extension("evenkeel.toml"), text.replace("[input]\n", input))
        .unwrap();
}

#[test]
fn a_folder_of_answers_scores_what_a_study_says() {
    let scratch = tempfile::tempdir().unwrap();
    let (here, mut random) = (scratch.path(), Random::new(3));
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    for (from, name) in [("cli", "segmenter"), ("cli", "classifier"), ("regression", "depth")] {
        std::fs::copy(testdata.join(from).join(format!("{name}.onnx")), here.join(format!("{name}.onnx")))
            .unwrap();
    }
    let grey = "[input]\nmean = [0.5, 0.5, 0.5]\nstd = [0.25, 0.25, 0.25]\n";
    let of = |task: &str| format!("task = \"{task}\"\noutput = \"scores\"\nfeature = \"features\"\n{grey}");
    contract(here, "segmenter.onnx", &of("semantic"));
    contract(here, "classifier.onnx", &of("classification"));
    let depth = "task = \"regression\"\noutput = \"depth\"\nfeature = \"depth\"\n[input]\nmean = [0.0, 0.0, 0.0]\nstd = [1.0, 1.0, 1.0]\nmultiple = 8\n\
                 [regression]\nunit = \"m\"\n";
    contract(here, "depth.onnx", depth);
    ["pics", "labels", "streets", "depths"]
        .iter()
        .for_each(|name| std::fs::create_dir(here.join(name)).unwrap());
    let (mut maps, mut classes) = ("image,label_map\n".to_string(), "image,label\n".to_string());
    for k in 0..5 {
        let pixels = (0..3 * 16 * 16).map(|_| random.unit()).collect();
        Image::new(16, 16, pixels).unwrap().save_png(here.join(format!("pics/p{k}.png"))).unwrap();
        let labels = (0..256).map(|i| if i < 20 { 255 } else { (random.unit() * 4.0) as u16 }).collect();
        LabelMap::new(16, 16, labels).unwrap().save_png(here.join(format!("labels/p{k}.png")), None).unwrap();
        maps += &format!("pics/p{k}.png,labels/p{k}.png\n");
        classes += &format!("pics/p{k}.png,{}\n", k % 3);
    }
    let mut depths = "image,truth\n".to_string();
    for k in 0..2 {
        let (image, values) = (format!("streets/scene_{k}.png"), format!("depths/scene_{k}.npy"));
        for (ending, to) in [("png", &image), ("npy", &values)] {
            std::fs::copy(testdata.join(format!("regression/scene_{k}.{ending}")), here.join(to)).unwrap();
        }
        depths += &format!("{image},{values}\n");
    }
    for (name, text) in [("maps.csv", maps), ("classes.csv", classes), ("depths.csv", depths)] {
        std::fs::write(here.join(name), text).unwrap();
    }
    works(here, &["predict", "segmenter.onnx", "pics", "--out", "said/maps"]);
    works(here, &["predict", "classifier.onnx", "pics", "--out", "said/classes"]);
    works(here, &["predict", "depth.onnx", "streets", "--out", "said/depths"]);
    let cases: [(&[&str], &str, &str, &str, f64); 3] = [
        (
            &["score", "semantic", "labels", "said/maps", "--classes", "4"],
            "mIoU",
            "segmenter.onnx",
            "maps.csv",
            100.0,
        ),
        (
            &["score", "classes", "classes.csv", "said/classes"],
            "accuracy",
            "classifier.onnx",
            "classes.csv",
            100.0,
        ),
        (&["score", "regression", "depths", "said/depths"], "MAE", "depth.onnx", "depths.csv", 1.0),
    ];
    for (score, metric, model, table, unit) in cases {
        let (scored, studied) = (unit * scored(here, score, metric), studied(here, model, table));
        // as far as a report prints digits
        let digit = if unit > 1.0 { 0.0501 } else { 5.01e-5 };
        assert!((scored - studied).abs() <= digit, "{metric}: {scored} and {studied}");
    }
}

/// Grey, 24 high and 32 wide, with a red square and a green one whose corners these are, (down, right). The paler, the less sure is the network; among equals
/// the order of the images would decide.
fn squares(red: (usize, usize), green: (usize, usize), pale: f32) -> Image {
    let value = |i: usize| {
        let (channel, y, x) = (i / (24 * 32), i / 32 % 24, i % 32);
        let within = |at: (usize, usize)| (at.0..at.0 + 8).contains(&y) && (at.1..at.1 + 8).contains(&x);
        match (within(red), within(green), channel) {
            (true, _, 0) | (_, true, 1) => 0.95 - pale,
            (true, ..) | (_, true, _) => 0.1,
            _ => 0.2,
        }
    };
    Image::new(24, 32, (0..3 * 24 * 32).map(value).collect()).unwrap()
}

/// Objects are found in a letterbox and scored on the pictures as they came; the truth is partly missed, so that the figure is neither 0 nor 1.
#[test]
fn a_folder_of_instances_scores_what_a_study_says() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cli/instances.onnx");
    std::fs::copy(network, here.join("net.onnx")).unwrap();
    std::fs::write(here.join("names.txt"), "red\ngreen\n").unwrap();
    let flags = "--task instance --head yolo-seg --confidence 0.1 --order rgb --scale 1 --mean 0,0,0 --std 1,1,1 \
                 --resize letterbox --names names.txt --ids 5,7";
    let mut args = vec!["model", "init", "net.onnx"];
    args.extend(flags.split_whitespace());
    args.extend(["--output", "predictions + prototypes", "--feature", "coarse + fine"]);
    works(here, &args);
    std::fs::create_dir_all(here.join("coco/val2017")).unwrap();
    let (mut images, mut annotations) = (Vec::new(), Vec::new());
    for k in 0..4usize {
        let (red, green) = ((4, 8 * (k % 3)), (12, 24 - 8 * (k % 2)));
        let name = format!("{k:06}.png");
        squares(red, green, 0.05 * ((k * 3) % 4) as f32)
            .save_png(here.join("coco/val2017").join(&name))
            .unwrap();
        images.push(json!({"id": k, "file_name": name, "height": 24, "width": 32}));
        // every truth lies k pixels to the right of what is seen
        for (category, (y, x)) in [(5, red), (7, green)] {
            let (left, right) = ((x + k).min(31), (x + k + 8).min(32));
            let (width, outline) = (right - left, json!([[left, y, right, y, right, y + 8, left, y + 8]]));
            annotations.push(json!({"id": annotations.len() + 1, "image_id": k, "category_id": category,
                "area": 8 * width, "iscrowd": 0, "bbox": [left, y, width, 8], "segmentation": outline}));
        }
    }
    let truth = json!({"images": images, "annotations": annotations,
        "categories": [{"id": 5, "name": "red"}, {"id": 7, "name": "green"}]});
    std::fs::write(here.join("coco/instances_val.json"), truth.to_string()).unwrap();
    works(here, &["predict", "net.onnx", "coco/val2017", "--out", "said"]);
    let said = works(here, &["score", "instances", "coco/instances_val.json", "said", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let scored = 100.0 * said["figures"]["AP"].as_f64().unwrap();
    let studied = study(here, "net.onnx", "data = \"coco\"\npath = \"coco\"\nsize = \"native\"");
    assert!(scored > 10.0 && scored < 90.0, "{scored} tells nothing");
    assert!((scored - studied).abs() <= 0.0501, "{scored} and {studied}");
}
