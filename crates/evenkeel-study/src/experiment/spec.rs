//! Single settings: what an experiment's tables come to once every list of values is taken apart.
//!
//! A [`Column`] is what is done to an image (nothing, a corruption, an attack); a [`DefenceRow`] is a row. Labels name the values that a list varied.

use evenkeel::answer::AnswerSpec;
use evenkeel::attack::Attack;
use evenkeel::corrupt::{CORRUPTIONS, Corruption};
use evenkeel::defence::DefenceSpec;
use evenkeel::detect::DetectorSpec;
use evenkeel::settings::{Knobs, Value};
use serde::{Deserialize, Serialize};

use super::answers;
use super::knobs::{RADIUS, expanded};
use super::stored::Object;
use super::{AttackRule, DefenceRule, DetectorRule, Experiment, SubjectRule, Sweep};
use crate::{Error, Result};
use evenkeel_data::dataset::Preparation;

/// What is done to an image before it is defended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Threat {
    /// Nothing.
    Clean,
    /// A corruption.
    Corruption {
        /// Which.
        kind: String,
        /// From 1 to 5.
        severity: usize,
    },
    /// An attack.
    Attack(AimedAttack),
    /// Nothing, but the image is of a data set that is not the network's own.
    Foreign {
        /// The data set, by its name in the experiment.
        data: String,
    },
}

/// One column of a study's tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// What reports call it.
    pub label: String,
    /// What is done to the image.
    pub threat: Threat,
    /// The rows it meets, by label; all if `None`.
    pub rows: Option<Vec<String>>,
}

/// One attack with its settings and its target. Its seed is set for each image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Object", try_from = "Object")]
pub struct AimedAttack {
    /// The attack.
    pub attack: Attack,
    /// What is wanted said: `permuted`, or a class number.
    pub target: Option<String>,
}

impl AimedAttack {
    /// Whether its images depend on the defence it meets; those of the others serve every defence.
    pub fn knows_defence(&self) -> bool {
        self.attack.aims_through() || self.attack.entry().reads_objective
    }
}

/// One defence with its settings, and how the answer is read off what it leaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Object", try_from = "Object")]
pub struct DefenceRow {
    /// What reports call it.
    pub label: String,
    /// The defence.
    pub spec: DefenceSpec,
    /// The answer.
    pub answer: AnswerSpec,
}

/// The defence that does nothing.
const NONE: &str = "none";

impl DefenceRow {
    /// The bare network.
    ///
    /// # Errors
    /// Never, as long as the table has it.
    pub fn none() -> Result<Self> {
        Ok(Self { label: NONE.into(), spec: DefenceSpec::named(NONE)?, answer: AnswerSpec::plain() })
    }

    /// Whether it is the bare network.
    pub fn is_none(&self) -> bool {
        self.spec.name() == NONE && self.answer.is_plain()
    }
}

/// One detector with its settings. The seed of its views is the experiment's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Object", try_from = "Object")]
pub struct DetectorRow {
    /// What reports call it.
    pub label: String,
    /// The detector.
    pub spec: DetectorSpec,
}

/// The size rule that a subject names.
///
/// # Errors
/// If it is neither `native` nor `WIDTHxHEIGHT`.
pub fn preparation(size: Option<&str>) -> Result<Option<Preparation>> {
    Ok(size.map(Preparation::parse).transpose()?)
}

