//! `evenkeel corrupt`: weather, cameras and compression, as ImageNet-C has them.

use std::path::PathBuf;

use anyhow::{Context, Result};
use evenkeel::corrupt::{CORRUPTIONS, Corruption};
use serde_json::json;

use crate::images::ImageArgs;
use crate::workbench::{Format, check_names, stem_in};

/// Corrupt images as ImageNet-C does
#[derive(Debug, clap::Args)]
pub(crate) struct CorruptArgs {
    #[command(flatten)]
    images: ImageArgs,
    /// Which, separated by commas, or `all` for the fifteen
    #[arg(long, value_name = "NAME", required = true, value_delimiter = ',')]
    corruption: Vec<String>,
    /// 1 to 5, separated by commas
    #[arg(long, default_value = "3", value_delimiter = ',')]
    severity: Vec<usize>,
    /// The seed of everything random
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where `CORRUPTION_SEVERITY/NAME.png` go: a folder for each corruption, in which images have the names they came with
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// How they are written
    #[arg(long, value_enum, default_value = "png")]
    format: Format,
}

pub(crate) fn run(args: CorruptArgs) -> Result<()> {
    let mut chosen: Vec<&Corruption> = Vec::new();
    for name in &args.corruption {
        match name.as_str() {
            "all" => chosen.extend(CORRUPTIONS.iter().filter(|c| c.standard)),
            name => chosen.push(Corruption::named(name)?),
        }
    }
    let images = args.images.pictures()?;
    check_names(&images)?;
    let (choice, each) = (&args.images.choice, chosen.len() * args.severity.len());
    if images.len() * each > 1 {
        eprintln!("{} images, {each} files of each", images.len());
    }
    choice.each(&images, |picture, image, bar| {
        for (corruption, &severity) in chosen.iter().flat_map(|c| args.severity.iter().map(move |s| (c, s))) {
            let path = &picture.path;
            let corrupted =
                corruption.apply(&image, severity, args.seed).with_context(|| path.display().to_string())?;
            let stem = stem_in(&args.out.join(format!("{}_{severity}", corruption.name)), path)?;
            let file = args.format.save(&corrupted, &stem.display().to_string())?;
            let value =
                json!({ "image": path, "corruption": corruption.name, "severity": severity, "saved": file });
            bar.say(choice.json, &value, &file.display().to_string());
        }
        Ok(())
    })
}
