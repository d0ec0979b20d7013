//! The training loop: draw a batch, attack it if asked, step, evaluate on held-out pictures now and then, keep checkpoints.

use crate::adversary::Adversary;
use crate::batch::{Batch, Pool};
use crate::error::{Error, Result};
use crate::goal::{Goal, Task};
use crate::loss::cross_entropy;
use crate::map::Map;
use crate::net::{Mode, Net, Place, Tape};
use crate::networks::SCORES;
use crate::optimiser::{Optimiser, Rule, Schedule};
use crate::{checkpoint, curve, instance, score};
use evenkeel::Random;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Steps after which a plan by time knows how many it has time for; the first is not timed.
const TRIAL: usize = 12;
/// The longest rise of the rate, in steps.
const LONGEST_WARM_UP: usize = 500;
/// The share of the minutes that evaluations may take.
const SCORING_SHARE: f64 = 0.06;
/// Steps for each batch of held-out pictures, so that scoring them stays cheap.
const SCORED_STEPS: usize = 4;
/// How much of the smoothed loss a step replaces.
const FRESH: f64 = 0.05;

/// How to train.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is learnt.
    pub goal: Goal,
    /// Steps in all; 0 for as many as the minutes have room for, found out by the first few and kept in the checkpoint.
    pub steps: usize,
    /// Pictures in a batch.
    pub batch: usize,
    /// (height, width) of the windows a batch is cut in.
    pub window: (usize, usize),
    /// How parameters are moved.
    pub rule: Rule,
    /// How the rate falls.
    pub schedule: Schedule,
    /// The highest rate.
    pub peak: f32,
    /// Weight decay.
    pub decay: f32,
    /// How much each class weighs in the loss.
    pub weights: Vec<f32>,
    /// The adversary, if there is one.
    pub adversary: Option<Adversary>,
    /// Steps between evaluations on held-out pictures, and checkpoints; 0 for a twentieth of all, or more if there are many pictures.
    pub every: usize,
    /// The seed.
    pub seed: u64,
    /// Stop after this many minutes; the checkpoint goes on from there.
    pub minutes: f64,
    /// Where checkpoints go.
    pub checkpoint: PathBuf,
}

/// What happened so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Steps done.
    pub step: usize,
    /// Steps in all; 0 while that is not known.
    #[serde(default)]
    pub steps: usize,
    /// Seconds of work.
    pub seconds: f64,
    /// The smoothed loss.
    #[serde(default)]
    pub loss: Option<f64>,
    /// Step and smoothed loss.
    pub losses: Vec<(usize, f64)>,
    /// Step and score in percent on held-out pictures.
    pub scores: Vec<(usize, f64)>,
}

impl History {
    /// Takes in the loss of one more step.
    fn took(&mut self, loss: f64, seconds: f64) {
        self.loss = Some(self.loss.map_or(loss, |smooth| smooth + FRESH * (loss - smooth)));
        self.step += 1;
        self.seconds = seconds;
    }
}

/// A training under way.
struct Course<'a> {
    plan: &'a Plan,
    net: &'a mut Net,
    optimiser: Optimiser,
    history: History,
    told: Instant,
}

impl Plan {
    /// Trains until the steps or the minutes are used up; goes on from the checkpoint if there is one. True when all steps are done.
    ///
    /// # Errors
    /// If a file cannot be read or written, or the loss diverges.
    pub fn run(&self, net: &mut Net, train: &Pool, held_out: &Pool) -> Result<(History, bool)> {
        self.run_until(usize::MAX, net, train, held_out)
    }

    /// Trains as [`Plan::run`] does, but stops before step `end`.
    ///
    /// # Errors
    /// As [`Plan::run`].
    pub fn run_until(
        &self,
        end: usize,
        net: &mut Net,
        train: &Pool,
        held_out: &Pool,
    ) -> Result<(History, bool)> {
        let mut optimiser = Optimiser::new(self.rule, net, self.decay);
        let mut history = match self.checkpoint.exists() {
            true => checkpoint::load(&self.checkpoint, net, &mut optimiser)?,
            false => History::default(),
        };
        if self.steps > 0 {
            history.steps = self.steps;
        }
        let mut course = Course { plan: self, net, optimiser, history, told: Instant::now() };
        course.run(end, train, held_out)?;
        let history = course.history;
        let done = history.step == history.steps;
        Ok((history, done))
    }

    /// The loss of a network on a batch, and its gradients at the places it is read from.
    ///
    /// # Errors
    /// If a mask is refused.
    pub fn loss(&self, net: &Net, tape: &Tape, batch: &Batch) -> Result<(f64, Vec<(Place, Map)>)> {
        if self.goal.task == Task::Instances {
            return Ok(instance::loss(net, tape, &instance::truths(&self.goal, batch)?));
        }
        let place = net.place(SCORES);
        let factor = match self.goal.task {
            Task::Semantic => batch.input.height.div_ceil(tape.map(place).height),
            _ => 1,
        };
        let (loss, gradient) = cross_entropy(tape.map(place), &batch.labels, factor, &self.weights);
        Ok((loss, vec![(place, gradient)]))
    }

    /// Mean IoU, accuracy or mask AP50 on held-out pictures.
    ///
    /// # Errors
    /// If the engine refuses the network or a picture cannot be read.
    pub fn score(&self, net: &Net, held_out: &Pool) -> Result<f64> {
        Ok(score::of(net, &self.goal, held_out, self.batch)?.figure)
    }

