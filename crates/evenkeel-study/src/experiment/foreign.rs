//! Foreign data sets: images that are not of the network's own kind, for detectors to tell from its own.
//!
//! A `[[foreign]]` table names a data set. Its images are brought to the size of the subject's, scored by every detector, and compared with the subject's
//! clean images. They need no truth and are neither attacked nor defended. In a design each pair of subject and foreign data set is a card of its own
//! behind the subjects', with one column and no rows.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::paper;
use super::validate::{at_least_one_of, name, unlike};
use super::{Column, Experiment, SubjectRule, Threat};
use crate::{Error, Result};

/// A data set that is not the network's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignRule {
    /// What reports call it.
    pub name: String,
    /// The kind of data set; `folder` takes any pictures.
    pub data: String,
    /// Where it lies, or what to draw.
    pub path: PathBuf,
    /// The part to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// How many classes there are, where the layout does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// Take every n-th sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<usize>,
    /// With a limit: draw the samples at random from this seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subset_seed: Option<u64>,
    /// At most this many images, if fewer than the experiment's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The subjects it is shown to; all if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// The pair of the paper's table that this is (`cityscapes/coco`: a network of Cityscapes sees COCO), if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<String>,
}

/// Which subject a card's images are foreign to, and what they are called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForeignTo {
    /// The subject's place.
    pub subject: usize,
    /// The data set, as the experiment names it.
    pub rule: ForeignRule,
}

impl ForeignRule {
    /// Whether a subject sees it.
    pub fn is_for(&self, subject: &SubjectRule) -> bool {
        self.subjects.is_empty() || self.subjects.contains(&subject.name)
    }

    /// The only column of its card.
    pub(super) fn column(&self) -> Column {
        let threat = Threat::Foreign { data: self.name.clone() };
        Column { label: format!("foreign {}", self.name), threat, rows: Some(Vec::new()) }
    }
}

/// Refuses foreign data sets that make no sense.
pub(super) fn check(experiment: &Experiment) -> Result<()> {
    let refuse = |rule: &ForeignRule, words: String| {
        Err(Error::Request(format!("foreign data {}: {words}", rule.name)))
    };
    unlike("foreign data sets", experiment.foreign.iter().map(|f| f.name.as_str()))?;
    for rule in &experiment.foreign {
        name("a foreign data set's name", &rule.name)?;
        let counts = [("limit", rule.limit), ("every", rule.every), ("classes", rule.classes)];
        at_least_one_of(&format!("foreign data {}", rule.name), counts)?;
        if let Some(other) = rule.subjects.iter().find(|n| experiment.subjects.iter().all(|s| s.name != **n))
        {
            return refuse(rule, format!("there is no subject `{other}`"));
        }
        if let Some(words) = rule.paper.as_ref().filter(|pair| paper::foreign(pair).is_none()) {
            let pairs: Vec<String> = paper::FOREIGN.iter().map(|f| f.pair()).collect();
            return refuse(rule, format!("paper = `{words}` is not one of {}", pairs.join(", ")));
        }
    }
    match !experiment.foreign.is_empty() && experiment.detectors.is_empty() {
        true => Err(Error::Request("[[foreign]] needs at least one [[detector]] to score its images".into())),
        false => Ok(()),
    }
}
