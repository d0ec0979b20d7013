//! The original Carlini-Wagner attack: the least L2 change that fools, by Adam in tanh space.
//!
//! It raises −‖x' − x‖² − c·max(z_y − max_{j≠y} z_j + κ, 0) (targeted: max_{j≠t} z_j − z_t), with c found by bisection. If the least
//! change found is larger than the budget, the outcome is pulled back into it, and counts as it is then.

use super::family::single_class;
use super::{Aim, AttackSettings, Outcome, Scenario};
use crate::budget::{Budget, Norm};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::objective::{Loss, LossKind, Progress, Terms};
use crate::optimise::{Evaluation, Keep, Objective, Plan, Start, optimise};
use crate::random::Random;
use crate::step::AdamTanh;

/// Bisections of the weight.
const SEARCHES: usize = 9;
/// Adam's rate.
const RATE: f32 = 0.01;

struct Penalised<'a> {
    aim: Aim<'a>,
    loss: Loss,
    weight: f64,
}

impl Objective for Penalised<'_> {
    fn evaluate(
        &self,
        image: &Image,
        progress: Progress,
        random: &Random,
        want_gradient: bool,
    ) -> Result<Evaluation> {
        let model = self.aim.scenario.model;
        let mut seen = self.aim.mean(image, random, |network| {
            let losses = vec![(self.weight, &self.loss)];
            let terms = Terms { output: Some(&model.output), feature: &model.feature, losses, views: vec![] };
            let seen = terms.evaluate(network, image, progress, random, want_gradient)?;
            let score = seen.scores.as_ref().map_or(Ok(1.0), |s| self.aim.scenario.score(s))?;
            Ok(Evaluation { value: seen.value, gradient: seen.gradient, score, loss: Some(seen.parts[0]) })
        })?;
        let pairs = || image.pixels().iter().zip(self.aim.scenario.image.pixels());
        if let Some(gradient) = &mut seen.gradient {
            gradient.iter_mut().zip(pairs()).for_each(|(g, (a, b))| *g -= 2.0 * (a - b));
        }
        seen.value -= pairs().map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        Ok(seen)
    }
}

pub(super) fn cw_l2(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    if settings.norm != Norm::L2 {
        return Err(Error::setting("attack cw-l2", "measures its change in L2; use cw for L∞"));
    }
    single_class(scenario.truth, "cw-l2")?;
    let aim = Aim::new(scenario, settings);
    let confidence = settings.confidence.unwrap_or(0.0) as f32;
    let (mut low, mut high, mut weight) = (0.0f64, f64::INFINITY, 1.0);
    let mut best: Option<Outcome> = None;
    let mut trace = Vec::new();
    let distance = |image: &Image| settings.budget().distance(scenario.image, image);
    let plan = search(&aim, settings)?;
    for _ in 0..SEARCHES {
        let mut loss = scenario.loss(LossKind::Margin)?;
        loss.confidence = confidence;
        let objective = Penalised { aim, loss, weight };
        let mut outcome: Outcome =
            optimise(&objective, scenario.image, &plan, &|| Box::new(AdamTanh::new(RATE)))?.into();
        trace.append(&mut outcome.trace);
        if outcome.score <= 0.0 {
            high = weight;
            if best.as_ref().is_none_or(|b| distance(&outcome.image) < distance(&b.image)) {
                best = Some(outcome);
            }
        } else {
            low = weight;
        }
        weight = if high.is_finite() { 0.5 * (low + high) } else { 10.0 * weight };
    }
    let image = best.map_or_else(|| scenario.image.clone(), |b| b.image);
    finish(scenario, settings, image, trace)
}

/// The plan of a search for the least change: from the image and without bounds, since only what it finds has to be in the budget.
pub(super) fn search(aim: &Aim<'_>, settings: &AttackSettings) -> Result<Plan> {
    let plan = Plan {
        budget: Budget::free(settings.norm),
        start: Start::Origin,
        steps: settings.steps,
        restarts: 1,
        keep: Keep::Nearest,
        enough: None,
        patience: None,
        finalists: 0,
        rounds: 0,
        seed: settings.seed,
    };
    aim.plan(plan, settings)
}

/// The outcome once the image is in the budget.
pub(super) fn finish(
    scenario: &Scenario<'_>,
    settings: &AttackSettings,
    mut image: Image,
    trace: Vec<crate::optimise::Record>,
) -> Result<Outcome> {
    settings.budget().project(scenario.image, &mut image);
    let score = scenario.score(&Aim::new(scenario, settings).scores(&image, settings.seed)?)?;
    let value = -settings.budget().distance(scenario.image, &image);
    Ok(Outcome { image, score, value, trace })
}
