//! `evenkeel attack`: change images, within a budget, so that the network errs; judged after rounding to eight bits.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use evenkeel::attack::{Attack, AttackSettings, Outcome, Scenario, permuted};
use evenkeel::budget::{Budget, Norm, parse_radius};
use evenkeel::image::Image;
use evenkeel::model::Model;
use evenkeel::objective::{Equivariance, ViewObjective};
use evenkeel::task::instance::{confident, overlaid, recast, without};
use evenkeel::task::{Prediction, Truth};
use serde_json::{Value, json};

use crate::workbench::{
    DefenceArgs, Subject, check_names, class_number, fitted, prediction_json, prediction_words, progress,
    stem_in, truth,
};

/// Change images so that the network errs
#[derive(Debug, clap::Args)]
pub(crate) struct AttackArgs {
    #[command(flatten)]
    subject: Subject,
    /// Which attacks, separated by commas; with several, the one that hurt most is kept
    #[arg(long, value_name = "NAME", default_value = "pgd", value_delimiter = ',')]
    attack: Vec<String>,
    /// How far a value may change
    #[arg(long, value_name = "RADIUS", default_value = "4/255")]
    epsilon: String,
    /// Measure the radius in L2
    #[arg(long)]
    l2: bool,
    /// Steps (for square, queries)
    #[arg(long, default_value_t = 20)]
    steps: usize,
    /// Size of a step; 1/255 if left out (L2: an eighth of the radius)
    #[arg(long, value_name = "SIZE")]
    step_size: Option<String>,
    /// Random starts
    #[arg(long, default_value_t = 1)]
    restarts: usize,
    /// Weight of the adaptive attack's second term
    #[arg(long, default_value_t = 1000.0)]
    weight: f64,
    /// Draws of the defence's randomness for bpda-eot and unrolled-eot
    #[arg(long, default_value_t = 20)]
    draws: usize,
    /// Steps of APGD on the bare network that attacks through the defence start from
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    warm_steps: usize,
    /// How much of the past mim keeps
    #[arg(long, default_value_t = 0.5)]
    momentum: f32,
    /// The margin beyond which cw and cw-l2 ask for no more; no limit for cw and 0 for cw-l2 if left out
    #[arg(long)]
    confidence: Option<f32>,
    /// Classes that apgd-t aims at
    #[arg(long, default_value_t = 9)]
    targets: usize,
    /// How sharp the tanh is that stands for a sign in `unrolled`
    #[arg(long, default_value_t = 1.0)]
    sharpness: f32,
    /// What is true: a class, a label map, a folder of label maps, or a COCO instances file; left out, the network's own answer
    #[arg(long, value_name = "TRUTH")]
    labels: Option<String>,
    /// What the attacker wants said: a class, a label map, `image:FILE` for another image's answer, `permuted`; of objects also
    /// `vanish:CLASS` or `recast:CLASS:CLASS`
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Write attacked images into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// One line of JSON per image
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    defence: DefenceArgs,
}

impl AttackArgs {
    fn settings(&self) -> Result<AttackSettings> {
        let norm = if self.l2 { Norm::L2 } else { Norm::Linf };
        let plain = AttackSettings::new(Budget { norm, radius: parse_radius(&self.epsilon)? });
        let step_size = self.step_size.as_deref().map(parse_radius).transpose()?.unwrap_or(plain.step_size);
        Ok(AttackSettings {
            step_size,
            steps: self.steps,
            restarts: self.restarts,
            weight: self.weight,
            draws: self.draws,
            warm_steps: self.warm_steps,
            momentum: self.momentum,
            confidence: self.confidence.unwrap_or(plain.confidence),
            targets: self.targets,
            sharpness: self.sharpness,
            seed: self.defence.eyes.seed,
            ..plain
        })
    }

    fn target(
        &self,
        model: &Model,
        picture: &Path,
        image: &Image,
        truth_here: &Truth,
    ) -> Result<Option<Truth>> {
        let Some(target) = &self.target else { return Ok(None) };
        Ok(Some(match target.as_str() {
            "permuted" => {
                let classes = model.task.classes(&model.scores(image)?)?;
                permuted(truth_here, classes, self.defence.eyes.seed)?
            }
            other if other.starts_with("vanish:") || other.starts_with("recast:") => {
                rewritten(model, other, truth_here)?
            }
            other => match other.strip_prefix("image:") {
                Some(file) => model.task.as_truth(&model.predict(&fitted(model, Path::new(file))?)?),
                None if model.task.name() == "classification" => Truth::Class(class_number(model, other)?),
                None => truth(model, other, picture, image.size())?,
            },
        }))
    }
}

/// The true objects as the attacker wants them said: `vanish:A` leaves class A out, `recast:A:B` takes A for B.
fn rewritten(model: &Model, wish: &str, truth: &Truth) -> Result<Truth> {
    let Truth::Instances(objects) = truth else { bail!("--target {wish}: is for instance segmentation") };
    let words: Vec<&str> = wish.split(':').collect();
    Ok(Truth::Instances(match words.as_slice() {
        ["vanish", class] => without(objects, class_number(model, class)?),
        ["recast", from, to] => recast(objects, class_number(model, from)?, class_number(model, to)?),
        _ => bail!("--target {wish}: vanish:CLASS or recast:CLASS:CLASS is needed"),
    }))
}

/// What one attack came to: the image as an eight-bit file holds it, and the deployed answer for that.
struct Attempt {
    name: &'static str,
    outcome: Outcome,
    rounded: Image,
    after: Prediction,
}

