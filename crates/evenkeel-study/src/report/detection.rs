//! What detectors achieved: AUROC against clean images, a heat map over corruptions and severities, detect-then-defend, and how well
//! errors were estimated.
//!
//! Thresholds and biases are never fitted on the images they judge: images fall into two halves, and each half is judged with what
//! the other's clean images say.

use std::collections::BTreeMap;

use evenkeel::detect::{expected_error, fit_bias, threshold_for};

use super::board::{Board, Figure, Result1};
use super::chart::{Plot, Scores, Series, roc};
use super::table::{Entry, Table};
use crate::Result;
use crate::experiment::spec::ERROR_ESTIMATE;
use crate::experiment::{Design, Threat, Work};
use crate::metric::{Bootstrap, Ranking, key_of};
use crate::record::{Body, Detected};
use crate::store::Store;

/// The share of clean images that may raise an alarm.
const FALSE_ALARMS: f64 = 0.05;
/// The probability that an error estimate is off by more than its bound.
const DELTA: f64 = 0.05;
/// Curves in one chart.
const CURVES: usize = 6;

/// By work and detector: what was said of each image.
pub(super) struct Detections {
    all: BTreeMap<(usize, usize), BTreeMap<String, Detected>>,
}

impl Detections {
    /// Reads everything that is there.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) fn gather(design: &Design, store: &Store) -> Result<Self> {
        let mut all: BTreeMap<_, BTreeMap<String, Detected>> = BTreeMap::new();
        for (number, work) in design.works.iter().enumerate() {
            for (key, detector) in &work.detections {
                for id in &design.subjects[work.subject].images {
                    if let Some((entry, _)) = store.get(key, id)?
                        && let Body::Detected(detected) = entry.body
                    {
                        all.entry((number, *detector)).or_default().insert(id.clone(), detected);
                    }
                }
            }
        }
        Ok(Self { all })
    }

    fn of(&self, work: usize, detector: usize) -> Option<&BTreeMap<String, Detected>> {
        self.all.get(&(work, detector))
    }
}

/// A work as a chart names it.
fn title(design: &Design, work: &Work) -> String {
    let card = &design.subjects[work.subject];
    let lens = work.lens.map_or(String::new(), |row| format!(" through {}", card.rows[row].label));
    format!("{}{lens}", card.columns[work.column].label)
}

fn clean_work(design: &Design, subject: usize) -> Option<usize> {
    let clean =
        |w: &Work| w.subject == subject && design.subjects[subject].columns[w.column].threat == Threat::Clean;
    design.works.iter().position(clean)
}

/// The AUROC of a work's images against clean ones, with its interval.
fn auroc(
    design: &Design,
    clean: &BTreeMap<String, Detected>,
    other: &BTreeMap<String, Detected>,
) -> Option<Figure> {
    let mut ranking = Ranking::new(Bootstrap { seed: design.experiment.seed, replicates: 1000 });
    for (scores, anomalous) in [(clean, false), (other, true)] {
        for (id, detected) in scores {
            ranking.push(key_of(id), detected.score, anomalous).ok()?;
        }
    }
    let value = ranking.figures()?.auroc;
    let interval = ranking.interval(0.95, |f| f.auroc).map(|i| (i.low, i.high));
    Some(Figure { value, interval, images: other.len() })
}

/// The AUROC table of a subject and its charts.
pub(super) fn ranking(
    design: &Design,
    detections: &Detections,
    subject: usize,
) -> Option<(Table, Vec<String>)> {
    let card = &design.subjects[subject];
    let clean = clean_work(design, subject)?;
    let detectors: Vec<usize> =
        (0..card.detectors.len()).filter(|d| card.detectors[*d].kind != ERROR_ESTIMATE).collect();
    if detectors.is_empty() {
        return None;
    }
    let works: Vec<usize> = (0..design.works.len())
        .filter(|w| design.works[*w].subject == subject && *w != clean)
        .filter(|w| {
            !matches!(card.columns[design.works[*w].column].threat, Threat::Corruption { .. })
                && design.works[*w].draw == design.experiment.seeds[0]
        })
        .collect();
    let mut table = Table {
        name: format!("{}-detection", card.rule.name),
        title: format!("{}: AUROC, attacked images from clean ones", card.rule.name),
        head: std::iter::once("attack".to_string())
            .chain(detectors.iter().map(|d| card.detectors[*d].label.clone()))
            .collect(),
        ..Table::default()
    };
    let mut curves: Vec<Vec<Scores>> = vec![Vec::new(); detectors.len()];
    for work in works {
        let name = title(design, &design.works[work]);
        let mut row = vec![Entry::words(name.clone())];
        for (place, detector) in detectors.iter().enumerate() {
            let pair = detections.of(clean, *detector).zip(detections.of(work, *detector));
            row.push(pair.and_then(|(c, o)| auroc(design, c, o)).map_or(Entry::words("–"), |f| entry(&f)));
            if let Some((c, o)) = pair
                && curves[place].len() < CURVES
            {
                let scores = c.values().map(|d| (d.score, false)).chain(o.values().map(|d| (d.score, true)));
                curves[place].push((name.clone(), scores.collect()));
            }
        }
        table.rows.push(row);
    }
    let chart = |(place, detector): (usize, &usize)| {
        let label = &card.detectors[*detector].label;
        (!curves[place].is_empty()).then(|| figure(label, &roc(&curves[place], "attacks found")))
    };
    let charts = detectors.iter().enumerate().filter_map(chart).collect();
    (!table.rows.is_empty()).then_some((table, charts))
}

