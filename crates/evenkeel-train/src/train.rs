//! The training loop: draw a batch, attack it if asked, step, evaluate on held-out pictures now and then, keep checkpoints.

use crate::adversary::Adversary;
use crate::batch::{Pool, Subject};
use crate::error::{Error, Result};
use crate::instance;
use crate::loss::{best, cross_entropy};
use crate::net::{Mode, Net};
use crate::networks::SCORES;
use crate::optimiser::{AdamW, rate};
use crate::{checkpoint, curve};
use evenkeel::Random;
use evenkeel_data::metric::{ClassOverlap, Confusion};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Instant;

/// How to train.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is learnt.
    pub subject: Subject,
    /// Steps in all.
    pub steps: usize,
    /// Pictures in a batch.
    pub batch: usize,
    /// (height, width) of the windows a batch is cut in.
    pub window: (usize, usize),
    /// The highest rate.
    pub peak: f32,
    /// Weight decay.
    pub decay: f32,
    /// The adversary, if there is one.
    pub adversary: Option<Adversary>,
    /// Steps between evaluations on held-out pictures, and checkpoints.
    pub every: usize,
    /// The seed.
    pub seed: u64,
    /// Stop after so many minutes; the checkpoint goes on from there.
    pub minutes: f64,
    /// Where checkpoints go.
    pub checkpoint: PathBuf,
}

/// What happened so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Steps done.
    pub step: usize,
    /// Seconds of work.
    pub seconds: f64,
    /// Step and smoothed loss.
    pub losses: Vec<(usize, f64)>,
    /// Step and score in percent on held-out pictures.
    pub scores: Vec<(usize, f64)>,
}

/// How much rare classes weigh in the loss: road, pavement, grass, building, fence, pole, sign, tree, person, car, sky.
const SCENE_WEIGHTS: [f32; 11] = [1.0, 1.1, 1.0, 1.0, 1.8, 2.0, 2.0, 1.0, 2.5, 1.3, 1.0];

impl Plan {
    /// How much finer labels are than scores.
    fn factor(&self) -> usize {
        match self.subject {
            Subject::Scenes => 2,
            Subject::Objects | Subject::Instances => 1,
        }
    }

    fn weights(&self) -> &'static [f32] {
        match self.subject {
            Subject::Scenes => &SCENE_WEIGHTS,
            Subject::Objects => &[1.0; 10],
            Subject::Instances => &[1.0; 2],
        }
    }

    /// Trains until the steps or the minutes are used up; goes on from the checkpoint if there is one. True when all steps are done.
    ///
    /// # Errors
    /// If a file cannot be read or written, or the loss diverges.
    pub fn run(&self, net: &mut Net, train: &Pool, held_out: &Pool) -> Result<(History, bool)> {
        self.run_until(self.steps, net, train, held_out)
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
        let end = end.min(self.steps);
        let mut optimiser = AdamW::new(net, self.decay);
        let mut history = match self.checkpoint.exists() {
            true => checkpoint::load(&self.checkpoint, net, &mut optimiser)?,
            false => History::default(),
        };
        let (start, before) = (Instant::now(), history.seconds);
        let mut smooth: Option<f64> = None;
        let mut told = Instant::now();
        while history.step < end && start.elapsed().as_secs_f64() < 60.0 * self.minutes {
            let loss = self.step(net, &mut optimiser, train, history.step)?;
            let level = smooth.map_or(loss, |s| s + 0.05 * (loss - s));
            smooth = Some(level);
            history.step += 1;
            history.seconds = before + start.elapsed().as_secs_f64();
            if history.step.is_multiple_of(self.every) || history.step == self.steps {
                history.losses.push((history.step, level));
                history.scores.push((history.step, 100.0 * self.score(net, held_out)?));
                checkpoint::save(&self.checkpoint, net, &mut optimiser, &history)?;
                curve::draw(&history, self.subject.figure())
                    .save_png(self.checkpoint.with_extension("curves.png"))?;
                self.tell(&history, level, true);
            } else if told.elapsed().as_secs() >= 5 {
                self.tell(&history, level, false);
                told = Instant::now();
            }
        }
        checkpoint::save(&self.checkpoint, net, &mut optimiser, &history)?;
        Ok((history.clone(), history.step == self.steps))
    }

    fn step(&self, net: &mut Net, optimiser: &mut AdamW, train: &Pool, step: usize) -> Result<f64> {
        let mut random = Random::new(self.seed).fork(step as u64);
        let mut batch = train.draw(self.batch, self.window, &mut random);
        if let Some(adversary) = &self.adversary {
            adversary.strike(net, self.subject, &mut batch, random.fork(1).seed())?;
        }
        let truths = match self.subject {
            Subject::Instances => instance::truths(&batch)?,
            _ => Vec::new(),
        };
        let tape = net.forward(batch.input, Mode::Train);
        let (loss, gradients) = match self.subject {
            Subject::Instances => instance::loss(net, &tape, &truths),
            _ => {
                let place = net.place(SCORES);
                let (loss, gradient) =
                    cross_entropy(tape.map(place), &batch.labels, self.factor(), self.weights());
                (loss, vec![(place, gradient)])
            }
        };
        if !loss.is_finite() {
            return Err(Error::Diverged { step, loss });
        }
        net.backward(&tape, gradients, false);
        net.remember(&tape);
        optimiser.step(net, step, rate(step, self.steps, self.peak, self.steps / 20 + 1));
        Ok(loss)
    }

    /// Mean IoU (scenes), accuracy (objects) or mask AP50 (instances) on held-out pictures.
    ///
    /// # Errors
    /// If the engine refuses the network.
    pub fn score(&self, net: &Net, held_out: &Pool) -> Result<f64> {
        if self.subject == Subject::Instances {
            return Ok(instance::score(net, held_out)?.figures().0[1].unwrap_or(0.0));
        }
        let tally = self.tally(net, held_out);
        let figure = if self.subject == Subject::Scenes { tally.mean_iou() } else { tally.pixel_accuracy() };
        Ok(figure.unwrap_or(0.0))
    }

    /// IoU of each class on held-out pictures; classes that never occur have none.
    pub fn overlaps(&self, net: &Net, held_out: &Pool) -> Vec<Option<f64>> {
        self.tally(net, held_out).iou()
    }

    fn tally(&self, net: &Net, held_out: &Pool) -> ClassOverlap {
        let place = net.place(SCORES);
        let mut tally = Confusion::empty(self.weights().len());
        let mut from = 0;
        while from < held_out.len() {
            let batch = held_out.plain(from, from + self.batch);
            from += batch.input.batch;
            let tape = net.forward(batch.input, Mode::Eval);
            for (said, is) in best(tape.map(place), self.factor()).into_iter().zip(&batch.labels) {
                tally.count((*is).into(), said.into());
            }
        }
        tally.overlap()
    }

    /// The progress line: written over itself, and kept when a score is known.
    fn tell(&self, history: &History, loss: f64, kept: bool) {
        let share = history.step as f64 / self.steps as f64;
        let left = history.seconds / 60.0 * (1.0 - share) / share;
        let score = history.scores.last().map_or(String::from("-"), |(_, s)| format!("{s:.2}"));
        let what = self.subject.figure();
        let speed = (history.step * self.batch) as f64 / history.seconds.max(1e-9);
        let end = if kept { "\n" } else { "\r" };
        eprint!(
            "step {:>6}/{}  loss {loss:.4}  {what} {score}  {speed:.1} images/s  {left:.1} min left    {end}",
            history.step, self.steps
        );
    }
}
