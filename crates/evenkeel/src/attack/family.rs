//! The gradient attacks that differ only in loss, step and plan, and Square, which needs no gradient.

use super::objective::TaskObjective;
use super::{Aim, AttackSettings, Outcome, Scenario};
use crate::budget::Norm;
use crate::error::{Error, Result};
use crate::network::Tensor;
use crate::objective::{Loss, LossKind};
use crate::optimise::{Keep, Plan, Start, optimise};
use crate::step::{Adaptive, Momentum, Plain, Square, Step};
use crate::task::{Labels, Truth};

/// The plan that settings ask for.
pub(super) fn plan(settings: &AttackSettings) -> Plan {
    Plan {
        budget: settings.budget(),
        start: Start::Random,
        steps: settings.steps,
        restarts: settings.restarts,
        keep: Keep::Best,
        enough: settings.stop_when_fooled.then_some(0.0),
        patience: None,
        finalists: 0,
        rounds: 0,
        seed: settings.seed,
    }
}

fn maximise<'s>(
    scenario: &Scenario<'_>,
    settings: &AttackSettings,
    kind: LossKind,
    step: &dyn Fn() -> Box<dyn Step + 's>,
) -> Result<Outcome> {
    let loss = Loss { confidence: settings.confidence(), ..scenario.loss(kind)? };
    let aim = Aim::new(scenario, settings);
    let objective = TaskObjective { aim, loss, weight: 0.0 };
    Ok(optimise(&objective, scenario.image, &aim.plan(plan(settings), settings)?, step)?.into())
}

fn plain(scenario: &Scenario<'_>, settings: &AttackSettings, kind: LossKind) -> Result<Outcome> {
    maximise(scenario, settings, kind, &|| Box::new(Plain { size: settings.step_size() }))
}

pub(super) fn fgsm(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    let once = AttackSettings { steps: 1, ..settings.clone() };
    let size = settings.budget().radius;
    maximise(scenario, &once, LossKind::CrossEntropy, &|| Box::new(Plain { size }))
}

/// min(ε + 4, ⌈1.25 ε⌉) steps of 1/255, ε in units of 1/255.
pub(super) fn ifgsm(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    let epsilon_255 = settings.budget().radius * 255.0;
    let steps = (epsilon_255 + 4.0).min((1.25 * epsilon_255 - 1e-3).ceil()).max(1.0) as usize;
    let settings = AttackSettings { steps, step_255: Some(1.0), ..settings.clone() };
    plain(scenario, &settings, LossKind::CrossEntropy)
}

pub(super) fn pgd(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    plain(scenario, settings, LossKind::CrossEntropy)
}

pub(super) fn mim(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    let step = || Box::new(Momentum::new(settings.step_size(), settings.momentum as f32)) as Box<dyn Step>;
    maximise(scenario, settings, LossKind::CrossEntropy, &step)
}

pub(super) fn cw(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    plain(scenario, settings, LossKind::Margin)
}

pub(super) fn houdini(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    plain(scenario, settings, LossKind::Houdini)
}

pub(super) fn segpgd(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    plain(scenario, settings, LossKind::SegPgd)
}

pub(super) fn masked(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    plain(scenario, settings, LossKind::MaskedCrossEntropy)
}

pub(super) fn jensen_shannon(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    plain(scenario, settings, LossKind::JensenShannon)
}

fn apgd(scenario: &Scenario<'_>, settings: &AttackSettings, kind: LossKind) -> Result<Outcome> {
    maximise(scenario, settings, kind, &|| Box::new(Adaptive::new()))
}

pub(super) fn apgd_ce(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    apgd(scenario, settings, LossKind::CrossEntropy)
}

pub(super) fn apgd_dlr(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    apgd(scenario, settings, LossKind::Dlr)
}

