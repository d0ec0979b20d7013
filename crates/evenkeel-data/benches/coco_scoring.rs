//! Scoring 5000 images' worth of COCO results (36 000 truths, 100 000 detections), beside pycocotools in the same run.
//!
//! `cargo bench -p evenkeel-data --bench coco_scoring`. The files are synthetic, from a seed. Each side reads the two
//! files, scores masks and gives the twelve numbers in a process of its own, which reports seconds and how far its resident
//! memory rose from when its program and libraries were loaded to the peak.
//! The peer is `benches/peers/coco_scoring.py` under $EVENKEEL_PYTHON or `python3`; where that or pycocotools is missing,
//! only our own figures are printed.

use evenkeel::Random;
use evenkeel_data::dataset::coco_json::{read_ground_truth, read_results};
use evenkeel_data::mask::Rle;
use evenkeel_data::metric::instance::{FileComparison, Regions};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const IMAGES: usize = 5000;
const TRUTHS: usize = 36_000;
const DETECTIONS: usize = 100_000;
const CATEGORIES: usize = 80;
const HEIGHT: u32 = 480;
const WIDTH: u32 = 640;

/// An ellipse as a polygon: centre and radii.
#[derive(Clone, Copy)]
struct Blob {
    x: f64,
    y: f64,
    across: f64,
    down: f64,
}

impl Blob {
    fn random(random: &mut Random) -> Self {
        let mut between = |low: f32, high: f32| f64::from(random.uniform(low, high));
        let size = between(1.5, 5.0).exp();
        let (across, down) = (size * between(0.6, 1.6), size * between(0.6, 1.6));
        Self { x: between(0.0, WIDTH as f32), y: between(0.0, HEIGHT as f32), across, down }
    }

    fn moved(self, random: &mut Random) -> Self {
        let mut near = || f64::from(random.uniform(-0.15, 0.15));
        let (x, y) = (self.x + near() * self.across, self.y + near() * self.down);
        Self { x, y, across: self.across * (1.0 + near()), down: self.down * (1.0 + near()) }
    }

    /// A wobbly outline of 24 points inside the image.
    fn polygon(self, random: &mut Random) -> Vec<f64> {
        (0..24)
            .flat_map(|k| {
                let angle = f64::from(k) * std::f64::consts::TAU / 24.0;
                let radius = 1.0 + f64::from(random.uniform(-0.1, 0.1));
                let x = (self.x + self.across * radius * angle.cos()).clamp(0.0, f64::from(WIDTH));
                let y = (self.y + self.down * radius * angle.sin()).clamp(0.0, f64::from(HEIGHT));
                [(x * 100.0).round() / 100.0, (y * 100.0).round() / 100.0]
            })
            .collect()
    }
}

fn write_files(folder: &Path) {
    let mut random = Random::new(5);
    let (mut annotations, mut blobs) = (Vec::new(), Vec::new());
    for id in 1..=TRUTHS {
        let blob = Blob::random(&mut random);
        let (image, category) = (random.below(IMAGES), random.below(CATEGORIES) + 1);
        let polygon = blob.polygon(&mut random);
        let mask = Rle::from_polygon(HEIGHT, WIDTH, &polygon).expect("a polygon");
        let crowd = id % 100 == 0;
        let segmentation =
            if crowd { json!({"size": [HEIGHT, WIDTH], "counts": mask.counts()}) } else { json!([polygon]) };
        annotations.push(json!({
            "id": id, "image_id": image, "category_id": category, "iscrowd": u8::from(crowd), "area": mask.area(),
            "bbox": mask.bounding_box(), "segmentation": segmentation,
        }));
        blobs.push((image, category, blob));
    }
    let detections: Vec<Value> = (0..DETECTIONS)
        .map(|_| {
            let (image, category, blob) = blobs[random.below(TRUTHS)];
            let blob = if random.chance(0.7) { blob.moved(&mut random) } else { Blob::random(&mut random) };
            let mask = Rle::from_polygon(HEIGHT, WIDTH, &blob.polygon(&mut random)).expect("a polygon");
            json!({
                "image_id": image, "category_id": category, "score": (random.unit() * 1000.0).round() / 1000.0,
                "segmentation": {"size": [HEIGHT, WIDTH], "counts": mask.to_text()},
            })
        })
        .collect();
    let images: Vec<Value> =
        (0..IMAGES).map(|id| json!({"id": id, "height": HEIGHT, "width": WIDTH})).collect();
    let categories: Vec<Value> = (1..=CATEGORIES).map(|id| json!({"id": id})).collect();
    let truth = json!({"images": images, "annotations": annotations, "categories": categories});
    std::fs::write(folder.join("truth.json"), truth.to_string()).expect("room for the truth");
    std::fs::write(folder.join("results.json"), Value::from(detections).to_string())
        .expect("room for the results");
}

/// This process's side: scores and reports.
fn score(folder: &Path) {
    let before = resident_megabytes("VmRSS:");
    let start = Instant::now();
    let (truth_path, results_path) = (folder.join("truth.json"), folder.join("results.json"));
    let truth = read_ground_truth(&truth_path).expect("the truth");
    let results = read_results(&results_path).expect("the results");
    let comparison = FileComparison {
        truth: (&truth_path, &truth),
        results: (&results_path, &results),
        regions: Regions::Masks,
        skip_bad: false,
    };
    let figures = comparison.score().expect("a score").0.figures().0.map(|figure| figure.unwrap_or(-1.0));
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = resident_megabytes("VmHWM:") - before;
    println!("{}", json!({"seconds": seconds, "megabytes": megabytes, "figures": figures}));
}

/// A line of this process's memory report; not a number where there is no such report.
fn resident_megabytes(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes =
        status.lines().find_map(|l| l.strip_prefix(line)?.split_whitespace().next()?.parse().ok());
    kilobytes.unwrap_or(f64::NAN) / 1024.0
}

/// Runs one side and reads its report.
fn report(command: &mut Command) -> Option<(f64, f64, Vec<f64>)> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let report: Value = serde_json::from_slice(&output.stdout).ok()?;
    let figures = report["figures"].as_array()?.iter().filter_map(Value::as_f64).collect();
    Some((report["seconds"].as_f64()?, report["megabytes"].as_f64()?, figures))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, folder] = arguments.as_slice()
        && mode == "score"
    {
        return score(Path::new(folder));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_files(folder.path());
    let own = std::env::current_exe().expect("this program's path");
    let (seconds, megabytes, figures) =
        report(Command::new(own).arg("score").arg(folder.path())).expect("our own side runs");
    println!("{IMAGES} images, {TRUTHS} truths, {DETECTIONS} detections, masks");
    println!("evenkeel     {seconds:.2} s, {megabytes:.0} MB");
    let python = std::env::var("EVENKEEL_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/coco_scoring.py");
    let Some(peer) = report(Command::new(python).arg(script).arg(folder.path())) else {
        println!("no pycocotools here to compare with");
        return;
    };
    let apart = figures.iter().zip(&peer.2).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("pycocotools  {:.2} s, {:.0} MB", peer.0, peer.1);
    println!(
        "time ratio {:.1}, memory ratio {:.1}, largest difference {apart:.1e}",
        peer.0 / seconds,
        peer.1 / megabytes
    );
}