/// A chart with a caption.
pub(super) fn figure(caption: &str, svg: &str) -> String {
    format!(
        "<figure class=\"chart\">{svg}<figcaption>{}</figcaption></figure>",
        super::chart::escaped(caption)
    )
}

/// A figure in % with its interval.
pub(super) fn entry(figure: &Figure) -> Entry {
    let aside = figure
        .interval
        .map_or(String::new(), |(low, high)| format!("[{:.1}, {:.1}]", 100.0 * low, 100.0 * high));
    Entry { main: format!("{:.1}", 100.0 * figure.value), aside, fill: None }
}

/// AUROC by corruption and severity, a table for each detector.
pub(super) fn heat_maps(design: &Design, detections: &Detections, subject: usize) -> Vec<Table> {
    let card = &design.subjects[subject];
    let Some(clean) = clean_work(design, subject) else { return Vec::new() };
    let mut found: BTreeMap<String, BTreeMap<usize, usize>> = BTreeMap::new();
    let mut severities = std::collections::BTreeSet::new();
    for (number, work) in design.works.iter().enumerate().filter(|(_, w)| w.subject == subject) {
        if let Threat::Corruption { kind, severity } = &card.columns[work.column].threat {
            found.entry(kind.clone()).or_default().insert(*severity, number);
            severities.insert(*severity);
        }
    }
    let mut tables = Vec::new();
    for (detector, spec) in card.detectors.iter().enumerate() {
        let Some(normal) = detections.of(clean, detector) else { continue };
        if spec.kind == ERROR_ESTIMATE || found.is_empty() {
            continue;
        }
        let mut table = Table {
            name: format!("{}-corruptions-{}", card.rule.name, spec.label),
            title: format!("{}: AUROC of {} by corruption and severity", card.rule.name, spec.label),
            head: std::iter::once("corruption".to_string())
                .chain(severities.iter().map(ToString::to_string))
                .collect(),
            ..Table::default()
        };
        for (kind, by_severity) in &found {
            let mut row = vec![Entry::words(kind.clone())];
            for severity in &severities {
                let work = by_severity.get(severity).and_then(|w| detections.of(*w, detector));
                row.push(match work.and_then(|o| auroc(design, normal, o)) {
                    Some(f) => Entry { fill: Some(2.0 * f.value - 1.0), aside: String::new(), ..entry(&f) },
                    None => Entry::words("–"),
                });
            }
            table.rows.push(row);
        }
        tables.push(table);
    }
    tables
}

/// Images in two halves, every other one in the order of their names.
struct Halves<'a>(BTreeMap<&'a str, bool>);

impl<'a> Halves<'a> {
    fn of(clean: &'a BTreeMap<String, Detected>) -> Self {
        Self(clean.keys().enumerate().map(|(i, id)| (id.as_str(), i % 2 == 1)).collect())
    }

    fn place(&self, id: &str) -> usize {
        self.0.get(id).map_or(0, |second| usize::from(*second))
    }

    /// For each half, what the other half's clean images say; `None` where one is empty.
    fn crossed<T>(
        &self,
        clean: &BTreeMap<String, Detected>,
        fit: impl Fn(Vec<&Detected>) -> Option<T>,
    ) -> Option<[T; 2]> {
        let of = |which: usize| {
            fit(clean.iter().filter(|(id, _)| self.place(id) != which).map(|(_, d)| d).collect())
        };
        Some([of(0)?, of(1)?])
    }
}

