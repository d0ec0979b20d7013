//! The tables of an experiment file: subjects, attacks, corruptions, defences, detectors. Most settings may be lists.

use std::path::PathBuf;

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

/// An attack, or several that differ in a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackRule {
    /// The attack.
    pub kind: String,
    /// What reports call it; the kind if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The radius in 1/255; the experiment's if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_255: Option<Sweep<f64>>,
    /// `linf` or `l2`.
    #[serde(default)]
    pub norm: NormName,
    /// Steps; queries for `square`.
    #[serde(default = "twenty")]
    pub steps: Sweep<usize>,
    /// Size of a step in 1/255; 1 if left out (L2: an eighth of the radius).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_255: Option<f64>,
    /// Random starts.
    #[serde(default = "once")]
    pub restarts: usize,
    /// Weight of the adaptive attack's second term.
    #[serde(default = "thousand")]
    pub weight: Sweep<f64>,
    /// Draws of the defence's randomness for `bpda-eot` and `unrolled-eot`.
    #[serde(default = "twenty")]
    pub draws: Sweep<usize>,
    /// Steps of APGD on the bare network that an attack through the defence starts from.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warm_steps: usize,
    /// How much of the past `mim` keeps.
    #[serde(default = "half")]
    pub momentum: f64,
    /// The margin beyond which `cw` asks for no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Classes that `apgd-t` aims at.
    #[serde(default = "nine")]
    pub targets: usize,
    /// How sharp the tanh is that stands for a sign in `unrolled`.
    #[serde(default = "unit")]
    pub sharpness: Sweep<f64>,
    /// What the attacker wants said: `permuted`, or a class number.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "words_or_number")]
    pub target: Option<String>,
    /// The subjects it is for; all if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "at_least_one")]
    pub subjects: Vec<String>,
    /// The defences it meets, by name; all if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "at_least_one")]
    pub defences: Vec<String>,
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

/// What is written only where it is asked for, so that the keys of results without it stay as they were.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(super) fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn once() -> usize {
    1
}

fn twenty() -> Sweep<usize> {
    Sweep::one(20)
}

fn thousand() -> Sweep<f64> {
    Sweep::one(1000.0)
}

fn half() -> f64 {
    0.5
}

fn nine() -> usize {
    9
}

fn unit() -> Sweep<f64> {
    Sweep::one(1.0)
}

/// How distance is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormName {
    /// The largest change of any value.
    #[default]
    Linf,
    /// The root of the sum of squares.
    L2,
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
#[serde(deny_unknown_fields)]
pub struct DefenceRule {
    /// The defence: `none`, `random`, `rotation`, `contrastive`, `invariance` or `equivariance`.
    pub kind: String,
    /// What reports call it; the kind if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its radius as a multiple of the experiment's.
    #[serde(default = "one_and_a_half")]
    pub epsilon_ratio: Sweep<f64>,
    /// Its radius in 1/255, instead of the ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_255: Option<Sweep<f64>>,
    /// `linf` or `l2`.
    #[serde(default)]
    pub norm: NormName,
    /// Gradients.
    #[serde(default = "twenty")]
    pub steps: Sweep<usize>,
    /// How they are used (see `evenkeel predict --help`); the default schedule if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Sweep<String>>,
    /// Size of a step in 1/255; the schedule's own if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_255: Option<f64>,
    /// One of [`evenkeel::view::view_sets`], or a TOML file of views.
    #[serde(default = "standard_views")]
    pub views: Sweep<String>,
    /// Which views are compared.
    #[serde(default)]
    pub pairing: PairingName,
    /// Share of feature cells that take part.
    #[serde(default = "unit")]
    pub cells: Sweep<f64>,
}

fn one_and_a_half() -> Sweep<f64> {
    Sweep::one(1.5)
}

fn standard_views() -> Sweep<String> {
    Sweep::one("standard".into())
}

/// Which views are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairingName {
    /// Each view with the image.
    #[default]
    Anchor,
    /// Every two.
    AllPairs,
}

/// A detector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectorRule {
    /// The score: `variance`, `variance-onehot`, `equivariance`, `invariance`, `rotation`, `contrastive` or `error-estimate`.
    pub kind: String,
    /// What reports call it; the kind if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The views, as for defences.
    #[serde(default = "standard_name")]
    pub views: String,
}

fn standard_name() -> String {
    "standard".into()
}
