//! `evenkeel corrupt`: weather, cameras and compression, as ImageNet-C has them.

use std::path::PathBuf;

use anyhow::{Context, Result};
use evenkeel::corrupt::{CORRUPTIONS, Corruption};
use evenkeel::image::Image;
use serde_json::json;

use crate::workbench::{Format, check_names, pictures, progress, stem_in};

/// Corrupt images as ImageNet-C does
#[derive(Debug, clap::Args)]
pub(crate) struct CorruptArgs {
    /// PNG or JPEG files, or folders of them
    #[arg(required = true)]
    images: Vec<PathBuf>,
    /// Which, separated by commas, or `all` for the fifteen
    #[arg(long, value_name = "NAME", required = true, value_delimiter = ',')]
    corruption: Vec<String>,
    /// 1 to 5, separated by commas
    #[arg(long, default_value = "3", value_delimiter = ',')]
    severity: Vec<usize>,
    /// The seed of everything random
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The folder for `NAME.CORRUPTION_SEVERITY.png`
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// How they are written
    #[arg(long, value_enum, default_value = "png")]
    format: Format,
    /// One line of JSON per file written
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: CorruptArgs) -> Result<()> {
    let mut chosen: Vec<&Corruption> = Vec::new();
    for name in &args.corruption {
        match name.as_str() {
            "all" => chosen.extend(CORRUPTIONS.iter().filter(|c| c.standard)),
            name => chosen.push(Corruption::named(name)?),
        }
    }
    let images = pictures(&args.images)?;
    check_names(&images)?;
    let bar = progress(images.len() * chosen.len() * args.severity.len());
    for path in &images {
        let image = Image::load(path)?;
        for corruption in &chosen {
            for &severity in &args.severity {
                let corrupted = corruption
                    .apply(&image, severity, args.seed)
                    .with_context(|| path.display().to_string())?;
                let stem = stem_in(&args.out, path)?;
                let name = format!("{}.{}_{severity}", stem.display(), corruption.name);
                let file = args.format.save(&corrupted, &name)?;
                let value = json!({ "image": path, "corruption": corruption.name, "severity": severity, "saved": file });
                bar.say(args.json, &value, &file.display().to_string());
                bar.done(path);
            }
        }
    }
    Ok(())
}
