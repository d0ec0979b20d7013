//! `evenkeel data`: checks a data set before it is used.

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use evenkeel_data::Error;
use evenkeel_data::dataset::{Check, Dataset, KINDS, Preparation, Request, Subset, contact_sheet};
use serde_json::json;
use std::path::PathBuf;

/// Check data sets before they are used
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Count, measure and decode everything, name all offenders, and draw a contact sheet
    #[command(after_help = kinds())]
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Kind of data set
    #[arg(value_parser = PossibleValuesParser::new(KINDS.iter().map(|kind| kind.name)), hide_possible_values = true)]
    kind: String,
    /// Where it lies, a path or a URL (s3://bucket/prefix, gs://, az://)
    path: PathBuf,
    #[command(flatten)]
    choice: ChoiceArgs,
    /// Leave out what is broken, and count it, instead of refusing
    #[arg(long)]
    skip_bad: bool,
    /// Where the contact sheet goes
    #[arg(long, value_name = "PNG", default_value = "contact-sheet.png")]
    sheet: PathBuf,
    /// Draw no contact sheet
    #[arg(long, conflicts_with = "sheet")]
    no_sheet: bool,
    /// Samples on the contact sheet
    #[arg(long, value_name = "COUNT", default_value_t = 25)]
    shown: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Which samples of a data set, and at what size.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChoiceArgs {
    /// The part to read; each kind has its usual one
    #[arg(long)]
    split: Option<String>,
    /// How many classes there are, where the layout does not say
    #[arg(long)]
    classes: Option<usize>,
    /// Take at most this many samples
    #[arg(long)]
    limit: Option<usize>,
    /// Take every n-th sample
    #[arg(long, value_name = "N")]
    every: Option<usize>,
    /// With --limit: draw the samples at random from this seed instead of taking the first
    #[arg(long, requires = "limit", value_name = "SEED")]
    subset_seed: Option<u64>,
    /// Bring samples to WIDTHxHEIGHT, or leave them `native`, instead of the kind's usual size
    #[arg(long, value_parser = size)]
    size: Option<Preparation>,
}

impl ChoiceArgs {
    /// The request these arguments make.
    pub(crate) fn request(&self) -> Request {
        Request {
            split: self.split.clone(),
            classes: self.classes,
            subset: Subset { every: self.every, limit: self.limit, seed: self.subset_seed },
            preparation: self.size,
        }
    }
}

fn size(text: &str) -> Result<Preparation, String> {
    Preparation::parse(text).map_err(|e| e.to_string())
}

fn kinds() -> String {
    let lines =
        KINDS.iter().map(|kind| format!("  {:<16} {}\n{:19}{}", kind.name, kind.about, "", kind.layout));
    format!("Kinds, and what they want to see under PATH:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

pub(crate) fn run(args: DataArgs) -> Result<()> {
    match args.what {
        What::Check(args) => check(&args),
    }
}

fn check(args: &CheckArgs) -> Result<()> {
    let dataset = Dataset::open(&args.kind, &args.path, &args.choice.request())?;
    let check = Check::of(&dataset);
    let sheet = (!args.no_sheet && check.sound > 0).then_some(&args.sheet);
    if let Some(path) = sheet {
        contact_sheet(&dataset, args.shown)?
            .save_png(path)
            .with_context(|| format!("the contact sheet could not be written to {}", path.display()))?;
    }
    if args.json {
        let report = json!({
            "kind": args.kind,
            "selected": dataset.len(),
            "prepared": dataset.preparation().to_string(),
            "class_names": dataset.classes(),
            "check": check,
            "contact_sheet": sheet,
        });
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{}", text(args, &dataset, &check));
        if let Some(path) = sheet {
            println!("contact sheet  {}", path.display());
        }
    }
    match check.offenders.is_empty() {
        true => Ok(()),
        false if args.skip_bad => {
            check.offenders.iter().for_each(|offender| eprintln!("skipped: {offender}"));
            Ok(())
        }
        false => Err(Error::Offenders(check.offenders).into()),
    }
}

const SIZES_SHOWN: usize = 5;

fn text(args: &CheckArgs, dataset: &Dataset, check: &Check) -> String {
    let mut text = format!("{} at {}\n", args.kind, args.path.display());
    text += &format!(
        "samples        {} selected, {} sound, {} offenders",
        dataset.len(),
        check.sound,
        check.offenders.len()
    );
    let mut sizes: Vec<_> = check.sizes.iter().collect();
    sizes.sort_by_key(|(size, n)| (std::cmp::Reverse(**n), **size));
    let listed: Vec<String> =
        sizes.iter().take(SIZES_SHOWN).map(|((w, h), n)| format!("{w}x{h} ({n})")).collect();
    let more = sizes.len().saturating_sub(SIZES_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    text += &format!("\nsizes          {}{more}", listed.join(", "));
    text += &format!("\nprepared       {}", dataset.preparation());
    text += &format!("\nclasses        {} of {} present", check.classes.len(), dataset.classes().len());
    for (class, count) in &check.classes {
        let name = dataset.classes().get(*class).map_or("", String::as_str);
        text += &format!("\n  {class:>4} {name:<20} in {} samples", count.samples);
        if count.amount != count.samples {
            text += &format!(", {}", count.amount);
        }
    }
    if check.ignored_pixels > 0 {
        text += &format!("\nignored        {} pixels", check.ignored_pixels);
    }
    if check.crowds > 0 {
        text += &format!("\ncrowds         {}", check.crowds);
    }
    text
}
