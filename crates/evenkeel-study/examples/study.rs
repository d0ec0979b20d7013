//! A small study from Rust: a shipped network on rendered crops, two attacks, two defences, a detector, and the report's tables.
//!
//!     cargo run --release -p evenkeel-study --example study -- FOLDER
//!
//! What is done is kept in FOLDER; the same command goes on where it stopped.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use evenkeel_study::experiment::Experiment;
use evenkeel_study::report::Report;
use evenkeel_study::run::{Effort, Embedded, Study, Watch};
use evenkeel_study::store::{Shard, Store};

const EXPERIMENT: &str = include_str!("study.toml");

/// Prints a line for every image that is done.
struct Lines;

impl Watch for Lines {
    fn done(&self, work: usize, seconds: Option<f64>) {
        match seconds {
            Some(seconds) => println!("step {work}: one more image, {seconds:.2} s"),
            None => println!("step {work}: one more image, from an earlier run"),
        }
    }
}

fn main() -> evenkeel_study::Result<()> {
    let folder = std::env::args_os().nth(1).map_or(PathBuf::from("small.study"), PathBuf::from);
    let experiment = Experiment::parse(EXPERIMENT, Path::new("study.rs"))?;
    let study = Study::load(experiment, &Embedded::shipped())?;
    let stop = AtomicBool::new(false); // raise it from another thread to stop after the images in flight
    let effort = Effort { threads: 2, shard: Shard::WHOLE, save_images: false, stop: &stop };
    let (store, outcome) = study.run(Store::open(&folder, Shard::WHOLE)?, &effort, &Lines)?;
    println!("{} results made, {} were there", outcome.made, outcome.kept);
    let report = Report::of(&study.design, &store, None, Some(&study))?;
    println!("{}", report.markdown());
    println!("{}", report.write(&folder.join("report"))?.display());
    Ok(())
}
