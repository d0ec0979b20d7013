//! `evenkeel study merge`: joins the folders of shards into one, and proves that nothing is missing.

use std::path::PathBuf;

use anyhow::{Result, bail};
use evenkeel_study::record::rows;
use evenkeel_study::store::{Shard, Store};

use super::design_in;

/// Images named when some are missing.
const NAMED: usize = 10;

/// Join the folders of shards, and prove that nothing is missing
#[derive(Debug, clap::Args)]
pub(crate) struct MergeArgs {
    /// The folders that shards were run into
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Where everything goes; NAME.study if left out
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &MergeArgs) -> Result<()> {
    let design = design_in(&args.folders[0])?;
    for folder in &args.folders[1..] {
        if design_in(folder)? != design {
            bail!(
                "{} and {} are not shards of one study: experiment, networks or images differ",
                args.folders[0].display(),
                folder.display()
            );
        }
    }
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.study", design.experiment.name)));
    let mut store = Store::open(&out, Shard::WHOLE)?;
    store.keep_design(&design)?;
    let mut taken = 0;
    for folder in &args.folders {
        taken += store.take_from(&Store::read(folder)?, &design)?;
    }
    store.sync()?;
    let missing = rows::missing(&design, &store);
    if !missing.is_empty() {
        let lines = missing.iter().take(NAMED);
        let lines: Vec<_> =
            lines.map(|(subject, image, n)| format!("\n  {subject} {image}: {n} results")).collect();
        let more = missing.len().saturating_sub(NAMED);
        let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
        bail!(
            "{} images lack results; run the shards they belong to and merge again:{}{more}",
            missing.len(),
            lines.concat()
        );
    }
    let count = rows::export(&design, &store, &out)?;
    println!("{taken} results joined, nothing is missing: {count} rows in {}", out.display());
    Ok(())
}
