//! `evenkeel attack`: change images, within a budget, so that the network errs; judged after rounding to eight bits.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use evenkeel::attack::{Attack, AttackSettings, Outcome, Situation, permuted};
use evenkeel::budget::{Budget, Norm, parse_radius};
use evenkeel::image::Image;
use evenkeel::model::Model;
use evenkeel::objective::{Equivariance, ViewObjective};
use evenkeel::task::{Prediction, Truth};
use serde_json::{Value, json};

use crate::workbench::{
    DefenceArgs, Subject, class_number, fitted, prediction_json, prediction_words, progress, say, stem_in,
    truth,
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
    /// Draws of the defence's randomness for bpda-eot
    #[arg(long, default_value_t = 20)]
    draws: usize,
    /// What is true: a class, a label map, or a folder of label maps; left out, the network's own answer
    #[arg(long, value_name = "TRUTH")]
    labels: Option<String>,
    /// What the attacker wants said: a class, a label map, `image:FILE` for another image's answer, or `permuted`
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
        let (steps, restarts, weight, draws) = (self.steps, self.restarts, self.weight, self.draws);
        Ok(AttackSettings {
            step_size,
            steps,
            restarts,
            weight,
            draws,
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
                let scores = model.scores(image)?;
                let classes = scores.extents(&model.output)?.channels;
                permuted(truth_here, classes, self.defence.eyes.seed)?
            }
            other => match other.strip_prefix("image:") {
                Some(file) => model.task.as_truth(&model.predict(&fitted(model, Path::new(file))?)?),
                None if model.task.name() == "classification" => Truth::Class(class_number(model, other)?),
                None => truth(model, other, picture, image.size())?,
            },
        }))
    }
}

/// The attack that left the least of the right answer, and its name.
fn worst(
    attacks: &[&'static Attack],
    situation: &Situation<'_>,
    settings: &AttackSettings,
) -> Result<(&'static str, Outcome)> {
    let mut kept: Option<(&'static str, Outcome)> = None;
    for attack in attacks {
        let outcome = attack.run(situation, settings)?;
        if kept.as_ref().is_none_or(|(_, k)| outcome.score < k.score) {
            kept = Some((attack.name, outcome));
        }
    }
    match kept {
        Some(kept) => Ok(kept),
        None => bail!("--attack: no attack was named"),
    }
}

pub(crate) fn run(args: AttackArgs) -> Result<()> {
    let attacks = args.attack.iter().map(|n| Ok(Attack::named(n)?)).collect::<Result<Vec<_>>>()?;
    let settings = args.settings()?;
    let (model, pictures) = args.subject.load()?;
    let defence = args.defence.build(&model)?;
    let fixed = model.network.fixed_size().is_some();
    let equivariance = Equivariance::new(args.defence.eyes.views()?.fitted(fixed, model.multiple));
    let objective: &dyn ViewObjective =
        defence.as_ref().and_then(|d| d.objective.as_deref()).unwrap_or(&equivariance);
    let bar = progress(pictures.len());
    for path in &pictures {
        let image = fitted(&model, path)?;
        let before = model.predict(&image)?;
        let truth = match &args.labels {
            Some(labels) => truth(&model, labels, path, image.size())?,
            None => model.task.as_truth(&before),
        };
        let target = args.target(&model, path, &image, &truth)?;
        let situation = Situation {
            model: &model,
            image: &image,
            truth: &truth,
            target: target.as_ref(),
            defence: defence.as_ref(),
            objective: Some(objective),
        };
        let (name, outcome) =
            worst(&attacks, &situation, &settings).with_context(|| path.display().to_string())?;
        let rounded = outcome.image.rounded_to_8_bits();
        let saved = args.out.as_ref().map(|folder| save(folder, path, &rounded)).transpose()?;
        let after = situation.deployed(&rounded, settings.seed)?;
        let report = Report {
            path,
            name,
            model: &model,
            situation,
            before,
            after,
            outcome: &outcome,
            rounded: &rounded,
        };
        say(&bar, args.json, &report.json(&settings, saved.as_deref()), &report.words(&settings));
        bar.inc(1);
    }
    bar.finish_and_clear();
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
    name: &'static str,
    model: &'a Model,
    situation: Situation<'a>,
    before: Prediction,
    after: Prediction,
    outcome: &'a Outcome,
    rounded: &'a Image,
}

impl Report<'_> {
    /// How right the answers before and after are, and whether the rounded image does what the attacker wants.
    fn scores(&self) -> (f64, f64, bool) {
        let task = &self.model.task;
        let (before, after) =
            (task.score(&self.before, self.situation.truth), task.score(&self.after, self.situation.truth));
        let fooled = match self.situation.target {
            Some(target) => {
                task.score(&self.after, target) >= if task.name() == "classification" { 1.0 } else { 0.5 }
            }
            None => after < before,
        };
        (before, after, fooled)
    }

    fn json(&self, settings: &AttackSettings, saved: Option<&Path>) -> Value {
        let (before, after, fooled) = self.scores();
        json!({
            "image": self.path,
            "attack": self.name,
            "epsilon_255": settings.budget.radius * 255.0,
            "before": prediction_json(self.model, &self.before),
            "after": prediction_json(self.model, &self.after),
            "score_before": before,
            "score_after": after,
            "score_before_rounding": self.outcome.score,
            "score_to_target": self.situation.target.map(|t| self.model.task.score(&self.after, t)),
            "still_fools_after_rounding": fooled,
            "distance": settings.budget.distance(self.situation.image, self.rounded),
            "looks": self.outcome.trace.len(),
            "saved": saved,
            "trace": self.outcome.trace,
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
            self.name,
            settings.budget.radius * 255.0,
            prediction_words(self.model, &self.before),
            prediction_words(self.model, &self.after),
        )
    }
}
