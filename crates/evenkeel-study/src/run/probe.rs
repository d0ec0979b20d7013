//! What a study would take: the works of one image of every subject with few steps, counted on from there.
//!
//! Passes grow in straight lines: with an attack's starts and steps, with the draws that each step averages over, with the gradients of the defence
//! that each draw aims through, with the rounds in which the best iterates are compared again. Two points tell a line, so nothing is run with more
//! than two of anything, but for the iterates to be compared. A pixel takes as long as it did here. A defence and a detector take as long on an
//! attacked image as on a clean one. What stops early takes less.

use std::collections::HashMap;
use std::time::Instant;

use evenkeel::attack::{Attack, FINALISTS};
use evenkeel::defence::DefenceSpec;
use evenkeel::settings::Choice;
use evenkeel::{Image, Random};

use super::album::packed;
use super::unit::{Adversary, Evaluator, Seeds, peak_bytes};
use super::{Study, Watch, count};
use crate::Result;
use crate::experiment::{Cell, Threat, Work};
use crate::key::Key;
use crate::record::{Entry, Passes};

/// What one image takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// On one thread.
    pub seconds: f64,
    /// Forward passes.
    pub forwards: f64,
    /// Pullbacks.
    pub backwards: f64,
    /// Pixels of both.
    pixels: f64,
}

impl Cost {
    /// Both.
    pub fn plus(self, other: Cost) -> Cost {
        self.with(other, |a, b| a + b)
    }

    /// As often as this.
    pub fn times(self, factor: f64) -> Cost {
        self.with(self, |a, _| factor * a)
    }

    fn with(self, other: Cost, f: impl Fn(f64, f64) -> f64) -> Cost {
        Cost {
            seconds: f(self.seconds, other.seconds),
            forwards: f(self.forwards, other.forwards),
            backwards: f(self.backwards, other.backwards),
            pixels: f(self.pixels, other.pixels),
        }
    }

    fn of(seconds: f64, passes: [Passes; 2]) -> Cost {
        let sum = |f: fn(&Passes) -> u64| passes.iter().map(f).sum::<u64>() as f64;
        Cost {
            seconds,
            forwards: sum(|p| p.forwards),
            backwards: sum(|p| p.backwards),
            pixels: sum(|p| p.forward_pixels + p.backward_pixels),
        }
    }
}

/// What a study would take.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    /// One image of every work of the design.
    pub works: Vec<Cost>,
    /// The making of the image, of each work.
    making: Vec<Cost>,
    /// Each defence, by subject and row.
    answers: HashMap<(usize, usize), Cost>,
    /// Bytes that one image of every work leaves in the store, about.
    pub bytes: Vec<u64>,
    /// The most memory that was held, with one thread.
    pub peak_bytes: u64,
}

impl Forecast {
    /// What one image of a cell takes.
    pub fn cell(&self, cell: &Cell) -> Cost {
        let answer = cell.answer.and_then(|_| self.answers.get(&(cell.subject, cell.row)));
        self.making[cell.work].plus(answer.copied().unwrap_or_default())
    }
}

/// How much of everything there is in one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Extent {
    restarts: usize,
    steps: usize,
    draws: usize,
    gradients: usize,
    warm_steps: usize,
    /// How often the best iterates are compared again.
    rounds: usize,
}

const ONE: Extent = Extent { restarts: 1, steps: 1, draws: 1, gradients: 1, warm_steps: 0, rounds: 0 };

fn reads(attack: &Attack, name: &str) -> bool {
    attack.knobs().any(|knob| knob.name == name)
}

impl Extent {
    /// Of an attack through a defence with this many gradients, or on the bare network.
    fn of(attack: &Attack, gradients: Option<usize>) -> Self {
        let settings = attack.settings();
        let steps = if reads(attack, "steps") { settings.steps } else { 1 };
        let bare = Self { restarts: settings.restarts, steps, ..ONE };
        let Some(gradients) = gradients else { return bare };
        let rounds = if settings.known_draw { 0 } else { settings.final_draws.div_ceil(settings.draws) };
        Self { draws: settings.draws, gradients, warm_steps: settings.warm_steps, rounds, ..bare }
    }

