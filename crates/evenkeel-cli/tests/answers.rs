//! What `predict --out` writes and `score` reads comes to the figure that a study gives for the same images: for every task, on images that the network's frame stretches,
//! crops or pads.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use evenkeel::shipped;
use evenkeel_data::dataset::scenes::{Split, object, render};
use evenkeel_data::metric::{Bootstrap, Metric};
use evenkeel_study::experiment::Experiment;
use evenkeel_study::rows::Row;
use evenkeel_study::run::{Effort, Study, Watch};
use evenkeel_study::store::{Shard, Store};
use serde_json::{Value, json};

struct Quiet;

impl Watch for Quiet {
    fn done(&self, _: usize, _: Option<f64>) {}
}

/// A network, its contract and images in a folder.
struct Workspace(tempfile::TempDir);

impl Workspace {
    /// The network and its contract, whose frame is another one here.
    fn new(network: &[u8], contract: &str, rule: &str, (height, width): (usize, usize)) -> Self {
        let workspace = Self(tempfile::tempdir().unwrap());
        workspace.write("net.onnx", network);
        let kept = contract.lines().filter(|line| !line.starts_with("resize") && !line.starts_with("size"));
        let kept = kept.collect::<Vec<_>>().join("\n") + "\n";
        let input = format!("[input]\nresize = {rule:?}\nsize = [{height}, {width}]");
        workspace.write("net.evenkeel.toml", kept.replace("[input]", &input).as_bytes());
        workspace
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn run(&self, line: &str) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        let output = command.args(line.split_whitespace()).current_dir(self.0.path()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{line}: {told}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The figures of a study of the clean images, by the names of the task's metrics.
    fn study(&self, data: &str) -> Vec<(&'static str, Option<f64>)> {
        let network = self.at("net.onnx");
        let text = format!("name = \"same\"\n[[subject]]\nname = \"net\"\nmodel = {network:?}\n{data}\n");
        let study = Study::load(Experiment::parse(&text, Path::new("same.toml")).unwrap(), &[]).unwrap();
        let stop = AtomicBool::new(false);
        let effort = Effort { threads: 2, shard: Shard::WHOLE, save_images: false, stop: &stop };
        let store = Store::open(&self.at("same.study"), Shard::WHOLE).unwrap();
        let (store, _) = study.run(store, &effort, &Quiet).unwrap();
        let design = &study.design;
        let (card, cell) = (&design.subjects[0], &design.cells[0]);
        assert!(!card.images.is_empty());
        let row = |id: &String| Row::find(design, &store, cell, id).unwrap().expect("a result");
        let tally = |id| row(id).answer().unwrap().tally.for_metrics(card.classes).unwrap();
        let all: Vec<_> = card.images.iter().map(|id| (id.as_str(), tally(id))).collect();
        let figure = |metric: &'static Metric| {
            let summary = metric.over(all.iter().cloned(), Bootstrap::NONE);
            (metric.name, summary.map(|summary| summary.value))
        };
        Metric::of_task(&card.task).map(figure).collect()
    }

    /// Holds `score` on the folder of `predict --out` to the study; `places` are where the report has the metrics.
    fn agree(&self, data: &str, images: &str, score: &str, places: &[(&str, &str)]) {
        self.run(&format!("predict net.onnx {images} --out out"));
        let report: Value = serde_json::from_str(&self.run(&format!("score {score} --json"))).unwrap();
        let of_study = self.study(data);
        assert_eq!(of_study.len(), places.len(), "{of_study:?}");
        for (metric, place) in places {
            let scored = report.pointer(place).unwrap_or_else(|| panic!("{place}: {report}")).as_f64();
            let (_, studied) = of_study.iter().find(|(name, _)| name == metric).expect("a metric");
            match (scored, *studied) {
                (Some(scored), Some(studied)) => {
                    assert!((scored - studied).abs() < 1e-6, "{metric}: {scored} scored, {studied} studied")
                }
                (scored, studied) => assert_eq!(scored, studied, "{metric}"),
            }
        }
        let (_, first) = of_study[0];
        assert!(first.is_some_and(|figure| figure > 0.0), "there is something to agree on: {of_study:?}");
    }
}

#[test]
fn classes() {
    let net = shipped::named("classifier").unwrap();
    let workspace = Workspace::new(net.network, net.contract, "crop", (64, 64));
    let mut table = "image,label\n".to_owned();
    for number in 0..10 {
        let (class, image) = object(Split::Test, number, 70, 90);
        workspace.write(&format!("photos/p{number}.png"), &image.encode_png().unwrap());
        table += &format!("photos/p{number}.png,{class}\n");
    }
    workspace.write("labels.csv", table.as_bytes());
    let data = format!("data = \"manifest\"\npath = {:?}\nclasses = 10", workspace.at("labels.csv"));
    let places = [
        ("accuracy", "/figures/accuracy"),
        ("top5", "/figures/top5"),
        ("calibration-error", "/figures/calibration_error"),
    ];
    workspace.agree(&data, "photos", "classes labels.csv out", &places);
}

#[test]
fn label_maps() {
    let net = shipped::named("segmenter").unwrap();
    for (rule, size) in [("stretch", (64, 128)), ("letterbox", (64, 64)), ("crop", (64, 64))] {
        let workspace = Workspace::new(net.network, net.contract, rule, size);
        let mut table = "image,label_map\n".to_owned();
        for number in 0..3u64 {
            let scene = render(Split::Test.seed(number), 72, 120);
            workspace.write(&format!("photos/p{number}.png"), &scene.image.encode_png().unwrap());
            workspace.write(&format!("truth/p{number}.png"), &scene.labels.encode_png(None).unwrap());
            table += &format!("photos/p{number}.png,truth/p{number}.png\n");
        }
        workspace.write("table.csv", table.as_bytes());
        let data = format!("data = \"manifest\"\npath = {:?}\nclasses = 11", workspace.at("table.csv"));
        let places = [("miou", "/mean_iou"), ("pixel-accuracy", "/pixel_accuracy")];
        workspace.agree(&data, "photos", "semantic truth out --classes 11", &places);
    }
}

/// Depths, whose pictures lie beside their truths, in a frame of another shape; and what a crop does not show has no answer.
#[test]
fn values() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/regression");
    let read = |name: &str| std::fs::read(testdata.join(name)).unwrap();
    let contract = "task = \"regression\"\noutput = \"depth\"\nfeature = \"depth\"\n[regression]\nunit = \"m\"\nrange = [2.0, 60.0]\n\
                    [input]\norder = \"rgb\"\nscale = 1.0\nmean = [0.0, 0.0, 0.0]\nstd = [1.0, 1.0, 1.0]\n";
    for (rule, size) in [("stretch", (40, 80)), ("letterbox", (64, 64)), ("crop", (40, 40))] {
        let workspace = Workspace::new(&read("depth.onnx"), contract, rule, size);
        let mut table = "image,truth\n".to_owned();
        for name in ["scene_0", "scene_1"] {
            workspace.write(&format!("photos/{name}.png"), &read(&format!("{name}.png")));
            workspace.write(&format!("photos/{name}.npy"), &read(&format!("{name}.npy")));
            table += &format!("photos/{name}.png,photos/{name}.npy\n");
        }
        workspace.write("table.csv", table.as_bytes());
        let data = format!("data = \"manifest\"\npath = {:?}", workspace.at("table.csv"));
        let metrics = ["mae", "rmse", "abs-rel", "delta-1.25", "max-f"];
        let places = metrics.map(|name| format!("/figures/{}", name.replace(['-', '.'], "_")));
        let places: Vec<_> = metrics.into_iter().zip(places.iter().map(String::as_str)).collect();
        workspace.agree(&data, "photos", "regression photos out", &places);
        let told = workspace.run("score regression photos out");
        assert_eq!(told.contains("without an answer"), rule == "crop", "{told}");
    }
}

