//! `evenkeel study merge`: joins the folders of shards into one, and proves that nothing is missing.

use std::path::PathBuf;

use anyhow::{Result, bail};
use evenkeel_study::rows;
use evenkeel_study::store::{Shard, Site, Store, read_design};

use super::{named, opened, with_warnings};

/// Join the folders of shards, and prove that nothing is missing
#[derive(Debug, clap::Args)]
pub(crate) struct MergeArgs {
    /// The folders or URLs that shards and work items were run into
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Where everything goes; NAME.study if left out
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &MergeArgs) -> Result<()> {
    let (design, _) = opened(&args.folders[0])?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.study", design.experiment.name)));
    let site = Site::at(&out)?;
    site.refresh()?;
    if read_design(site.folder())?.is_some_and(|there| there != design) {
        bail!("{} holds another study; name another folder with --out", out.display());
    }
    let mut store = with_warnings(Store::open_at(&site, Shard::WHOLE)?);
    store.keep_design(&design)?;
    let mut taken = 0;
    for folder in &args.folders {
        let (other, from) = opened(folder)?;
        if other != design {
            bail!(
                "{} and {} are not shards of one study: experiment, networks or images differ",
                args.folders[0].display(),
                folder.display()
            );
        }
        taken += store.take_from(&from, &design)?;
    }
    store.sync()?;
    store.publish()?;
    let missing = rows::missing(&design, &store);
    if !missing.is_empty() {
        bail!(
            "{} images lack results; run the shards they belong to and merge again:{}",
            missing.len(),
            named(&missing)
        );
    }
    let count = rows::export(&design, &store, site.folder())?;
    store.publish_tables()?;
    println!("{taken} results joined, nothing is missing: {count} rows in {}", site.folder().display());
    Ok(())
}
