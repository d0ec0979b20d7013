//! `evenkeel detect`: how strange images are to a network, and a threshold calibrated on clean ones.

use std::path::PathBuf;

use anyhow::{Result, bail};
use evenkeel::detect::{Calibration, Detector, ErrorEstimate, Outputs, ViewOutputs, fit_bias};
use evenkeel::model::Model;
use evenkeel::random::Random;
use serde_json::json;

use crate::workbench::{Eyes, fitted, pictures, prediction_json, prediction_words, progress, truth};

/// Say how strange images are, and how wrong the answers may be
#[derive(Debug, clap::Args)]
pub(crate) struct DetectArgs {
    /// An ONNX network, with its contract beside it
    model: PathBuf,
    /// PNG or JPEG files, or folders of them
    images: Vec<PathBuf>,
    /// variance, variance-onehot, equivariance, invariance, rotation or contrastive
    #[arg(long, default_value = "variance")]
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
    eyes: Eyes,
    /// One line of JSON per image
    #[arg(long)]
    json: bool,
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
        None if file.exists() || args.calibration.is_some() => Some(Calibration::load(&file, &model)?),
        None => None,
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
    if args.labels.is_some() && model.task.name() == "instance" {
        bail!("--labels: the error estimate is about cells, which instances do not have");
    }
    let detector =
        Detector::named(&args.score, model, args.eyes.views()?, args.eyes.heads()?, args.eyes.seed)?;
    let clean = pictures(std::slice::from_ref(folder))?;
    let bar = progress(clean.len());
    let (mut scores, mut errors) = (Vec::new(), Vec::new());
    for path in &clean {
        let image = fitted(model, path)?;
        scores.push(detector.score(model, &image)?);
        if let Some(labels) = &args.labels {
            let truth = truth(model, labels, path, image.size())?;
            let views = detector.views.draw(&Random::new(detector.seed));
            let outputs = ViewOutputs::at(model, &image, &views, Outputs::Softmax)?;
            errors.push((outputs.cell_variances(), outputs.true_error(&truth)));
        }
        bar.done(path);
    }
    let mut calibration = Calibration::new(model, &detector, &scores, args.false_alarms)?;
    calibration.bias = (!errors.is_empty()).then(|| fit_bias(&errors)).transpose()?;
    Ok(calibration)
}

fn judge(args: &DetectArgs, model: &Model, calibration: Option<&Calibration>) -> Result<()> {
    let detector = match calibration {
        Some(c) => Detector::named(&c.score, model, c.views.clone(), args.eyes.heads()?, c.seed)?,
        None => Detector::named(&args.score, model, args.eyes.views()?, args.eyes.heads()?, args.eyes.seed)?,
    };
    let images = pictures(&args.images)?;
    let bar = progress(images.len());
    for path in &images {
        let image = fitted(model, path)?;
        let score = detector.score(model, &image)?;
        let bias = calibration.and_then(|c| c.bias);
        // the estimate is about cells, which instances do not have
        let estimate = match model.task.name() {
            "instance" => None,
            _ => Some(ErrorEstimate::of(
                model,
                &image,
                &detector.views,
                detector.seed,
                bias.unwrap_or(0.0),
                args.delta,
            )?),
        };
        let strange = calibration.map(|c| score > c.threshold);
        let prediction = model.predict(&image)?;
        let value = json!({
            "image": path,
            "score": score,
            "score_name": detector.name,
            "threshold": calibration.map(|c| c.threshold),
            "strange": strange,
            "expected_error": estimate.as_ref().map(|e| e.error),
            "expected_error_within": estimate.as_ref().map(|e| e.within),
            "confidence": estimate.as_ref().map(|e| e.confidence),
            "bias_fitted": bias.is_some(),
            "prediction": prediction_json(model, &prediction),
        });
        let verdict = match strange {
            Some(true) => "strange",
            Some(false) => "ordinary",
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
            prediction_words(model, &prediction),
        );
        bar.say(args.json, &value, &words);
        bar.done(path);
    }
    Ok(())
}
