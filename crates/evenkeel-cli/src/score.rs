//! `evenkeel score`: results on disk against truths on disk, as the official tools score them.

use anyhow::{Result, anyhow, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use evenkeel_data::Error;
use evenkeel_data::dataset::{Dataset, Offender, Truth, coco_json};
use evenkeel_data::metric::instance::{FileComparison, NAMES, Regions};
use evenkeel_data::metric::{
    Bootstrap, ClassComparison, ClassLabels, ClassOverlap, FolderComparison, Interval, Metric,
    ValueComparison,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use evenkeel::task::regression::RegressionRule;

use crate::images::data_set;
use crate::predict::RESULTS;

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
    /// Top-1, top-5, calibration error and confusion of classes
    Classes(ClassesArgs),
    /// MAE, RMSE, absolute relative error, delta < 1.25 and, for maps in [0, 1], max F-measure of maps of values
    Regression(RegressionArgs),
}

#[derive(Debug, Args)]
struct InstancesArgs {
    /// Annotations: a COCO instances JSON
    ground_truth: PathBuf,
    /// Detections: a COCO results JSON, or the folder that `predict --out` wrote one to
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
struct ClassesArgs {
    /// Labels: CSV with the columns image,label, JSON from image to label, or a data set of classes as KIND:PATH, such as imagenet:FOLDER (`evenkeel list data`)
    labels: String,
    /// Answers: CSV with the columns image,class[,p0,p1,...], what `predict --json` prints, or the folder of `predict --out`
    answers: PathBuf,
    /// Number of classes; as many as the files show if left out
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    classes: Option<u32>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct RegressionArgs {
    /// Folder of true maps: .npy arrays or grey PNGs of up to 16 bits
    ground_truth: PathBuf,
    /// Folder of predicted maps, named as the true ones, or the folder of `predict --out`
    predictions: PathBuf,
    /// What the numbers of a PNG span, from 0 to the highest: the range in the network's contract
    #[arg(long, default_value = "0,1", value_name = "LOW,HIGH", value_parser = range)]
    range: [f32; 2],
    /// What one step of a PNG's numbers is worth, instead of a range (KITTI depth: 0.00390625)
    #[arg(long, value_name = "VALUE", conflicts_with = "range")]
    png_scale: Option<f64>,
    /// A 0 in a true PNG means that nothing is known there
    #[arg(long)]
    zero_is_unknown: bool,
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
    let scored = match args.what {
        What::Instances(args) => instances(&args),
        What::Semantic(args) => semantic(&args),
        What::Classes(args) => classes(&args),
        What::Regression(args) => regression(&args),
    };
    scored.map_err(|error| match error.downcast_ref() {
        Some(Error::Offenders(_)) => anyhow!("{error}\n--skip-bad leaves them out, and counts them"),
        _ => error,
    })
}

/// A metric with its figure and interval.
type Found = (&'static Metric, Option<f64>, Option<Interval>);

/// The figures of a task's metrics: for people, and for machines (names with underscores) with their intervals.
fn figures(found: &[Found]) -> (String, Value, Value) {
    let line = |(metric, figure, interval): &Found| {
        let figure = figure.map_or("-".into(), |f| format!("{f:.6}"));
        format!("\n{:<18} {figure}{}", metric.title, bracket(interval))
    };
    let key = |metric: &Metric| metric.name.replace(['-', '.'], "_");
    let values = found.iter().map(|(metric, figure, _)| (key(metric), json!(figure))).collect();
    let intervals = found.iter().map(|(metric, _, interval)| (key(metric), json!(interval))).collect();
    (found.iter().map(line).collect(), values, intervals)
}

/// Refuses a score of nothing, and says in words what was left out.
fn left_out(images: u64, unlabelled: u64, skipped: &[Offender]) -> Result<String> {
    ensure!(
        images > 0,
        "nothing is left to score: {} files are broken and {unlabelled} images have no label",
        skipped.len()
    );
    Ok(match unlabelled {
        0 => String::new(),
        _ => format!("; {unlabelled} without a label are left out"),
    })
}

/// The classes that a data set gives its images.
fn classes_of(set: &Dataset) -> Result<BTreeMap<String, usize>> {
    let class = |place: usize| match set.sample(place)?.truth {
        Truth::Class(class) => Ok((set.id(place).to_string(), class)),
        _ => bail!("{}: its truth is no class", set.id(place)),
    };
    (0..set.len()).map(class).collect()
}

fn classes(args: &ClassesArgs) -> Result<()> {
    let known = data_set(&args.labels)?.map(|set| classes_of(&set)).transpose()?;
    let comparison = ClassComparison {
        labels: known.as_ref().map_or(ClassLabels::File(Path::new(&args.labels)), ClassLabels::Known),
        answers: &args.answers,
        classes: args.classes.map(|classes| classes as usize),
        plan: args.common.plan(),
        skip_bad: args.common.skip_bad,
    };
    let (score, skipped) = comparison.score()?;
    left_out(score.images(), 0, &skipped)?;
    let of = |metric| {
        let (figure, interval) = score.figure(metric, CONFIDENCE);
        (metric, figure, interval)
    };
    let found: Vec<Found> = Metric::of_task("classification").map(of).collect();
    let (lines, values, intervals) = figures(&found);
    let matrix = score.confusion();
    let mut text = format!("{} images, {} classes{lines}", score.images(), matrix.classes());
    if matrix.classes() <= SHOWN_CLASSES {
        text += "\nconfusion (rows: true class, columns: predicted)";
        for row in matrix.rows() {
            text += "\n";
            row.iter().for_each(|count| text += &format!("{count:>7}"));
        }
    }
    let report = json!({
        "images": score.images(),
        "figures": values,
        "intervals": intervals,
        "confusion": matrix.rows().collect::<Vec<_>>(),
        "predicted_outside_classes": matrix.outside(),
    });
    args.common.print(&report, &text, &skipped)
}

/// A confusion matrix of more classes is left to --json.
const SHOWN_CLASSES: usize = 25;

/// `LOW,HIGH`.
fn range(text: &str) -> Result<[f32; 2], String> {
    let ends = text
        .split_once(',')
        .and_then(|(low, high)| Some([low.trim().parse().ok()?, high.trim().parse().ok()?]));
    ends.ok_or_else(|| format!("write it as LOW,HIGH, not {text}"))
}

fn regression(args: &RegressionArgs) -> Result<()> {
    let rule = RegressionRule {
        range: Some(args.range),
        step: args.png_scale,
        unknown: args.zero_is_unknown.then_some(0),
        ..RegressionRule::default()
    };
    rule.check()?;
    let comparison = ValueComparison {
        truth: &args.ground_truth,
        predicted: &args.predictions,
        rule,
        plan: args.common.plan(),
        skip_bad: args.common.skip_bad,
    };
    let (score, skipped) = comparison.score()?;
    let mut without = left_out(score.images(), score.unlabelled(), &skipped)?;
    if score.unanswered() > 0 {
        without += &format!("; {} labelled cells without an answer (NaN) are left out", score.unanswered());
    }
    let of = |metric| {
        let (figure, interval) = score.figure(metric, CONFIDENCE);
        (metric, figure, interval)
    };
    let found: Vec<Found> = Metric::of_task("regression").map(of).collect();
    let (lines, values, intervals) = figures(&found);
    let report = json!({
        "images": score.images(),
        "unlabelled": score.unlabelled(),
        "unanswered_cells": score.unanswered(),
        "figures": values,
        "intervals": intervals,
    });
    args.common.print(&report, &format!("{} images{without}{lines}", score.images()), &skipped)
}

fn instances(args: &InstancesArgs) -> Result<()> {
    let truth = coco_json::read_ground_truth(&args.ground_truth)?;
    let path = match args.results.is_dir() {
        true => args.results.join(RESULTS),
        false => args.results.clone(),
    };
    let results = coco_json::read_results(&path)?;
    let regions = match args.regions {
        RegionsArg::Masks => Regions::Masks,
        RegionsArg::Boxes => Regions::Boxes,
    };
    let comparison = FileComparison {
        truth: (&args.ground_truth, &truth),
        results: (&path, &results),
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
    let without = left_out(score.images(), score.unlabelled(), &skipped)?;
    let figures = score.figures();
    let headline = [
        ("mIoU", figures.mean_iou(), score.interval(CONFIDENCE, ClassOverlap::mean_iou)),
        (
            "pixel accuracy",
            figures.pixel_accuracy(),
            score.interval(CONFIDENCE, ClassOverlap::pixel_accuracy),
        ),
    ];
    let mut text = format!("{} images{without}", score.images());
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
        "unlabelled": score.unlabelled(),
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
