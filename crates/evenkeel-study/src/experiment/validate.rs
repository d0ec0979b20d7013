//! What an experiment may not say: numbers without a meaning, names that cannot be files, things asked for twice. Everything is refused when the file is
//! read, by the name of its key, before a folder is touched.

use super::{AttackRule, DefenceRule, Experiment, SubjectRule};
use crate::report::paper;
use crate::{Error, Result};

/// A rule for a number: what it must be, in words and as a test.
struct Must(&'static str, fn(f64) -> bool);

const NOT_NEGATIVE: Must = Must("a number of at least 0", |v| v.is_finite() && v >= 0.0);
const POSITIVE: Must = Must("a number above 0", |v| v.is_finite() && v > 0.0);
const SHARE: Must = Must("above 0 and at most 1", |v| v > 0.0 && v <= 1.0);
const UP_TO_ONE: Must = Must("from 0 to 1", |v| (0.0..=1.0).contains(&v));

fn hold<'a>(place: &str, key: &str, values: impl IntoIterator<Item = &'a f64>, must: &Must) -> Result<()> {
    match values.into_iter().find(|v| !must.1(**v)) {
        Some(value) => Err(Error::Request(format!("{place}: {key} = {value} must be {}", must.0))),
        None => Ok(()),
    }
}

fn refuse<T>(words: String) -> Result<T> {
    Err(Error::Request(words))
}

/// Refuses names that are empty, that a line of a table cannot hold, or that lead out of a folder.
fn name(what: &str, name: &str) -> Result<()> {
    let bad = name.trim().is_empty() || name.starts_with('.') || name.chars().any(char::is_control);
    match bad {
        true => refuse(format!(
            "{what} `{}` must be words in one line that do not begin with a dot",
            name.escape_default()
        )),
        false => Ok(()),
    }
}

/// A name as a file has it: one that every file system takes.
pub(crate) fn as_file_name(name: &str) -> String {
    let letter = |c: char| if c.is_alphanumeric() || "-_.=".contains(c) { c } else { '_' };
    name.chars().map(letter).collect()
}

/// Refuses two of the same name, or of names that would be the same file.
pub(super) fn unlike<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen: std::collections::BTreeMap<String, &str> = std::collections::BTreeMap::new();
    for name in names {
        match seen.insert(as_file_name(name), name) {
            Some(other) if other == name => {
                return refuse(format!("two {what} are called `{name}`; give one another `name`"));
            }
            Some(other) => {
                return refuse(format!(
                    "the {what} `{other}` and `{name}` would be the same file; give one another `name`"
                ));
            }
            None => {}
        }
    }
    Ok(())
}

impl Experiment {
    /// Refuses what makes no sense whatever the networks and images are.
    pub(super) fn validate(&self) -> Result<()> {
        name("name", &self.name)?;
        if self.name.contains(['/', '\\']) {
            return refuse(format!(
                "name `{}` must not be a path; say where results go with --out",
                self.name
            ));
        }
        if self.seeds.is_empty() || self.limit == Some(0) {
            return refuse("seeds must not be empty and limit must be at least 1".into());
        }
        let mut seeds = self.seeds.clone();
        seeds.sort_unstable();
        if seeds.windows(2).any(|two| two[0] == two[1]) {
            return refuse(format!("seeds = {:?} names a draw twice", self.seeds));
        }
        hold("the experiment", "epsilon_255", [&self.epsilon_255], &NOT_NEGATIVE)?;
        self.subjects.iter().try_for_each(subject)?;
        self.attacks.iter().try_for_each(attack)?;
        self.defences.iter().try_for_each(defence)
    }
}

fn subject(rule: &SubjectRule) -> Result<()> {
    name("a subject's name", &rule.name)?;
    let place = format!("subject {}", rule.name);
    hold(&place, "epsilon_255", &rule.epsilon_255, &NOT_NEGATIVE)?;
    for (key, value) in [("limit", rule.limit), ("every", rule.every), ("classes", rule.classes)] {
        if value == Some(0) {
            return refuse(format!("{place}: {key} must be at least 1"));
        }
    }
    match &rule.paper {
        Some(words) if paper::SETTINGS.iter().all(|s| s.name != words) => {
            let names: Vec<&str> = paper::SETTINGS.iter().map(|s| s.name).collect();
            refuse(format!("{place}: paper = `{words}` is not one of {}", names.join(", ")))
        }
        _ => Ok(()),
    }
}

fn attack(rule: &AttackRule) -> Result<()> {
    let own = rule.name.as_deref().unwrap_or(&rule.kind);
    name("an attack's name", own)?;
    let place = format!("attack {own}");
    if rule.restarts == 0 || rule.targets == 0 || rule.steps.0.contains(&0) || rule.draws.0.contains(&0) {
        return refuse(format!("{place}: steps, restarts, draws and targets must be at least 1"));
    }
    hold(&place, "epsilon_255", rule.epsilon_255.iter().flat_map(|s| &s.0), &NOT_NEGATIVE)?;
    hold(&place, "step_255", &rule.step_255, &POSITIVE)?;
    hold(&place, "weight", &rule.weight.0, &NOT_NEGATIVE)?;
    hold(&place, "momentum", [&rule.momentum], &UP_TO_ONE)?;
    hold(&place, "confidence", &rule.confidence, &NOT_NEGATIVE)?;
    hold(&place, "sharpness", &rule.sharpness.0, &POSITIVE)
}

fn defence(rule: &DefenceRule) -> Result<()> {
    let own = rule.name.as_deref().unwrap_or(&rule.kind);
    name("a defence's name", own)?;
    let place = format!("defence {own}");
    if rule.steps.0.contains(&0) {
        return refuse(format!("{place}: steps must be at least 1; the defence without steps is `random`"));
    }
    hold(&place, "epsilon_ratio", &rule.epsilon_ratio.0, &NOT_NEGATIVE)?;
    hold(&place, "epsilon_255", rule.epsilon_255.iter().flat_map(|s| &s.0), &NOT_NEGATIVE)?;
    hold(&place, "step_255", &rule.step_255, &POSITIVE)?;
    hold(&place, "cells", &rule.cells.0, &SHARE)
}
