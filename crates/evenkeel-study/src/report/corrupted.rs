//! Corruptions: the score and the AUROC of every detector by corruption and severity, as heat, and the ROC curves behind them.

use std::collections::{BTreeMap, BTreeSet};

use super::chart::roc;
use super::detection::{Detections, Said, auroc, clean_work, curve, entry, figure};
use super::results::{Figure, Results};
use super::table::{Entry, Table};
use crate::experiment::{Design, Threat};
use evenkeel_data::metric::Better;

/// Column and work by severity.
type Found = BTreeMap<usize, (usize, usize)>;

/// The corruptions of a subject: for each kind and severity the column and the work.
struct Corruptions {
    by_kind: Vec<(String, Found)>,
    severities: BTreeSet<usize>,
}

impl Corruptions {
    fn of(design: &Design, subject: usize) -> Self {
        let card = &design.subjects[subject];
        let mut all = Self { by_kind: Vec::new(), severities: BTreeSet::new() };
        for (number, work) in design.works.iter().enumerate().filter(|(_, w)| w.subject == subject) {
            let Threat::Corruption { kind, severity } = &card.columns[work.column].threat else { continue };
            all.severities.insert(*severity);
            let place = all.by_kind.iter().position(|(k, _)| k == kind).unwrap_or_else(|| {
                all.by_kind.push((kind.clone(), BTreeMap::new()));
                all.by_kind.len() - 1
            });
            all.by_kind[place].1.entry(*severity).or_insert((work.column, number));
        }
        all
    }

    /// A table with a row for each corruption and a column for each severity, from what a cell says of (column, work).
    fn table(&self, name: String, title: String, cell: impl Fn(usize, usize) -> Option<Entry>) -> Table {
        let severities = self.severities.iter().map(|s| format!("severity {s}"));
        let row = |(kind, found): &(String, Found)| {
            let cells = self.severities.iter().map(|severity| {
                let found = found.get(severity).and_then(|(column, work)| cell(*column, *work));
                found.unwrap_or(Entry::nothing())
            });
            std::iter::once(Entry::words(kind.clone())).chain(cells).collect()
        };
        let head = std::iter::once("corruption".to_string()).chain(severities).collect();
        Table { name, title, head, rows: self.by_kind.iter().map(row).collect(), ..Table::default() }
    }
}

/// How much of the bare network's clean figure is lost, from 0 to 1: one scale for all defences of a subject.
fn lost(bare: &Figure, figure: &Figure) -> f64 {
    let (least, most) = match figure.better {
        Better::Higher => (figure.value, bare.value),
        Better::Lower => (bare.value, figure.value),
    };
    (1.0 - least / most.max(1e-9)).clamp(0.0, 1.0)
}

/// The score on corrupted images: a table for each defence that met them, warm where little is left of the bare network's clean score.
pub(super) fn scores(results: &Results<'_>, subject: usize) -> Vec<Table> {
    let card = &results.design.subjects[subject];
    let corruptions = Corruptions::of(results.design, subject);
    let mut tables = Vec::new();
    let Some(bare) = results.figure(subject, 0, 0) else { return tables };
    for (row, defence) in card.rows.iter().enumerate() {
        let clean = results.figure(subject, 0, row).unwrap_or(bare);
        let cell = |column: usize, _: usize| {
            let figure = results.figure(subject, column, row)?;
            Some(Entry { heat: Some(-lost(&bare, &figure)), ..entry(&figure) })
        };
        let met = corruptions.by_kind.iter().flat_map(|(_, found)| found.values());
        if !met.into_iter().any(|(column, _)| !results.results(subject, *column, row).is_empty()) {
            continue;
        }
        let name = format!("{}-corrupted-{}", card.rule.name, defence.label);
        let metric = results.metric(subject);
        let title = format!(
            "{}: {metric}{} on corrupted images, defence {}",
            card.rule.name,
            results.unit(subject),
            defence.label
        );
        let mut table = corruptions.table(name, title, cell);
        table.notes.push(format!(
            "Clean: {}. Colours are on one scale in all these tables: none at the bare network's clean figure, {}, full where nothing of it is left.",
            clean.words(),
            bare.words()
        ));
        tables.push(table);
    }
    tables
}

/// A detector on corrupted images.
pub(super) struct Seen {
    /// Its name.
    pub(super) detector: String,
    /// AUROC by corruption and severity.
    pub(super) table: Table,
    /// A chart for each corruption, with a curve for each severity.
    pub(super) curves: Vec<String>,
}

/// What every detector made of the corruptions.
pub(super) fn detections(design: &Design, detections: &Detections, subject: usize) -> Vec<Seen> {
    let card = &design.subjects[subject];
    let corruptions = Corruptions::of(design, subject);
    let Some(clean) = clean_work(design, subject).filter(|_| !corruptions.by_kind.is_empty()) else {
        return Vec::new();
    };
    let seen = |(place, row): (usize, &crate::experiment::DetectorRow)| {
        let normal = detections.of(clean, place).filter(|_| !row.spec.estimates_error())?;
        let cell = |_: usize, work: usize| {
            let figure = auroc(design, normal, detections.of(work, place)?)?;
            Some(Entry { heat: Some(2.0 * figure.value - 1.0), ..entry(&figure) })
        };
        let name = format!("{}-corruptions-{}", card.rule.name, row.label);
        let title = format!("{}: AUROC in % of {} by corruption and severity", card.rule.name, row.label);
        let mut table = corruptions.table(name, title, cell);
        table.notes.push(
            "Below 50 the score is lower for corrupted images than for clean ones: it points the wrong way."
                .into(),
        );
        let chart = |(kind, found): &(String, Found)| {
            let of = |(severity, (_, work)): (&usize, &(usize, usize))| {
                let other: &Said = detections.of(*work, place)?;
                Some(curve(format!("severity {severity}"), normal, other))
            };
            let curves: Vec<_> = found.iter().filter_map(of).collect();
            (!curves.is_empty()).then(|| figure(kind, &roc(&curves, "found")))
        };
        let curves = corruptions.by_kind.iter().filter_map(chart).collect();
        Some(Seen { detector: row.label.clone(), table, curves })
    };
    card.detectors.iter().enumerate().filter_map(seen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_data::metric::Unit;

    #[test]
    fn heat_has_one_scale_for_shares_and_for_errors() {
        let of = |better, value| Figure { value, interval: None, images: 1, unit: Unit::Share, better };
        let (figure, error) = (|value| of(Better::Higher, value), |value| of(Better::Lower, value));
        assert_eq!(lost(&figure(0.8), &figure(0.4)), 0.5);
        assert_eq!(lost(&figure(0.8), &figure(0.9)), 0.0);
        assert_eq!(lost(&error(2.0), &error(8.0)), 0.75);
        assert_eq!(lost(&error(2.0), &error(1.0)), 0.0);
        assert_eq!(lost(&figure(0.0), &figure(0.0)), 1.0, "nothing is left of nothing");
    }
}
