//! Reports: one page that fetches nothing, and the same tables as Markdown, CSV and LaTeX.
//!
//! [`results`] gathers results; `summary`, `tables`, `curves`, `detection`, `calibrated` and `corrupted` turn them into tables and charts; `warnings`
//! says what to doubt, and that comes first on the page.

mod calibrated;
pub mod chart;
mod corrupted;
mod curves;
mod detection;
pub mod dots;
mod foreign;
mod gallery;
mod harm;
mod information;
mod measured;
pub mod picture;
pub mod results;
mod summary;
pub mod table;
mod tables;
mod warnings;

use std::path::{Path, PathBuf};

use chart::{escaped, marked};
use detection::Detections;
use evenkeel::image::write_atomically;
use gallery::Gallery;
use results::Results;
use table::Table;
use warnings::Doubt;

use crate::Result;
use crate::experiment::{Design, as_file_name};
use crate::rows;
use crate::run::Study;
use crate::store::Store;

/// The style of every page of evenkeel.
pub const STYLE: &str = include_str!("style.css");

/// A part of the page.
enum Part {
    Table(Table),
    /// A chart as wide as the page.
    Chart(String),
    /// Charts side by side.
    Charts(Vec<String>),
    /// Charts that are shown when asked for.
    Folded(String, Vec<String>),
    /// Rows of pictures under a title.
    Gallery(Gallery),
}

/// All that is said of one subject, or of the study as a whole.
struct Section {
    title: String,
    parts: Vec<Part>,
}

/// What a report is made of.
pub struct Report {
    name: String,
    about: String,
    doubts: Vec<Doubt>,
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
        let results = Results::gather(design, store)?;
        let detections = Detections::gather(design, store)?;
        let mut report = Self {
            name: design.experiment.name.clone(),
            about: design.experiment.about.clone(),
            doubts: doubts(&results, &detections),
            remarks: remarks(&results, store),
            sections: Vec::new(),
        };
        if let Some((design, store)) = other {
            let theirs = Results::gather(design, store)?;
            let name = &design.experiment.name;
            match tables::comparison(&results, &theirs) {
                Some(table) => {
                    report
                        .sections
                        .push(Section { title: "Comparison".into(), parts: vec![Part::Table(table)] });
                }
                None => report
                    .remarks
                    .push(format!("{name} has no cell of the same name, so nothing is compared.")),
            }
            let lacking = rows::missing(design, store).len();
            if lacking > 0 {
                report.remarks.push(format!("{name} is not complete: {lacking} of its images lack results."));
            }
        }
        if let Some(table) = summary::summary(&results) {
            report.sections.push(Section { title: "Summary".into(), parts: vec![Part::Table(table)] });
        }
        for subject in (0..design.subjects.len()).filter(|s| design.subjects[*s].foreign.is_none()) {
            let mut parts = parts(&results, &detections, subject);
            match study.map(|study| gallery::galleries(study, store, &results, subject)) {
                Some(Ok(shown)) => {
                    parts.extend(shown.into_iter().map(Part::Gallery));
                }
                // the tables do not need the images
                Some(Err(e)) => {
                    report.remarks.push(format!("No gallery of {}: {e}", design.subjects[subject].rule.name))
                }
                None => {}
            }
            report.sections.push(Section { title: design.subjects[subject].rule.name.clone(), parts });
        }
        Ok(report)
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        self.sections.iter().flat_map(Section::tables)
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
            let name = as_file_name(&table.name);
            write_atomically(folder.join(format!("{name}.csv")), table.csv().as_bytes())?;
        }
        Ok(page)
    }

    /// The tables and warnings as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n", self.name, self.about);
        if !self.doubts.is_empty() {
            text += "\n## Read this first\n\n";
            self.doubts.iter().for_each(|d| text += &format!("- {}\n", d.words));
        }
        if !self.remarks.is_empty() {
            text += "\n";
            self.remarks.iter().for_each(|r| text += &format!("- {r}\n"));
        }
        for section in &self.sections {
            text += &format!("\n## {}\n", section.title);
            section.tables().for_each(|t| text += &format!("\n{}", t.markdown()));
        }
        text
    }

    /// The page.
    pub fn html(&self) -> String {
        let remarks = match self.remarks.is_empty() {
            true => String::new(),
            false => format!("<ul class=\"note\">{}</ul>", list(self.remarks.iter())),
        };
        let contents = match self.sections.len() {
            0..=2 => String::new(),
            _ => {
                let link =
                    |s: &Section| format!("<a href=\"#{}\">{}</a>", anchor(&s.title), escaped(&s.title));
                format!("<nav>{}</nav>", self.sections.iter().map(link).collect::<String>())
            }
        };
        let sections: String = self.sections.iter().map(Section::html).collect();
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, \
             initial-scale=1\"><link rel=\"icon\" href=\"data:,\"><title>{name}</title><style>{STYLE}</style></head><body class=\"report\">\
             <header><h1>{name}</h1><p>{}</p></header>{}{remarks}{contents}{sections}</body></html>\n",
            escaped(&self.about),
            self.warnings(),
            name = escaped(&self.name),
        )
    }

    /// What to doubt: what is sure first, then what may be chance.
    fn warnings(&self) -> String {
        if self.doubts.is_empty() {
            return "<p class=\"sound\">No sanity check of this study failed.</p>".to_string();
        }
        let (slight, sure): (Vec<&Doubt>, Vec<&Doubt>) = self.doubts.iter().partition(|d| d.slight);
        let part = |title: &str, doubts: &[&Doubt]| match doubts.is_empty() {
            true => String::new(),
            false => format!("<h3>{title}</h3><ul>{}</ul>", list(doubts.iter().map(|d| &d.words))),
        };
        format!(
            "<div class=\"doubts\" role=\"alert\"><h2>Read this first</h2>{}<div class=\"slight\">{}</div></div>",
            part("Not by chance", &sure),
            part("May be chance", &slight)
        )
    }
}

