//! `evenkeel detect`: detection scores of images, and a threshold calibrated on clean ones.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use evenkeel::detect::{
    Calibration, DELTA, Detection, Detector, DetectorKind, DetectorSpec, ErrorEstimate, EstimateRule,
    FALSE_ALARMS,
};
use evenkeel::model::Model;
use serde_json::json;

use crate::colour::{self, Tone};
use crate::images::ImageArgs;
use crate::knobs::{KnobArgs, table_help};
use crate::labels::truth;
use crate::policy::PolicyArgs;
use crate::progress::next;
use crate::workbench::{HeadArgs, ModelArgs, names_of};

/// Score images by how their views disagree, raise an alarm, and estimate how wrong the answers are
///
/// Exit code: 3 if any image raises the alarm, 0 if none does, 2 for an error.
#[derive(Debug, clap::Args)]
#[command(after_long_help = table_help::<DetectorKind>())]
pub(crate) struct DetectArgs {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    images: ImageArgs,
    /// The detector; `evenkeel list detectors` describes each [default: variance]
    #[arg(long, value_name = "NAME", value_parser = names_of::<DetectorKind>())]
    score: Option<String>,
    /// Calibrate on clean images (a folder, or a data set as KIND:PATH) and write --calibration
    #[arg(long, value_name = "CLEAN")]
    calibrate: Option<String>,
    /// The truth about the clean images (label maps, a CSV, folders or one class): the error estimate is fitted as well
    #[arg(long, value_name = "TRUTH", requires = "calibrate")]
    labels: Option<String>,
    /// The share of clean images that may raise an alarm
    #[arg(long, value_name = "SHARE", default_value_t = FALSE_ALARMS, requires = "calibrate")]
    false_alarms: f64,
    /// The calibration file; beside the network if left out (networks that come with the program have one)
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// The share of images on which the interval of the error estimate may fail
    #[arg(long, default_value_t = DELTA)]
    delta: f64,
    #[command(flatten)]
    knobs: KnobArgs<DetectorKind>,
    #[command(flatten)]
    heads: HeadArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

impl DetectArgs {
    fn detector(&self, model: &Model) -> Result<Detector> {
        let mut spec = match &self.score {
            Some(name) => DetectorSpec::named(name)?,
            None => DetectorSpec::usual(),
        };
        self.knobs.apply(&mut spec)?;
        Ok(spec.build(model, self.heads.load()?)?)
    }
}

impl DetectArgs {
    /// Refuses flags about a detector that the calibration decides.
    fn refuse_idle(&self, file: &Path) -> Result<()> {
        let score = self.score.as_ref().map(|_| "--score".to_owned());
        match score.or(self.knobs.flags().into_iter().next()) {
            Some(flag) => {
                bail!("{flag}: has no effect, because {} says how images are scored", file.display())
            }
            None => Ok(()),
        }
    }
}

/// Whether any image raised the alarm.
pub(crate) fn run(args: DetectArgs) -> Result<bool> {
    args.images.choice.use_threads()?;
    let model = args.model.load()?;
    let file = args.calibration.clone().unwrap_or_else(|| args.model.calibration());
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
            let alarm = args.policy.load(&args.model.model, &model, flag)?.and_then(|policy| policy.alarm);
            match alarm {
                Some(alarm) => Some(alarm.calibration(&model)),
                None if file.exists() || args.calibration.is_some() => {
                    args.refuse_idle(&file)?;
                    Some(Calibration::load(&file, &model)?)
                }
                // flags about the detector ask for another than the one that was calibrated
                None if args.score.is_none() && args.knobs.flags().is_empty() => {
                    args.model.shipped_calibration(&model)?
                }
                None => None,
            }
        }
    };
    if args.images.images.is_empty() && args.calibrate.is_some() {
        next(&format!("evenkeel detect {} PHOTOS", args.model.model.display()));
        return Ok(false);
    }
    judge(&args, &model, calibration.as_ref())
}

