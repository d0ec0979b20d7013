//! What a study would take: the works of one image of every subject with few steps, counted on from there.
//!
//! Passes grow in straight lines: with an attack's steps, with the draws that each of them averages over, with the gradients of the defence that
//! each draw looks through. Two points tell a line, so nothing is run with more than two of anything. A pixel takes as long as it did
//! here. A defence and a detector take as long on an attacked image as on a clean one. What stops early takes less.

use std::collections::HashMap;
use std::time::Instant;

use super::unit::{Adversary, Judge, Seeds, peak_bytes};
use super::{Study, Watch, count};
use crate::Result;
use crate::experiment::{DefenceSpec, Threat, Work};
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
    /// The most memory that was held, with one thread.
    pub peak_bytes: u64,
}

/// How much of everything there is in one unit.
#[derive(Clone, Copy)]
struct Extent {
    steps: usize,
    draws: usize,
    gradients: usize,
    warm_steps: usize,
}

const ONE: Extent = Extent { steps: 1, draws: 1, gradients: 1, warm_steps: 0 };

impl Study {
    /// What one image of every work takes, from few steps on the first image of every subject.
    ///
    /// # Errors
    /// If an image cannot be read or a unit fails.
    pub fn forecast(&self, watch: &dyn Watch) -> Result<Forecast> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pool = pool.map_err(|e| crate::Error::Request(format!("no thread could be had: {e}")))?;
        pool.install(|| {
            let mut looks = HashMap::new();
            let mut made: HashMap<(usize, usize, Option<usize>), Cost> = HashMap::new();
            let mut works = Vec::new();
            for (number, work) in self.design.works.iter().enumerate() {
                if self.design.subjects[work.subject].images.is_empty() {
                    works.push(Cost::default());
                    continue;
                }
                let start = Instant::now();
                let place = (work.subject, work.column, work.lens);
                let making = match made.get(&place) {
                    Some(cost) => *cost,
                    None => self.making(work)?,
                };
                made.insert(place, making);
                works.push(making.plus(self.looking(work, &mut looks)?));
                watch.done(number, Some(start.elapsed().as_secs_f64()));
            }
            Ok(Forecast { works, peak_bytes: peak_bytes() })
        })
    }

    /// What the image of a work takes.
    fn making(&self, work: &Work) -> Result<Cost> {
        let whole = match self.adversary(work) {
            Some(Adversary { spec, defence, .. }) => {
                let lens = defence.and(work.lens).map(|row| &self.design.subjects[work.subject].rows[row]);
                Extent {
                    steps: spec.steps,
                    draws: spec.draws,
                    gradients: lens.map_or(1, gradients),
                    warm_steps: spec.warm_steps,
                }
            }
            None => ONE,
        };
        let restarts = self.adversary(work).map_or(1, |adversary| adversary.spec.restarts);
        let first = extended(whole, |extent| self.made(work, extent))?;
        if restarts < 2 {
            return Ok(first);
        }
        // the warm start is made once
        let again = Extent { warm_steps: 0, ..whole };
        let again = extended(again, |extent| self.made(work, extent))?;
        Ok(first.plus(again.times((restarts - 1) as f64)))
    }

    /// What the image of a work takes if its attack has this extent.
    fn made(&self, work: &Work, extent: Extent) -> Result<Cost> {
        let (subject, card) = (&self.subjects[work.subject], &self.design.subjects[work.subject]);
        let (sample, root) = (subject.sample(0)?, self.design.experiment.seed);
        let threat = &card.columns[work.column].threat;
        let bench = Judge::new(subject, &sample, threat, root)?;
        let seeds = Seeds::new(root, work.draw, &sample.id);
        let mut adversary = self.adversary(work);
        let lens = adversary.as_ref().and_then(|a| a.defence).and(work.lens);
        let defence = lens.map(|row| subject.defence(&with(&card.rows[row], extent))).transpose()?;
        if let Some(adversary) = &mut adversary {
            adversary.spec.steps = extent.steps;
            adversary.spec.draws = extent.draws;
            adversary.spec.warm_steps = extent.warm_steps;
            adversary.spec.restarts = 1;
            adversary.defence = defence.as_ref();
        }
        timed(|| Ok(bench.show(work.key, threat, adversary.as_ref(), seeds)?.0))
    }

    /// What those take who look at a work; each is run once for a subject.
    fn looking(&self, work: &Work, known: &mut HashMap<(usize, bool, usize), Cost>) -> Result<Cost> {
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
        let whole = Extent { gradients: gradients(&self.design.subjects[work.subject].rows[row]), ..ONE };
        extended(whole, |extent| self.answered(work, row, extent))
    }

    /// What a defence with this many gradients takes.
    fn answered(&self, work: &Work, row: usize, extent: Extent) -> Result<Cost> {
        let (subject, card) = (&self.subjects[work.subject], &self.design.subjects[work.subject]);
        let (sample, root) = (subject.sample(0)?, self.design.experiment.seed);
        let bench = Judge::new(subject, &sample, &Threat::Clean, root)?;
        let seeds = Seeds::new(root, work.draw, &sample.id);
        let spec = with(&card.rows[row], extent);
        let (defence, measure) = (subject.defence(&spec)?, self.design.experiment.objective);
        timed(|| Ok(bench.answer(work.key, (&defence, &spec), &sample.image, seeds, measure)?.0))
    }

    fn detecting(&self, work: &Work, place: usize) -> Result<Cost> {
        let (subject, card) = (&self.subjects[work.subject], &self.design.subjects[work.subject]);
        let sample = subject.sample(0)?;
        let bench = Judge::new(subject, &sample, &Threat::Clean, self.design.experiment.seed)?;
        let detector = &self.prepared[work.subject].detectors[place];
        timed(|| bench.detect(work.key, detector, &card.detectors[place].kind, &sample.image))
    }
}