    /// The attack with as much of everything.
    fn applied(self, attack: &Attack) -> Result<Attack> {
        let mut attack = attack.clone();
        // which may only follow from what is changed below
        if let Some(estimator) = attack.settings().aims_through().filter(|_| reads(&attack, "estimator")) {
            attack = attack.with("estimator", estimator.name())?;
        }
        let final_draws = self.rounds * self.draws;
        for (name, count) in [
            ("restarts", self.restarts),
            ("steps", self.steps),
            ("draws", self.draws),
            ("warm_steps", self.warm_steps),
            ("final_draws", final_draws),
        ] {
            if reads(&attack, name) {
                attack = attack.with(name, count)?;
            }
        }
        Ok(attack)
    }

    /// Units with one or two of everything, and how often each counts, so that together they come to this: a straight line in each direction, so
    /// the corners of a cube tell all.
    fn corners(self) -> Vec<(Self, f64)> {
        let mut all = vec![(Self { rounds: 0, ..self }, 1.0)];
        let dimensions: [fn(&mut Self) -> &mut usize; 5] = [
            |e| &mut e.restarts,
            |e| &mut e.steps,
            |e| &mut e.draws,
            |e| &mut e.gradients,
            |e| &mut e.warm_steps,
        ];
        for dimension in dimensions {
            all = all.into_iter().flat_map(|(extent, share)| ends(extent, share, dimension)).collect();
        }
        all
    }

    /// The smallest unit whose comparison at the end is over as many iterates as this one's, once.
    fn comparison(self) -> Self {
        let steps = self.steps.min(FINALISTS - 1);
        let restarts = if steps + 1 >= FINALISTS { 1 } else { self.restarts.min(FINALISTS) };
        Self { restarts, steps, warm_steps: 0, rounds: 1, ..self }
    }

    /// What to measure, and how often each counts.
    fn terms(self) -> Vec<(Self, f64)> {
        let mut all = self.corners();
        if self.rounds > 0 {
            let compared = self.comparison();
            let own = ends(compared, self.rounds as f64, |e| &mut e.draws);
            let own = own.into_iter().flat_map(|(extent, share)| ends(extent, share, |e| &mut e.gradients));
            all.extend(own.flat_map(|(e, share)| [(e, share), (Self { rounds: 0, ..e }, -share)]));
        }
        all
    }
}

/// The same with one and with two in a dimension, and how much each counts.
fn ends(extent: Extent, share: f64, dimension: impl Fn(&mut Extent) -> &mut usize) -> Vec<(Extent, f64)> {
    let mut extent = extent;
    let count = *dimension(&mut extent);
    if count < 2 {
        return vec![(extent, share)];
    }
    let mut with = |value: usize| {
        *dimension(&mut extent) = value;
        extent
    };
    vec![(with(1), share * (2.0 - count as f64)), (with(2), share * (count as f64 - 1.0))]
}

