//! Runs a study, resumably: every unit of a design that the store does not have yet.
//!
//! Workers take (image, work) pairs, all works of an image before the next image, each worker on a pool of one thread; so there are as many
//! units in flight as workers, memory does not grow with the study, and results do not depend on their number. A result is in the store the
//! moment it is there. A stop is honoured between units.

mod album;
mod cluster;
mod count;
mod foreign;
mod gallery;
mod item;
mod probe;
mod subject;
mod unit;
mod worker;

pub use cluster::{Cluster, Schedule, parse_cluster};
pub use gallery::Revisit;
pub use item::{CPUS_PER_TASK, Done, ITEM_MINUTES, Item, RETRIES};
pub use probe::{Cost, Forecast};
pub use subject::{Embedded, Subject};

use std::sync::atomic::AtomicBool;

use evenkeel::defence::{Defence, DefenceSpec};
use evenkeel::detect::Detector;
use evenkeel::objective::ViewObjective;
use evenkeel::pipeline::Pipeline;

use crate::experiment::{Design, Experiment, Knowledge, SubjectCard, Threat, Work, plain_objective};
use crate::store::{Shard, Store};
use crate::{Error, Result};
use unit::Adversary;
use worker::Shared;

/// A design with its subjects loaded.
pub struct Study {
    /// The design.
    pub design: Design,
    subjects: Vec<Subject>,
    prepared: Vec<Prepared>,
}

/// The defences and detectors of a subject, set up once.
struct Prepared {
    /// The network with the defence of each row in front of it.
    pipelines: Vec<Pipeline>,
    /// Whose objective an adaptive attacker keeps high against defences without one.
    plain: Defence,
    plain_spec: DefenceSpec,
    detectors: Vec<Detector>,
}

impl Prepared {
    fn new(subject: &Subject, card: &SubjectCard, seed: u64) -> Result<Self> {
        let plain_spec = plain_objective()?;
        Ok(Self {
            pipelines: card
                .rows
                .iter()
                .map(|row| subject.pipeline(&row.spec, &row.answer))
                .collect::<Result<_>>()?,
            plain: subject.defence(&plain_spec)?,
            plain_spec,
            detectors: card
                .detectors
                .iter()
                .map(|d| subject.detector(&d.spec, seed))
                .collect::<Result<_>>()?,
        })
    }

    /// The defence of a row, if it is one that does anything.
    fn defence(&self, row: usize) -> Option<&Defence> {
        self.pipelines[row].defence.as_deref()
    }

    /// What an adaptive attacker on a row keeps high.
    fn objective(&self, row: usize) -> Option<&dyn ViewObjective> {
        self.defence(row).and_then(|defence| defence.objective.as_deref()).or(self.plain.objective.as_deref())
    }
}

/// How to run.
pub struct Effort<'a> {
    /// Workers.
    pub threads: usize,
    /// Which part.
    pub shard: Shard,
    /// Whether attacked and defended images are written beside the log.
    pub save_images: bool,
    /// Raised when nothing new is to be begun.
    pub stop: &'a AtomicBool,
}

/// Takes notice of progress, from any thread.
pub trait Watch: Sync {
    /// A work is done for one more image: its place in the design, and the seconds it took if it was not there already.
    fn done(&self, work: usize, seconds: Option<f64>);
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Results made.
    pub made: usize,
    /// Results that were there.
    pub kept: usize,
    /// Results that were there for other pixels or another truth, and were made anew.
    pub replaced: usize,
    /// Whether it was stopped before the end.
    pub stopped: bool,
}

impl Study {
    /// Loads the subjects of an experiment and designs it.
    ///
    /// # Errors
    /// Naming the file or the key.
    pub fn load(experiment: Experiment, shelf: &[Embedded]) -> Result<Self> {
        let (mut subjects, mut cards) = (Vec::new(), Vec::new());
        for rule in &experiment.subjects {
            let (subject, card) = Subject::load(rule, &experiment, shelf)
                .map_err(|e| Error::Request(format!("subject {}: {e}", rule.name)))?;
            subjects.push(subject);
            cards.push(card);
        }
        for (subject, card) in foreign::load(&experiment, &subjects, &cards)? {
            subjects.push(subject);
            cards.push(card);
        }
        let design = Design::new(experiment, cards)?;
        let seed = design.experiment.seed;
        let prepared = subjects.iter().zip(&design.subjects);
        let prepared = prepared.map(|(subject, card)| Prepared::new(subject, card, seed));
        let prepared = prepared.collect::<Result<_>>()?;
        Ok(Self { design, subjects, prepared })
    }

