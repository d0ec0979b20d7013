//! The rows of a study's tables, in the order of its design: subject, column, row, draw, image.
//!
//! `records` has one row for every image of every cell, `timings` the same rows with what the clock said, `detections` one row for every image,
//! column and detector. docs/studies.md describes each column. `records` and `detections` are the same bytes for any number of threads, shards
//! and interruptions.

use std::path::Path;

use evenkeel::settings::Choice;

use crate::Result;
use crate::experiment::{Cell, Column, Design, Threat};
use crate::key::Key;
use crate::record::{Body, Clock, Entry, Evaluated, FrameWriter, Passes, Tally, Value};
use crate::store::Store;
use evenkeel_data::metric::METRICS;

/// One image of one cell, with everything known of it.
#[derive(Clone, Debug)]
pub struct Row {
    /// The image as it was shown.
    pub shown: Entry,
    /// The defended answer; `None` for the bare network.
    pub answered: Option<Entry>,
}

impl Row {
    /// The row of an image in a cell, if its results are there.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn find(design: &Design, store: &Store, cell: &Cell, id: &str) -> Result<Option<Self>> {
        let work = &design.works[cell.work];
        let Some((shown, _)) = store.get(&work.key, id)? else { return Ok(None) };
        let answered = match cell.answer {
            None => None,
            Some(place) => match store.get(&work.answers[place].key, id)? {
                Some((entry, _)) => Some(entry),
                None => return Ok(None),
            },
        };
        Ok(Some(Self { shown, answered }))
    }

    /// The answer of the bare network for the image shown.
    pub fn bare(&self) -> Option<&Evaluated> {
        match &self.shown.body {
            Body::Shown(shown) => Some(&shown.answer),
            _ => None,
        }
    }

    /// The answer of the cell.
    pub fn answer(&self) -> Option<&Evaluated> {
        match &self.answered {
            None => self.bare(),
            Some(entry) => match &entry.body {
                Body::Answered(answered) => Some(&answered.answer),
                _ => None,
            },
        }
    }
}

/// How far a cell is: images that are there, images there should be.
pub fn progress(design: &Design, store: &Store, cell: &Cell) -> (usize, usize) {
    let images = &design.subjects[cell.subject].images;
    let work = &design.works[cell.work];
    let keys: Vec<&Key> =
        std::iter::once(&work.key).chain(cell.answer.map(|i| &work.answers[i].key)).collect();
    let there = |id: &&String| keys.iter().all(|key| store.has(key, id, None));
    (images.iter().filter(there).count(), images.len())
}

/// What a complete study would have and this store has not: (subject, image, how many results).
pub fn missing(design: &Design, store: &Store) -> Vec<(String, String, usize)> {
    let mut all = Vec::new();
    for (subject, card) in design.subjects.iter().enumerate() {
        let keys = design.keys(subject);
        for id in &card.images {
            let lacking = keys.iter().filter(|key| !store.has(key, id, None)).count();
            if lacking > 0 {
                all.push((card.rule.name.clone(), id.clone(), lacking));
            }
        }
    }
    all
}

/// Writes the three tables of what is there.
///
/// # Errors
/// If the store cannot be read or the folder not written.
pub fn export(design: &Design, store: &Store, folder: &Path) -> Result<usize> {
    let mut records = FrameWriter::new(folder, "records")?;
    let mut timings = FrameWriter::new(folder, "timings")?;
    let mut count = 0;
    for cell in &design.cells {
        for id in &design.subjects[cell.subject].images {
            let Some(row) = Row::find(design, store, cell, id)? else { continue };
            records.push(record(design, cell, &row))?;
            timings.push(timing(design, cell, &row))?;
            count += 1;
        }
    }
    records.finish()?;
    timings.finish()?;
    detections(design, store, folder)?;
    Ok(count)
}

fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

fn whole(value: usize) -> Value {
    Value::Whole(Some(value as i64))
}

