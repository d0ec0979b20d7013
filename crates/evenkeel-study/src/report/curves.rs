//! Curves: the score against a setting of the defence that an experiment varied (radius, share of cells, gradients).

use evenkeel::defence::DefenceSettings;
use evenkeel::settings::Choice;

use super::chart::{Plot, Series};
use super::detection::figure;
use super::results::{Figure, Results};
use crate::experiment::DefenceRow;

/// One setting that may have been varied.
struct Dial {
    words: &'static str,
    caption: &'static str,
    read: fn(&DefenceSettings) -> f64,
    /// Sets it to one value, to find rows that differ in nothing else.
    rest: fn(&mut DefenceSettings),
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

/// The most attacks that are drawn beside the clean images and the worst case.
const ATTACKS: usize = 4;

/// What a line or a chart is of.
#[derive(Clone, Copy)]
enum Faced {
    /// A column of the tables.
    Column(usize),
    /// For each image the most harmful attack.
    Worst,
}

/// Rows that differ in one setting only.
struct Group {
    name: String,
    rows: Vec<usize>,
}

/// The charts of a subject: for every setting that took several values the score against it, clean, attacked and in the worst case. One chart
/// with a line for each of these, or, where several defences were varied alike, a chart for each with a line for every defence.
pub(super) fn charts(results: &Results<'_>, subject: usize) -> Vec<String> {
    DIALS.iter().flat_map(|dial| dial_charts(results, subject, dial)).collect()
}

fn dial_charts(results: &Results<'_>, subject: usize, dial: &Dial) -> Vec<String> {
    let groups = groups(results, subject, dial);
    let attacks = results.attacks(subject);
    let mut faced = vec![Faced::Column(0)];
    faced.extend(attacks.iter().take(ATTACKS).map(|c| Faced::Column(*c)));
    faced.extend((attacks.len() > 1).then_some(Faced::Worst));
    let up = format!("{}{}", results.metric(subject), results.unit(subject));
    let chart = |caption: String, series: Vec<Series>| {
        let series: Vec<Series> = series.into_iter().filter(|s| s.points.len() > 1).collect();
        let plot =
            Plot { across: dial.words.into(), up: up.clone(), series, x: None, y: None, diagonal: None };
        (!plot.series.is_empty()).then(|| figure(&caption, &plot.svg()))
    };
    let line = |name: String, group: &Group, what: Faced| {
        let value = |row: &usize| {
            let found = sought(results, subject, what, *row)?;
            Some(((dial.read)(results.design.subjects[subject].rows[*row].spec.settings()), found))
        };
        let mut found: Vec<(f64, Figure)> = group.rows.iter().filter_map(value).collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let band = |(x, f): &(f64, Figure)| f.interval.map(|(low, high)| (*x, f.drawn(low), f.drawn(high)));
        let points = found.iter().map(|(x, f)| (*x, f.drawn(f.value))).collect();
        Series { band: found.iter().filter_map(band).collect(), ..Series::line(name, points) }
    };
    match groups.as_slice() {
        [] => Vec::new(),
        [group] => {
            let series =
                faced.iter().map(|what| line(words(results, subject, *what), group, *what)).collect();
            chart(format!("{}: {}", group.name, dial.caption), series).into_iter().collect()
        }
        many => faced
            .iter()
            .filter_map(|what| {
                let mut series: Vec<Series> = many.iter().map(|g| line(g.name.clone(), g, *what)).collect();
                // bands of many lines would hide each other
                series.iter_mut().for_each(|s| s.band.clear());
                series.extend(bare(results, subject, *what, &series));
                chart(format!("{}: {}", words(results, subject, *what), dial.caption), series)
            })
            .collect(),
    }
}

fn sought(results: &Results<'_>, subject: usize, what: Faced, row: usize) -> Option<Figure> {
    match what {
        Faced::Column(column) => results.figure(subject, column, row),
        Faced::Worst => results.worst_figure(subject, row),
    }
}

fn words(results: &Results<'_>, subject: usize, what: Faced) -> String {
    match what {
        Faced::Column(column) => results.design.subjects[subject].columns[column].label.clone(),
        Faced::Worst => "worst case".into(),
    }
}

/// The rows that differ in a setting only, where it takes at least three values.
fn groups(results: &Results<'_>, subject: usize, dial: &Dial) -> Vec<Group> {
    let mut groups: Vec<(&str, DefenceSettings, Vec<usize>)> = Vec::new();
    let rows: &[DefenceRow] = &results.design.subjects[subject].rows;
    for (row, spec) in rows.iter().map(|row| &row.spec).enumerate().filter(|(row, _)| !rows[*row].is_none()) {
        let mut rest = spec.settings().clone();
        (dial.rest)(&mut rest);
        match groups.iter_mut().find(|(kind, g, _)| *kind == spec.name() && *g == rest) {
            Some((_, _, rows)) => rows.push(row),
            None => groups.push((spec.name(), rest, vec![row])),
        }
    }
    let name = |kind: &str, settings: &DefenceSettings| {
        format!("{kind} {} {}", settings.schedule.name(), settings.views.name).replace(" standard", "")
    };
    let long = groups.into_iter().filter(|(_, _, rows)| rows.len() > 2);
    long.map(|(kind, settings, rows)| Group { name: name(kind, &settings), rows }).collect()
}

/// The bare network's score, as a line across.
fn bare(results: &Results<'_>, subject: usize, what: Faced, series: &[Series]) -> Option<Series> {
    let found = sought(results, subject, what, 0)?;
    let value = found.drawn(found.value);
    let across = || series.iter().flat_map(|s| &s.points).map(|p| p.0);
    let (low, high) = (across().fold(f64::INFINITY, f64::min), across().fold(f64::NEG_INFINITY, f64::max));
    (low < high).then(|| Series::line("none", vec![(low, value), (high, value)]))
}