impl Study {
    /// What one image of every work takes, from few steps on the first image of every subject.
    ///
    /// # Errors
    /// If an image cannot be read or a unit fails.
    pub fn forecast(&self, watch: &dyn Watch) -> Result<Forecast> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pool = pool.map_err(|e| crate::Error::Request(format!("no thread could be had: {e}")))?;
        pool.install(|| {
            let mut known = HashMap::new();
            let mut made: HashMap<(usize, usize, Option<usize>), Cost> = HashMap::new();
            let (mut works, mut makings) = (Vec::new(), Vec::new());
            for (number, work) in self.design.works.iter().enumerate() {
                if self.design.subjects[work.subject].images.is_empty() {
                    works.push(Cost::default());
                    makings.push(Cost::default());
                    continue;
                }
                let start = Instant::now();
                if self.design.is_foreign(work) {
                    works.push(self.foreign_cost(work)?);
                    makings.push(Cost::default());
                    watch.done(number, Some(start.elapsed().as_secs_f64()));
                    continue;
                }
                let place = (work.subject, work.column, work.lens);
                let making = match made.get(&place) {
                    Some(cost) => *cost,
                    None => self.making(work)?,
                };
                made.insert(place, making);
                makings.push(making);
                works.push(making.plus(self.evaluating(work, &mut known)?));
                watch.done(number, Some(start.elapsed().as_secs_f64()));
            }
            let answers = known.into_iter().filter(|((_, detects, _), _)| !detects);
            let answers = answers.map(|((subject, _, row), cost)| ((subject, row), cost)).collect();
            let bytes = self.bytes()?;
            Ok(Forecast { works, making: makings, answers, bytes, peak_bytes: peak_bytes() })
        })
    }

    /// Bytes that one image of every work leaves: entries like that of the first image, and for attacks a picture with noise in it, which packs
    /// worse than any attack's.
    fn bytes(&self) -> Result<Vec<u64>> {
        let root = self.design.experiment.seed;
        let mut sizes = Vec::new();
        for (subject, card) in self.subjects.iter().zip(&self.design.subjects) {
            if card.images.is_empty() || card.foreign.is_some() {
                sizes.push((DETECTION, 0));
                continue;
            }
            let sample = subject.sample(0)?;
            let evaluator = Evaluator::new(subject, &sample, &Threat::Clean, root)?;
            let seeds = Seeds::new(root, 0, &sample.id);
            let entry = evaluator.show(Key::of_parts(&[]), &Threat::Clean, None, seeds)?.0;
            count::take();
            let picture = packed(&noisy(&sample.image, card.epsilon_255)?)?;
            sizes.push((entry.payload(&[])?.len() as u64, picture.len() as u64));
        }
        let of = |work: &Work| {
            let (entry, picture) = sizes[work.subject];
            let attacked =
                matches!(self.design.subjects[work.subject].columns[work.column].threat, Threat::Attack(_));
            let detections = work.detections.len() as u64 * DETECTION;
            let own = u64::from(!self.design.is_foreign(work)) * entry;
            own + u64::from(attacked) * picture + work.answers.len() as u64 * entry + detections
        };
        Ok(self.design.works.iter().map(of).collect())
    }

    /// What the image of a work takes.
    fn making(&self, work: &Work) -> Result<Cost> {
        let whole = match self.adversary(work) {
            Some(Adversary { attack, pipeline, .. }) => {
                let through = pipeline.and(work.lens).map(|row| self.row(work, row));
                Extent::of(&attack, through.map(gradients))
            }
            None => ONE,
        };
        extended(whole, |extent| self.made(work, Some(extent)))
    }

    fn row(&self, work: &Work, row: usize) -> &DefenceSpec {
        &self.design.subjects[work.subject].rows[row].spec
    }

    /// What the image of a work takes if its attack has this extent; its own if none is given.
    fn made(&self, work: &Work, extent: Option<Extent>) -> Result<Cost> {
        let (subject, card) = (&self.subjects[work.subject], &self.design.subjects[work.subject]);
        let (sample, root) = (subject.sample(0)?, self.design.experiment.seed);
        let threat = &card.columns[work.column].threat;
        let evaluator = Evaluator::new(subject, &sample, threat, root)?;
        let seeds = Seeds::new(root, work.draw, &sample.id);
        let mut adversary = self.adversary(work);
        let pipeline = match (adversary.as_ref().and_then(|a| a.pipeline).and(work.lens), extent) {
            (Some(row), Some(extent)) => {
                Some(subject.pipeline(&with(self.row(work, row), extent)?, &card.rows[row].answer)?)
            }
            _ => None,
        };
        if let (Some(adversary), Some(extent)) = (&mut adversary, extent) {
            adversary.attack = extent.applied(&adversary.attack)?;
            adversary.pipeline = pipeline.as_ref();
        }
        timed(|| Ok(evaluator.show(work.key, threat, adversary.as_ref(), seeds)?.0))
    }

    /// What the defences and detectors of a work take; each is run once for a subject.
    fn evaluating(&self, work: &Work, known: &mut HashMap<(usize, bool, usize), Cost>) -> Result<Cost> {
        let mut total = Cost::default();
        let answers = work.answers.iter().map(|answer| (false, answer.row));
        for (detects, place) in answers.chain(work.detections.iter().map(|d| (true, d.1))) {
            let at = (work.subject, detects, place);
            let cost = match known.get(&at) {
                Some(cost) => *cost,
                None if detects => self.detecting(work, place)?,
                None => self.answering(work, place)?,
            };
            known.insert(at, cost);
            total = total.plus(cost);
        }
        Ok(total)
    }

    fn answering(&self, work: &Work, row: usize) -> Result<Cost> {
        let whole = Extent { gradients: gradients(self.row(work, row)), ..ONE };
        extended(whole, |extent| self.answered(work, row, extent))
    }

    /// What a defence with this many gradients takes.
    fn answered(&self, work: &Work, row: usize, extent: Extent) -> Result<Cost> {
        let subject = &self.subjects[work.subject];
        let (sample, root) = (subject.sample(0)?, self.design.experiment.seed);
        let evaluator = Evaluator::new(subject, &sample, &Threat::Clean, root)?;
        let seeds = Seeds::new(root, work.draw, &sample.id);
        let spec = with(self.row(work, row), extent)?;
        let reads = &self.design.subjects[work.subject].rows[row].answer;
        let (pipeline, measure) = (subject.pipeline(&spec, reads)?, self.design.experiment.objective);
        timed(|| Ok(evaluator.answer(work.key, (&pipeline, &spec), &sample.image, seeds, measure)?.0))
    }

    fn detecting(&self, work: &Work, place: usize) -> Result<Cost> {
        let subject = &self.subjects[work.subject];
        let sample = subject.sample(0)?;
        let evaluator = Evaluator::new(subject, &sample, &Threat::Clean, self.design.experiment.seed)?;
        let detector = &self.prepared[work.subject].detectors[place];
        timed(|| evaluator.detect(work.key, detector, &sample.image))
    }
}