/// Annotations of some images as COCO has them.
fn annotations(images: &[Value], objects: &[Value], categories: &Value) -> Vec<u8> {
    json!({ "images": images, "annotations": objects, "categories": categories }).to_string().into_bytes()
}

#[test]
fn objects() {
    let net = shipped::named("instances").unwrap();
    for (rule, size) in [("letterbox", (128, 256)), ("stretch", (128, 256))] {
        let workspace = Workspace::new(net.network, net.contract, rule, size);
        let (mut images, mut objects) = (Vec::new(), Vec::new());
        for number in 1..5u64 {
            let (scene, name) = (render(Split::Test.seed(number), 150, 240), format!("{number:012}.png"));
            workspace.write(&format!("coco/val2017/{name}"), &scene.image.encode_png().unwrap());
            images.push(json!({ "id": number, "file_name": name, "height": 150, "width": 240 }));
            for object in scene.objects(number) {
                let counts = json!({ "size": [150, 240], "counts": object.mask.to_text() });
                objects.push(json!({
                    "id": objects.len() + 1, "image_id": number, "category_id": object.category, "area": object.area,
                    "iscrowd": u8::from(object.crowd), "segmentation": counts,
                }));
            }
        }
        let categories = json!([{ "id": 1, "name": "person" }, { "id": 2, "name": "car" }]);
        workspace
            .write("coco/annotations/instances_val2017.json", &annotations(&images, &objects, &categories));
        agree_on_coco(&workspace);
    }
}