fn calibrate(args: &DetectArgs, model: &Model, clean: &String) -> Result<Calibration> {
    if args.labels.is_some() && !model.task.kind().estimates_error {
        bail!(
            "--labels: the error estimate is about cells, which the task {} does not have",
            model.task.name()
        );
    }
    let detector = args.detector(model)?;
    let choice = &args.images.choice;
    let clean = choice.pictures(std::slice::from_ref(clean))?;
    promised(clean.len(), args.false_alarms)?;
    let (mut scores, mut errors) = (Vec::new(), Vec::new());
    choice.each(&clean, |picture, original, _| {
        let image = model.fit(&original).with_context(|| picture.path.display().to_string())?;
        let seen = detector.evaluate(model, &image, args.labels.is_some())?;
        scores.push(seen.score);
        if let (Some(labels), Some(outputs)) = (&args.labels, seen.outputs) {
            let truth = truth(model, labels, picture, original.size())?;
            errors.extend(outputs.labelled(model, &truth)?);
        }
        Ok(())
    })?;
    let calibration = Calibration::new(model, &detector, &scores, args.false_alarms)?;
    if let Some(why) = calibration.out_of_reach(model, &detector, &scores) {
        eprintln!("{} {why}", colour::err("warning:", Tone::Alarm));
    }
    if args.labels.is_none() {
        return Ok(calibration);
    }
    Ok(calibration.with_estimate(EstimateRule::fitted(&errors, args.delta)?))
}

/// Refuses before the work what the number of images cannot promise.
fn promised(images: usize, share: f64) -> Result<()> {
    let best = ((1000.0 / (images as f64 + 1.0)).ceil() / 1000.0).min(0.5);
    let cure = format!("give more clean images, or --false-alarms {best}");
    Calibration::check_promise(images, share).map_err(|error| anyhow!("{error}; {cure}"))
}

fn judge(args: &DetectArgs, model: &Model, calibration: Option<&Calibration>) -> Result<bool> {
    let detector = match calibration {
        Some(calibration) => calibration.detector(model, args.heads.load()?)?,
        None => args.detector(model)?,
    };
    let fitted_rule = calibration.map(|c| c.estimate_rule(args.delta)).transpose()?.flatten();
    let rule =
        fitted_rule.or_else(|| model.task.kind().estimates_error.then(|| EstimateRule::plain(args.delta)));
    let (images, choice) = (args.images.pictures()?, &args.images.choice);
    let (mut alarmed, mut notes) = (0, Vec::new());
    choice.each(&images, |picture, original, bar| {
        let path = &picture.path;
        let image = model.fit(&original).with_context(|| path.display().to_string())?;
        let Detection { score, estimate, scores, .. } = detector.detect(model, &image, rule.as_ref())?;
        let alarm = calibration.map(|c| score > c.threshold);
        let estimate = if alarm == Some(true) { estimate.map(ErrorEstimate::alarmed) } else { estimate };
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
            "estimate": estimate.as_ref().map(|e| e.json(model)),
            "prediction": prediction.json(&model.class_info()),
        });
        let verdict = match alarm {
            Some(true) => colour::out("alarm", Tone::Alarm),
            Some(false) => colour::out("no alarm", Tone::Calm),
            None => "no threshold".to_owned(),
        };
        let error = estimate.as_ref().map_or(String::new(), |e| format!(" {};", e.words()));
        if notes.is_empty() && !choice.json {
            notes.extend(estimate.as_ref().map(|e| e.note(model)));
            notes
                .extend(alarm.is_none().then(|| "no threshold: calibrate with --calibrate CLEAN".to_owned()));
        }
        let words = format!(
            "{}: {} {score:.4}, {verdict};{error} {}",
            path.display(),
            detector.name,
            prediction.words(&model.class_info()),
        );
        alarmed += usize::from(alarm == Some(true));
        bar.say(choice.json, &value, &words);
        Ok(())
    })?;
    notes.iter().for_each(|note| eprintln!("{note}"));
    Ok(alarmed > 0)
}