/// Bytes of a detection in a log.
const DETECTION: u64 = 400;

/// The image with noise of this radius.
fn noisy(image: &Image, epsilon_255: f64) -> Result<Image> {
    let (mut random, radius) = (Random::new(0), epsilon_255 as f32 / 255.0);
    let pixels =
        image.pixels().iter().map(|v| (v + random.uniform(-radius, radius)).clamp(0.0, 1.0)).collect();
    Ok(Image::new(image.height(), image.width(), pixels)?)
}

/// The gradients of a defence.
fn gradients(spec: &DefenceSpec) -> usize {
    if spec.takes_gradients() { spec.settings().steps } else { 1 }
}

/// The defence with as many gradients as the extent says.
fn with(spec: &DefenceSpec, extent: Extent) -> Result<DefenceSpec> {
    let spec = spec.clone();
    Ok(if spec.takes_gradients() { spec.with("steps", extent.gradients)? } else { spec })
}

/// Does a unit, and says what it took with all that belongs to it.
pub(super) fn timed(unit: impl FnOnce() -> Result<Entry>) -> Result<Cost> {
    let start = Instant::now();
    let entry = unit()?;
    Ok(Cost::of(start.elapsed().as_secs_f64(), [entry.passes, count::take()]))
}

/// What the whole takes, from few units with little of everything.
fn extended(whole: Extent, measure: impl Fn(Extent) -> Result<Cost>) -> Result<Cost> {
    let mut known: Vec<(Extent, Cost)> = Vec::new();
    let mut total = Cost::default();
    for (extent, share) in whole.terms() {
        let found = known.iter().find(|(other, _)| *other == extent).map(|(_, cost)| *cost);
        let cost = match found {
            Some(cost) => cost,
            None => measure(extent)?,
        };
        if found.is_none() {
            known.push((extent, cost));
        }
        total = total.plus(cost.times(share));
    }
    let seen = known.iter().fold(Cost::default(), |sum, (_, cost)| sum.plus(*cost));
    if seen.pixels == 0.0 {
        return Ok(seen);
    }
    Ok(Cost { seconds: seen.seconds / seen.pixels * total.pixels, ..total })
}

#[cfg(test)]
mod tests;
