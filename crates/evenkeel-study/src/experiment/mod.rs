//! An experiment: what to run, as a TOML file says it.
//!
//! The file names subjects (a network and its images), attacks, corruptions, defences and detectors. [`Experiment::parse`] reads it
//! strictly: an unknown key, or one that the entry of its table does not read, is an error that names the file and the key. [`spec`] turns it into
//! single settings, every list of values into one setting each; [`design`] joins those into cells. Nothing but files of views is loaded here.

mod answers;
mod decisive;
pub mod design;
mod foreign;
mod knobs;
pub mod paper;
mod rule;
pub mod spec;
mod stored;
mod sweep;
mod template;
mod validate;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use decisive::plain_objective;
pub(crate) use design::Knowledge;
pub use design::{Answer, Cell, Design, SubjectCard, Work};
pub use foreign::{ForeignRule, ForeignTo};
pub use rule::{AttackRule, CorruptionRule, DefenceRule, DetectorRule, Given, SubjectRule};
pub use spec::{AimedAttack, Column, DefenceRow, DetectorRow, Threat};
pub use sweep::Sweep;
pub use template::{TEMPLATES, Template};
pub(crate) use validate::as_file_name;

use std::path::Path;

use evenkeel::attack::AttackSettings;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};
use validate::unlike;

/// The set of views of this name or file: [`evenkeel::view::ViewSet::named`].
///
/// # Errors
/// If there is neither.
pub fn view_set(name: &str) -> evenkeel::Result<evenkeel::view::ViewSet> {
    evenkeel::view::ViewSet::named(name)
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// What it asks, in a line.
    #[serde(default)]
    pub about: String,
    /// The root of everything random.
    #[serde(default)]
    pub seed: u64,
    /// Draws of the randomness of attacks and defences; every cell runs once for each.
    #[serde(default = "one_draw")]
    pub seeds: Vec<u64>,
    /// At most this many images of every subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The attacks' radius in 1/255, where an attack does not say its own; a defence's may be a multiple of it.
    #[serde(default = "usual_radius")]
    pub epsilon_255: f64,
    /// Whether a defence's objective is measured before and after it, with views of its own.
    #[serde(default = "yes")]
    pub objective: bool,
    /// Networks and their images.
    #[serde(rename = "subject")]
    pub subjects: Vec<SubjectRule>,
    /// Attacks; images as they are always run as well.
    #[serde(default, rename = "attack", skip_serializing_if = "Vec::is_empty")]
    pub attacks: Vec<AttackRule>,
    /// Corruptions.
    #[serde(default, rename = "corruption", skip_serializing_if = "Vec::is_empty")]
    pub corruptions: Vec<CorruptionRule>,
    /// Defences; the bare network is always run as well.
    #[serde(default, rename = "defence", skip_serializing_if = "Vec::is_empty")]
    pub defences: Vec<DefenceRule>,
    /// Detectors.
    #[serde(default, rename = "detector", skip_serializing_if = "Vec::is_empty")]
    pub detectors: Vec<DetectorRule>,
    /// Data sets whose images are to be distinguished from the subjects' own.
    #[serde(default, rename = "foreign", skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<ForeignRule>,
}

fn one_draw() -> Vec<u64> {
    vec![0]
}

fn usual_radius() -> f64 {
    AttackSettings::default().epsilon_255
}

fn yes() -> bool {
    true
}

impl Experiment {
    /// Reads an experiment.
    ///
    /// # Errors
    /// Naming the file, the line and the key.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
        Self::parse(&text, path)
    }

    /// An experiment from its text; `path` is used in sentences.
    ///
    /// # Errors
    /// Naming the file, the line and the key.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let fail = |reason: String| Error::File { path: path.to_owned(), reason };
        let experiment: Self =
            toml::from_str(text).map_err(|e| fail(e.to_string().trim_end().to_string()))?;
        experiment.check().map_err(|e| fail(e.to_string()))?;
        Ok(experiment)
    }

    /// As a TOML file.
    ///
    /// # Errors
    /// If a value has no form in TOML.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|e| Error::Request(format!("the experiment cannot be written: {e}")))
    }

    /// Refuses what makes no sense by itself.
    ///
    /// # Errors
    /// Naming the key.
    pub fn check(&self) -> Result<()> {
        let refuse = |words: String| Err(Error::Request(words));
        if self.subjects.is_empty() {
            return refuse("at least one [[subject]] is needed".into());
        }
        self.validate()?;
        unlike("subjects", self.subjects.iter().map(|s| s.name.as_str()))?;
        unlike("detectors", spec::detectors(self)?.iter().map(|d| d.label.as_str()))?;
        foreign::check(self)?;
        for subject in &self.subjects {
            spec::preparation(subject.size.as_deref())?;
            let rows = spec::defences(self, subject)?;
            unlike("defences", rows.iter().map(|d| d.label.as_str()))?;
            let columns = spec::columns(self, subject)?;
            unlike("attacks or corruptions", columns.iter().map(|c| c.label.as_str()))?;
            for name in columns.iter().flat_map(|c| c.rows.iter().flatten()) {
                if rows.iter().all(|d| d.label != *name) {
                    let labels: Vec<_> = rows.iter().map(|d| d.label.as_str()).collect();
                    return refuse(format!("there is no defence `{name}`; there are {}", labels.join(", ")));
                }
            }
        }
        let named = self.attacks.iter().flat_map(|a| &a.subjects);
        match named.into_iter().find(|n| self.subjects.iter().all(|s| s.name != **n)) {
            Some(name) => refuse(format!("[[attack]] subjects: there is no subject `{name}`")),
            None => Ok(()),
        }
    }
}
