//! Attacks that look through the defence: the loss is taken at the defended image, and its gradient applied to the attacked one
//! as if the defence were the identity (BPDA), for one draw of the defence's randomness, for several, or for the very one used.

use super::family::{apgd_ce, plan};
use super::{AttackSettings, Outcome, Scenario};
use crate::defence::Defence;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::objective::{Loss, LossKind, Progress, Terms};
use crate::optimise::{Evaluation, Objective, Plan, Start, optimise};
use crate::random::Random;
use crate::step::Plain;

/// A loss at the defended image.
pub struct DefendedObjective<'a> {
    /// What is attacked.
    pub scenario: Scenario<'a>,
    /// The defence.
    pub defence: &'a Defence,
    /// The loss, to be raised.
    pub loss: Loss,
    /// Draws of the defence's randomness to average over.
    pub draws: usize,
    /// The defence's seed, if the attacker knows it; otherwise every look draws afresh.
    pub known_seed: Option<u64>,
}

impl Objective for DefendedObjective<'_> {
    fn evaluate(
        &self,
        image: &Image,
        progress: Progress,
        random: &Random,
        want_gradient: bool,
    ) -> Result<Evaluation> {
        let model = self.scenario.model;
        let terms = Terms {
            output: &model.output,
            feature: &model.feature,
            losses: vec![(1.0, &self.loss)],
            views: vec![],
        };
        expectation(self.draws, self.known_seed, random, |seed| {
            let defended = self.defence.apply(model, image, seed)?.image;
            let seen = terms.evaluate(&*model.network, &defended, progress, random, want_gradient)?;
            let score = seen.scores.as_ref().map_or(Ok(0.0), |scores| self.scenario.score(scores))?;
            Ok(Evaluation { value: seen.value, gradient: seen.gradient, score, loss: None })
        })
    }
}

/// The mean of what is seen with several seeds of the defence, or what is seen with the one that is known.
pub(super) fn expectation(
    draws: usize,
    known_seed: Option<u64>,
    random: &Random,
    look: impl Fn(u64) -> Result<Evaluation>,
) -> Result<Evaluation> {
    let draws = if known_seed.is_some() { 1 } else { draws.max(1) };
    let share = 1.0 / draws as f64;
    let mut total = Evaluation { value: 0.0, gradient: None, score: 0.0, loss: None };
    for draw in 0..draws {
        let seen = look(known_seed.unwrap_or_else(|| random.fork(draw as u64).seed()))?;
        total.value += share * seen.value;
        total.score += share * seen.score;
        if let Some(gradient) = seen.gradient {
            let sum = total.gradient.get_or_insert_with(|| vec![0.0; gradient.len()]);
            sum.iter_mut().zip(&gradient).for_each(|(s, g)| *s += share as f32 * g);
        }
    }
    total.loss = Some(total.value);
    Ok(total)
}

/// The defence, which the table has made sure of.
pub(super) fn defence<'a>(scenario: &Scenario<'a>) -> Result<&'a Defence> {
    scenario.defence.ok_or_else(|| Error::setting("attack", "needs a defence to look through"))
}

/// The plan of an attack through a defence. Steps through it are dear; those on the bare network cost nearly nothing and bring the image to where
/// few are left to be taken.
pub(super) fn plan_through(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Plan> {
    let plan = plan(settings);
    if settings.warm_steps == 0 {
        return Ok(plan);
    }
    let steps = settings.warm_steps;
    let bare = AttackSettings { steps, restarts: 1, stop_when_fooled: false, ..settings.clone() };
    Ok(Plan { start: Start::From(apgd_ce(scenario, &bare)?.image), ..plan })
}

fn look_through(
    scenario: &Scenario<'_>,
    settings: &AttackSettings,
    draws: usize,
    known_seed: Option<u64>,
) -> Result<Outcome> {
    let loss = scenario.loss(LossKind::CrossEntropy)?;
    let defence = defence(scenario)?;
    let objective = DefendedObjective { scenario: *scenario, defence, loss, draws, known_seed };
    let step = || Box::new(Plain { size: settings.step_size }) as Box<dyn crate::step::Step>;
    Ok(optimise(&objective, scenario.image, &plan_through(scenario, settings)?, &step)?.into())
}

pub(super) fn bpda(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    look_through(scenario, settings, 1, None)
}

pub(super) fn bpda_eot(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    look_through(scenario, settings, settings.draws, None)
}

/// The attacker knows the defence's seed, which is the settings' own.
pub(super) fn fixed_seed(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    look_through(scenario, settings, 1, Some(settings.seed))
}
