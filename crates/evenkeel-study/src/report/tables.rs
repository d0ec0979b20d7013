//! The tables of a subject: scores in the paper's layout, corruptions, cost, the objective before and after, nearness to targets.

use super::board::{Board, Result1};
use super::detection::entry;
use super::paper;
use super::table::{Entry, Table};
use crate::experiment::Threat;

/// Rows defences, columns attacks, and the worst case.
pub(super) fn scores(board: &Board<'_>, subject: usize) -> Table {
    let card = &board.design.subjects[subject];
    let columns: Vec<usize> = (0..card.columns.len())
        .filter(|c| !matches!(card.columns[*c].threat, Threat::Corruption { .. }))
        .collect();
    let worst = board.attacks(subject).len() > 1;
    let mut head = vec!["defence".to_string()];
    head.extend(columns.iter().map(|c| card.columns[*c].label.clone()));
    head.extend(worst.then(|| "worst case".to_string()));
    let mut table = Table {
        name: format!("{}-scores", card.rule.name),
        title: format!(
            "{}: {} in %, {}",
            card.rule.name,
            board.metric(subject),
            budget_words(board, subject)
        ),
        head,
        notes: vec!["Beside each figure its 95 % interval, bootstrapped over images.".into()],
        ..Table::default()
    };
    let mut of_paper = false;
    for (row, defence) in card.rows.iter().enumerate() {
        let mut line = vec![Entry::words(defence.label.clone())];
        for &column in &columns {
            let mut cell =
                board.figure(subject, column, row).map_or(Entry::words("–"), |figure| entry(&figure));
            let first = card.rows.iter().position(|r| r.kind == defence.kind) == Some(row);
            if let Some(known) = paper_figure(board, subject, column, row).filter(|_| first) {
                cell.aside = format!("{} paper {known}", cell.aside).trim().to_string();
                of_paper = true;
            }
            line.push(cell);
        }
        if worst {
            let results = board.worst(subject, row);
            let figure = board.figure_of(subject, results.iter().map(|r| (r.id.as_str(), &r.tally)));
            line.push(figure.map_or(Entry::words("–"), |f| entry(&f)));
        }
        table.rows.push(line);
    }
    if worst {
        table.notes.push(
            "Worst case: for each image and draw, the untargeted attack at this radius that left the least, of those run against the defence. It is the honest figure of a \
             defence."
                .into(),
        );
    }
    if of_paper {
        let about = card.rule.paper.as_deref().and_then(|p| paper::SETTINGS.iter().find(|s| s.name == p));
        table.notes.push(format!("Paper: {}.", about.map_or("", |s| s.about)));
    }
    table
}

fn paper_figure(board: &Board<'_>, subject: usize, column: usize, row: usize) -> Option<f64> {
    let card = &board.design.subjects[subject];
    let attack = match &card.columns[column].threat {
        Threat::Clean => "clean",
        Threat::Attack(a) if a.epsilon_255 == card.epsilon_255 && a.target.is_none() => a.kind.as_str(),
        _ => return None,
    };
    paper::figure(card.rule.paper.as_deref()?, attack, &card.rows[row].kind)
}

fn budget_words(board: &Board<'_>, subject: usize) -> String {
    let card = &board.design.subjects[subject];
    let draws = board.design.experiment.seeds.len();
    format!(
        "{} images, {draws} {}, attacks at {}/255 unless said otherwise",
        card.images.len(),
        if draws == 1 { "draw" } else { "draws" },
        card.epsilon_255
    )
}

