//! Curves: the score against a setting of the defence that an experiment varied (radius, share of cells, gradients).

use super::board::Board;
use super::chart::{Plot, Series};
use super::detection::figure;
use crate::experiment::{DefenceSpec, Threat};

/// One setting that may have been varied.
struct Dial {
    words: &'static str,
    caption: &'static str,
    read: fn(&DefenceSpec) -> f64,
    /// The same spec with this setting at rest, to find rows that differ in it only.
    rest: fn(&mut DefenceSpec),
}

const DIALS: [Dial; 3] = [
    Dial {
        words: "ε_v · 255",
        caption: "score against the defence's radius",
        read: |d| d.epsilon_255,
        rest: |d| d.epsilon_255 = 0.0,
    },
    Dial {
        words: "share of cells",
        caption: "score against the number of constraints",
        read: |d| d.cells,
        rest: |d| d.cells = 0.0,
    },
    Dial {
        words: "gradients",
        caption: "score against the number of gradients",
        read: |d| d.steps as f64,
        rest: |d| d.steps = 0,
    },
];

/// The charts of a subject: for every setting that took several values, a line for each column and group of rows.
pub(super) fn charts(board: &Board<'_>, subject: usize) -> Vec<String> {
    let card = &board.design.subjects[subject];
    let mut all = Vec::new();
    for dial in &DIALS {
        let mut groups: Vec<(DefenceSpec, Vec<usize>)> = Vec::new();
        for (row, spec) in card.rows.iter().enumerate().filter(|(_, s)| s.kind != "none") {
            let mut rest = DefenceSpec { label: String::new(), ..spec.clone() };
            (dial.rest)(&mut rest);
            match groups.iter_mut().find(|(g, _)| *g == rest) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((rest, vec![row])),
            }
        }
        groups.retain(|(_, rows)| rows.len() > 1);
        let columns =
            (0..card.columns.len()).filter(|c| !matches!(card.columns[*c].threat, Threat::Corruption { .. }));
        for column in columns {
            let series: Vec<Series> = groups
                .iter()
                .map(|(rest, rows)| {
                    let point = |row: &usize| {
                        let y = 100.0 * board.figure(subject, column, *row)?.value;
                        Some(((dial.read)(&card.rows[*row]), y))
                    };
                    let mut points: Vec<(f64, f64)> = rows.iter().filter_map(point).collect();
                    points.sort_by(|a, b| a.0.total_cmp(&b.0));
                    let name = format!("{} {} {}", rest.kind, rest.schedule(), rest.views);
                    Series { name: name.replace(" standard", ""), points, loose: false }
                })
                .filter(|s| s.points.len() > 1)
                .collect();
            if series.is_empty() {
                continue;
            }
            let bare = board.figure(subject, column, 0).map(|f| 100.0 * f.value);
            let mut series = series;
            if let Some(bare) = bare {
                let ends = |pick: fn(f64, f64) -> f64, start: f64| {
                    series.iter().flat_map(|s| &s.points).map(|p| p.0).fold(start, pick)
                };
                let (low, high) = (ends(f64::min, f64::INFINITY), ends(f64::max, f64::NEG_INFINITY));
                series.push(Series {
                    name: "none".into(),
                    points: vec![(low, bare), (high, bare)],
                    loose: false,
                });
            }
            let plot = Plot {
                across: dial.words.into(),
                up: format!("{}, %", board.metric(subject)),
                series,
                x: None,
                y: None,
                diagonal: false,
            };
            all.push(figure(&format!("{}: {}", card.columns[column].label, dial.caption), &plot.svg()));
        }
    }
    all
}
