//! `evenkeel defend`: answers through the whole pipeline, with the evidence beside each: what the detector says, whether the image was defended, and how
//! far its views disagreed before and after.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use evenkeel::AnswerSpec;
use evenkeel::defence::{DefenceKind, DefenceSpec};
use evenkeel::detect::{Calibration, DELTA, Detector, DetectorSpec, Heads};
use evenkeel::image::Image;
use evenkeel::model::Model;
use evenkeel::pipeline::{Pipeline, Verdict};
use evenkeel::task::Readout;
use serde_json::Value;

use crate::colour::{self, Tone};
use crate::knobs::table_help;
use crate::policy::PolicyArgs;
use crate::predict::Answering;
use crate::workbench::{AnswerArgs, DefenceArgs, Format, InputArgs, check_names};

/// Answer through a defence, with the evidence beside each answer
///
/// A policy beside the network (`evenkeel tune`) decides unless flags do. If the network is calibrated (`evenkeel detect --calibrate`), only images that raise the alarm are defended. The views of an image should agree more
/// after the defence than before; if they do not, or the answers matter, measure first what the defence is worth: `evenkeel study new protocol`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = table_help::<DefenceKind>())]
pub(crate) struct DefendArgs {
    #[command(flatten)]
    subject: InputArgs,
    #[command(flatten)]
    defence: DefenceArgs,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// The calibration; the one beside the network if left out and there
    #[arg(long, value_name = "FILE", conflicts_with = "always")]
    calibration: Option<PathBuf>,
    /// Defend every image, whatever a calibration beside the network says
    #[arg(long)]
    always: bool,
    /// Write answers, overlays and defended images into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How overlays and defended images are written
    #[arg(long, value_enum, default_value = "png", requires = "out")]
    format: Format,
    /// The seed of everything random
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// What the usual views do to values.
const ENLARGED: &str = "warning: the usual views enlarge and shrink the image, which changes values that depend on how large things look, such as depths; \
                        for those: --views only-flip --answer-views only-flip";

/// How far the views of images disagree before and after a defence.
pub(crate) struct Evidence {
    detector: Detector,
    defended: usize,
    worse: usize,
}

impl Evidence {
    /// Of the views that the defence looks through.
    pub(crate) fn of_views(defence: &DefenceArgs, model: &Model, seed: u64) -> Result<Self> {
        let detector = DetectorSpec::usual().with_views(defence.views()?);
        let detector = detector.with("seed", seed)?.build(model, Heads::default())?;
        Ok(Self { detector, defended: 0, worse: 0 })
    }

    /// Warns if the defence hurt on most of the images it changed.
    pub(crate) fn warn(&self) {
        if 2 * self.worse > self.defended {
            let sentence = format!(
                "warning: on {} of {} defended images the views agree less after the defence than before",
                self.worse, self.defended
            );
            eprintln!("{}", colour::err(&sentence, Tone::Warning));
        }
    }

    pub(crate) fn measure(
        &mut self,
        model: &Model,
        image: &Image,
        verdict: &Verdict,
        value: &mut Value,
    ) -> Result<String> {
        let before = self.detector.score(model, image)?;
        value["disagreement_before"] = before.into();
        if !verdict.defended {
            value["disagreement_after"] = Value::Null;
            return Ok(format!("; views disagree by {before:.4}"));
        }
        let after = self.detector.score(model, &verdict.shown)?;
        value["disagreement_after"] = after.into();
        self.defended += 1;
        self.worse += usize::from(after > before);
        Ok(format!("; views disagreed by {before:.4} before, by {after:.4} after"))
    }
}

impl DefenceArgs {
    /// The evidence for a defence that was asked for.
    pub(crate) fn evidence(&self, model: &Model, seed: u64) -> Result<Option<Evidence>> {
        self.defence.as_ref().map(|_| Evidence::of_views(self, model, seed)).transpose()
    }
}

impl DefendArgs {
    /// The flag that says what to do with images, so that no policy does.
    fn decided(&self) -> Option<&'static str> {
        let asked = [
            ("--defence", self.defence.defence.is_some() || !self.defence.knobs.flags().is_empty()),
            ("--answer", self.answer.answer.is_some()),
            ("--calibration", self.calibration.is_some()),
            ("--always", self.always),
        ];
        asked.into_iter().find(|(_, asked)| *asked).map(|(flag, _)| flag)
    }

    /// The pipeline that the flags ask for.
    fn pipeline(&self, model: &Arc<Model>) -> Result<Pipeline> {
        let mut pipeline = Pipeline::new(model.clone());
        pipeline.defence = self.defence.build(model, false)?.map(Arc::new);
        pipeline.answer = self.answer.build(model)?.map(Arc::new);
        let beside = Some(self.subject.model.calibration()).filter(|file| file.exists() && !self.always);
        let Some(file) = self.calibration.clone().or(beside) else { return Ok(pipeline) };
        let calibration = Calibration::load(&file, model)?;
        eprintln!("{}: images that raise the alarm are defended", file.display());
        pipeline.detector = Some(Arc::new(calibration.detector(model, self.defence.heads.load()?)?));
        pipeline.threshold = Some(calibration.threshold);
        pipeline.estimate = calibration.estimate_rule(DELTA)?;
        Ok(pipeline)
    }
}

pub(crate) fn run(mut args: DefendArgs) -> Result<()> {
    let (model, pictures) = args.subject.load()?;
    if args.out.is_some() {
        check_names(&pictures)?;
    }
    let model = Arc::new(model);
    let network = &args.subject.model.model;
    let pipeline = match args.policy.load(network, &model, args.decided())? {
        Some(policy) => args.policy.announced(network, &policy, &model, &args.defence.heads.load()?)?,
        None => {
            if args.defence.defence.is_none() {
                args.answer.answer.get_or_insert_with(|| AnswerSpec::usual().name().into());
                args.defence.defence = Some(DefenceSpec::usual().name().into());
                let chosen = args.defence.knobs.flags().iter().any(|flag| flag == "--views");
                if model.task.readout() == Readout::Values && !chosen {
                    eprintln!("{}", colour::err(ENLARGED, Tone::Warning));
                }
            }
            args.pipeline(&model)?
        }
    };
    let pipeline = if args.seed == 0 { pipeline } else { pipeline.with_seed(args.seed) };
    let choice = &args.subject.images.choice;
    let mut answering = Answering {
        model: &model,
        pipeline,
        out: args.out.as_deref(),
        format: args.format,
        results: None,
        found: Vec::new(),
        evidence: Some(Evidence::of_views(&args.defence, &model, args.seed)?),
        json: choice.json,
    };
    choice.each(&pictures, |picture, image, bar| answering.one(picture, &image, bar))?;
    answering.end()
}