/// The targeted ratio towards the runner-up of the clean answer, then the next, and so on; the most harmful outcome.
pub(super) fn apgd_t(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    let aim = Aim::new(scenario, settings);
    let scores = aim.scores(scenario.image, settings.seed)?;
    let labels = scenario.labels(scenario.truth)?;
    let own = aim.plan(plan(settings), settings)?;
    let classes = scores.extents(&scenario.model.output)?.channels;
    let mut best: Option<Outcome> = None;
    for rank in 0..settings.targets.min(classes.saturating_sub(1)).max(1) {
        let wanted = ranked(&scores, &labels, rank)?;
        let loss = Loss { wanted: Some(wanted), ..Loss::against(LossKind::DlrTargeted, labels.clone()) };
        let objective = TaskObjective { aim, loss, weight: 0.0 };
        let plan = Plan { seed: settings.seed.wrapping_add(rank as u64), ..own.clone() };
        let outcome: Outcome =
            optimise(&objective, scenario.image, &plan, &|| Box::new(Adaptive::new()))?.into();
        if best.as_ref().is_none_or(|b| (outcome.score, -outcome.value) < (b.score, -b.value)) {
            best = Some(outcome);
        }
        if settings.stop_when_fooled && best.as_ref().is_some_and(|b| b.score <= 0.0) {
            break;
        }
    }
    best.ok_or_else(|| Error::setting("attack apgd-t", "found no class to aim at"))
}

/// For every cell, the class of this rank among the classes other than its label, by the clean scores.
fn ranked(scores: &Tensor, labels: &Labels, rank: usize) -> Result<Labels> {
    let extents = scores.extents("scores")?;
    let cells = labels.labels.len();
    let fine =
        crate::view::Sampler::resize(extents.size(), labels.size).apply(scores.data(), extents.channels);
    let choose = |i: usize| {
        let mut others: Vec<usize> =
            (0..extents.channels).filter(|c| *c != usize::from(labels.labels[i])).collect();
        others.sort_by(|a, b| fine[b * cells + i].total_cmp(&fine[a * cells + i]).then(a.cmp(b)));
        others.get(rank).copied().unwrap_or(0) as u16
    };
    Ok(Labels { size: labels.size, labels: (0..cells).map(choose).collect() })
}

pub(super) fn square(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    // the published shares of the first square
    let share = if settings.norm == Norm::Linf { 0.8 } else { 0.1 };
    let own = scenario.model.task.own_loss(scenario.truth).is_some();
    let kind = if own { LossKind::CrossEntropy } else { LossKind::Margin };
    maximise(scenario, settings, kind, &|| Box::new(Square { share }))
}

/// Task loss plus weight times the view objective, both at the attacked image.
fn adaptive_with<'s>(
    scenario: &Scenario<'_>,
    settings: &AttackSettings,
    step: &dyn Fn() -> Box<dyn Step + 's>,
) -> Result<Outcome> {
    if scenario.objective.is_none() {
        return Err(Error::setting("attack adaptive", "needs the objective that the defence raises"));
    }
    let loss = scenario.loss(LossKind::CrossEntropy)?;
    let aim = Aim::new(scenario, settings);
    let objective = TaskObjective { aim, loss, weight: settings.weight };
    // the score of the answer knows nothing of the second term
    let plan = Plan { keep: Keep::Highest, ..plan(settings) };
    Ok(optimise(&objective, scenario.image, &aim.plan(plan, settings)?, step)?.into())
}

pub(super) fn adaptive(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    adaptive_with(scenario, settings, &|| Box::new(Plain { size: settings.step_size() }))
}

pub(super) fn adaptive_apgd(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    adaptive_with(scenario, settings, &|| Box::new(Adaptive::new()))
}

/// The class a targeted attack on a classifier aims at, if it is one.
pub(super) fn single_class(truth: &Truth, attack: &str) -> Result<usize> {
    truth.class().ok_or_else(|| Error::setting(format!("attack {attack}"), "is made for classifiers"))
}
