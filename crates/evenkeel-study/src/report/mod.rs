//! Reports: one page that fetches nothing, and the same tables as Markdown, CSV and LaTeX.
//!
//! [`board`] gathers results; `tables`, `detection` and `curves` turn them into tables and charts; `warnings` says what to doubt, and
//! that comes first on the page.

pub mod board;
pub mod chart;
mod curves;
mod detection;
pub mod paper;
pub mod picture;
pub mod table;
mod tables;
mod warnings;

use std::path::{Path, PathBuf};

use board::Board;
use chart::escaped;
use detection::Detections;
use evenkeel::image::write_atomically;
use picture::{Picture, Shown, magnified};
use table::Table;

use crate::Result;
use crate::experiment::{Cell, Design, Threat};
use crate::record::rows;
use crate::run::Study;
use crate::store::Store;

/// The style of every page of evenkeel.
pub const STYLE: &str = include_str!("style.css");

/// Images in each gallery.
const SHOWN: usize = 3;

/// A part of the page: tables, charts, pictures.
#[derive(Default)]
struct Section {
    title: String,
    tables: Vec<Table>,
    charts: Vec<String>,
    galleries: Vec<(String, Vec<String>)>,
}

/// What a report is made of.
pub struct Report {
    name: String,
    about: String,
    doubts: Vec<String>,
    remarks: Vec<String>,
    sections: Vec<Section>,
}

impl Report {
    /// A report of what is in a store; with the other study's folder if it is to be compared, and with the study loaded if galleries are
    /// wanted.
    ///
    /// # Errors
    /// If a store cannot be read.
    pub fn of(
        design: &Design,
        store: &Store,
        other: Option<(&Design, &Store)>,
        study: Option<&Study>,
    ) -> Result<Self> {
        let board = Board::gather(design, store)?;
        let detections = Detections::gather(design, store)?;
        let mut report = Self {
            name: design.experiment.name.clone(),
            about: design.experiment.about.clone(),
            doubts: warnings::doubts(&board),
            remarks: remarks(&board, store),
            sections: Vec::new(),
        };
        if let Some((design, store)) = other {
            let theirs = Board::gather(design, store)?;
            let tables = tables::comparison(&board, &theirs).into_iter().collect();
            report.sections.push(Section { title: "Comparison".into(), tables, ..Section::default() });
        }
        for subject in 0..design.subjects.len() {
            let mut section =
                Section { title: design.subjects[subject].rule.name.clone(), ..Section::default() };
            section.tables.push(tables::scores(&board, subject));
            section.tables.extend(tables::cost(&board, subject));
            section.tables.extend(tables::targets(&board, subject));
            section.tables.extend(tables::objectives(&board, subject));
            section.charts.extend(curves::charts(&board, subject));
            if let Some((table, charts)) = detection::ranking(design, &detections, subject) {
                section.tables.push(table);
                section.charts.extend(charts);
            }
            section.tables.extend(detection::heat_maps(design, &detections, subject));
            section.tables.extend(detection::guarded(&board, &detections, subject));
            if let Some((table, chart)) = detection::calibration(design, &detections, subject) {
                section.tables.push(table);
                section.charts.push(chart);
            }
            section.tables.extend(tables::corruptions(&board, subject));
            if let Some(study) = study {
                section.galleries = galleries(study, store, &board, subject)?;
            }
            report.sections.push(section);
        }
        Ok(report)
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        self.sections.iter().flat_map(|s| &s.tables)
    }

    /// Writes `index.html`, `tables.md`, `tables.tex` and a CSV file for each table into a folder; gives the page's path.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf> {
        std::fs::create_dir_all(folder).map_err(|e| crate::Error::io(folder, e))?;
        let page = folder.join("index.html");
        write_atomically(&page, self.html().as_bytes())?;
        write_atomically(folder.join("tables.md"), self.markdown().as_bytes())?;
        let latex: Vec<String> = self.tables().map(Table::latex).collect();
        write_atomically(folder.join("tables.tex"), latex.join("\n").as_bytes())?;
        for table in self.tables() {
            let letter = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
            let name: String = table.name.chars().map(letter).collect();
            write_atomically(folder.join(format!("{name}.csv")), table.csv().as_bytes())?;
        }
        Ok(page)
    }

    /// The tables and warnings as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n", self.name, self.about);
        if !self.doubts.is_empty() {
            text += "\n## Read this first\n\n";
            self.doubts.iter().for_each(|d| text += &format!("- {d}\n"));
        }
        if !self.remarks.is_empty() {
            text += "\n";
            self.remarks.iter().for_each(|r| text += &format!("- {r}\n"));
        }
        for section in &self.sections {
            text += &format!("\n## {}\n", section.title);
            section.tables.iter().for_each(|t| text += &format!("\n{}", t.markdown()));
        }
        text
    }

    /// The page.
    pub fn html(&self) -> String {
        let list = |items: &[String]| -> String {
            items.iter().map(|i| format!("<li>{}</li>", escaped(i))).collect()
        };
        let doubts = match self.doubts.is_empty() {
            true => "<p class=\"sound\">No sanity check of this study failed.</p>".to_string(),
            false => format!(
                "<div class=\"doubts\" role=\"alert\"><h2>Read this first</h2><ul>{}</ul></div>",
                list(&self.doubts)
            ),
        };
        let remarks = match self.remarks.is_empty() {
            true => String::new(),
            false => format!("<ul class=\"note\">{}</ul>", list(&self.remarks)),
        };
        let sections: String = self.sections.iter().map(Section::html).collect();
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, \
             initial-scale=1\"><link rel=\"icon\" href=\"data:,\"><title>{name}</title><style>{STYLE}</style></head><body class=\"report\">\
             <header><h1>{name}</h1><p>{}</p></header>{doubts}{remarks}{sections}</body></html>\n",
            escaped(&self.about),
            name = escaped(&self.name),
        )
    }
}