/// Detect, then defend: rows are defences, columns what is done to images.
pub(super) fn guarded(board: &Board<'_>, detections: &Detections, subject: usize) -> Option<Table> {
    let design = board.design;
    let card = &design.subjects[subject];
    let detector = card.detectors.iter().position(|d| d.kind != ERROR_ESTIMATE)?;
    let clean = detections.of(clean_work(design, subject)?, detector)?;
    let halves = Halves::of(clean);
    let thresholds = halves.crossed(clean, |others| {
        let scores: Vec<f64> = others.iter().map(|d| d.score).collect();
        threshold_for(&scores, FALSE_ALARMS).ok()
    })?;
    let columns: Vec<usize> = (0..card.columns.len())
        .filter(|c| !matches!(card.columns[*c].threat, Threat::Corruption { .. }))
        .collect();
    let mut table = Table {
        name: format!("{}-detect-then-defend", card.rule.name),
        title: format!(
            "{}: {} in %, defended only where {} raises an alarm",
            card.rule.name,
            board.metric(subject),
            card.detectors[detector].label
        ),
        head: std::iter::once("defence".to_string())
            .chain(columns.iter().map(|c| card.columns[*c].label.clone()))
            .collect(),
        notes: vec![format!(
            "Threshold at {:.0} % false alarms, for each half of the images from the clean images of the other half. Beside each figure: the \
             share of images defended.",
            100.0 * FALSE_ALARMS
        )],
        ..Table::default()
    };
    for row in 1..card.rows.len() {
        let mut line = vec![Entry::words(card.rows[row].label.clone())];
        for &column in &columns {
            let results = board.results(subject, column, row);
            let alarm = |r: &Result1| {
                let cell = design
                    .cells
                    .iter()
                    .find(|c| (c.subject, c.column, c.row, c.draw) == (subject, column, row, r.draw))?;
                let score = detections.of(cell.work, detector)?.get(&r.id)?.score;
                Some(score > thresholds[halves.place(&r.id)])
            };
            let judged: Option<Vec<(&Result1, bool)>> =
                results.iter().map(|r| Some((r, alarm(r)?))).collect();
            let Some(judged) = judged.filter(|j| !j.is_empty()) else {
                line.push(Entry::words("–"));
                continue;
            };
            let chosen = judged.iter().map(|(r, a)| (r.id.as_str(), if *a { &r.tally } else { &r.bare }));
            let share = judged.iter().filter(|(_, a)| *a).count() as f64 / judged.len() as f64;
            line.push(board.figure_of(subject, chosen).map_or(Entry::words("–"), |f| Entry {
                main: format!("{:.1}", 100.0 * f.value),
                aside: format!("{:.0} % defended", 100.0 * share),
                fill: None,
            }));
        }
        table.rows.push(line);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Estimated against true errors, and how often the bound held.
pub(super) fn calibration(
    design: &Design,
    detections: &Detections,
    subject: usize,
) -> Option<(Table, String)> {
    let card = &design.subjects[subject];
    let detector = card.detectors.iter().position(|d| d.kind == ERROR_ESTIMATE)?;
    let clean = detections.of(clean_work(design, subject)?, detector)?;
    let halves = Halves::of(clean);
    let biases = halves.crossed(clean, |others| {
        let pairs: Vec<(Vec<f32>, f64)> =
            others.iter().filter_map(|d| Some((d.variances.clone(), d.true_error?))).collect();
        fit_bias(&pairs).ok()
    })?;
    let mut table = Table {
        name: format!("{}-error-estimate", card.rule.name),
        title: format!("{}: estimated and true errors", card.rule.name),
        head: ["images", "estimated", "true", "mean difference", "within the bound"]
            .map(String::from)
            .to_vec(),
        notes: vec![format!(
            "The bias is fitted, for each half of the images, on the clean images of the other half. The bound should hold on {:.0} % of images like \
             those.",
            100.0 * (1.0 - DELTA)
        )],
        ..Table::default()
    };
    let mut series = Vec::new();
    for (number, work) in design.works.iter().enumerate().filter(|(_, w)| w.subject == subject) {
        if work.draw != design.experiment.seeds[0] {
            continue;
        }
        let Some(found) = detections.of(number, detector) else { continue };
        let pairs: Vec<(f64, f64, usize)> = found
            .iter()
            .filter_map(|(id, d)| {
                let estimate = expected_error(&d.variances, biases[halves.place(id)]);
                Some((estimate.min(1.0), d.true_error?, d.cells))
            })
            .collect();
        let mean = |of: &dyn Fn(&(f64, f64, usize)) -> f64| {
            pairs.iter().map(of).sum::<f64>() / pairs.len().max(1) as f64
        };
        let bound = |cells: usize| ((1.0 / DELTA).ln() / cells.max(1) as f64).sqrt();
        let held = mean(&|(e, t, cells)| f64::from(u8::from((e - t).abs() <= bound(*cells))));
        table.rows.push(vec![
            Entry::words(title(design, work)),
            Entry::words(format!("{:.3}", mean(&|p| p.0))),
            Entry::words(format!("{:.3}", mean(&|p| p.1))),
            Entry::words(format!("{:.3}", mean(&|p| (p.0 - p.1).abs()))),
            Entry::words(format!("{:.0} %", 100.0 * held)),
        ]);
        if series.len() < CURVES {
            let points = pairs.iter().map(|p| (p.0, p.1)).collect();
            series.push(Series { name: title(design, work), points, loose: true });
        }
    }
    let unit = Some((0.0, 1.0));
    let plot = Plot {
        across: "estimated error".into(),
        up: "true error".into(),
        series,
        x: unit,
        y: unit,
        diagonal: true,
    };
    Some((table, figure("error estimates, one mark an image", &plot.svg())))
}
