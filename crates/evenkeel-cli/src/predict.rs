//! `evenkeel predict`: what a network says of images, defended and doubted if asked.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use evenkeel::detect::{Calibration, Detector};
use evenkeel::image::{Image, write_atomically};
use evenkeel::model::Model;
use evenkeel::task::Prediction;
use evenkeel::task::instance::{confident, overlaid};
use evenkeel::verdict::{Court, Verdict};
use evenkeel_study::coco_instances::results;
use serde_json::{Value, json};

use crate::workbench::{
    DefenceArgs, Format, Subject, check_names, palette, prediction_json, prediction_words, progress, stem_in,
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
    /// Write the instances found as a COCO results file, on the images as they came; image numbers are read off the file names
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
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
    let mut found = Vec::new();
    for path in &pictures {
        let original = Image::load(path)?;
        let image = model.fit(&original).with_context(|| path.display().to_string())?;
        let verdict = court.judge(&model, &image)?;
        if let Some(folder) = &args.out {
            write(&model, &verdict, &stem_in(folder, path)?, args.format)?;
        }
        if args.results.is_some() {
            found.extend(coco_results(&model, path, original.size(), &verdict.prediction)?);
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
    if let Some(file) = &args.results {
        write_atomically(file, Value::from(found).to_string().as_bytes())?;
    }
    Ok(())
}

/// Writes the label map, the map or the objects over the picture, and the picture as the defence left it.
fn write(model: &Model, verdict: &Verdict, stem: &Path, format: Format) -> Result<()> {
    let name = |what: &str| format!("{}.{what}", stem.display());
    if let Prediction::Map(map) = &verdict.prediction {
        let palette = palette(model);
        map.save_png(name("labels.png"), Some(&palette))?;
        format.save(&map.overlaid(&verdict.shown, &palette, 0.5)?, &name("overlay"))?;
    }
    if let Prediction::Instances(all) = &verdict.prediction {
        format.save(&overlaid(&verdict.shown, &confident(all), 0.5)?, &name("overlay"))?;
    }
    if verdict.defended {
        format.save(&verdict.shown, &name("defended"))?;
    }
    Ok(())
}

/// The entries of a results file for one image.
fn coco_results(
    model: &Model,
    path: &Path,
    size: (usize, usize),
    prediction: &Prediction,
) -> Result<Vec<Value>> {
    let Prediction::Instances(found) = prediction else {
        bail!("--results: the network says {} and finds no instances", model.task.name());
    };
    let stem = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let number = stem.rsplit(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse().ok());
    let Some(number) = number else {
        bail!("{}: --results needs a number in the file's name", path.display())
    };
    let frame = model.framing(size)?;
    let on_image: Vec<_> = found.iter().map(|instance| frame.unframed(instance)).collect();
    Ok(results(number, &on_image, &model.class_ids)?)
}