fn agree_on_coco(workspace: &Workspace) {
    let data = format!("data = \"coco\"\npath = {:?}\nsize = \"native\"", workspace.at("coco"));
    let score = "instances coco/annotations/instances_val2017.json out";
    workspace.agree(
        &data,
        "coco/val2017",
        score,
        &[("mask-ap", "/figures/AP"), ("mask-ap50", "/figures/AP50")],
    );
}

/// YOLO11n-seg, whose frame is a letterbox of 640 x 640, on photographs of COCO.
#[test]
fn objects_of_a_letterboxed_yolo_on_photographs() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("EVENKEEL_DATA").map_or(beside, PathBuf::from);
    let Ok(network) = std::fs::read(data.join("models/yolo11n-seg.onnx")) else {
        eprintln!("skipped: no models/yolo11n-seg.onnx in {}; set EVENKEEL_DATA", data.display());
        return;
    };
    let workspace = Workspace(tempfile::tempdir().unwrap());
    workspace.write("net.onnx", &network);
    workspace.run("model init net.onnx");
    let contract = std::fs::read_to_string(workspace.at("net.evenkeel.toml")).unwrap();
    assert!(contract.contains("letterbox"), "{contract}");
    let text = std::fs::read(data.join("coco/instances_val.json")).unwrap();
    let truth: Value = serde_json::from_slice(&text).unwrap();
    let mut images: Vec<Value> = truth["images"].as_array().unwrap().clone();
    images.sort_by_key(|image| image["id"].as_i64());
    images.truncate(3);
    let chosen = |object: &&Value| images.iter().any(|image| image["id"] == object["image_id"]);
    let objects: Vec<Value> =
        truth["annotations"].as_array().unwrap().iter().filter(chosen).cloned().collect();
    for name in images.iter().map(|image| image["file_name"].as_str().unwrap()) {
        let photo = std::fs::read(data.join("coco/val2017").join(name)).unwrap();
        workspace.write(&format!("coco/val2017/{name}"), &photo);
    }
    let written = annotations(&images, &objects, &truth["categories"]);
    workspace.write("coco/annotations/instances_val2017.json", &written);
    agree_on_coco(&workspace);
}
