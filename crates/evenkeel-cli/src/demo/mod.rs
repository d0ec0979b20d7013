//! `evenkeel demo`: the whole method on newly rendered scenes, with the networks in the binary.
//!
//! Render, predict, attack, detect, defend, measure; a table on the terminal and one self-contained page.

mod page;
mod subject;
mod trial;

use anyhow::{Context, Result};
use clap::Args;
use evenkeel::image::write_atomically;
use std::path::PathBuf;
use std::time::Instant;
use subject::DemoTask;
use trial::{Effort, Report};

/// Run an attack and a defence on rendered street scenes, offline, and write a page
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where the page goes
    #[arg(short, long, value_name = "FOLDER", default_value = "demo")]
    output: PathBuf,
    /// A few pictures only, and a shorter defence
    #[arg(long)]
    quick: bool,
    /// Scenes to segment
    #[arg(long)]
    scenes: Option<usize>,
    /// Object crops to name
    #[arg(long)]
    crops: Option<usize>,
    /// Scenes to find cars and people in
    #[arg(long)]
    instances: Option<usize>,
    /// Steps of the defence [default: 20, or 8 with --quick]
    #[arg(long)]
    steps: Option<usize>,
    /// The seed of attack and defence
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    let start = Instant::now();
    // Before the work, which would be lost.
    std::fs::create_dir_all(&args.output).with_context(|| {
        format!("cannot make the folder {}; name another with --output", args.output.display())
    })?;
    let (scenes, crops, instances, steps) = if args.quick { (1, 2, 1, 8) } else { (4, 16, 2, 20) };
    let stages = [
        (DemoTask::Scenes, args.scenes.unwrap_or(scenes)),
        (DemoTask::Crops, args.crops.unwrap_or(crops)),
        (DemoTask::Instances, args.instances.unwrap_or(instances)),
    ];
    let effort = Effort { steps: args.steps.unwrap_or(steps), seed: args.seed };
    let mut reports = Vec::new();
    for (task, count) in stages {
        let report = trial::run(task, count.max(1), &effort)?;
        println!("{}", table(&report));
        reports.push(report);
    }
    let path = args.output.join("index.html");
    let seconds = start.elapsed().as_secs_f64();
    write_atomically(&path, page::page(&reports, seconds)?.as_bytes())?;
    println!("page  {}  ({seconds:.0} s)", path.display());
    Ok(())
}

/// The figures of one network as text.
fn table(report: &Report) -> String {
    let mut text = format!("{}\n{:<16}{:>9}{:>12}\n", report.title, "defence", "clean", "attacked");
    for row in &report.rows {
        text += &format!("{:<16}{:>9.1}{:>12.1}\n", row.defence, 100.0 * row.clean, 100.0 * row.attacked);
    }
    if let Some(auroc) = report.auroc {
        text += &format!("separated from clean ones (AUROC of the variance over views): {auroc:.3}\n");
    }
    text
}
