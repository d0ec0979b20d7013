//! Work items from a file: what `study plan --items` writes and one task of any scheduler runs.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use evenkeel_study::experiment::Experiment;
use evenkeel_study::run::{Done, Effort, Embedded, Item, Study, Watch};
use evenkeel_study::store::{Shard, Site};

use super::{STOP, listen};

struct Quiet;

impl Watch for Quiet {
    fn done(&self, _: usize, _: Option<f64>) {}
}

/// Writes items, a line of JSON each.
pub(super) fn write(items: &[Item], file: &Path) -> Result<()> {
    let mut text = Vec::new();
    for item in items {
        serde_json::to_writer(&mut text, item)?;
        text.write_all(b"\n")?;
    }
    std::fs::write(file, text).with_context(|| file.display().to_string())
}

/// Runs one item of a file.
pub(super) fn run(
    experiment: Experiment,
    site: &Site,
    (file, number): (&Path, usize),
    threads: Option<usize>,
) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let count = text.lines().count();
    let Some(line) = number.checked_sub(1).and_then(|place| text.lines().nth(place)) else {
        bail!("{}: there are items 1 to {count}, and no {number}", file.display());
    };
    let item: Item =
        serde_json::from_str(line).with_context(|| format!("{} line {number}", file.display()))?;
    let objects = site.objects();
    if objects.list()?.iter().any(|object| object.name == item.object()) {
        println!("work item {number} of {count} was there");
        return Ok(());
    }
    let study = Study::load(experiment, &Embedded::shipped())?;
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
    listen();
    let effort = Effort { threads, shard: Shard::WHOLE, save_images: false, stop: &STOP };
    match study.run_item(&item, &*objects, &effort, &Quiet)? {
        Done::Made(outcome) => println!("work item {number} of {count}: {} results made", outcome.made),
        Done::There => println!("work item {number} of {count} was kept by another task meanwhile"),
        Done::Stopped => bail!("stopped before the end of the item; the same command begins it again"),
    }
    Ok(())
}
