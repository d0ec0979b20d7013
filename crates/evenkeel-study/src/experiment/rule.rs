//! The tables of an experiment file: subjects, attacks, corruptions, defences, detectors.
//!
//! What an attack, a defence or a detector accepts is not said here but by its entry in the method's tables; any knob may be a list. A key that
//! the entry does not read is refused when the file is read (see [`super::knobs`]).

use std::collections::BTreeMap;
use std::path::PathBuf;

use evenkeel::settings::Value;
use serde::{Deserialize, Deserializer, Serialize};

use super::Sweep;

/// A network and its images.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectRule {
    /// What reports call it.
    pub name: String,
    /// An ONNX file with its contract beside it, or `embedded:NAME`.
    pub model: String,
    /// The kind of data set.
    pub data: String,
    /// Where it lies, or what to draw.
    pub path: PathBuf,
    /// The part to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// How many classes there are, where the layout does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// `WIDTHxHEIGHT` or `native`, if not the kind's usual size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Take every n-th sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<usize>,
    /// With a limit: draw the samples at random from this seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subset_seed: Option<u64>,
    /// At most this many images, if fewer than the experiment's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The radius on this subject in 1/255, instead of the experiment's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_255: Option<f64>,
    /// A head for `rotation`, in a safetensors file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation_head: Option<PathBuf>,
    /// A head for `contrastive`, in a safetensors file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrastive_head: Option<PathBuf>,
    /// Other images' embeddings for `contrastive`, in a safetensors file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrastive_bank: Option<PathBuf>,
    /// The setting of the paper that this is, if it is one: its figures are then set beside ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<String>,
}

/// Values for knobs of a table's entry, by a knob's name or its key in files; a list tries each.
pub type Given = BTreeMap<String, Sweep<Value>>;

/// An attack, or several that differ in a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttackRule {
    /// The attack.
    pub kind: String,
    /// What reports call it; the kind if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the attacker wants said: `permuted`, or a class number.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "words_or_number")]
    pub target: Option<String>,
    /// The subjects it is for; all if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "at_least_one")]
    pub subjects: Vec<String>,
    /// The defences it meets, by name; all if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "at_least_one")]
    pub defences: Vec<String>,
    /// Its knobs. The radius is the experiment's if left out.
    #[serde(flatten)]
    pub knobs: Given,
}

/// `target = 3` and `target = "3"` are the same.
fn words_or_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Words(String),
        Number(u64),
    }
    Ok(Some(match Either::deserialize(from)? {
        Either::Words(words) => words,
        Either::Number(number) => number.to_string(),
    }))
}

fn at_least_one<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::deserialize(from)?;
    match names.is_empty() {
        true => Err(serde::de::Error::custom("an empty list asks for nothing; leave the key out for all")),
        false => Ok(names),
    }
}

/// Corruptions at several severities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorruptionRule {
    /// Which; `standard` means the fifteen of ImageNet-C.
    pub kind: Sweep<String>,
    /// From 1 to 5.
    #[serde(default = "middle")]
    pub severity: Sweep<usize>,
    /// Whether the defences are run on corrupted images as well, or only the bare network and the detectors.
    #[serde(default)]
    pub defended: bool,
}

fn middle() -> Sweep<usize> {
    Sweep::one(3)
}

/// A defence, or several that differ in a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DefenceRule {
    /// The defence.
    pub kind: String,
    /// What reports call it; the kind if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its radius as a multiple of the attacks', instead of a radius of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_ratio: Option<Sweep<f64>>,
    /// Its knobs.
    #[serde(flatten)]
    pub knobs: Given,
}

/// A detector, or several that differ in a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DetectorRule {
    /// The score.
    pub kind: String,
    /// What reports call it; the kind if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its knobs.
    #[serde(flatten)]
    pub knobs: Given,
}

macro_rules! labels {
    ($($rule:ty),*) => {$(
        impl $rule {
            /// What reports call it.
            pub fn label(&self) -> &str {
                self.name.as_deref().unwrap_or(&self.kind)
            }
        }
    )*};
}

labels!(AttackRule, DefenceRule, DetectorRule);
