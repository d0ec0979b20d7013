//! `evenkeel study plan`: what would run, and what it would take, from a probe: one image of every subject with few steps of everything, counted on
//! from there.
//!
//! Hours are seconds an image times the images and draws to come, over the threads; they hold for a machine that is as busy as it is now.

use std::path::PathBuf;

use anyhow::Result;
use evenkeel_study::experiment::{Design, SubjectCard};
use evenkeel_study::run::{Cost, Embedded, Forecast, Study};
use evenkeel_study::store::{Shard, Site, Store, read_design};

use super::cluster::{self, ClusterArgs};
use super::progress::{Progress, duration};
use super::{ExperimentArgs, items, with_warnings};
use crate::units;

/// Say what would run, and what it would take
#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    subject: ExperimentArgs,
    /// Images at a time
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// The folder or URL it would run into: what is there already is not counted
    #[arg(long, value_name = "PLACE")]
    out: Option<PathBuf>,
    /// Count, but run no probe
    #[arg(long)]
    no_probe: bool,
    /// Write the work items that are left, a line of JSON each, for `study run --items`
    #[arg(long, value_name = "FILE", conflicts_with = "no_probe")]
    items: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) fn run(args: &PlanArgs) -> Result<()> {
    let experiment = args.subject.load()?;
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
    let name = experiment.name.clone();
    let study = Study::load(experiment, &Embedded::shipped())?;
    let design = &study.design;
    let site = Site::at(&args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.study"))))?;
    site.refresh()?;
    let there = match read_design(site.folder()) {
        Ok(Some(_)) => Some(with_warnings(Store::read(site.folder())?)),
        _ => None,
    };
    let probe = match args.no_probe {
        true => None,
        false => {
            let once: Vec<usize> =
                study.counts(Shard::WHOLE).iter().map(|images| usize::from(*images > 0)).collect();
            let progress = Progress::new(design, &once, 1);
            let forecast = study.forecast(&progress)?;
            progress.finish();
            Some(forecast)
        }
    };
    let (mut units, mut bytes, mut total) = (0, 0, Cost::default());
    let wide = design.subjects.iter().map(|card| card.rule.name.chars().count()).max().unwrap_or(0).max(8);
    println!("{:<wide$} {:<28} {:>7} {:>10} {:>12}  time", "subject", "attack", "cells", "images", "passes");
    for (subject, card) in design.subjects.iter().enumerate() {
        for column in 0..card.columns.len() {
            let line = line(design, (subject, column), there.as_ref(), probe.as_ref());
            units += line.units;
            bytes += line.bytes;
            total = total.plus(line.cost);
            println!("{}", line.words(card, column, threads, wide, probe.is_some()));
        }
    }
    design.left_out.iter().for_each(|words| println!("left out: {words}"));
    println!("{} cells, {units} results to make", design.cells.len());
    if let Some(forecast) = &probe {
        println!(
            "{} forward passes and {} pullbacks; about {} on {threads} threads, as busy as this machine is now; {} of memory with one",
            units::count(total.forwards).trim(),
            units::count(total.backwards).trim(),
            duration(total.seconds / threads as f64),
            units::bytes(forecast.peak_bytes as usize)
        );
        if args.cluster.cluster.is_some() || args.items.is_some() {
            let left = study.items(forecast, there.as_ref(), args.cluster.item_seconds())?;
            if let Some(file) = &args.items {
                site.keep_design(design)?;
                items::write(&left, file)?;
                println!("{} work items in {}", left.len(), file.display());
            }
            cluster::tell(&args.cluster, &left, design, forecast, bytes)?;
        }
    }
    Ok(())
}

/// What a column comes to.
struct Line {
    cells: usize,
    images: usize,
    units: usize,
    bytes: u64,
    cost: Cost,
}

impl Line {
    fn words(&self, card: &SubjectCard, column: usize, threads: usize, wide: usize, probed: bool) -> String {
        let time = if probed { duration(self.cost.seconds / threads as f64) } else { "–".into() };
        let passes = self.cost.forwards + self.cost.backwards;
        let passes = if probed { units::count(passes).trim().to_string() } else { "–".into() };
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
    probe: Option<&Forecast>,
) -> Line {
    let card = &design.subjects[subject];
    let cells = design.cells.iter().filter(|c| (c.subject, c.column) == (subject, column)).count();
    let mut line = Line { cells, images: card.images.len(), units: 0, bytes: 0, cost: Cost::default() };
    let works = design.works.iter().enumerate();
    for (number, work) in works.filter(|(_, w)| (w.subject, w.column) == (subject, column)) {
        let keys = design.keys_of(work);
        let open = |id: &&String| there.is_none_or(|s| keys.iter().any(|key| !s.has(key, id, None)));
        let images = card.images.iter().filter(open).count();
        line.units += images * keys.len();
        if let Some(forecast) = probe {
            line.bytes += images as u64 * forecast.bytes[number];
            line.cost = line.cost.plus(forecast.works[number].times(images as f64));
        }
    }
    line
}
