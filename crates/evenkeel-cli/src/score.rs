//! `evenkeel score`: results on disk against truths on disk, as the official tools score them.

use anyhow::{Result, ensure};
use clap::{Args, Subcommand, ValueEnum};
use evenkeel_data::dataset::{Offender, coco_json};
use evenkeel_data::metric::instance::{FileComparison, NAMES, Regions};
use evenkeel_data::metric::{Bootstrap, ClassOverlap, FolderComparison, Interval};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Score results against the truth, in agreement with the official tools
#[derive(Debug, Args)]
pub(crate) struct ScoreArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// COCO average precision and recall, all twelve numbers
    Instances(InstancesArgs),
    /// mIoU, per-class IoU and pixel accuracy of label maps
    Semantic(SemanticArgs),
}

#[derive(Debug, Args)]
struct InstancesArgs {
    /// Annotations: a COCO instances JSON
    ground_truth: PathBuf,
    /// Detections: a COCO results JSON
    results: PathBuf,
    /// What is compared
    #[arg(long, value_enum, default_value = "masks")]
    regions: RegionsArg,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RegionsArg {
    /// Masks (pycocotools' segm)
    Masks,
    /// Boxes (pycocotools' bbox)
    Boxes,
}

#[derive(Debug, Args)]
struct SemanticArgs {
    /// Folder of true label maps (grey or palette PNGs of class numbers; a Cityscapes gtFine tree)
    ground_truth: PathBuf,
    /// Folder of predicted label maps, named as the true ones
    predictions: PathBuf,
    /// Number of classes
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    classes: u16,
    /// True label of pixels that count for nothing
    #[arg(long, default_value_t = 255)]
    ignore: u16,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct CommonArgs {
    /// Draws of the bootstrap over images for 95 % confidence intervals; 0 gives none
    #[arg(long, default_value_t = 0, value_name = "DRAWS")]
    bootstrap: u32,
    /// Seed of the bootstrap
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Leave out what is broken, and count it, instead of refusing
    #[arg(long)]
    skip_bad: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const CONFIDENCE: f64 = 0.95;

impl CommonArgs {
    fn plan(&self) -> Bootstrap {
        Bootstrap { seed: self.seed, replicates: self.bootstrap }
    }

    /// Prints the report, in either form, and says what was left out.
    fn print(&self, report: &Value, text: &str, skipped: &[Offender]) -> Result<()> {
        if self.json {
            let mut report = report.clone();
            report["skipped"] = json!(skipped);
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else {
            println!("{text}");
            if !skipped.is_empty() {
                println!("left out as broken: {}", skipped.len());
            }
        }
        skipped.iter().for_each(|offender| eprintln!("skipped: {offender}"));
        Ok(())
    }
}

pub(crate) fn run(args: ScoreArgs) -> Result<()> {
    match args.what {
        What::Instances(args) => instances(&args),
        What::Semantic(args) => semantic(&args),
    }
}

fn instances(args: &InstancesArgs) -> Result<()> {
    let truth = coco_json::read_ground_truth(&args.ground_truth)?;
    let results = coco_json::read_results(&args.results)?;
    let regions = match args.regions {
        RegionsArg::Masks => Regions::Masks,
        RegionsArg::Boxes => Regions::Boxes,
    };
    let comparison = FileComparison {
        truth: (&args.ground_truth, &truth),
        results: (&args.results, &results),
        regions,
        skip_bad: args.common.skip_bad,
    };
    let (score, skipped) = comparison.score()?;
    let figures = score.figures().0;
    let intervals = score.intervals(args.common.plan(), CONFIDENCE);
    let counts = format!(
        "{} images, {} annotations, {} detections",
        truth.images.len(),
        truth.annotations.len(),
        results.len()
    );
    let rows = NAMES.iter().zip(MEANINGS).zip(figures.iter().zip(&intervals));
    let lines: Vec<String> = rows
        .map(|((name, meaning), (figure, interval))| {
            // The official tool prints -1 where there is nothing to measure.
            format!("{name:<10} {meaning:<44} {:>9.6}{}", figure.unwrap_or(-1.0), bracket(interval))
        })
        .collect();
    let named = |values: Vec<Value>| -> Value { NAMES.iter().map(|n| n.to_string()).zip(values).collect() };
    let report = json!({
        "regions": format!("{regions:?}").to_lowercase(),
        "images": truth.images.len(),
        "annotations": truth.annotations.len(),
        "detections": results.len(),
        "figures": named(figures.iter().map(|f| json!(f)).collect()),
        "intervals": named(intervals.iter().map(|i| json!(i)).collect()),
    });
    args.common.print(&report, &format!("{counts}\n{}", lines.join("\n")), &skipped)
}

/// What each of the twelve numbers is taken over.
const MEANINGS: [&str; 12] = [
    "IoU 0.50:0.95, all areas, 100 detections",
    "IoU 0.50, all areas, 100 detections",
    "IoU 0.75, all areas, 100 detections",
    "IoU 0.50:0.95, below 32x32, 100 detections",
    "IoU 0.50:0.95, 32x32 to 96x96, 100 detections",
    "IoU 0.50:0.95, above 96x96, 100 detections",
    "IoU 0.50:0.95, all areas, 1 detection",
    "IoU 0.50:0.95, all areas, 10 detections",
    "IoU 0.50:0.95, all areas, 100 detections",
    "IoU 0.50:0.95, below 32x32, 100 detections",
    "IoU 0.50:0.95, 32x32 to 96x96, 100 detections",
    "IoU 0.50:0.95, above 96x96, 100 detections",
];

fn semantic(args: &SemanticArgs) -> Result<()> {
    let comparison = FolderComparison {
        truth: &args.ground_truth,
        predicted: &args.predictions,
        classes: usize::from(args.classes),
        ignore: args.ignore,
        plan: args.common.plan(),
        skip_bad: args.common.skip_bad,
    };
    let (score, skipped) = comparison.score()?;
    ensure!(
        score.images() > 0,
        "nothing is left to score once the {} broken files are left out",
        skipped.len()
    );
    let figures = score.figures();
    let headline = [
        ("mIoU", figures.mean_iou(), score.interval(CONFIDENCE, ClassOverlap::mean_iou)),
        (
            "pixel accuracy",
            figures.pixel_accuracy(),
            score.interval(CONFIDENCE, ClassOverlap::pixel_accuracy),
        ),
    ];
    let mut text = format!("{} images", score.images());
    for (name, figure, interval) in &headline {
        text += &format!(
            "\n{name:<15} {}{}",
            figure.map_or("-".into(), |f| format!("{f:.6}")),
            bracket(interval)
        );
    }
    let class_intervals: Vec<Option<Interval>> = (0..usize::from(args.classes))
        .map(|class| score.interval(CONFIDENCE, |overlap| overlap.iou()[class]))
        .collect();
    for (class, (iou, interval)) in figures.iou().iter().zip(&class_intervals).enumerate() {
        let iou = iou.map_or("absent".into(), |iou| format!("{iou:.6}"));
        text += &format!("\nIoU of {class:<8} {iou}{}", bracket(interval));
    }
    if score.outside() > 0 {
        text += &format!(
            "\n{} labelled pixels were predicted outside the classes and count as wrong",
            score.outside()
        );
    }
    let report = json!({
        "images": score.images(),
        "mean_iou": figures.mean_iou(),
        "pixel_accuracy": figures.pixel_accuracy(),
        "class_iou": figures.iou(),
        "predicted_outside_classes": score.outside(),
        "intervals": {
            "mean_iou": headline[0].2,
            "pixel_accuracy": headline[1].2,
            "class_iou": class_intervals,
        },
    });
    args.common.print(&report, &text, &skipped)
}

fn bracket(interval: &Option<Interval>) -> String {
    interval.map_or(String::new(), |i| format!("  [{:.4}, {:.4}]", i.low, i.high))
}