impl Section {
    fn html(&self) -> String {
        let tables: String = self.tables.iter().map(Table::html).collect();
        let charts = match self.charts.is_empty() {
            true => String::new(),
            false => format!("<div class=\"charts\">{}</div>", self.charts.concat()),
        };
        let galleries: String = self
            .galleries
            .iter()
            .map(|(title, panels)| {
                let panels: String =
                    panels.iter().map(|p| format!("<div class=\"panel\">{p}</div>")).collect();
                format!("<h3>{}</h3>{panels}", escaped(title))
            })
            .collect();
        format!("<section><h2>{}</h2>{tables}{charts}{galleries}</section>", escaped(&self.title))
    }
}

/// What a reader should know: what is missing, what was left out, what was not tried.
fn remarks(board: &Board<'_>, store: &Store) -> Vec<String> {
    let design = board.design;
    let mut all = Vec::new();
    let missing = rows::missing(design, store);
    if !missing.is_empty() {
        all.push(format!(
            "This study is not complete: {} images lack results. Figures are over the images that are there.",
            missing.len()
        ));
    }
    all.extend(design.left_out.iter().map(|words| format!("Not run: {words}.")));
    let lacking = warnings::lacking(board);
    if !lacking.is_empty() {
        all.push(format!("An honest evaluation of a defence would also contain: {}.", lacking.join("; ")));
    }
    all.push("Attacked images were rounded to 8 bits before anybody judged them.".into());
    all
}

/// The images that the last defence helped and harmed most, under the first attack that has results.
fn galleries(
    study: &Study,
    store: &Store,
    board: &Board<'_>,
    subject: usize,
) -> Result<Vec<(String, Vec<String>)>> {
    let design = board.design;
    let card = &design.subjects[subject];
    let Some(row) = card.rows.iter().rposition(|r| r.climbs()) else { return Ok(Vec::new()) };
    let attack = |c: &usize| {
        matches!(card.columns[*c].threat, Threat::Attack(_)) && !board.results(subject, *c, row).is_empty()
    };
    let Some(column) = (0..card.columns.len()).find(attack) else { return Ok(Vec::new()) };
    let draw = design.experiment.seeds[0];
    let place = |c: &&Cell| (c.subject, c.column, c.row, c.draw) == (subject, column, row, draw);
    let Some(cell) = design.cells.iter().find(place) else { return Ok(Vec::new()) };
    let mut gains: Vec<(f64, &str)> = board
        .results(subject, column, row)
        .iter()
        .filter(|r| r.draw == draw)
        .map(|r| (r.score - r.bare_score, r.id.as_str()))
        .collect();
    gains.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let helped: Vec<_> = gains.iter().filter(|g| g.0 > 0.0).take(SHOWN).copied().collect();
    let harmed: Vec<_> = gains.iter().rev().filter(|g| g.0 < 0.0).take(SHOWN).copied().collect();
    let mut all = Vec::new();
    for (words, chosen) in [("helped", helped), ("harmed", harmed)] {
        let title = format!("Most {words} by {} under {}", card.rows[row].label, card.columns[column].label);
        let panels = chosen.iter().map(|(gain, id)| panel(study, store, cell, (id, *gain)));
        let panels = panels.collect::<Result<Vec<_>>>()?;
        if !panels.is_empty() {
            all.push((title, panels));
        }
    }
    Ok(all)
}

fn panel(study: &Study, store: &Store, cell: &Cell, (id, gain): (&str, f64)) -> Result<String> {
    let seen = study.revisit(store, cell, id)?;
    let shown = |truth: &evenkeel::task::Truth| -> Result<Shown> {
        Ok(match study.painted(cell.subject, truth, &seen.clean)? {
            Ok(image) => Shown::Image(image),
            Err(word) => Shown::Word(word),
        })
    };
    let said = |p: &evenkeel::task::Prediction| {
        let truth = match p {
            evenkeel::task::Prediction::Class(class) => evenkeel::task::Truth::Class(*class),
            evenkeel::task::Prediction::Map(map) => evenkeel::task::Truth::Map(map.clone()),
            evenkeel::task::Prediction::Instances(all) => evenkeel::task::Truth::Instances(all.clone()),
        };
        shown(&truth)
    };
    let bound = study.design.subjects[cell.subject].epsilon_255 as f32 / 255.0;
    let pictures = [
        Picture::new(&format!("{id}, {:+.1} points", 100.0 * gain), &seen.clean),
        Picture::labelled("truth", shown(&seen.truth)?),
        Picture::new("attacked", &seen.shown),
        Picture::new("the attack, magnified", &magnified(&seen.clean, &seen.shown, bound)),
        Picture::labelled("said of it", said(&seen.bare)?),
        Picture::new("the defence, magnified", &magnified(&seen.shown, &seen.defended, 1.5 * bound)),
        Picture::labelled("said after the defence", said(&seen.answer)?),
    ];
    pictures.iter().map(Picture::html).collect()
}
