//! `evenkeel attack`: change images, within a budget, so that the network errs; judged after rounding to eight bits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use evenkeel::attack::{Attack, AttackKind, Attempt, Scenario, worst_case};
use evenkeel::budget::Budget;
use evenkeel::detect::Calibration;
use evenkeel::image::Image;
use evenkeel::model::Model;
use evenkeel::objective::{Equivariance, ViewObjective};
use evenkeel::pipeline::Pipeline;
use evenkeel::task::{Prediction, Truth};
use serde_json::{Value, json};

use crate::images::Picture;
use crate::knobs::{KnobArgs, table_help};
use crate::labels::{self, truth};
use crate::progress::next;
use crate::workbench::{
    AnswerArgs, DefenceArgs, InputArgs, check_names, fitted, names_of, on_original, stem_in,
};

/// Change images so that the network errs
#[derive(Debug, clap::Args)]
#[command(after_long_help = table_help::<AttackKind>())]
pub(crate) struct AttackArgs {
    #[command(flatten)]
    subject: InputArgs,
    /// Which attacks, separated by commas; with several, the most harmful one is kept, and a flag goes to those that read it
    #[arg(long, value_name = "NAME", default_value = Attack::usual().name(), value_delimiter = ',', value_parser = names_of::<AttackKind>())]
    attack: Vec<String>,
    #[command(flatten)]
    knobs: KnobArgs<AttackKind>,
    /// What is true: a class, a CSV of pictures and classes, folders called as classes, label maps, or a COCO instances file; left out, the data
    /// set's class or the network's own answer
    #[arg(long, value_name = "TRUTH")]
    labels: Option<String>,
    /// What the attacker wants said: a class, a label map, `image:FILE` for another image's answer, `permuted`; of objects also
    /// `vanish:CLASS` or `recast:CLASS:CLASS`
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// A calibration written by `evenkeel detect --calibrate`: defence and vote then only run where the alarm is raised
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// Write attacked images as they came into `images` in this folder, what the network was shown into `network` where that is another size, and
    /// pictures for people into `pictures`
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    defence: DefenceArgs,
    #[command(flatten)]
    answer: AnswerArgs,
}

impl AttackArgs {
    fn attacks(&self) -> Result<Vec<Attack>> {
        let mut attacks =
            self.attack.iter().map(|name| Ok(Attack::named(name)?)).collect::<Result<Vec<_>>>()?;
        self.knobs.apply_to_all(&mut attacks)?;
        let bare = self.defence.defence.is_none() && self.answer.answer.is_none();
        if let Some(attack) = attacks.iter().find(|a| a.aims_through() && bare) {
            bail!("attack {}: needs --defence NAME or --answer NAME to aim through", attack.name());
        }
        Ok(attacks)
    }

    /// What stands in front of the model, if anything does.
    fn pipeline(&self, model: &Arc<Model>) -> Result<Option<Pipeline>> {
        let adaptive = self.attack.iter().any(|name| name.starts_with("adaptive"));
        let (defence, answer) = (self.defence.build(model, adaptive)?, self.answer.build(model)?);
        if defence.is_none() && answer.is_none() {
            if self.calibration.is_some() {
                bail!("--calibration: has no effect without --defence NAME or --answer NAME");
            }
            return Ok(None);
        }
        let mut pipeline = Pipeline::new(model.clone());
        (pipeline.defence, pipeline.answer) = (defence.map(Arc::new), answer.map(Arc::new));
        let Some(file) = &self.calibration else { return Ok(Some(pipeline)) };
        let calibration = Calibration::load(file, model)?;
        let detector = calibration.detector(model, self.defence.heads.load()?)?;
        Ok(Some(pipeline.with_detector(detector).with_threshold(calibration.threshold)))
    }

    fn target(
        &self,
        model: &Model,
        picture: &Picture,
        size: (usize, usize),
        truth_here: &Truth,
        seed: u64,
    ) -> Result<Option<Truth>> {
        let Some(wish) = &self.target else { return Ok(None) };
        if let Some(file) = wish.strip_prefix("image:") {
            return Ok(Some(model.predict(&fitted(model, Path::new(file))?)?.as_truth()));
        }
        let wanted = model.task.target(wish, truth_here, &model.class_info(), seed);
        match wanted.with_context(|| format!("--target {wish}"))? {
            Some(target) => Ok(Some(target)),
            None => Ok(Some(truth(model, wish, picture, size)?)),
        }
    }
}