    /// The rate at a step; `steps` is 0 while their number is not known.
    fn rate(&self, step: usize, steps: usize) -> f32 {
        let warm = if steps == 0 { LONGEST_WARM_UP } else { (steps / 20 + 1).min(LONGEST_WARM_UP) };
        self.schedule.rate(step, steps, self.peak, warm)
    }

    /// Steps between scores: by itself a twentieth of all, but enough that scoring takes a small share of the time.
    fn every(&self, steps: usize, held_out: &Pool) -> usize {
        let dear = SCORED_STEPS * held_out.len() / self.batch;
        if self.every > 0 { self.every } else { (steps / 20).max(dear).max(1) }
    }
}

impl Course<'_> {
    fn run(&mut self, end: usize, train: &Pool, held_out: &Pool) -> Result<()> {
        let (start, before) = (Instant::now(), self.history.seconds);
        let mut trial = None;
        loop {
            let known = self.history.steps > 0;
            let last = if known { end.min(self.history.steps) } else { end };
            let over = self.history.step >= last || start.elapsed().as_secs_f64() >= 60.0 * self.plan.minutes;
            if over {
                break;
            }
            let loss = self.step(train)?;
            self.history.took(loss, before + start.elapsed().as_secs_f64());
            if !known {
                self.estimate_steps(*trial.get_or_insert((self.history.step, Instant::now())));
            }
            let every = self.plan.every(self.history.steps, held_out);
            let last = self.history.step == self.history.steps;
            if self.history.steps > 0 && (self.history.step.is_multiple_of(every) || last) {
                self.evaluate(held_out)?;
                self.history.seconds = before + start.elapsed().as_secs_f64();
                checkpoint::save(&self.plan.checkpoint, self.net, &mut self.optimiser, &self.history)?;
            } else if self.told.elapsed() >= Duration::from_secs(5) {
                self.tell("\r");
            }
        }
        checkpoint::save(&self.plan.checkpoint, self.net, &mut self.optimiser, &self.history)
    }

    /// Plans the steps by the time that the first ones took.
    fn estimate_steps(&mut self, (first, since): (usize, Instant)) {
        if self.history.step >= first + TRIAL {
            let seconds = since.elapsed().as_secs_f64() / TRIAL as f64;
            let room = 60.0 * self.plan.minutes * (1.0 - SCORING_SHARE) / seconds.max(1e-6);
            self.history.steps = (room as usize).max(self.history.step + 1);
            self.tell("\n");
        }
    }

    fn step(&mut self, train: &Pool) -> Result<f64> {
        let (plan, step) = (self.plan, self.history.step);
        let mut random = Random::new(plan.seed).fork(step as u64);
        let mut batch = train.draw(plan.batch, plan.window, &mut random)?;
        self.net.clear();
        let mut total = 0.0;
        let struck = plan.adversary.as_ref().map_or(0.0, |adversary| adversary.weight);
        if struck < 1.0 {
            total += f64::from(1.0 - struck) * self.learn(&batch, 1.0 - struck)?;
        }
        if let Some(adversary) = &plan.adversary {
            adversary.strike(self.net, &plan.goal, &mut batch, random.fork(1).seed())?;
            total += f64::from(struck) * self.learn(&batch, struck)?;
        }
        if !total.is_finite() {
            return Err(Error::Diverged { step, loss: total });
        }
        let steps = self.history.steps;
        let rate = plan.rate(step, steps);
        self.optimiser.step(self.net, step, rate);
        Ok(total)
    }

    /// Adds `share` of the gradients at a batch; gives its loss.
    fn learn(&mut self, batch: &Batch, share: f32) -> Result<f64> {
        let tape = self.net.forward(batch.input.clone(), Mode::Train);
        let (loss, mut gradients) = self.plan.loss(self.net, &tape, batch)?;
        if share != 1.0 {
            gradients.iter_mut().for_each(|(_, map)| map.values.iter_mut().for_each(|g| *g *= share));
        }
        self.net.accumulate(&tape, gradients, false);
        self.net.remember(&tape);
        Ok(loss)
    }

    /// Scores the network on held-out pictures and draws the curves.
    fn evaluate(&mut self, held_out: &Pool) -> Result<()> {
        let figure = self.plan.score(self.net, held_out)?;
        self.history.losses.push((self.history.step, self.history.loss.unwrap_or_default()));
        self.history.scores.push((self.history.step, 100.0 * figure));
        let curves = self.plan.checkpoint.with_extension("curves.png");
        curve::draw(&self.history, self.plan.goal.task.figure()).save_png(curves)?;
        self.tell("\n");
        Ok(())
    }

    /// The progress line: written over itself, and kept when a score is known.
    fn tell(&mut self, end: &str) {
        let (history, plan) = (&self.history, self.plan);
        let share = history.step as f64 / history.steps.max(1) as f64;
        let left = match history.steps {
            0 => plan.minutes,
            _ => history.seconds / 60.0 * (1.0 - share) / share,
        };
        let score = history.scores.last().map_or(String::from("-"), |(_, s)| format!("{s:.2}"));
        let speed = (history.step * plan.batch) as f64 / history.seconds.max(1e-9);
        let rate = plan.rate(history.step, history.steps);
        eprint!(
            "step {:>6}/{}  loss {:.4}  {} {score}  rate {rate:.2e}  {speed:.1} images/s  {left:.1} min left    {end}",
            history.step,
            history.steps,
            history.loss.unwrap_or_default(),
            plan.goal.task.figure(),
        );
        self.told = Instant::now();
    }
}