/// What varies in a label: the name, and the value of every setting that has several.
fn label(name: &str, varied: &[String]) -> String {
    std::iter::once(name).chain(varied.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

/// What goes wrong with a rule, by the rule's own name where that is not its entry's.
fn named<T>(rule: Option<&String>, found: Result<T>) -> Result<T> {
    match rule {
        Some(name) => found.map_err(|e| Error::Request(format!("{name}: {e}"))),
        None => found,
    }
}

/// The columns of a subject: clean, attacks in order, corruptions in order.
///
/// # Errors
/// If an attack or corruption is unknown, or a value makes no sense.
pub fn columns(experiment: &Experiment, subject: &SubjectRule) -> Result<Vec<Column>> {
    let mut all = vec![Column { label: "clean".into(), threat: Threat::Clean, rows: None }];
    let epsilon_255 = subject.epsilon_255.unwrap_or(experiment.epsilon_255);
    for rule in &experiment.attacks {
        if rule.subjects.is_empty() || rule.subjects.contains(&subject.name) {
            all.extend(named(rule.name.as_ref(), attacks(rule, epsilon_255))?);
        }
    }
    for rule in &experiment.corruptions {
        let kinds = rule.kind.0.iter().flat_map(|kind| match kind.as_str() {
            "standard" => CORRUPTIONS.iter().filter(|c| c.standard).map(|c| c.name.to_string()).collect(),
            other => vec![other.to_string()],
        });
        for kind in kinds {
            Corruption::named(&kind)?;
            for &severity in &rule.severity.0 {
                if !(1..=5).contains(&severity) {
                    return Err(Error::Request(format!(
                        "corruption {kind}: severity {severity} is not 1 to 5"
                    )));
                }
                let threat = Threat::Corruption { kind: kind.clone(), severity };
                let rows = (!rule.defended).then(|| vec![NONE.to_string()]);
                all.push(Column { label: format!("{kind} {severity}"), threat, rows });
            }
        }
    }
    Ok(all)
}

fn attacks(rule: &AttackRule, epsilon_255: f64) -> Result<Vec<Column>> {
    let base = Attack::named(&rule.kind)?.with(RADIUS, epsilon_255)?;
    let refuse = |words: &str| Err(Error::Request(format!("attack {}: {words}", rule.kind)));
    if rule.target.is_some() && !base.entry().targeted {
        return refuse("has no targeted form");
    }
    let mut all = Vec::new();
    for (attack, varied) in expanded(&base, &rule.knobs)? {
        if attack.settings().evade > 0.0 {
            return refuse("`evade` needs an alarm in front of the defence, which a study does not have");
        }
        let rows = (!rule.defences.is_empty()).then(|| rule.defences.clone());
        let threat = Threat::Attack(AimedAttack { attack, target: rule.target.clone() });
        all.push(Column { label: label(rule.label(), &varied), threat, rows });
    }
    Ok(all)
}

/// The rows of a subject: the bare network, then the defences in order.
///
/// # Errors
/// If a defence is unknown, or a value makes no sense.
pub fn defences(experiment: &Experiment, subject: &SubjectRule) -> Result<Vec<DefenceRow>> {
    let mut all = vec![DefenceRow::none()?];
    let epsilon_255 = subject.epsilon_255.unwrap_or(experiment.epsilon_255);
    for rule in &experiment.defences {
        let rows = named(rule.name.as_ref(), defence_rows(rule, epsilon_255))?;
        all.extend(rows.into_iter().filter(|row| !row.is_none()));
    }
    Ok(all)
}

fn defence_rows(rule: &DefenceRule, epsilon_255: f64) -> Result<Vec<DefenceRow>> {
    let base = DefenceSpec::named(&rule.kind)?;
    let (own, answers) = (answers::of_defence(&rule.knobs), answers::of_rule(rule)?);
    let mut all = Vec::new();
    for (base, radius) in radii(rule, base, epsilon_255)? {
        for (spec, varied) in expanded(&base, &own)? {
            for answer in &answers {
                let words = radius.iter().chain(&varied).chain(&answer.varied).cloned();
                let label = label(&answer.label(rule), &words.collect::<Vec<String>>());
                all.push(DefenceRow { label, spec: spec.clone(), answer: answer.spec.clone() });
            }
        }
    }
    Ok(all)
}

/// The defence with each radius that is a multiple of the attacks', and the words for it; as it is if none is.
fn radii(
    rule: &DefenceRule,
    base: DefenceSpec,
    epsilon_255: f64,
) -> Result<Vec<(DefenceSpec, Option<String>)>> {
    let Some(Sweep(ratios)) = &rule.epsilon_ratio else {
        return Ok(vec![(base, None)]);
    };
    let knobs = evenkeel::defence::DefenceSettings::knobs();
    let own = knobs.iter().filter(|knob| knob.key == RADIUS).flat_map(|knob| [knob.key, knob.name]);
    if let Some(both) = own.into_iter().find(|name| rule.knobs.contains_key(*name)) {
        let words = format!("epsilon_ratio and {both} both say its radius; leave one out");
        return Err(Error::Request(format!("defence {}: {words}", rule.kind)));
    }
    let one = |ratio: &f64| {
        let spec = base.clone().with(RADIUS, Value::Number(ratio * epsilon_255))?;
        Ok((spec, (ratios.len() > 1).then(|| format!("ε_v/ε={ratio}"))))
    };
    ratios.iter().map(one).collect()
}

/// The detectors of an experiment.
///
/// # Errors
/// If one is unknown, or a value makes no sense.
pub fn detectors(experiment: &Experiment) -> Result<Vec<DetectorRow>> {
    let rows = |rule: &DetectorRule| -> Result<Vec<DetectorRow>> {
        let all = expanded(&DetectorSpec::named(&rule.kind)?, &rule.knobs)?;
        let row = |(spec, varied): (DetectorSpec, Vec<String>)| DetectorRow {
            label: label(rule.label(), &varied),
            spec,
        };
        Ok(all.into_iter().map(row).collect())
    };
    let mut all = Vec::new();
    for rule in &experiment.detectors {
        all.extend(named(rule.name.as_ref(), rows(rule))?);
    }
    Ok(all)
}
