//! `evenkeel detect`: detection scores of images, and a threshold calibrated on clean ones.

use std::path::PathBuf;

use anyhow::{Result, bail};
use evenkeel::detect::{Calibration, Detection, Detector, DetectorKind, DetectorSpec, fit_bias};
use evenkeel::model::Model;
use serde_json::json;

use crate::knobs::{KnobArgs, table_help};
use crate::policy::PolicyArgs;
use crate::workbench::{HeadArgs, fitted, names_of, pictures, progress, truth};

/// Score images by how their views disagree, raise an alarm, and estimate how wrong the answers are
#[derive(Debug, clap::Args)]
#[command(after_long_help = table_help::<DetectorKind>())]
pub(crate) struct DetectArgs {
    /// An ONNX network, with its contract beside it
    model: PathBuf,
    /// PNG or JPEG files, or folders of them
    images: Vec<PathBuf>,
    /// The detector; `evenkeel list detectors` tells them apart
    #[arg(long, value_name = "NAME", default_value = "variance", value_parser = names_of::<DetectorKind>())]
    score: String,
    /// Calibrate on a folder of clean images and write --calibration
    #[arg(long, value_name = "CLEAN_DIR")]
    calibrate: Option<PathBuf>,
    /// Label maps of the clean images, or their class: the error estimate is fitted as well
    #[arg(long, value_name = "TRUTH", requires = "calibrate")]
    labels: Option<String>,
    /// The share of clean images that may raise an alarm
    #[arg(long, default_value_t = 0.05)]
    false_alarms: f64,
    /// The calibration file; beside the network if left out
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// The probability that the error estimate is off by more than its bound
    #[arg(long, default_value_t = 0.05)]
    delta: f64,
    #[command(flatten)]
    knobs: KnobArgs<DetectorKind>,
    #[command(flatten)]
    heads: HeadArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// One line of JSON per image
    #[arg(long)]
    json: bool,
}

impl DetectArgs {
    fn detector(&self, model: &Model) -> Result<Detector> {
        let mut spec = DetectorSpec::named(&self.score)?;
        self.knobs.apply(&mut spec)?;
        Ok(spec.build(model, self.heads.load()?)?)
    }
}

pub(crate) fn run(args: DetectArgs) -> Result<()> {
    let model = Model::load(&args.model)?;
    let beside = args.model.with_extension("calibration.toml");
    let file = args.calibration.clone().unwrap_or(beside);
    let calibration = match &args.calibrate {
        Some(folder) => {
            let calibration = calibrate(&args, &model, folder)?;
            calibration.save(&file)?;
            eprintln!(
                "{}: threshold {:.6} from {} images",
                file.display(),
                calibration.threshold,
                calibration.images
            );
            Some(calibration)
        }
        None => {
            let flag = args.calibration.as_ref().map(|_| "--calibration");
            let alarm = args.policy.load(&args.model, &model, flag)?.and_then(|policy| policy.alarm);
            match alarm {
                Some(alarm) => Some(alarm.calibration(&model)),
                None if file.exists() || args.calibration.is_some() => {
                    Some(Calibration::load(&file, &model)?)
                }
                None => None,
            }
        }
    };
    if args.images.is_empty() {
        if args.calibrate.is_none() {
            bail!("no images were given");
        }
        return Ok(());
    }
    judge(&args, &model, calibration.as_ref())
}

fn calibrate(args: &DetectArgs, model: &Model, folder: &PathBuf) -> Result<Calibration> {
    if args.labels.is_some() && !model.task.kind().estimates_error {
        bail!(
            "--labels: the error estimate is about cells, which the task {} does not have",
            model.task.name()
        );
    }
    let detector = args.detector(model)?;
    let clean = pictures(std::slice::from_ref(folder))?;
    let bar = progress(clean.len());
    let (mut scores, mut errors) = (Vec::new(), Vec::new());
    for path in &clean {
        let image = fitted(model, path)?;
        let look = detector.look(model, &image, args.labels.is_some())?;
        scores.push(look.score);
        if let (Some(labels), Some(outputs)) = (&args.labels, look.outputs) {
            let truth = truth(model, labels, path)?;
            if let Some(error) = outputs.true_error(model, &truth)? {
                errors.push((outputs.cell_variances(), error));
            }
        }
        bar.done(path);
    }
    let mut calibration = Calibration::new(model, &detector, &scores, args.false_alarms)?;
    calibration.bias = (!errors.is_empty()).then(|| fit_bias(&errors)).transpose()?;
    Ok(calibration)
}

fn judge(args: &DetectArgs, model: &Model, calibration: Option<&Calibration>) -> Result<()> {
    let detector = match calibration {
        Some(calibration) => calibration.detector(model, args.heads.load()?)?,
        None => args.detector(model)?,
    };
    let images = pictures(&args.images)?;
    let bar = progress(images.len());
    for path in &images {
        let image = fitted(model, path)?;
        let bias = calibration.and_then(|c| c.bias);
        let wanted = model.task.kind().estimates_error.then_some((bias.unwrap_or(0.0), args.delta));
        let Detection { score, estimate, scores, .. } = detector.detect(model, &image, wanted)?;
        let alarm = calibration.map(|c| score > c.threshold);
        let prediction = match scores {
            Some(scores) => model.task.predict(&scores, image.size())?,
            None => model.predict(&image)?,
        };
        let value = json!({
            "image": path,
            "score": score,
            "score_name": detector.name,
            "threshold": calibration.map(|c| c.threshold),
            "alarm": alarm,
            "expected_error": estimate.as_ref().map(|e| e.error),
            "expected_error_within": estimate.as_ref().map(|e| e.within),
            "confidence": estimate.as_ref().map(|e| e.confidence),
            "bias_fitted": bias.is_some(),
            "prediction": prediction.json(&model.class_info()),
        });
        let verdict = match alarm {
            Some(true) => "alarm",
            Some(false) => "no alarm",
            None => "no threshold (calibrate with --calibrate CLEAN_DIR)",
        };
        let fitted = if bias.is_some() { "" } else { " (bias not fitted)" };
        let error = estimate
            .as_ref()
            .map_or(String::new(), |e| format!(" expected error {:.3} ± {:.3}{fitted};", e.error, e.within));
        let words = format!(
            "{}: {} {score:.4}, {verdict};{error} {}",
            path.display(),
            detector.name,
            prediction.words(&model.class_info()),
        );
        bar.say(args.json, &value, &words);
        bar.done(path);
    }
    Ok(())
}
