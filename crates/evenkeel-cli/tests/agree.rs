//! What `predict --out` writes, scored by `score`, and a study of the same images come to the same figure.

use std::path::Path;
use std::process::Command;

use evenkeel::{Image, LabelMap, Random};

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
    let experiment = format!(
        "name = \"n\"\n[[subject]]\nname = \"s\"\nmodel = \"{model}\"\ndata = \"manifest\"\npath = \"{table}\"\n[[defence]]\nkind = \"none\"\n"
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
    let bench = tempfile::tempdir().unwrap();
    let (here, mut random) = (bench.path(), Random::new(3));
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
