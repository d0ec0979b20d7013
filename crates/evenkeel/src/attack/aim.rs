//! What an attack differentiates: the bare network, or a pipeline by an estimator, averaged over draws of its randomness.
//!
//! The mean over m draws of value, score and gradient; m = 1 with the seed that the attacker knows. Each evaluation draws afresh from its own stream, so
//! no draw is used twice.

use super::{AttackSettings, Estimator, Scenario, alarm};
use crate::error::Result;
use crate::image::Image;
use crate::network::{Network, Tensor};
use crate::optimise::{Evaluation, Plan, Start};
use crate::pipeline::Pipeline;
use crate::random::Random;

/// How many of the best iterates are compared again by fresh draws.
pub const FINALISTS: usize = 4;

/// How an attack looks at what it attacks.
#[derive(Clone, Copy)]
pub(crate) struct Aim<'a> {
    pub(super) scenario: Scenario<'a>,
    pub(super) through: Option<(&'a Pipeline, Estimator)>,
    pub(super) evade: f64,
    draws: usize,
    known_seed: Option<u64>,
    sharpness: f32,
    final_draws: usize,
}

impl<'a> Aim<'a> {
    /// The aim that settings ask for.
    pub(crate) fn new(scenario: &Scenario<'a>, settings: &AttackSettings) -> Self {
        Self {
            scenario: *scenario,
            through: scenario.pipeline.zip(settings.aims_through()),
            evade: settings.evade,
            draws: settings.draws,
            known_seed: settings.known_draw.then_some(settings.seed),
            sharpness: settings.sharpness as f32,
            final_draws: settings.final_draws,
        }
    }

    /// What `evaluate` finds on the network that is attacked: the mean over draws where that is a pipeline.
    pub(super) fn mean(
        &self,
        image: &Image,
        random: &Random,
        evaluate: impl Fn(&dyn Network) -> Result<Evaluation>,
    ) -> Result<Evaluation> {
        let Some((pipeline, estimator)) = self.through else {
            return evaluate(&*self.scenario.model.network);
        };
        if let Some((detector, threshold)) = pipeline.alarm() {
            let always = Pipeline { detector: None, threshold: None, ..pipeline.clone() };
            let defended = self.expectation(&always, estimator, random, &evaluate)?;
            let bare = evaluate(&*pipeline.model.network)?;
            let alarm = alarm::Alarm { detector, threshold, evade: self.evade };
            return alarm.mixed(&pipeline.model, image, bare, defended);
        }
        self.expectation(pipeline, estimator, random, &evaluate)
    }

    fn expectation(
        &self,
        pipeline: &Pipeline,
        estimator: Estimator,
        random: &Random,
        evaluate: &dyn Fn(&dyn Network) -> Result<Evaluation>,
    ) -> Result<Evaluation> {
        let draws = if self.known_seed.is_some() { 1 } else { self.draws.max(1) };
        let share = 1.0 / draws as f64;
        let mut total = Evaluation { value: 0.0, gradient: None, score: 0.0, loss: None };
        for draw in 0..draws {
            let seed = self.known_seed.unwrap_or_else(|| random.fork(draw as u64).seed());
            let seen = evaluate(&pipeline.network(seed, estimator).with_sharpness(self.sharpness))?;
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

    /// The scores that the attacked network gives an image, for one draw.
    pub(super) fn scores(&self, image: &Image, seed: u64) -> Result<Tensor> {
        let names = self.scenario.model.output.list();
        let tensors = match self.through {
            Some((pipeline, estimator)) => {
                pipeline.network(self.known_seed.unwrap_or(seed), estimator).run_one(image, &names)?
            }
            None => self.scenario.model.network.run_one(image, &names)?,
        };
        Ok(Tensor::joined(tensors))
    }

    /// A plan made fit for aiming through a pipeline: its warm start, and how the iterate to keep is found among noisy ones.
    ///
    /// Steps through a pipeline are expensive; those on the bare network are cheap and leave fewer to take.
    pub(super) fn plan(&self, plan: Plan, settings: &AttackSettings) -> Result<Plan> {
        let Some((pipeline, _)) = self.through else { return Ok(plan) };
        let noisy = pipeline.is_random() && self.known_seed.is_none();
        let rounds = if noisy { self.final_draws.div_ceil(self.draws.max(1)) } else { 0 };
        let finalists = if rounds > 0 { FINALISTS } else { 0 };
        let start = match settings.warm_steps {
            0 => plan.start.clone(),
            steps => {
                let bare = AttackSettings {
                    steps,
                    restarts: 1,
                    stop_when_fooled: false,
                    estimator: None,
                    draws: 1,
                    known_draw: false,
                    warm_steps: 0,
                    evade: 0.0,
                    ..settings.clone()
                };
                Start::From(super::family::apgd_ce(&self.scenario, &bare)?.image)
            }
        };
        Ok(Plan { start, finalists, rounds, ..plan })
    }
}
