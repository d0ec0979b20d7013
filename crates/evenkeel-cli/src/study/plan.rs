//! `evenkeel study plan`: what would run, and what it would take, from one image run as a probe.
//!
//! The probe is the study itself on one image of every subject and one draw, into a folder that is thrown away. Hours are its seconds times the
//! images and draws to come, over the threads; they hold for a machine that is as busy as it is now.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use evenkeel_study::experiment::{Design, Experiment, SubjectCard};
use evenkeel_study::record::Entry;
use evenkeel_study::run::{Effort, Study};
use evenkeel_study::store::{Key, Shard, Store, read_design};

use super::progress::{Progress, duration};
use super::{Subject, shelf};
use crate::units;

/// Say what would run, and what it would take
#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    subject: Subject,
    /// Images at a time
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// The folder it would run into: what is there already is not counted
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Count, but run no probe
    #[arg(long)]
    no_probe: bool,
}

/// What one image of a work takes.
#[derive(Clone, Copy, Default)]
struct Cost {
    seconds: f64,
    forwards: u64,
    backwards: u64,
}

impl Cost {
    fn add(&mut self, entry: &Entry) {
        self.seconds += entry.clock.seconds + entry.clock.look_seconds;
        self.forwards += entry.passes.forwards + 1;
        self.backwards += entry.passes.backwards;
    }
}

pub(crate) fn run(args: &PlanArgs) -> Result<()> {
    let experiment = args.subject.load()?;
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
    let study = Study::load(experiment.clone(), &shelf())?;
    let design = &study.design;
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.study", experiment.name)));
    let there = match read_design(&folder) {
        Ok(Some(_)) => Some(Store::read(&folder)?),
        _ => None,
    };
    let (probe, peak) = match args.no_probe {
        true => (None, 0),
        false => {
            let (costs, peak) = probe(experiment, design)?;
            (Some(costs), peak)
        }
    };
    let (mut units, mut total) = (0, Cost::default());
    let wide = design.subjects.iter().map(|card| card.rule.name.chars().count()).max().unwrap_or(0).max(8);
    println!("{:<wide$} {:<28} {:>7} {:>10} {:>12}  time", "subject", "attack", "cells", "images", "passes");
    for (subject, card) in design.subjects.iter().enumerate() {
        for column in 0..card.columns.len() {
            let line = line(design, (subject, column), there.as_ref(), probe.as_deref());
            units += line.units;
            total.seconds += line.cost.seconds;
            total.forwards += line.cost.forwards;
            total.backwards += line.cost.backwards;
            println!("{}", line.words(card, column, threads, wide, probe.is_some()));
        }
    }
    design.left_out.iter().for_each(|words| println!("left out: {words}"));
    println!("{} cells, {units} results to make", design.cells.len());
    if probe.is_some() {
        println!(
            "{} forward passes and {} pullbacks; about {} on {threads} threads, as busy as this machine is now; {} of memory with one",
            units::count(total.forwards as f64).trim(),
            units::count(total.backwards as f64).trim(),
            duration(total.seconds / threads as f64),
            units::bytes(peak as usize)
        );
    }
    Ok(())
}

/// What a column comes to.
struct Line {
    cells: usize,
    images: usize,
    units: usize,
    cost: Cost,
}

impl Line {
    fn words(&self, card: &SubjectCard, column: usize, threads: usize, wide: usize, probed: bool) -> String {
        let time = if probed { duration(self.cost.seconds / threads as f64) } else { "–".into() };
        let passes = self.cost.forwards + self.cost.backwards;
        let passes = if probed { units::count(passes as f64).trim().to_string() } else { "–".into() };
        format!(
            "{:<wide$} {:<28} {:>7} {:>10} {passes:>12}  {time}",
            card.rule.name, card.columns[column].label, self.cells, self.images
        )
    }
}

fn line(
    design: &Design,
    (subject, column): (usize, usize),
    there: Option<&Store>,
    probe: Option<&[Cost]>,
) -> Line {
    let card = &design.subjects[subject];
    let cells = design.cells.iter().filter(|c| (c.subject, c.column) == (subject, column)).count();
    let mut line = Line { cells, images: card.images.len(), units: 0, cost: Cost::default() };
    let works = design.works.iter().enumerate();
    for (number, work) in works.filter(|(_, w)| (w.subject, w.column) == (subject, column)) {
        let keys: Vec<&Key> = std::iter::once(&work.key)
            .chain(work.answers.iter().map(|a| &a.key))
            .chain(work.detections.iter().map(|d| &d.0))
            .collect();
        let open = |id: &&String| there.is_none_or(|s| keys.iter().any(|key| !s.has(key, id, None)));
        let images = card.images.iter().filter(open).count();
        line.units += images * keys.len();
        if let Some(cost) = probe.map(|p| p[number]) {
            line.cost.seconds += images as f64 * cost.seconds;
            line.cost.forwards += images as u64 * cost.forwards;
            line.cost.backwards += images as u64 * cost.backwards;
        }
    }
    line
}

/// What one image of every work takes, and the most memory that was held. Draws cost alike, so one is run.
fn probe(experiment: Experiment, whole: &Design) -> Result<(Vec<Cost>, u64)> {
    let first = experiment.seeds[0];
    let small = Experiment { limit: Some(1), seeds: vec![first], ..experiment };
    let study = Study::load(small, &shelf())?;
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path(), Shard::WHOLE)?;
    let progress = Progress::new(&study.design, &study.counts(Shard::WHOLE), 1);
    let never = AtomicBool::new(false);
    let effort = Effort { threads: 1, shard: Shard::WHOLE, save_images: false, stop: &never };
    let (store, _) = study.run(store, &effort, &progress)?;
    progress.finish();
    let mut peak = 0;
    let mut costs = Vec::new();
    for work in &whole.works {
        // the same column through the same defence, at the first draw
        let twin = study
            .design
            .works
            .iter()
            .find(|w| (w.subject, w.column, w.lens) == (work.subject, work.column, work.lens));
        let mut cost = Cost::default();
        if let Some(twin) = twin {
            let id = &study.design.subjects[twin.subject].images[0];
            let answers = twin.answers.iter().map(|a| (&a.key, whole.experiment.seeds.len()));
            // on clean images a work holds the answers of every draw
            let times = |n: usize| if work.answers.len() > twin.answers.len() { n } else { 1 };
            let keys = std::iter::once((&twin.key, 1))
                .chain(answers.map(|(key, n)| (key, times(n))))
                .chain(twin.detections.iter().map(|d| (&d.0, 1)));
            for (key, times) in keys {
                if let Some((entry, _)) = store.get(key, id)? {
                    (0..times).for_each(|_| cost.add(&entry));
                    peak = peak.max(entry.clock.peak_bytes);
                }
            }
        }
        costs.push(cost);
    }
    Ok((costs, peak))
}
