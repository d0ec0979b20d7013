//! The tables of a subject: scores in the paper's layout, cost, the objective before and after, nearness to targets.

use super::detection::{Detections, entry, figure};
use super::dots::Dots;
use super::results::{ImageResult, Results};
use super::table::{Entry, Table};
use crate::experiment::{Threat, paper};
use crate::record::{Clock, Passes};

/// Rows of the objective's chart.
const PAIRS: usize = 24;
/// The most columns that a page holds side by side.
const ABREAST: usize = 8;

/// A table whose rows are attacks and whose columns are defences, as in the paper; or the other way round where that would be too wide.
pub(super) fn in_papers_layout(table: Table) -> Table {
    let (attacks, defences) = (table.rows.len(), table.head.len().saturating_sub(1));
    if defences > ABREAST && defences > attacks { table.turned("defence") } else { table }
}

fn defence_heads(results: &Results<'_>, subject: usize, corner: &str) -> Vec<String> {
    let labels = results.design.subjects[subject].rows.iter().map(|row| row.label.clone());
    std::iter::once(corner.to_string()).chain(labels).collect()
}

/// A score for every attack and defence, and the worst case.
pub(super) fn scores(results: &Results<'_>, subject: usize) -> Table {
    let card = &results.design.subjects[subject];
    let mut table = Table {
        name: format!("{}-scores", card.rule.name),
        title: format!(
            "{}: {}{}, {}",
            card.rule.name,
            results.metric(subject),
            results.unit(subject),
            budget_words(results, subject)
        ),
        head: defence_heads(results, subject, "attack"),
        notes: vec!["Beside each figure its 95 % interval, bootstrapped over images.".into()],
        ..Table::default()
    };
    let mut of_paper = false;
    for column in results.plain_columns(subject) {
        let mut line = vec![Entry::words(card.columns[column].label.clone())];
        for (row, defence) in card.rows.iter().enumerate() {
            let figure = results.figure(subject, column, row);
            let mut cell = figure.map_or(Entry::nothing(), |f| entry(&f));
            if let Some(some) = figure.filter(|f| f.images < card.images.len()) {
                cell.aside = format!("{} {} images only", cell.aside, some.images).trim().to_string();
            }
            let first = card.rows.iter().position(|r| r.spec.name() == defence.spec.name()) == Some(row);
            if let Some(known) = paper_figure(results, subject, column, row).filter(|_| first) {
                cell.aside = format!("{} paper {known}", cell.aside).trim().to_string();
                of_paper = true;
            }
            line.push(cell);
        }
        table.rows.push(line);
    }
    if results.attacks(subject).len() > 1 {
        table.rows.push(worst_case(results, subject));
        table.notes.push(
            "Worst case: for each image and draw, the untargeted attack of at most this radius that left the least, of those run against the defence (or the one attack that left less \
             over all images). It is the honest figure of a defence; that of a random one also picks its unlucky draws."
                .into(),
        );
    }
    if of_paper {
        let about = card.rule.paper.as_deref().and_then(|p| paper::SETTINGS.iter().find(|s| s.name == p));
        table.notes.push(format!("Paper: {}.", about.map_or("", |s| s.about)));
    }
    in_papers_layout(table)
}

/// The last line of the scores.
fn worst_case(results: &Results<'_>, subject: usize) -> Vec<Entry> {
    let rows = 0..results.design.subjects[subject].rows.len();
    let name = Entry::words("worst case").strong();
    std::iter::once(name).chain(rows.map(|row| worst_entry(results, subject, row))).collect()
}

/// The worst case of a defence; one that met fewer attacks than another says so.
pub(super) fn worst_entry(results: &Results<'_>, subject: usize, row: usize) -> Entry {
    let rows = 0..results.design.subjects[subject].rows.len();
    let (met, most) =
        (results.met(subject, row), rows.map(|row| results.met(subject, row)).max().unwrap_or(0));
    let mut cell = results.worst_figure(subject, row).map_or(Entry::nothing(), |f| entry(&f));
    if (1..most).contains(&met) {
        cell.aside = format!("{} of {met} of {most} attacks", cell.aside).trim().to_string();
    }
    cell.strong()
}

