//! Attacks that look through the defence: the loss is taken at the defended image, and its gradient applied to the attacked one
//! as if the defence were the identity (BPDA), for one draw of the defence's randomness, for several, or for the very one used.

use super::family::{apgd_ce, plan};
use super::{AttackSettings, Outcome, Situation};
use crate::ascent::{Landscape, Plan, Sight, Start, ascend};
use crate::defence::Defence;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::objective::{Loss, LossKind, Progress, Terms};
use crate::random::Random;
use crate::step::Plain;

/// A loss at the defended image.
pub struct DefendedLandscape<'a> {
    /// What is attacked.
    pub situation: Situation<'a>,
    /// The defence.
    pub defence: &'a Defence,
    /// The loss, to be raised.
    pub loss: Loss,
    /// Draws of the defence's randomness to average over.
    pub draws: usize,
    /// The defence's seed, if the attacker knows it; otherwise every look draws afresh.
    pub known_seed: Option<u64>,
}

impl Landscape for DefendedLandscape<'_> {
    fn look(&self, image: &Image, progress: Progress, random: &Random, want_gradient: bool) -> Result<Sight> {
        let model = self.situation.model;
        let terms = Terms {
            output: &model.output,
            feature: &model.feature,
            losses: vec![(1.0, &self.loss)],
            views: vec![],
        };
        expectation(self.draws, self.known_seed, random, |seed| {
            let defended = self.defence.apply(model, image, seed)?.image;
            let seen = terms.evaluate(&*model.network, &defended, progress, random, want_gradient)?;
            let score = seen.scores.as_ref().map_or(Ok(0.0), |scores| self.situation.score(scores))?;
            Ok(Sight { value: seen.value, gradient: seen.gradient, score, loss: None })
        })
    }
}

/// The mean of what is seen with several seeds of the defence, or what is seen with the one that is known.
pub(super) fn expectation(
    draws: usize,
    known_seed: Option<u64>,
    random: &Random,
    look: impl Fn(u64) -> Result<Sight>,
) -> Result<Sight> {
    let draws = if known_seed.is_some() { 1 } else { draws.max(1) };
    let share = 1.0 / draws as f64;
    let mut total = Sight { value: 0.0, gradient: None, score: 0.0, loss: None };
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
pub(super) fn defence<'a>(situation: &Situation<'a>) -> Result<&'a Defence> {
    situation.defence.ok_or_else(|| Error::setting("attack", "needs a defence to look through"))
}

/// The plan of an attack through a defence. Steps through it are dear; those on the bare network cost nearly nothing and bring the image to where
/// few are left to be taken.
pub(super) fn plan_through(situation: &Situation<'_>, settings: &AttackSettings) -> Result<Plan> {
    let plan = plan(settings);
    if settings.warm_steps == 0 {
        return Ok(plan);
    }
    let steps = settings.warm_steps;
    let bare = AttackSettings { steps, restarts: 1, stop_when_fooled: false, ..settings.clone() };
    Ok(Plan { start: Start::At(apgd_ce(situation, &bare)?.image), ..plan })
}

fn look_through(
    situation: &Situation<'_>,
    settings: &AttackSettings,
    draws: usize,
    known_seed: Option<u64>,
) -> Result<Outcome> {
    let loss = situation.loss(LossKind::CrossEntropy)?;
    let defence = defence(situation)?;
    let landscape = DefendedLandscape { situation: *situation, defence, loss, draws, known_seed };
    let step = || Box::new(Plain { size: settings.step_size }) as Box<dyn crate::step::Step>;
    Ok(ascend(&landscape, situation.image, &plan_through(situation, settings)?, &step)?.into())
}

pub(super) fn bpda(situation: &Situation<'_>, settings: &AttackSettings) -> Result<Outcome> {
    look_through(situation, settings, 1, None)
}

pub(super) fn bpda_eot(situation: &Situation<'_>, settings: &AttackSettings) -> Result<Outcome> {
    look_through(situation, settings, settings.draws, None)
}

/// The attacker knows the defence's seed, which is the settings' own.
pub(super) fn fixed_seed(situation: &Situation<'_>, settings: &AttackSettings) -> Result<Outcome> {
    look_through(situation, settings, 1, Some(settings.seed))
}