/// What is wrong with attacks, and what a defence costs; what may be chance last.
fn doubts(results: &Results<'_>, detections: &Detections) -> Vec<Doubt> {
    let mut all = warnings::doubts(results);
    all.extend(harm::doubts(results, detections));
    all.sort_by_key(|doubt| doubt.slight);
    all
}

fn list<'a>(items: impl Iterator<Item = &'a String>) -> String {
    items.map(|i| format!("<li>{}</li>", marked(i))).collect()
}

/// A title as the name of a place on the page.
fn anchor(title: &str) -> String {
    title.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect()
}

/// Everything there is to say of a subject, galleries apart.
fn parts(results: &Results<'_>, detections: &Detections, subject: usize) -> Vec<Part> {
    let design = results.design;
    let mut parts: Vec<Part> = summary::chart(results, subject).into_iter().map(Part::Chart).collect();
    parts.push(Part::Table(tables::scores(results, subject)));
    let curves = curves::charts(results, subject);
    parts.extend((!curves.is_empty()).then_some(Part::Charts(curves)));
    if let Some((table, charts)) = information::bounds(results, subject) {
        parts.extend([Part::Table(table), Part::Charts(charts)]);
    }
    parts.extend(measured::metrics(results, subject).map(Part::Table));
    parts.extend(tables::cost(results, detections, subject).map(Part::Table));
    parts.extend(tables::targets(results, subject).map(Part::Table));
    if let Some((table, chart)) = tables::objectives(results, subject) {
        parts.extend([Part::Chart(chart), Part::Table(table)]);
    }
    if let Some((table, charts)) = detection::ranking(design, detections, subject) {
        parts.extend([Part::Table(table), Part::Charts(charts)]);
    }
    parts.extend(foreign::ranking(design, detections, subject).map(Part::Table));
    parts.extend(calibrated::guarded(results, detections, subject).map(Part::Table));
    if let Some((table, chart)) = calibrated::calibration(design, detections, subject) {
        parts.extend([Part::Table(table), Part::Charts(vec![chart])]);
    }
    for seen in corrupted::detections(design, detections, subject) {
        let title = format!("ROC of {} by corruption", seen.detector);
        parts.extend([Part::Table(seen.table), Part::Folded(title, seen.curves)]);
    }
    parts.extend(corrupted::scores(results, subject).into_iter().map(Part::Table));
    parts
}

impl Section {
    fn tables(&self) -> impl Iterator<Item = &Table> {
        self.parts.iter().filter_map(|part| match part {
            Part::Table(table) => Some(table),
            _ => None,
        })
    }

    fn html(&self) -> String {
        let parts: String = self.parts.iter().map(Part::html).collect();
        let (title, place) = (escaped(&self.title), anchor(&self.title));
        format!("<section id=\"{place}\"><h2>{title}</h2>{parts}</section>")
    }
}

impl Part {
    fn html(&self) -> String {
        match self {
            Self::Table(table) => table.html(),
            Self::Chart(chart) => chart.clone(),
            Self::Charts(charts) => format!("<div class=\"charts\">{}</div>", charts.concat()),
            Self::Folded(title, charts) => format!(
                "<details><summary>{}</summary><div class=\"charts\">{}</div></details>",
                escaped(title),
                charts.concat()
            ),
            Self::Gallery(gallery) => gallery.html(),
        }
    }
}

/// What a reader should know: what is missing, what was left out, what was not tried.
fn remarks(results: &Results<'_>, store: &Store) -> Vec<String> {
    let design = results.design;
    let mut all = results.unlabelled();
    let missing = rows::missing(design, store);
    if !missing.is_empty() {
        all.push(format!(
            "This study is not complete: {} images lack results. Figures are over the images that are there.",
            missing.len()
        ));
    }
    all.extend(design.left_out.iter().map(|words| format!("Not run: {words}.")));
    all.extend(warnings::lacking(results));
    all.push(
        "Attacked images were rounded to 8 bits, inside their budget, before they were evaluated.".into(),
    );
    if design.experiment.seeds.len() > 1 && design.subjects.iter().any(|s| !s.detectors.is_empty()) {
        all.push("Detectors are judged on the first draw of the attacks.".into());
    }
    all
}