/// The attempt that left the least of the right answer (or came nearest to the target), judged on what is deployed.
fn worst(attacks: &[&'static Attack], scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Attempt> {
    let task = &scenario.model.task;
    let mut kept: Option<(f64, Attempt)> = None;
    for attack in attacks {
        let outcome = attack.run(scenario, settings)?;
        let rounded = outcome.image.rounded_to_8_bits();
        let after = scenario.deployed(&rounded, settings.seed)?;
        let left = match scenario.target {
            Some(target) => 1.0 - task.score(&after, target),
            None => task.score(&after, scenario.truth),
        };
        if kept.as_ref().is_none_or(|(least, _)| left < *least) {
            kept = Some((left, Attempt { name: attack.name, outcome, rounded, after }));
        }
    }
    match kept {
        Some((_, attempt)) => Ok(attempt),
        None => bail!("--attack: no attack was named"),
    }
}

pub(crate) fn run(args: AttackArgs) -> Result<()> {
    let attacks = args.attack.iter().map(|n| Ok(Attack::named(n)?)).collect::<Result<Vec<_>>>()?;
    let settings = args.settings()?;
    let (model, pictures) = args.subject.load()?;
    if args.out.is_some() {
        check_names(&pictures)?;
    }
    let defence = args.defence.build(&model)?;
    let fixed = model.network.fixed_size().is_some();
    let equivariance = Equivariance::new(args.defence.eyes.views()?.fitted(fixed, model.multiple));
    let objective: &dyn ViewObjective =
        defence.as_ref().and_then(|d| d.objective.as_deref()).unwrap_or(&equivariance);
    let bar = progress(pictures.len());
    for path in &pictures {
        let image = fitted(&model, path)?;
        let truth = match &args.labels {
            Some(labels) => truth(&model, labels, path, image.size())?,
            None => model.task.as_truth(&model.predict(&image)?),
        };
        let target = args.target(&model, path, &image, &truth)?;
        let scenario = Scenario {
            model: &model,
            image: &image,
            truth: &truth,
            target: target.as_ref(),
            defence: defence.as_ref(),
            objective: Some(objective),
        };
        let before = scenario.deployed(&image, settings.seed)?;
        let attempt = worst(&attacks, &scenario, &settings).with_context(|| path.display().to_string())?;
        let saved = args.out.as_ref().map(|folder| save(folder, path, &attempt.rounded)).transpose()?;
        if let (Some(folder), Prediction::Instances(all)) = (&args.out, &attempt.after) {
            let overlay = overlaid(&attempt.rounded, &confident(all), 0.5)?;
            overlay.save_png(format!("{}.attacked.overlay.png", stem_in(folder, path)?.display()))?;
        }
        let report = Report { path, model: &model, scenario, before, attempt: &attempt };
        bar.say(args.json, &report.json(&settings, saved.as_deref()), &report.words(&settings));
        bar.done(path);
    }
    Ok(())
}

fn save(folder: &Path, picture: &Path, image: &Image) -> Result<PathBuf> {
    let path = PathBuf::from(format!("{}.attacked.png", stem_in(folder, picture)?.display()));
    image.save_png(&path)?;
    Ok(path)
}

/// What happened to one image.
struct Report<'a> {
    path: &'a Path,
    model: &'a Model,
    scenario: Scenario<'a>,
    before: Prediction,
    attempt: &'a Attempt,
}

impl Report<'_> {
    /// How right the answers before and after are, and whether the rounded image does what the attacker wants.
    fn scores(&self) -> (f64, f64, bool) {
        let task = &self.model.task;
        let (before, after) = (
            task.score(&self.before, self.scenario.truth),
            task.score(&self.attempt.after, self.scenario.truth),
        );
        let fooled = match self.scenario.target {
            Some(target) => {
                task.score(&self.attempt.after, target)
                    >= if task.name() == "classification" { 1.0 } else { 0.5 }
            }
            None => after < before,
        };
        (before, after, fooled)
    }

    fn json(&self, settings: &AttackSettings, saved: Option<&Path>) -> Value {
        let (before, after, fooled) = self.scores();
        json!({
            "image": self.path,
            "attack": self.attempt.name,
            "epsilon_255": settings.budget.radius * 255.0,
            "before": prediction_json(self.model, &self.before),
            "after": prediction_json(self.model, &self.attempt.after),
            "score_before": before,
            "score_after": after,
            "score_before_rounding": self.attempt.outcome.score,
            "score_to_target": self.scenario.target.map(|t| self.model.task.score(&self.attempt.after, t)),
            "still_fools_after_rounding": fooled,
            "distance": settings.budget.distance(self.scenario.image, &self.attempt.rounded),
            "looks": self.attempt.outcome.trace.len(),
            "saved": saved,
            "trace": self.attempt.outcome.trace,
        })
    }

    fn words(&self, settings: &AttackSettings) -> String {
        let (before, after, fooled) = self.scores();
        let verdict = if fooled {
            "fools the network, also after rounding to 8 bits"
        } else {
            "does not fool the network"
        };
        format!(
            "{}: {} at {:.1}/255: {} -> {}; score {before:.3} -> {after:.3}; {verdict}",
            self.path.display(),
            self.attempt.name,
            settings.budget.radius * 255.0,
            prediction_words(self.model, &self.before),
            prediction_words(self.model, &self.attempt.after),
        )
    }
}