    /// For every row of every subject, what stands against an evaluation on a public benchmark's terms: (subject, row, objections).
    pub fn objections(&self) -> Vec<(&str, &str, Vec<String>)> {
        let subjects = self.design.subjects.iter().zip(&self.prepared);
        let mut all = Vec::new();
        for (card, prepared) in subjects {
            let own = card.rows.iter().zip(&prepared.pipelines);
            all.extend(
                own.map(|(row, pipeline)| {
                    (card.rule.name.as_str(), row.label.as_str(), pipeline.objections())
                }),
            );
        }
        all
    }

    /// Places of the images of a shard, by subject.
    fn places(&self, subject: usize, shard: Shard) -> Vec<usize> {
        (0..self.design.subjects[subject].images.len()).filter(|place| shard.has(*place)).collect()
    }

    /// How many images each work has in a shard.
    pub fn counts(&self, shard: Shard) -> Vec<usize> {
        self.design.works.iter().map(|w| self.places(w.subject, shard).len()).collect()
    }

    /// Runs what is missing.
    ///
    /// # Errors
    /// The first thing that went wrong; what was made before it is in the store.
    pub fn run(&self, store: Store, effort: &Effort<'_>, watch: &dyn Watch) -> Result<(Store, Outcome)> {
        store.keep_design(&self.design)?;
        self.run_jobs(store, &self.jobs(effort.shard), effort, watch)
    }

    /// Runs what is missing of these jobs.
    fn run_jobs(
        &self,
        store: Store,
        jobs: &[(u32, u32)],
        effort: &Effort<'_>,
        watch: &dyn Watch,
    ) -> Result<(Store, Outcome)> {
        let shared = Shared::new(self, store, effort, watch);
        std::thread::scope(|scope| {
            for _ in 0..effort.threads.max(1) {
                scope.spawn(|| shared.work_through(jobs));
            }
        });
        shared.end(jobs)
    }

    /// (place of the image, work), all works of an image together.
    fn jobs(&self, shard: Shard) -> Vec<(u32, u32)> {
        let places: Vec<Vec<usize>> = (0..self.subjects.len()).map(|s| self.places(s, shard)).collect();
        let works_of = |subject: usize| {
            (0..self.design.works.len()).filter(move |w| self.design.works[*w].subject == subject)
        };
        order(&places)
            .flat_map(|(subject, place)| works_of(subject).map(move |w| (place as u32, w as u32)))
            .collect()
    }

    /// The attacker of a work, if it is an attack: what the key says, and nothing else, so that the same key has the same image whichever column
    /// asked first.
    fn adversary(&self, work: &Work) -> Option<Adversary<'_>> {
        let card = &self.design.subjects[work.subject];
        let Threat::Attack(aimed) = &card.columns[work.column].threat else { return None };
        let prepared = &self.prepared[work.subject];
        let row = work.lens.unwrap_or(0);
        let Knowledge { attack, through, keeps } =
            Knowledge::of(aimed, &card.rows[row], &prepared.plain_spec);
        let pipeline = through.map(|_| &prepared.pipelines[row]);
        let objective = keeps.and_then(|_| prepared.objective(row));
        Some(Adversary { attack, pipeline, objective })
    }
}

/// (subject, place of the image) from the places of every subject, one subject after the other; but the first image of each before all others:
/// then every work has been seen once, and the rest can be estimated.
fn order(places: &[Vec<usize>]) -> impl Iterator<Item = (usize, usize)> {
    let of = |subject: usize| places[subject].iter().map(move |place| (subject, *place));
    let first = (0..places.len()).flat_map(move |s| of(s).take(1));
    let rest = (0..places.len()).flat_map(move |s| of(s).skip(1));
    first.chain(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_is_seen_before_any_is_finished() {
        let places = [vec![0, 3, 6], vec![], vec![1, 4]];
        let jobs: Vec<(usize, usize)> = order(&places).collect();
        assert_eq!(jobs, [(0, 0), (2, 1), (0, 3), (0, 6), (2, 4)]);
    }
}
