//! `evenkeel predict`: the answers of a network for images, through a detector and a defence if asked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use evenkeel::answer::Certificate;
use evenkeel::defence::DefenceKind;
use evenkeel::detect::{Calibration, DELTA, DetectorSpec};
use evenkeel::image::{Image, write_atomically};
use evenkeel::model::Model;
use evenkeel::pipeline::{Pipeline, Verdict};
use evenkeel::task::{AnswerFile, Prediction};

use evenkeel_data::coco_instances::results;
use serde_json::{Value, json};

use crate::colour::{self, Tone};
use crate::defend::Evidence;
use crate::images::Picture;
use crate::knobs::table_help;
use crate::policy::PolicyArgs;
use crate::progress::{Progress, next};
use crate::workbench::{AnswerArgs, DefenceArgs, Format, InputArgs, check_names, on_original, stem_in};

/// The results file that a folder of answers gets where objects are found, which `score instances` reads.
pub(crate) const RESULTS: &str = "results.json";
/// How many of a classifier's answers are printed.
pub(crate) const LISTED: usize = 5;

/// Print a network's predictions for images
#[derive(Debug, clap::Args)]
#[command(after_long_help = table_help::<DefenceKind>())]
pub(crate) struct PredictArgs {
    #[command(flatten)]
    subject: InputArgs,
    #[command(flatten)]
    defence: DefenceArgs,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Score every image by how its views disagree; with a calibration (given, or beside the network), defend only those that raise the alarm
    #[arg(long)]
    detect: bool,
    /// A calibration written by `evenkeel detect --calibrate`; the one beside the network (or that comes with it) if left out and there is one
    #[arg(long, value_name = "FILE", requires = "detect")]
    calibration: Option<PathBuf>,
    /// The share of images on which the interval of the error estimate may fail
    #[arg(long, default_value_t = DELTA, requires = "detect")]
    delta: f64,
    /// Write label maps, overlays and defended images into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How overlays and defended images are written
    #[arg(long, value_enum, default_value = "png", requires = "out")]
    format: Format,
    /// Write the instances found as a COCO results file, on the images as they came; image numbers are read off the file names
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// The seed of everything random
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl PredictArgs {
    /// The flag that says what to do with images, so that no policy does.
    fn decided(&self) -> Option<&'static str> {
        let asked = [
            ("--defence", self.defence.defence.is_some()),
            ("--answer", self.answer.answer.is_some()),
            ("--detect", self.detect),
        ];
        asked.into_iter().find(|(_, asked)| *asked).map(|(flag, _)| flag)
    }

    /// The calibration given, or the one beside the network or shipped with it, as `evenkeel detect` finds it.
    fn calibration(&self, model: &Model) -> Result<Option<Calibration>> {
        let beside = Calibration::path_beside(&self.subject.model.model);
        let file = match &self.calibration {
            Some(file) => file,
            None if self.detect && beside.exists() => &beside,
            None if self.detect => return self.subject.model.shipped_calibration(model),
            None => return Ok(None),
        };
        Ok(Some(Calibration::load(file, model)?))
    }
}

pub(crate) fn run(args: PredictArgs) -> Result<()> {
    let (model, pictures) = args.subject.load()?;
    if args.out.is_some() {
        check_names(&pictures)?;
    }
    let model = Arc::new(model);
    let calibration = args.calibration(&model)?;
    let defence = args.defence.build(&model, args.detect)?;
    let heads = || args.defence.heads.load();
    let detector = match (&calibration, args.detect) {
        (Some(calibration), _) => Some(calibration.detector(&model, heads()?)?),
        (None, true) => {
            let spec = DetectorSpec::usual().with_views(args.defence.views()?);
            Some(spec.with("seed", args.seed)?.build(&model, heads()?)?)
        }
        (None, false) => None,
    };
    let mut pipeline = Pipeline::new(model.clone()).with_seed(args.seed);
    pipeline.defence = defence.map(Arc::new);
    pipeline.answer = args.answer.build(&model)?.map(Arc::new);
    pipeline.detector = detector.map(Arc::new);
    pipeline.threshold = calibration.as_ref().map(|c| c.threshold);
    pipeline.estimate = calibration.as_ref().map(|c| c.estimate_rule(args.delta)).transpose()?.flatten();
    let network = &args.subject.model.model;
    if let Some(policy) = args.policy.load(network, &model, args.decided())? {
        let own = args.policy.announced(network, &policy, &model, &heads()?)?;
        pipeline = if args.seed == 0 { own } else { own.with_seed(args.seed) };
    } else if let (Some(flag), None) = (args.defence.heads.flag(), args.decided()) {
        bail!("{flag}: has no effect without --defence NAME, --detect or a policy");
    }
    let mut answering = Answering {
        model: &model,
        pipeline,
        out: args.out.as_deref(),
        format: args.format,
        results: args.results.as_deref(),
        found: Vec::new(),
        evidence: args.defence.evidence(&model, args.seed)?,
        json: args.subject.images.choice.json,
    };
    let choice = &args.subject.images.choice;
    choice.each(&pictures, |picture, image, bar| answering.one(picture, &image, bar))?;
    answering.end()?;
    if args.out.is_some() && args.decided().is_none() && !Calibration::path_beside(network).exists() {
        next(&format!("evenkeel detect {} --calibrate CLEAN", network.display()));
    }
    Ok(())
}

