//! What an experiment may not say: numbers without a meaning, names that cannot be files, things asked for twice. Everything is refused when the file is
//! read, by the name of its key, before a folder is touched. What knobs accept is said by the method's tables.

use super::{DefenceRule, Experiment, SubjectRule, paper};
use crate::{Error, Result};

/// Refuses numbers that are negative or none.
fn not_negative<'a>(place: &str, key: &str, values: impl IntoIterator<Item = &'a f64>) -> Result<()> {
    match values.into_iter().find(|v| !(v.is_finite() && **v >= 0.0)) {
        Some(value) => refuse(format!("{place}: {key} = {value} must be a number of at least 0")),
        None => Ok(()),
    }
}

fn refuse<T>(words: String) -> Result<T> {
    Err(Error::Request(words))
}

/// Refuses names that are empty, that a line of a table cannot hold, or that lead out of a folder.
pub(super) fn name(what: &str, name: &str) -> Result<()> {
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
        not_negative("the experiment", "epsilon_255", [&self.epsilon_255])?;
        self.subjects.iter().try_for_each(subject)?;
        self.attacks.iter().try_for_each(|rule| name("an attack's name", rule.label()))?;
        self.defences.iter().try_for_each(|rule| name("a defence's name", rule.label()))?;
        self.detectors.iter().try_for_each(|rule| name("a detector's name", rule.label()))?;
        self.defences.iter().try_for_each(defence)
    }
}

/// Refuses counts of nothing.
pub(super) fn at_least_one_of(place: &str, counts: [(&str, Option<usize>); 3]) -> Result<()> {
    match counts.iter().find(|(_, value)| *value == Some(0)) {
        Some((key, _)) => refuse(format!("{place}: {key} must be at least 1")),
        None => Ok(()),
    }
}

fn subject(rule: &SubjectRule) -> Result<()> {
    name("a subject's name", &rule.name)?;
    let place = format!("subject {}", rule.name);
    not_negative(&place, "epsilon_255", &rule.epsilon_255)?;
    at_least_one_of(&place, [("limit", rule.limit), ("every", rule.every), ("classes", rule.classes)])?;
    match &rule.paper {
        Some(words) if paper::SETTINGS.iter().all(|s| s.name != words) => {
            let names: Vec<&str> = paper::SETTINGS.iter().map(|s| s.name).collect();
            refuse(format!("{place}: paper = `{words}` is not one of {}", names.join(", ")))
        }
        _ => Ok(()),
    }
}

fn defence(rule: &DefenceRule) -> Result<()> {
    not_negative(
        &format!("defence {}", rule.label()),
        "epsilon_ratio",
        rule.epsilon_ratio.iter().flat_map(|s| &s.0),
    )
}