/// A distance in 1/255 without the rounding of f32, so that 4 is 4.
fn steps_of_255(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn number(value: f64) -> Value {
    Value::Number(Some(value))
}

/// Who and what: the first columns of every table.
fn identity(design: &Design, cell: &Cell, id: &str) -> Vec<(&'static str, Value)> {
    let card = &design.subjects[cell.subject];
    let row = design.row(cell);
    let (settings, takes_gradients) = (row.spec.settings(), row.spec.takes_gradients());
    let bounded = row.spec.knobs().any(|knob| knob.name == "epsilon");
    let mut all = vec![
        ("study", text(&design.experiment.name)),
        ("subject", text(&card.rule.name)),
        ("image", text(id)),
        ("draw", Value::Whole(Some(cell.draw as i64))),
    ];
    all.extend(threat(design.column(cell)));
    all.extend([
        ("defence", text(&row.label)),
        ("defence_kind", text(row.spec.name())),
        ("defence_epsilon_255", number(if bounded { settings.epsilon_255 } else { 0.0 })),
        ("defence_steps", whole(if takes_gradients { settings.steps } else { 0 })),
        ("schedule", text(if takes_gradients { settings.schedule.name() } else { "" })),
        ("views", text(if takes_gradients { &settings.views.name } else { "" })),
        ("cells", number(settings.cells)),
        ("answer", text(row.answer.name())),
    ]);
    all
}

/// What was done to the image.
fn threat(column: &Column) -> Vec<(&'static str, Value)> {
    let (kind, epsilon, steps, weight, severity) = match &column.threat {
        Threat::Clean => ("clean".to_string(), None, None, None, None),
        Threat::Foreign { .. } => ("foreign".to_string(), None, None, None, None),
        Threat::Corruption { kind, severity } => (kind.clone(), None, None, None, Some(*severity as i64)),
        Threat::Attack(a) => {
            let settings = a.attack.settings();
            let weight = a.attack.entry().reads_objective.then_some(settings.weight);
            (
                a.attack.name().to_string(),
                Some(settings.epsilon_255),
                Some(settings.steps as i64),
                weight,
                None,
            )
        }
    };
    vec![
        ("attack", text(&column.label)),
        ("attack_kind", text(kind)),
        ("attack_epsilon_255", Value::Number(epsilon)),
        ("attack_steps", Value::Whole(steps)),
        ("attack_weight", Value::Number(weight)),
        ("severity", Value::Whole(severity)),
    ]
}

fn counts(list: &[u64]) -> Value {
    Value::Counts(list.iter().map(|v| *v as i64).collect())
}

/// What was said, and how right it is.
fn judged(answer: Option<&Evaluated>) -> Vec<(&'static str, Value)> {
    let (mut class, mut said) = (None, None);
    let none: &[u64] = &[];
    let mut lists = [none, none, none];
    let mut objects = [None; 3];
    match answer.map(|a| &a.tally) {
        Some(Tally::Class { truth, said: s, .. }) => (class, said) = (Some(*truth as i64), Some(*s as i64)),
        Some(Tally::Pixels { right, truth, predicted, .. }) => lists = [right, truth, predicted],
        Some(Tally::Instances(score)) => objects = score.counts().map(|count| Some(count as i64)),
        Some(Tally::Values(_) | Tally::Score(_)) | None => {}
    }
    // an image of which nothing is known has no score
    let scored = answer.filter(|a| a.tally.is_labelled());
    vec![
        ("score", Value::Number(scored.map(|a| a.score))),
        ("loss", Value::Number(answer.map(|a| a.loss))),
        ("score_to_target", Value::Number(answer.and_then(|a| a.to_target))),
        ("class", Value::Whole(class)),
        ("class_said", Value::Whole(said)),
        ("pixels_right", counts(lists[0])),
        ("pixels_true", counts(lists[1])),
        ("pixels_said", counts(lists[2])),
        ("objects_true", Value::Whole(objects[0])),
        ("objects_said", Value::Whole(objects[1])),
        ("objects_right", Value::Whole(objects[2])),
    ]
}

/// Every metric of the table, of the image alone; nothing where it is of another task.
fn measured(answer: Option<&Evaluated>, classes: usize) -> Vec<(&'static str, Value)> {
    let tally = answer.and_then(|a| a.tally.for_metrics(classes));
    let of_answers = METRICS.iter().filter(|metric| metric.figure.is_some());
    of_answers.map(|m| (m.name, Value::Number(tally.as_ref().and_then(|t| m.value(t))))).collect()
}

fn record(design: &Design, cell: &Cell, row: &Row) -> Vec<(&'static str, Value)> {
    let mut all = identity(design, cell, &row.shown.id);
    all.extend(judged(row.answer()));
    all.extend(measured(row.answer(), design.subjects[cell.subject].classes));
    let bare = row.bare();
    all.extend([
        ("bare_score", Value::Number(bare.map(|b| b.score))),
        ("bare_loss", Value::Number(bare.map(|b| b.loss))),
    ]);
    if let Body::Shown(shown) = &row.shown.body {
        all.extend([
            ("attack_linf_255", number(steps_of_255(shown.linf_255))),
            ("attack_l2", number(shown.l2)),
            ("attack_value", Value::Number(shown.value)),
            ("attack_seen_score", Value::Number(shown.seen_score)),
            ("attack_term_gradient", Value::Number(shown.term_gradient)),
        ]);
    }
    let answered = row.answered.as_ref().and_then(|entry| match &entry.body {
        Body::Answered(answered) => Some(answered),
        _ => None,
    });
    all.extend([
        ("defence_linf_255", Value::Number(answered.map(|a| steps_of_255(a.linf_255)))),
        ("defence_l2", Value::Number(answered.map(|a| a.l2))),
        ("objective_before", Value::Number(answered.and_then(|a| a.objective_before))),
        ("objective_after", Value::Number(answered.and_then(|a| a.objective_after))),
    ]);
    let defence = row.answered.as_ref().map_or(Passes::default(), |e| e.passes);
    let attack = row.shown.passes;
    let passes = |v: u64| Value::Whole(Some(v as i64));
    all.extend([
        ("attack_forwards", passes(attack.forwards)),
        ("attack_backwards", passes(attack.backwards)),
        ("attack_forward_pixels", passes(attack.forward_pixels)),
        ("attack_backward_pixels", passes(attack.backward_pixels)),
        ("defence_forwards", passes(defence.forwards)),
        ("defence_backwards", passes(defence.backwards)),
        ("defence_forward_pixels", passes(defence.forward_pixels)),
        ("defence_backward_pixels", passes(defence.backward_pixels)),
        ("model", text(design.subjects[cell.subject].model.to_string())),
        ("pixels", text(row.shown.image.to_string())),
        ("key", text(row.answered.as_ref().map_or(row.shown.key, |e| e.key).to_string())),
    ]);
    all
}

fn timing(design: &Design, cell: &Cell, row: &Row) -> Vec<(&'static str, Value)> {
    let card = &design.subjects[cell.subject];
    let attack = row.shown.clock;
    let defence = row.answered.as_ref().map_or(Clock::default(), |e| e.clock);
    let answer = if row.answered.is_some() { defence.answer_seconds } else { attack.answer_seconds };
    vec![
        ("subject", text(&card.rule.name)),
        ("image", text(&row.shown.id)),
        ("draw", Value::Whole(Some(cell.draw as i64))),
        ("attack", text(&design.column(cell).label)),
        ("defence", text(&design.row(cell).label)),
        ("attack_seconds", number(attack.seconds)),
        ("defence_seconds", number(defence.seconds)),
        ("answer_seconds", number(answer)),
        ("peak_bytes", Value::Whole(Some(attack.peak_bytes.max(defence.peak_bytes) as i64))),
    ]
}

fn detections(design: &Design, store: &Store, folder: &Path) -> Result<()> {
    let mut writer = FrameWriter::new(folder, "detections")?;
    for work in design.works.iter().filter(|w| !w.detections.is_empty()) {
        let card = &design.subjects[work.subject];
        for (key, place) in &work.detections {
            for id in &card.images {
                let Some((entry, _)) = store.get(key, id)? else { continue };
                let Body::Detected(detected) = &entry.body else { continue };
                let lens = work.lens.map_or("", |row| &card.rows[row].label);
                let mut row = vec![
                    ("study", text(&design.experiment.name)),
                    ("subject", text(&card.rule.name)),
                    ("image", text(id)),
                    ("draw", Value::Whole(Some(work.draw as i64))),
                ];
                row.extend(threat(&card.columns[work.column]));
                row.extend([
                    ("attack_through", text(lens)),
                    ("detector", text(&card.detectors[*place].label)),
                    ("score", number(detected.score)),
                    ("true_error", Value::Number(detected.true_error)),
                    ("forwards", Value::Whole(Some(entry.passes.forwards as i64))),
                    ("key", text(key.to_string())),
                ]);
                writer.push(row)?;
            }
        }
    }
    writer.finish()
}