/// Answers for images, one after the other.
pub(crate) struct Answering<'a> {
    pub(crate) model: &'a Model,
    pub(crate) pipeline: Pipeline,
    pub(crate) out: Option<&'a Path>,
    pub(crate) format: Format,
    /// The COCO results file that is wanted beside the folder's own.
    pub(crate) results: Option<&'a Path>,
    /// The entries of results files.
    pub(crate) found: Vec<Value>,
    /// Measures how far views disagree before and after the defence, if that is wanted.
    pub(crate) evidence: Option<Evidence>,
    pub(crate) json: bool,
}

impl Answering<'_> {
    pub(crate) fn one(&mut self, picture: &Picture, original: &Image, bar: &Progress) -> Result<()> {
        let (path, model) = (picture.path.as_path(), self.model);
        let image = model.fit(original).with_context(|| path.display().to_string())?;
        let verdict = self.pipeline.run(&image)?;
        if let Some(folder) = self.out {
            write(model, original, &verdict, &stem_in(folder, path)?, self.format)?;
        }
        // a folder of answers has all objects in one file, if the pictures have numbers
        let numbered =
            self.out.is_some() && verdict.prediction.instances().is_some() && number_of(path).is_some();
        if self.results.is_some() || numbered {
            self.found.extend(coco_results(model, path, original.size(), &verdict.prediction)?);
        }
        let mut value = verdict.json(model);
        value["image"] = json!(path);
        let mut words =
            format!("{}: {}", path.display(), verdict.prediction.ranking(&model.class_info(), LISTED));
        words += &about(&verdict);
        if let Some(estimate) = &verdict.estimate {
            words += &format!("; {}", estimate.words());
        }
        if let Some(evidence) = &mut self.evidence {
            words += &evidence.measure(model, &image, &verdict, &mut value)?;
        }
        bar.say(self.json, &value, &words);
        Ok(())
    }

    /// Writes the objects found on all images, and warns of a defence that hurt.
    pub(crate) fn end(&self) -> Result<()> {
        if let Some(evidence) = &self.evidence {
            evidence.warn();
        }
        let in_folder = self.out.filter(|_| !self.found.is_empty()).map(|folder| folder.join(RESULTS));
        for file in self.results.into_iter().chain(in_folder.as_deref()) {
            write_atomically(file, Value::from(self.found.clone()).to_string().as_bytes())?;
        }
        Ok(())
    }
}

/// What is known beside the answer.
fn about(verdict: &Verdict) -> String {
    let mut words = String::new();
    if let Some(score) = verdict.score {
        words += &format!("; detection score {score:.4}");
    }
    match verdict.alarm {
        Some(true) => words += &format!(", {}", colour::out("alarm", Tone::Alarm)),
        Some(false) => words += &format!(", {}", colour::out("no alarm", Tone::Calm)),
        None => {}
    }
    if verdict.defended {
        words += ", defended";
    }
    if verdict.voted {
        words += ", by a vote";
    }
    words + &verdict.certificate.as_ref().map(certificate_words).unwrap_or_default()
}

/// What is certain about a vote, for people.
fn certificate_words(certificate: &Certificate) -> String {
    match certificate.radius {
        Some(radius) => format!(
            "; certified within L2 {radius:.4} ({} of {} draws, wrong with probability {} at most)",
            certificate.count, certificate.draws, certificate.alpha
        ),
        None => format!("; abstains ({} of {} draws)", certificate.count, certificate.draws),
    }
}

/// Writes the answer on the picture as it came, with its legend, what `score` reads, and the picture as the defence left it.
fn write(model: &Model, original: &Image, verdict: &Verdict, stem: &Path, format: Format) -> Result<()> {
    let name = |suffix: &str| format!("{}.{suffix}", stem.display());
    let answer = verdict.answer_on(model, original)?;
    for file in answer.files(&model.class_info())? {
        match file {
            AnswerFile::Picture { suffix, image } => drop(format.save(&image, &name(suffix))?),
            AnswerFile::Bytes { suffix, bytes } => write_atomically(name(suffix), &bytes)?,
        }
    }
    format.save(&verdict.overlay(model, original)?.drawn(), &name("overlay"))?;
    if verdict.defended {
        format.save(&on_original(model, original, &verdict.shown)?, &name("defended"))?;
    }
    Ok(())
}

/// The last number in a file's name.
fn number_of(path: &Path) -> Option<i64> {
    let stem = path.file_stem()?.to_string_lossy();
    stem.rsplit(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse().ok())
}

/// The entries of a results file for one image.
fn coco_results(
    model: &Model,
    path: &Path,
    size: (usize, usize),
    prediction: &Prediction,
) -> Result<Vec<Value>> {
    let on_image = prediction.unframed(&model.framing(size)?)?;
    let Some(found) = on_image.instances() else {
        bail!("--results: the task {} finds no instances", model.task.name());
    };
    let Some(number) = number_of(path) else {
        bail!("{}: --results needs a number in the file's name", path.display())
    };
    Ok(results(number, found, &model.class_ids)?)
}
