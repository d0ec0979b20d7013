//! `evenkeel study report`: a page, and the same tables as Markdown, CSV and LaTeX.

use std::path::PathBuf;

use anyhow::Result;
use evenkeel_study::report::Report;
use evenkeel_study::run::{Embedded, Study};

use super::opened;

/// Write a page and tables of a study
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// The folder it was run into
    folder: PathBuf,
    /// Another study's folder, to be set beside this one
    #[arg(long, value_name = "DIR")]
    compare: Option<PathBuf>,
    /// Where the report goes; `report` in the study's folder if left out
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Show no images, and load neither networks nor data
    #[arg(long)]
    no_gallery: bool,
    /// Print the tables as Markdown as well
    #[arg(long)]
    print: bool,
}

pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    let (design, store) = opened(&args.folder)?;
    let other = args.compare.as_ref().map(|folder| opened(folder)).transpose()?;
    let study = match args.no_gallery {
        true => None,
        false => match Study::load(design.experiment.clone(), &Embedded::shipped()) {
            Ok(study) if study.design == design => Some(study),
            Ok(_) => {
                eprintln!("no gallery: networks or images are not those of the study any more");
                None
            }
            Err(error) => {
                eprintln!("no gallery: {error}");
                None
            }
        },
    };
    let report =
        Report::of(&design, &store, other.as_ref().map(|(design, store)| (design, store)), study.as_ref())?;
    let out = args.out.clone().unwrap_or_else(|| store.folder().join("report"));
    let page = report.write(&out)?;
    if args.print {
        println!("{}", report.markdown());
    }
    println!("page  {}", page.display());
    Ok(())
}