/// The score under corruptions, if there are any: rows corruptions, columns defences.
pub(super) fn corruptions(board: &Board<'_>, subject: usize) -> Option<Table> {
    let card = &board.design.subjects[subject];
    let columns: Vec<usize> = (0..card.columns.len())
        .filter(|c| matches!(card.columns[*c].threat, Threat::Corruption { .. }))
        .collect();
    let rows: Vec<usize> = (0..card.rows.len())
        .filter(|r| columns.iter().any(|c| !board.results(subject, *c, *r).is_empty()))
        .collect();
    let mut table = Table {
        name: format!("{}-corrupted", card.rule.name),
        title: format!("{}: {} in % on corrupted images", card.rule.name, board.metric(subject)),
        head: std::iter::once("corruption".to_string())
            .chain(rows.iter().map(|r| card.rows[*r].label.clone()))
            .collect(),
        ..Table::default()
    };
    for column in columns {
        let mut line = vec![Entry::words(card.columns[column].label.clone())];
        let cell =
            |row: &usize| board.figure(subject, column, *row).map_or(Entry::words("–"), |f| entry(&f));
        line.extend(rows.iter().map(cell));
        table.rows.push(line);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

/// For times: a machine that was asleep meanwhile does not show.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// What each defence costs on clean images: passes, and seconds as a multiple of one forward pass.
pub(super) fn cost(board: &Board<'_>, subject: usize) -> Option<Table> {
    let card = &board.design.subjects[subject];
    let look = median(board.results(subject, 0, 0).iter().map(|r| r.look_seconds))?;
    let mut table = Table {
        name: format!("{}-cost", card.rule.name),
        title: format!("{}: cost an image", card.rule.name),
        head: ["defence", "forward passes", "pullbacks", "seconds", "× a forward pass", "peak memory"]
            .map(String::from)
            .to_vec(),
        notes: vec![
            "The answer's own pass counts as one. Seconds are medians. Peak memory is the process's, with all its workers, by the end of the unit.".into(),
        ],
        ..Table::default()
    };
    for (row, defence) in card.rows.iter().enumerate() {
        let results = board.results(subject, 0, row);
        let of = |read: &dyn Fn(&Result1) -> f64| mean(results.iter().map(read));
        let (Some(forwards), Some(backwards), Some(seconds)) = (
            of(&|r| 1.0 + r.defence.0.forwards as f64),
            of(&|r| r.defence.0.backwards as f64),
            median(results.iter().map(|r| r.defence.1.seconds + r.look_seconds)),
        ) else {
            continue;
        };
        let peak = results.iter().map(|r| r.defence.1.peak_bytes).max().unwrap_or(0);
        table.rows.push(vec![
            Entry::words(defence.label.clone()),
            Entry::words(format!("{forwards:.0}")),
            Entry::words(format!("{backwards:.0}")),
            Entry::words(format!("{seconds:.3}")),
            Entry::words(format!("{:.1}", seconds / look.max(1e-9))),
            Entry::words(if peak == 0 { "–".into() } else { format!("{:.0} MB", peak as f64 / 1048576.0) }),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The defences' objectives on clean, attacked and restored images.
pub(super) fn objectives(board: &Board<'_>, subject: usize) -> Option<Table> {
    let card = &board.design.subjects[subject];
    let mut table = Table {
        name: format!("{}-objective", card.rule.name),
        title: format!("{}: the defence's objective, mean over images", card.rule.name),
        head: ["defence", "images", "before the defence", "after it"].map(String::from).to_vec(),
        notes: vec!["For equivariance and invariance: the mean cosine of a comparison, with the same views before and after.".into()],
        ..Table::default()
    };
    for (row, defence) in card.rows.iter().enumerate().filter(|(_, d)| d.climbs()) {
        for (column, c) in card.columns.iter().enumerate() {
            let results = board.results(subject, column, row);
            let before = mean(results.iter().filter_map(|r| r.objective).map(|o| o.0));
            let after = mean(results.iter().filter_map(|r| r.objective).map(|o| o.1));
            if let (Some(before), Some(after)) = (before, after) {
                table.rows.push(vec![
                    Entry::words(defence.label.clone()),
                    Entry::words(c.label.clone()),
                    Entry::words(format!("{before:.3}")),
                    Entry::words(format!("{after:.3}")),
                ]);
            }
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// How near answers are to targets, bare and defended.
pub(super) fn targets(board: &Board<'_>, subject: usize) -> Option<Table> {
    let card = &board.design.subjects[subject];
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
            let results = board.results(subject, column, row);
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
pub(super) fn comparison(board: &Board<'_>, other: &Board<'_>) -> Option<Table> {
    let mut table = Table {
        name: "comparison".into(),
        title: format!("{} beside {}, in %", board.design.experiment.name, other.design.experiment.name),
        head: ["subject", "attack", "defence", "here", "there", "difference"].map(String::from).to_vec(),
        ..Table::default()
    };
    for &(subject, column, row) in board.cells.keys() {
        let card = &board.design.subjects[subject];
        let labels = (&card.rule.name, &card.columns[column].label, &card.rows[row].label);
        let found = other.cells.keys().find(|(s, c, r)| {
            let card = &other.design.subjects[*s];
            (&card.rule.name, &card.columns[*c].label, &card.rows[*r].label) == labels
        });
        let Some(&(s, c, r)) = found else { continue };
        let (Some(here), Some(there)) = (board.figure(subject, column, row), other.figure(s, c, r)) else {
            continue;
        };
        table.rows.push(vec![
            Entry::words(labels.0.clone()),
            Entry::words(labels.1.clone()),
            Entry::words(labels.2.clone()),
            entry(&here),
            entry(&there),
            Entry::words(format!("{:+.1}", 100.0 * (here.value - there.value))),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}
