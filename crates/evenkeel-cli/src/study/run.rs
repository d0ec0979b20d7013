//! `evenkeel study run`: does what is missing, and writes the tables when nothing is.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use evenkeel_study::experiment::{Design, SubjectCard};
use evenkeel_study::record::ENDING;
use evenkeel_study::rows;
use evenkeel_study::run::{Effort, Embedded, Outcome, Study, Subject};
use evenkeel_study::store::{Shard, Site, Store, read_design};

use super::progress::Progress;
use super::{ExperimentArgs, with_warnings};

/// Run what is missing of an experiment
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    subject: ExperimentArgs,
    /// Where results go, a folder or a URL (s3://bucket/prefix, gs://, az://); NAME.study if left out
    #[arg(long, value_name = "PLACE")]
    out: Option<PathBuf>,
    /// Images at a time; as many as the machine has processors if left out
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// Only this part of the images, 3/16 say
    #[arg(long, value_name = "NUMBER/COUNT", default_value = "1/1")]
    shard: String,
    /// Keep attacked and defended images as PNG files
    #[arg(long)]
    save_images: bool,
    /// Run one work item of those that `study plan --items FILE` wrote, and keep it as a whole
    #[arg(long, value_name = "FILE", requires = "item", conflicts_with_all = ["shard", "save_images"])]
    items: Option<PathBuf>,
    /// Which one, from 1
    #[arg(long, value_name = "NUMBER", requires = "items")]
    item: Option<usize>,
}

/// Raised by Ctrl-C: what is in flight is finished.
pub(crate) static STOP: AtomicBool = AtomicBool::new(false);

/// The first time what is in flight is finished; the second time there is no waiting.
fn stop() {
    if STOP.swap(true, Ordering::SeqCst) {
        std::process::exit(130);
    }
    eprintln!("\nstopping: results in flight are finished first; once more stops at once");
}

#[cfg(unix)]
pub(crate) fn listen() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut heard = vec![SIGINT, SIGTERM];
    heard.extend((!hang_ups_pass_by()).then_some(SIGHUP));
    match signal_hook::iterator::Signals::new(heard) {
        Ok(mut signals) => {
            std::thread::spawn(move || signals.forever().for_each(|_| stop()));
        }
        Err(_) => cannot_listen(),
    }
}

#[cfg(not(unix))]
pub(crate) fn listen() {
    if ctrlc::set_handler(stop).is_err() {
        cannot_listen();
    }
}

fn cannot_listen() {
    eprintln!("Ctrl-C cannot be heard here; it stops at once, and loses only what is in flight");
}

/// Whether this process was started so that a terminal's end passes it by (`nohup`): then it still should.
#[cfg(unix)]
fn hang_ups_pass_by() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    ignored & 1 != 0
}

pub(crate) fn run(args: &RunArgs) -> Result<()> {
    let shard = Shard::parse(&args.shard)?;
    let experiment = args.subject.load()?;
    let place = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.study", experiment.name)));
    let site = Site::at(&place)?;
    if let (Some(file), Some(number)) = (&args.items, args.item) {
        return super::items::run(experiment, &site, (file, number), args.threads);
    }
    let folder = site.folder().to_owned();
    // before the networks are read, so that a folder that cannot be used is refused at once
    let store = with_warnings(Store::open_at(&site, shard)?);
    let study = Study::load(experiment, &Embedded::shipped())?;
    study.design.left_out.iter().for_each(|words| eprintln!("left out: {words}"));
    tell_of_benchmarks(&study);
    tell_of_change(&folder, &study.design, store.len());
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
    let progress = Progress::new(&study.design, &study.counts(shard), threads);
    listen();
    let effort = Effort { threads, shard, save_images: args.save_images, stop: &STOP };
    let ran = study.run(store, &effort, &progress);
    progress.finish();
    let (store, outcome) = ran?;
    conclude(&study, store, outcome, &place)
}

/// Says which defences can be evaluated as public benchmarks do it, and why others cannot.
fn tell_of_benchmarks(study: &Study) {
    let Some(first) = study.design.subjects.first().map(|card| card.rule.name.as_str()) else { return };
    for (_, row, objections) in study.objections().iter().filter(|(subject, _, _)| *subject == first) {
        let words = match objections.is_empty() {
            true => "yes: deterministic, no loop, gradients that are not zero".to_string(),
            false => format!("no: {}", objections.join("; ")),
        };
        eprintln!("eligible for an evaluation as RobustBench makes it: {row}: {words}");
    }
}

/// Says if networks are not those that results here were made with.
fn tell_of_change(folder: &Path, design: &Design, results: usize) {
    let before = match read_design(folder) {
        Ok(Some(before)) => before,
        Ok(None) => return,
        Err(error) => {
            eprintln!("{error}; it is written anew, and the {results} results in the log are used");
            return;
        }
    };
    if before.revision != design.revision {
        eprintln!(
            "this version computes otherwise than the one that ran here before: all of it is run again"
        );
    }
    for card in &design.subjects {
        let other =
            before.subjects.iter().find(|c| c.rule.name == card.rule.name && c.foreign == card.foreign);
        if other.is_some_and(|o| o.model != card.model) {
            eprintln!(
                "{} is not the network that results of {} in {} were made with: they are kept ({results} in all), and what depends on it \
                 is run again",
                card.rule.model,
                card.rule.name,
                folder.display()
            );
        }
        let images: HashSet<&String> = card.images.iter().collect();
        let gone = |o: &&SubjectCard| o.images.iter().filter(|id| !images.contains(id)).count();
        if let Some(count) = other.filter(|_| before.experiment == design.experiment).as_ref().map(gone)
            && count > 0
        {
            eprintln!(
                "{count} images that {} had before are not there any more; tables go without them",
                card.rule.name
            );
        }
    }
}

fn conclude(study: &Study, mut store: Store, outcome: Outcome, place: &Path) -> Result<()> {
    for card in study.design.subjects.iter().filter(|card| card.foreign.is_none()) {
        if Subject::fingerprint(&card.rule, &Embedded::shipped()).ok() != Some(card.model) {
            eprintln!(
                "{} was changed while this ran; the results belong to the file as it was, and the next run starts anew with the new one",
                card.rule.model
            );
        }
    }
    let dir = place.display();
    if outcome.replaced > 0 {
        eprintln!(
            "{} results were of other pixels or truths than the images have now, and were made anew",
            outcome.replaced
        );
    }
    // tables come before words: words may find nobody to read them
    store.look_again()?;
    let missing = rows::missing(&study.design, &store);
    let count = match missing.is_empty() && !outcome.stopped {
        true => Some(rows::export(&study.design, &store, store.folder())?),
        false => None,
    };
    if count.is_some() {
        store.publish_tables()?;
    }
    println!("{} results made, {} were there", outcome.made, outcome.kept);
    if outcome.stopped {
        bail!(
            "stopped before the end; everything made so far is in {dir}, and the same command goes on from there"
        );
    }
    let Some(count) = count else {
        println!(
            "this shard is done; {} images still lack results (evenkeel study status {dir} shows which)",
            missing.len()
        );
        return Ok(());
    };
    println!("complete: {count} rows in {}", store.folder().join(format!("records.{ENDING}")).display());
    println!("report:   evenkeel study report {dir}");
    Ok(())
}