pub(crate) fn run(args: AttackArgs) -> Result<()> {
    let attacks = args.attacks()?;
    // every attack reads the seed
    let (seed, budget) = (attacks[0].settings().seed, attacks[0].settings().budget());
    let (model, pictures) = args.subject.load()?;
    if args.out.is_some() {
        check_names(&pictures)?;
    }
    let model = Arc::new(model);
    let pipeline = args.pipeline(&model)?;
    let fixed = model.network.fixed_size().is_some();
    let equivariance = Equivariance::new(args.defence.views()?.fitted(fixed, model.multiple));
    let raised = pipeline.as_ref().and_then(|p| p.defence.as_ref()).and_then(|d| d.objective.as_deref());
    let objective: &dyn ViewObjective = raised.unwrap_or(&equivariance);
    let choice = &args.subject.images.choice;
    choice.each(&pictures, |picture, original, bar| {
        let path = picture.path.as_path();
        let image = model.fit(&original).with_context(|| path.display().to_string())?;
        let truth = match &args.labels {
            Some(labels) => truth(&model, labels, picture, original.size())?,
            None => match labels::of_data_set(&model, picture, original.size()) {
                Some(truth) => truth,
                None => model.predict(&image)?.as_truth(),
            },
        };
        let target = args.target(&model, picture, original.size(), &truth, seed)?;
        let scenario = Scenario {
            model: &model,
            image: &image,
            truth: &truth,
            target: target.as_ref(),
            pipeline: pipeline.as_ref(),
            objective: Some(objective),
        };
        let before = scenario.deployed(&image, seed)?;
        let attempt =
            worst_case(&scenario, &attacks, seed).with_context(|| path.display().to_string())?.into_worst();
        let saved =
            args.out.as_ref().map(|folder| save(folder, path, &model, &original, &attempt)).transpose()?;
        let report = Report { path, model: &model, scenario, before, attempt: &attempt, budget };
        bar.say(choice.json, &report.json(saved.as_deref()), &report.words());
        Ok(())
    })?;
    if let Some(folder) = &args.out {
        let (net, images) = (args.subject.model.model.display(), folder.join("images"));
        next(&format!("evenkeel defend {net} {} --out safe/", images.display()));
    }
    Ok(())
}

/// Writes the change on the image as it came, the attacked image as the network takes it where that is another size, and a picture of the answer.
fn save(
    folder: &Path,
    picture: &Path,
    model: &Model,
    original: &Image,
    attempt: &Attempt,
) -> Result<PathBuf> {
    let name = |part: &str, suffix: &str| -> Result<PathBuf> {
        Ok(PathBuf::from(format!("{}{suffix}.png", stem_in(&folder.join(part), picture)?.display())))
    };
    let path = name("images", "")?;
    let frame = model.framing(original.size())?;
    if !frame.is_identity() {
        attempt.image.save_png(name("network", "")?)?;
    }
    let attacked = on_original(model, original, &attempt.image)?;
    attacked.save_png(&path)?;
    let painting = attempt.prediction.unframed(&frame)?.paint(&attacked, 0.5, &model.class_info())?.drawn();
    painting.save_png(name("pictures", ".answer")?)?;
    Ok(path)
}

/// What happened to one image.
struct Report<'a> {
    path: &'a Path,
    model: &'a Model,
    scenario: Scenario<'a>,
    before: Prediction,
    attempt: &'a Attempt,
    budget: Budget,
}

impl Report<'_> {
    /// How right the answers before and after are, and whether the rounded image does what the attacker wants.
    fn scores(&self) -> (f64, f64, bool) {
        let task = &self.model.task;
        let (before, after) = (
            task.score(&self.before, self.scenario.truth),
            task.score(&self.attempt.prediction, self.scenario.truth),
        );
        (before, after, self.scenario.reached(&self.before, &self.attempt.prediction))
    }

    fn json(&self, saved: Option<&Path>) -> Value {
        let (before, after, fooled) = self.scores();
        json!({
            "image": self.path,
            "attack": self.attempt.name,
            "epsilon_255": self.budget.radius * 255.0,
            "before": self.before.json(&self.model.class_info()),
            "after": self.attempt.prediction.json(&self.model.class_info()),
            "score_before": before,
            "score_after": after,
            "score_before_rounding": self.attempt.outcome.score,
            "target": self.scenario.target.map(|t| t.as_prediction().json(&self.model.class_info())),
            "score_to_target": self.scenario.target.map(|t| self.model.task.score(&self.attempt.prediction, t)),
            "still_fools_after_rounding": fooled,
            "distance": self.budget.distance(self.scenario.image, &self.attempt.image),
            "evaluations": self.attempt.outcome.trace.len(),
            "saved": saved,
            "trace": self.attempt.outcome.trace,
        })
    }

    fn words(&self) -> String {
        let (before, after, fooled) = self.scores();
        let classes = self.model.class_info();
        let target = self.scenario.target.map(|target| {
            let near = self.model.task.score(&self.attempt.prediction, target);
            let wanted = target.as_prediction().words(&classes);
            (format!("target {wanted}: score {near:.3}; "), self.model.task.score(&self.before, target))
        });
        let verdict = match (&target, fooled) {
            (Some((_, before)), _) if *before >= 1.0 - 1e-9 => {
                "the network says so by itself: nothing to attack"
            }
            (Some(_), true) => "says what the attacker wants, also after rounding to 8 bits",
            (Some(_), false) => "does not say what the attacker wants",
            (None, true) => "fools the network, also after rounding to 8 bits",
            (None, _) if before <= 0.0 => "the network was wrong before",
            (None, _) if after < before => "harms the answer, but more than half of the score is left",
            (None, _) => "does not fool the network",
        };
        let verdict = target.map_or(String::new(), |(words, _)| words) + verdict;
        format!(
            "{}: {} at {:.1}/255: {} -> {}; score {before:.3} -> {after:.3}; {verdict}",
            self.path.display(),
            self.attempt.name,
            self.budget.radius * 255.0,
            self.before.words(&classes),
            self.attempt.prediction.words(&classes),
        )
    }
}
