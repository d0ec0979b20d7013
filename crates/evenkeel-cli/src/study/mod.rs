//! `evenkeel study`: experiments from a TOML file, run so that nothing is lost, and reported.

mod cluster;
mod items;
mod merge;
mod new;
mod plan;
mod progress;
mod report;
mod run;
mod status;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use evenkeel_study::experiment::{Design, Experiment};
use evenkeel_study::store::{Site, Store, read_design};

pub(crate) use run::{STOP, listen};

/// Run experiments, resumably, and report them
#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    New(new::NewArgs),
    Plan(plan::PlanArgs),
    Merge(merge::MergeArgs),
    Report(report::ReportArgs),
    Run(run::RunArgs),
    Status(status::StatusArgs),
}

/// An experiment file, and how much of it
#[derive(Debug, Args)]
struct ExperimentArgs {
    /// The experiment, a TOML file
    experiment: PathBuf,
    /// At most this many images of every subject
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// A rehearsal: the same cells for the first draw, with two steps or so
    #[arg(long)]
    quick: bool,
}

impl ExperimentArgs {
    fn load(&self) -> Result<Experiment> {
        let mut experiment = Experiment::load(&self.experiment)?;
        experiment.limit = [self.limit, experiment.limit].into_iter().flatten().min();
        experiment.check()?;
        if self.quick {
            experiment = experiment.quick();
            experiment.name += "-quick";
        }
        Ok(experiment)
    }
}

/// Images named when some are missing.
const NAMED: usize = 10;

/// What is missing, a line an image, the first few.
fn named(missing: &[(String, String, usize)]) -> String {
    let line = |(subject, image, n): &(String, String, usize)| format!("\n  {subject} {image}: {n} results");
    let lines: String = missing.iter().take(NAMED).map(line).collect();
    match missing.len().saturating_sub(NAMED) {
        0 => lines,
        more => format!("{lines}\n  and {more} more"),
    }
}

/// The store, after printing what was found wrong in it.
fn with_warnings(store: Store) -> Store {
    store.amiss().iter().for_each(|words| eprintln!("{words}"));
    store
}

/// What a study was run into, a folder or a URL, to be read.
fn opened(place: &Path) -> Result<(Design, Store)> {
    let site = Site::at(place)?;
    site.refresh()?;
    let design = match read_design(site.folder())? {
        Some(design) => design,
        None => bail!("{}: no study was run into this place", place.display()),
    };
    Ok((design, with_warnings(Store::read(site.folder())?)))
}

pub(crate) fn run(args: StudyArgs) -> Result<()> {
    match args.what {
        What::New(args) => new::run(&args),
        What::Plan(args) => plan::run(&args),
        What::Merge(args) => merge::run(&args),
        What::Report(args) => report::run(&args),
        What::Run(args) => run::run(&args),
        What::Status(args) => status::run(&args),
    }
}
