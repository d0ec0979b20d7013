//! `evenkeel predict`: what a network says of images, defended and doubted if asked.

use std::path::{Path, PathBuf};

use anyhow::Result;
use evenkeel::detect::{Calibration, Detector};
use evenkeel::model::Model;
use evenkeel::task::Prediction;
use evenkeel::verdict::{Court, Verdict};
use serde_json::json;

use crate::workbench::{
    DefenceArgs, Format, Subject, check_names, fitted, palette, prediction_json, prediction_words, progress,
    stem_in,
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
    /// How overlays and defended images are written
    #[arg(long, value_enum, default_value = "png")]
    format: Format,
    /// One line of JSON per image
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: PredictArgs) -> Result<()> {
    let (model, pictures) = args.subject.load()?;
    if args.out.is_some() {
        check_names(&pictures)?;
    }
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
            write(&model, &verdict, &stem_in(folder, path)?, args.format)?;
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
        bar.say(args.json, &value, &words);
        bar.done(path);
    }
    Ok(())
}

/// Writes the label map, the map over the picture, and the picture as the defence left it.
fn write(model: &Model, verdict: &Verdict, stem: &Path, format: Format) -> Result<()> {
    let name = |what: &str| format!("{}.{what}", stem.display());
    if let Prediction::Map(map) = &verdict.prediction {
        let palette = palette(model);
        map.save_png(name("labels.png"), Some(&palette))?;
        format.save(&map.overlaid(&verdict.shown, &palette, 0.5)?, &name("overlay"))?;
    }
    if verdict.defended {
        format.save(&verdict.shown, &name("defended"))?;
    }
    Ok(())
}
