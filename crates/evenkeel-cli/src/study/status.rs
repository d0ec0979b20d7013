//! `evenkeel study status`: how far each cell is.

use std::path::PathBuf;

use anyhow::Result;
use evenkeel_study::rows;
use serde_json::json;

use super::{named, opened};

/// Show how far each cell of a study is
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// The folder or URL it was run into
    folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &StatusArgs) -> Result<()> {
    let (design, store) = opened(&args.folder)?;
    let wide = design.subjects.iter().map(|card| card.rule.name.chars().count()).max().unwrap_or(0).max(8);
    let mut cells = Vec::new();
    let (mut have, mut want) = (0, 0);
    for cell in &design.cells {
        let (there, total) = rows::progress(&design, &store, cell);
        have += there;
        want += total;
        let (card, column, row) = (&design.subjects[cell.subject], design.column(cell), design.row(cell));
        cells.push(json!({
            "subject": card.rule.name, "attack": column.label, "defence": row.label, "draw": cell.draw,
            "images": there, "of": total,
        }));
        if !args.json {
            let mark = if there == total { "done" } else { "" };
            println!(
                "{:<wide$} {:<24} {:<28} {:>3} {there:>6}/{total:<6} {mark}",
                card.rule.name, column.label, row.label, cell.draw
            );
        }
    }
    let missing = rows::missing(&design, &store);
    if args.json {
        println!(
            "{}",
            json!({ "cells": cells, "complete": missing.is_empty(), "images_lacking": missing.len() })
        );
    } else {
        println!(
            "{have}/{want} images of {} cells; {} images lack results{}{}",
            design.cells.len(),
            missing.len(),
            if missing.is_empty() { "" } else { " (of cells or detectors):" },
            named(&missing)
        );
    }
    Ok(())
}
