//! `evenkeel predict`: what a network says of images, defended and doubted if asked.

use std::path::PathBuf;

use anyhow::Result;
use evenkeel::detect::{Calibration, Detector};
use evenkeel::verdict::Court;
use serde_json::json;

use crate::workbench::{
    DefenceArgs, Subject, fitted, prediction_json, prediction_words, progress, say, stem_in, write_prediction,
};

/// Say what is in images
#[derive(Debug, clap::Args)]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    defence: DefenceArgs,
    /// Score how strange each image is; with --calibration, defend only strange ones
    #[arg(long)]
    detect: bool,
    /// A calibration written by `evenkeel detect --calibrate`
    #[arg(long, value_name = "FILE", requires = "detect")]
    calibration: Option<PathBuf>,
    /// Write label maps, overlays and defended images into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// One line of JSON per image
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: PredictArgs) -> Result<()> {
    let (model, pictures) = args.subject.load()?;
    let defence = args.defence.build(&model)?;
    let eyes = &args.defence.eyes;
    let calibration = args.calibration.as_ref().map(|path| Calibration::load(path, &model)).transpose()?;
    let detector = match (&calibration, args.detect) {
        (Some(c), _) => Some(Detector::named(&c.score, &model, c.views.clone(), eyes.heads()?, c.seed)?),
        (None, true) => Some(Detector::named("variance", &model, eyes.views()?, eyes.heads()?, eyes.seed)?),
        (None, false) => None,
    };
    let court = Court {
        defence: defence.as_ref(),
        detector: detector.as_ref(),
        threshold: calibration.as_ref().map(|c| c.threshold),
        estimate: calibration.as_ref().and_then(|c| c.bias).map(|bias| (bias, 0.05)),
        seed: eyes.seed,
    };
    let bar = progress(pictures.len());
    for path in &pictures {
        let image = fitted(&model, path)?;
        let verdict = court.judge(&model, &image)?;
        if let Some(folder) = &args.out {
            let stem = stem_in(folder, path)?;
            write_prediction(&model, &verdict.shown, &verdict.prediction, &stem)?;
            if verdict.defended {
                verdict.shown.save_png(format!("{}.defended.png", stem.display()))?;
            }
        }
        let value = json!({
            "image": path,
            "prediction": prediction_json(&model, &verdict.prediction),
            "score": verdict.score,
            "strange": verdict.strange,
            "defended": verdict.defended,
            "expected_error": verdict.estimate.as_ref().map(|e| e.error),
        });
        let mut words = format!("{}: {}", path.display(), prediction_words(&model, &verdict.prediction));
        if let Some(score) = verdict.score {
            words += &format!("; strangeness {score:.4}");
        }
        match verdict.strange {
            Some(true) => words += ", strange",
            Some(false) => words += ", ordinary",
            None => {}
        }
        if verdict.defended {
            words += ", defended";
        }
        say(&bar, args.json, &value, &words);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}
