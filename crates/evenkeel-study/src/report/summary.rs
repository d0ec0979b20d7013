//! The summary: what every defence is worth, clean and in the worst case, and what it costs; as a table of the whole study and a chart of each subject.

use super::detection::{entry, figure};
use super::dots::{Dots, Mark};
use super::results::{Figure, Results};
use super::table::{Entry, Table};
use super::tables::{median, worst_entry};
use crate::experiment::Threat;
use evenkeel_data::metric::Unit;

/// Clean, worst and cost of every defence on every subject; none if nothing was attacked.
pub(super) fn summary(results: &Results<'_>) -> Option<Table> {
    let mut table = Table {
        name: "summary".into(),
        title: "What each defence is worth".into(),
        head: [
            "subject",
            "defence",
            "clean",
            "attacked, worst case",
            "against no defence",
            "× a forward pass",
        ]
        .map(String::from)
        .to_vec(),
        notes: vec![
            "In the worst case every image meets the attack that hurts it most, of those run. Shares in %; errors of values in the network's own unit, where less is better.".into(),
        ],
        ..Table::default()
    };
    for (subject, card) in results.design.subjects.iter().enumerate() {
        let bare = results.worst_figure(subject, 0);
        let forward = median(results.results(subject, 0, 0).iter().map(|r| r.answer_seconds)).unwrap_or(0.0);
        for (row, defence) in card.rows.iter().enumerate() {
            let Some(worst) = results.worst_figure(subject, row) else { continue };
            let clean = results.figure(subject, 0, row);
            let seconds =
                results.results(subject, 0, row).iter().map(|r| r.defence.1.seconds + r.answer_seconds);
            let times = median(seconds).map(|s| format!("{:.1}", s / forward.max(1e-9)));
            let gain = bare.filter(|_| row > 0).map(|b| worst.unit.change(worst.value - b.value));
            table.rows.push(vec![
                Entry::words(format!("{} ({})", card.rule.name, results.metric(subject))),
                Entry::words(defence.label.clone()),
                clean.map_or(Entry::nothing(), |f| entry(&f)),
                worst_entry(results, subject, row),
                gain.map_or(Entry::nothing(), Entry::words),
                times.map_or(Entry::nothing(), Entry::words),
            ]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// A row for each defence: its score on clean images, under the first attack that knows nothing of it, and in the worst case.
pub(super) fn chart(results: &Results<'_>, subject: usize) -> Option<String> {
    let card = &results.design.subjects[subject];
    let attacks = results.attacks(subject);
    let blind = |c: &&usize| matches!(&card.columns[**c].threat, Threat::Attack(a) if !a.knows_defence());
    let blind = attacks.iter().find(blind).copied().or(attacks.first().copied())?;
    let several = attacks.len() > 1;
    let mark = |figure: Option<Figure>| -> Option<Mark> {
        figure.map(|f| (f.drawn(f.value), f.interval.map(|(low, high)| (f.drawn(low), f.drawn(high)))))
    };
    let row = |row: usize| {
        let mut marks =
            vec![mark(results.figure(subject, 0, row)), mark(results.figure(subject, blind, row))];
        marks.extend(several.then(|| mark(results.worst_figure(subject, row))));
        (card.rows[row].label.clone(), marks)
    };
    let mut kinds = vec!["clean".to_string(), card.columns[blind].label.clone()];
    kinds.extend(several.then(|| "worst case".to_string()));
    let dots = Dots {
        across: format!("{}{}", results.metric(subject), results.unit(subject)),
        span: None,
        kinds,
        rows: (0..card.rows.len()).map(row).collect(),
    };
    let dots = Dots { span: Some((0.0, dots.highest().max(least(results, subject)))), ..dots };
    Some(figure("Bare and defended, with 95 % intervals", &dots.svg()))
}

/// How far the chart's axis goes at least: one percent, and for values what keeps the axis from being empty.
fn least(results: &Results<'_>, subject: usize) -> f64 {
    match results.main_metric(subject).map(|metric| metric.unit) {
        Some(Unit::Value) => 1e-6,
        _ => 1.0,
    }
}