fn paper_figure(results: &Results<'_>, subject: usize, column: usize, row: usize) -> Option<f64> {
    let card = &results.design.subjects[subject];
    let attack = match &card.columns[column].threat {
        Threat::Clean | Threat::Foreign { .. } => "clean",
        Threat::Attack(a) if a.target.is_none() && a.attack.settings().epsilon_255 == card.epsilon_255 => {
            a.attack.name()
        }
        _ => return None,
    };
    paper::figure(card.rule.paper.as_deref()?, attack, card.rows[row].spec.name())
}

fn budget_words(results: &Results<'_>, subject: usize) -> String {
    let card = &results.design.subjects[subject];
    let draws = results.design.experiment.seeds.len();
    format!(
        "{} images, {draws} {}, attacks at {}/255 unless said otherwise",
        card.images.len(),
        if draws == 1 { "draw" } else { "draws" },
        card.epsilon_255
    )
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

/// For times: a machine that was asleep meanwhile does not show.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// What each defence costs on clean images, and each detector: passes, and seconds as a multiple of one forward pass.
pub(super) fn cost(results: &Results<'_>, detections: &Detections, subject: usize) -> Option<Table> {
    let card = &results.design.subjects[subject];
    let bare = median(results.results(subject, 0, 0).iter().map(|r| r.answer_seconds))?;
    let mut table = Table {
        name: format!("{}-cost", card.rule.name),
        title: format!("{}: cost an image", card.rule.name),
        head: ["defence or detector", "forward passes", "pullbacks", "seconds", "× a forward pass", "peak memory"]
            .map(String::from)
            .to_vec(),
        notes: vec![
            "Of clean images, on one thread. A defence's answer itself counts as one pass. Seconds are medians. Peak memory is the process's, with all its workers, \
             by the end of the unit."
                .into(),
        ],
        ..Table::default()
    };
    for (row, defence) in card.rows.iter().enumerate() {
        let answer = |r: &ImageResult| {
            let (passes, clock) = r.defence;
            (
                Passes { forwards: passes.forwards + 1, ..passes },
                Clock { seconds: clock.seconds + r.answer_seconds, ..clock },
            )
        };
        let spent: Vec<Spent> = results.results(subject, 0, row).iter().map(answer).collect();
        table.rows.extend(cost_line(defence.label.clone(), &spent, bare));
    }
    for (place, detector) in card.detectors.iter().enumerate() {
        let spent = detections.spent_on_clean(results.design, subject, place);
        table.rows.extend(cost_line(format!("detector {}", detector.label), &spent, bare));
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What one image took.
pub(super) type Spent = (Passes, Clock);

fn cost_line(name: String, spent: &[Spent], bare: f64) -> Option<Vec<Entry>> {
    let forwards = mean(spent.iter().map(|s| s.0.forwards as f64))?;
    let backwards = mean(spent.iter().map(|s| s.0.backwards as f64))?;
    let seconds = median(spent.iter().map(|s| s.1.seconds))?;
    let peak = spent.iter().map(|s| s.1.peak_bytes).max().unwrap_or(0);
    Some(vec![
        Entry::words(name),
        Entry::words(format!("{forwards:.0}")),
        Entry::words(format!("{backwards:.0}")),
        Entry::words(format!("{seconds:.3}")),
        Entry::words(format!("{:.1}", seconds / bare.max(1e-9))),
        Entry::words(if peak == 0 { "–".into() } else { format!("{:.0} MB", peak as f64 / 1048576.0) }),
    ])
}

/// The defences' objectives on clean and attacked images, before and after.
pub(super) fn objectives(results: &Results<'_>, subject: usize) -> Option<(Table, String)> {
    let card = &results.design.subjects[subject];
    let raised: Vec<usize> = (0..card.rows.len()).filter(|r| card.rows[*r].spec.takes_gradients()).collect();
    let labels = raised.iter().map(|r| card.rows[*r].label.clone());
    let mut table = Table {
        name: format!("{}-objective", card.rule.name),
        title: format!("{}: the defence's objective after it, mean over images; beside it before", card.rule.name),
        head: std::iter::once("images".to_string()).chain(labels).collect(),
        notes: vec!["For equivariance and invariance: the mean cosine of a comparison, with the same views before and after.".into()],
        ..Table::default()
    };
    let found = |column: usize, row: usize| {
        let pairs = || results.results(subject, column, row).iter().filter_map(|r| r.objective);
        mean(pairs().map(|o| o.0)).zip(mean(pairs().map(|o| o.1)))
    };
    for column in 0..card.columns.len() {
        let cell = |row: &usize| match found(column, *row) {
            Some((before, after)) => {
                Entry { aside: format!("before {before:.3}"), ..Entry::words(format!("{after:.3}")) }
            }
            None => Entry::nothing(),
        };
        if raised.iter().any(|row| found(column, *row).is_some()) {
            let name = Entry::words(card.columns[column].label.clone());
            table.rows.push(std::iter::once(name).chain(raised.iter().map(cell)).collect());
        }
    }
    let first = results
        .plain_columns(subject)
        .into_iter()
        .find(|c| matches!(card.columns[*c].threat, Threat::Attack(_)));
    let pairs = raised.iter().flat_map(|row| [Some(0), first].into_iter().flatten().map(move |c| (*row, c)));
    let rows: Vec<_> = pairs
        .filter_map(|(row, column)| {
            let (before, after) = found(column, row)?;
            let name = format!("{}, {}", card.rows[row].label, card.columns[column].label);
            Some((name, vec![Some((before, None)), Some((after, None))]))
        })
        .take(PAIRS)
        .collect();
    let kinds = ["before the defence", "after it"].map(String::from).to_vec();
    let dots = Dots { across: "the defence's objective".into(), span: None, kinds, rows };
    (!dots.rows.is_empty())
        .then(|| (in_papers_layout(table), figure("What the defence does to its objective", &dots.svg())))
}

/// How near answers are to targets, bare and defended.
pub(super) fn targets(results: &Results<'_>, subject: usize) -> Option<Table> {
    let card = &results.design.subjects[subject];
    let mut table = Table {
        name: format!("{}-targets", card.rule.name),
        title: format!(
            "{}: how near answers are to the attacker's target and to the truth, in %",
            card.rule.name
        ),
        head: ["attack", "defence", "target, bare", "target, defended", "truth, bare", "truth, defended"]
            .map(String::from)
            .to_vec(),
        notes: vec!["Means of the images' own scores.".into()],
        ..Table::default()
    };
    for (column, c) in card.columns.iter().enumerate() {
        for (row, defence) in card.rows.iter().enumerate() {
            let results = results.results(subject, column, row);
            let words = |value: Option<f64>| {
                Entry::words(value.map_or("–".to_string(), |v| format!("{:.1}", 100.0 * v)))
            };
            if results.iter().any(|r| r.to_target.is_some()) {
                table.rows.push(vec![
                    Entry::words(c.label.clone()),
                    Entry::words(defence.label.clone()),
                    words(mean(results.iter().filter_map(|r| r.bare_to_target))),
                    words(mean(results.iter().filter_map(|r| r.to_target))),
                    words(mean(results.iter().map(|r| r.bare_score))),
                    words(mean(results.iter().map(|r| r.score))),
                ]);
            }
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Our figures beside another study's, for cells that have the same names in both.
pub(super) fn comparison(results: &Results<'_>, other: &Results<'_>) -> Option<Table> {
    let mut table = Table {
        name: "comparison".into(),
        title: format!("{} beside {}", results.design.experiment.name, other.design.experiment.name),
        head: ["subject", "attack", "defence", "here", "there", "difference"].map(String::from).to_vec(),
        notes: vec!["Shares in %; errors of values in the network's own unit. Not alike: the two are of other settings, another network or another number of images, for all that they have the same names.".into()],
        ..Table::default()
    };
    for &(subject, column, row) in results.cells.keys() {
        let card = &results.design.subjects[subject];
        let labels = (&card.rule.name, &card.columns[column].label, &card.rows[row].label);
        let found = other.cells.keys().find(|(s, c, r)| {
            let card = &other.design.subjects[*s];
            (&card.rule.name, &card.columns[*c].label, &card.rows[*r].label) == labels
        });
        let Some(&(s, c, r)) = found else { continue };
        let (Some(here), Some(there)) = (results.figure(subject, column, row), other.figure(s, c, r)) else {
            continue;
        };
        let theirs = &other.design.subjects[s];
        let same = (&card.columns[column].threat, &card.rows[row])
            == (&theirs.columns[c].threat, &theirs.rows[r])
            && card.model == theirs.model
            && here.images == there.images;
        table.rows.push(vec![
            Entry::words(labels.0.clone()),
            Entry::words(labels.1.clone()),
            Entry::words(labels.2.clone()),
            entry(&here),
            entry(&there),
            Entry {
                aside: if same { String::new() } else { "not alike".into() },
                ..Entry::words(here.unit.change(here.value - there.value))
            },
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}