/// The gradients of a defence.
fn gradients(row: &DefenceSpec) -> usize {
    if row.climbs() { row.steps } else { 1 }
}

/// The defence with as many gradients as the extent says.
fn with(row: &DefenceSpec, extent: Extent) -> DefenceSpec {
    DefenceSpec { steps: if row.climbs() { extent.gradients } else { row.steps }, ..row.clone() }
}

/// Does a unit, and says what it took with all that belongs to it.
fn timed(unit: impl FnOnce() -> Result<Entry>) -> Result<Cost> {
    let start = Instant::now();
    let entry = unit()?;
    Ok(Cost::of(start.elapsed().as_secs_f64(), [entry.passes, count::take()]))
}

/// What the whole takes, from units with one or two of everything: a straight line in each direction, so the corners of a cube tell all.
fn extended(whole: Extent, measure: impl Fn(Extent) -> Result<Cost>) -> Result<Cost> {
    // how much the unit with one and the unit with two count
    let line = |count: usize| {
        if count > 1 { vec![(1, 2.0 - count as f64), (2, count as f64 - 1.0)] } else { vec![(count, 1.0)] }
    };
    let (mut seen, mut total) = (Cost::default(), Cost::default());
    for (steps, by_steps) in line(whole.steps) {
        for (draws, by_draws) in line(whole.draws) {
            for (gradients, by_gradients) in line(whole.gradients) {
                for (warm_steps, by_warm_steps) in line(whole.warm_steps) {
                    let cost = measure(Extent { steps, draws, gradients, warm_steps })?;
                    seen = seen.plus(cost);
                    total = total.plus(cost.times(by_steps * by_draws * by_gradients * by_warm_steps));
                }
            }
        }
    }
    if seen.pixels == 0.0 {
        return Ok(seen);
    }
    Ok(Cost { seconds: seen.seconds / seen.pixels * total.pixels, ..total })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Embedded;
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn the_corners_of_a_cube_tell_what_lies_beyond_it() {
        // in each step two passes of its own, and in each draw one and three for every gradient; a last look through the defence
        let passes = |e: Extent| {
            (e.steps * (2 + e.draws * (1 + 3 * e.gradients)) + 5 + 3 * e.gradients + e.warm_steps) as f64
        };
        let measure = |e: Extent| {
            assert!(e.steps <= 2 && e.draws <= 2 && e.gradients <= 2 && e.warm_steps <= 2);
            let n = passes(e);
            Ok(Cost { seconds: n / 4.0, forwards: n, backwards: 2.0 * n, pixels: 100.0 * n })
        };
        for (steps, draws, gradients) in
            [(1, 1, 1), (20, 1, 1), (1, 20, 1), (1, 1, 20), (10, 20, 1), (10, 1, 20), (7, 3, 5)]
        {
            let whole = Extent { steps, draws, gradients, warm_steps: 9 * (steps % 2) };
            let cost = extended(whole, measure).unwrap();
            let n = passes(whole);
            assert_eq!((cost.forwards, cost.backwards), (n, 2.0 * n), "{steps} {draws} {gradients}");
            assert!((cost.seconds - n / 4.0).abs() < 1e-9 * n, "{}", cost.seconds);
        }
    }

    const SMALL: &str = r#"
        name = "small"
        epsilon_255 = 4
        seeds = [0]

        [[subject]]
        name = "crops"
        model = "embedded:classifier"
        data = "scenes-objects"
        path = "1@24x24"

        [[attack]]
        kind = "pgd"
        steps = 5

        [[attack]]
        kind = "apgd-ce"
        steps = 6

        [[attack]]
        kind = "square"
        steps = 12

        [[attack]]
        kind = "bpda"
        steps = 3
        warm_steps = 4

        [[attack]]
        kind = "bpda-eot"
        steps = 3
        draws = 3

        [[attack]]
        kind = "unrolled"
        steps = 3

        [[attack]]
        kind = "adaptive"
        steps = 3
        weight = 1

        [[defence]]
        kind = "random"

        [[defence]]
        kind = "equivariance"
        steps = 3

        [[detector]]
        kind = "variance"
    "#;

    #[test]
    fn a_few_steps_tell_the_passes_of_many() {
        let shelf = [Embedded {
            name: "classifier",
            network: include_bytes!("../../../../models/scenes_classifier.onnx"),
            contract: include_str!("../../../../models/scenes_classifier.evenkeel.toml"),
            rotation: include_bytes!("../../../../models/scenes_classifier.rotation.safetensors"),
            contrastive: include_bytes!("../../../../models/scenes_classifier.contrastive.safetensors"),
        }];
        let experiment = Experiment::parse(SMALL, Path::new("small.toml")).unwrap();
        let study = Study::load(experiment, &shelf).unwrap();
        let passes = |cost: Cost| (cost.forwards, cost.backwards);
        for work in &study.design.works {
            let card = &study.design.subjects[work.subject];
            let whole = match study.adversary(work) {
                Some(a) => Extent {
                    steps: a.spec.steps,
                    draws: a.spec.draws,
                    gradients: 3,
                    warm_steps: a.spec.warm_steps,
                },
                None => ONE,
            };
            let (told, taken) = (study.making(work).unwrap(), study.made(work, whole).unwrap());
            let label = &card.columns[work.column].label;
            assert_eq!(passes(told), passes(taken), "{label} through {:?}", work.lens);
            assert!(told.seconds > 0.0, "{label}");
        }
        for row in 1..3 {
            let work = &study.design.works[0];
            let told = study.answering(work, row).unwrap();
            let taken = study.answered(work, row, Extent { gradients: 3, ..ONE }).unwrap();
            assert_eq!(passes(told), passes(taken), "defence {row}");
        }
    }
}
