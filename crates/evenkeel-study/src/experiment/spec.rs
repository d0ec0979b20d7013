//! Single settings: what an experiment's tables come to once every list of values is taken apart.
//!
//! A [`Column`] is what is done to an image (nothing, a corruption, an attack); a [`DefenceSpec`] is a row. Labels name the values that a list
//! varied. What decides a result, and nothing else, is in [`AttackSpec::canonical`] and [`DefenceSpec::canonical`]: keys are made of
//! those, so that a setting that changes nothing reruns nothing.

use evenkeel::attack::{Attack, AttackSettings};
use evenkeel::budget::{Budget, Norm};
use evenkeel::corrupt::{CORRUPTIONS, Corruption};
use evenkeel::defence::DEFENCES;
use evenkeel::detect::SCORES;
use serde::{Deserialize, Serialize};

use super::{AttackRule, DefenceRule, Experiment, NormName, PairingName, SubjectRule, view_set};
use crate::dataset::Preparation;
use crate::{Error, Result};

/// What is done to an image before anybody looks at it.
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
    Attack(AttackSpec),
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

/// One attack with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttackSpec {
    /// The attack.
    pub kind: String,
    /// The radius in 1/255.
    pub epsilon_255: f64,
    /// How distance is measured.
    pub norm: NormName,
    /// Steps.
    pub steps: usize,
    /// Size of a step in 1/255.
    pub step_255: Option<f64>,
    /// Starts.
    pub restarts: usize,
    /// Weight of an adaptive attack's second term.
    pub weight: f64,
    /// Draws that an expectation averages.
    pub draws: usize,
    /// Steps on the bare network before those through the defence.
    #[serde(default, skip_serializing_if = "super::rule::is_zero")]
    pub warm_steps: usize,
    /// What `mim` keeps.
    pub momentum: f64,
    /// The margin that is enough.
    pub confidence: Option<f64>,
    /// Classes that `apgd-t` aims at.
    pub targets: usize,
    /// Sharpness of the stand-in for a sign.
    pub sharpness: f64,
    /// What is wanted said.
    pub target: Option<String>,
}

/// What an attack must know of the defence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: its images serve every defence.
    Nothing,
    /// Its objective.
    Objective,
    /// All of it.
    Defence,
}

impl AttackSpec {
    /// What the attack must know of the defence it meets.
    pub fn needs(&self) -> Needs {
        match self.kind.as_str() {
            "adaptive" | "adaptive-apgd" => Needs::Objective,
            kind if Attack::named(kind).is_ok_and(|a| a.needs_defence) => Needs::Defence,
            _ => Needs::Nothing,
        }
    }

    /// The same attack with every setting that does not matter to it at rest. An attack through no defence is PGD.
    pub fn canonical(&self, through_none: bool) -> Self {
        let mut spec = self.clone();
        if spec.kind == "transfer" || (through_none && self.needs() == Needs::Defence) {
            spec.kind = "pgd".into();
        }
        let kind = spec.kind.as_str();
        let keep = |kinds: &[&str]| kinds.contains(&kind);
        let (weight, draws) = (keep(&["adaptive", "adaptive-apgd"]), keep(&["bpda-eot", "unrolled-eot"]));
        let (momentum, targets) = (keep(&["mim"]), keep(&["apgd-t"]));
        let (sharpness, confidence) = (keep(&["unrolled", "unrolled-eot"]), keep(&["cw", "cw-l2", "square"]));
        spec.weight = if weight { spec.weight } else { 0.0 };
        spec.draws = if draws { spec.draws } else { 0 };
        spec.warm_steps = if spec.needs() == Needs::Defence { spec.warm_steps } else { 0 };
        spec.momentum = if momentum { spec.momentum } else { 0.0 };
        spec.targets = if targets { spec.targets } else { 0 };
        spec.sharpness = if sharpness { spec.sharpness } else { 0.0 };
        spec.confidence = spec.confidence.filter(|_| confidence);
        spec
    }

    /// As the method takes it.
    pub fn settings(&self, seed: u64) -> AttackSettings {
        let plain = AttackSettings::new(budget(self.norm, self.epsilon_255));
        AttackSettings {
            steps: self.steps,
            step_size: self.step_255.map_or(plain.step_size, |s| (s / 255.0) as f32),
            restarts: self.restarts,
            weight: self.weight,
            draws: self.draws,
            warm_steps: self.warm_steps,
            momentum: self.momentum as f32,
            confidence: self.confidence.map_or(plain.confidence, |c| c as f32),
            targets: self.targets,
            sharpness: self.sharpness as f32,
            seed,
            ..plain
        }
    }
}

/// One defence with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DefenceSpec {
    /// What reports call it.
    pub label: String,
    /// The defence.
    pub kind: String,
    /// The radius in 1/255.
    pub epsilon_255: f64,
    /// How distance is measured.
    pub norm: NormName,
    /// Gradients.
    pub steps: usize,
    /// How they are used; the default schedule if `None`.
    pub schedule: Option<String>,
    /// Size of a step in 1/255.
    pub step_255: Option<f64>,
    /// The views by name.
    pub views: String,
    /// Which are compared.
    pub pairing: PairingName,
    /// Share of feature cells.
    pub cells: f64,
}

impl DefenceSpec {
    /// The bare network.
    pub fn none() -> Self {
        Self {
            label: "none".into(),
            kind: "none".into(),
            epsilon_255: 0.0,
            norm: NormName::Linf,
            steps: 0,
            schedule: None,
            step_255: None,
            views: "standard".into(),
            pairing: PairingName::Anchor,
            cells: 1.0,
        }
    }

    /// Whether it climbs an objective.
    pub fn climbs(&self) -> bool {
        !matches!(self.kind.as_str(), "none" | "random")
    }

    /// Everything that decides what it does, and nothing else.
    ///
    /// # Errors
    /// If a file of views cannot be read.
    pub fn canonical(&self) -> Result<serde_json::Value> {
        if self.kind == "none" {
            return Ok(serde_json::json!("none"));
        }
        let climb = match self.climbs() {
            true => serde_json::json!([self.steps, self.schedule(), self.step_255, self.objective()?]),
            false => serde_json::Value::Null,
        };
        Ok(serde_json::json!([self.kind, self.epsilon_255, self.norm, climb]))
    }

    /// What it raises, for an attacker who keeps that high; defences that raise nothing are met with plain equivariance.
    ///
    /// # Errors
    /// If a file of views cannot be read.
    pub fn objective(&self) -> Result<serde_json::Value> {
        let (kind, cells) =
            if self.climbs() { (self.kind.as_str(), self.cells) } else { ("equivariance", 1.0) };
        Ok(match kind {
            "rotation" | "contrastive" => serde_json::json!([kind]),
            _ => serde_json::json!([kind, view_set(&self.views)?, self.pairing, cells]),
        })
    }

    /// The schedule, the default one by its name.
    pub fn schedule(&self) -> &str {
        self.schedule.as_deref().unwrap_or(evenkeel::defence::Schedule::DEFAULT.name())
    }
}

/// One detector with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DetectorSpec {
    /// What reports call it.
    pub label: String,
    /// The score.
    pub kind: String,
    /// The views by name.
    pub views: String,
}

/// The detector that estimates how wrong an answer is.
pub const ERROR_ESTIMATE: &str = "error-estimate";

/// A budget from a radius in 1/255.
pub fn budget(norm: NormName, epsilon_255: f64) -> Budget {
    let norm = match norm {
        NormName::Linf => Norm::Linf,
        NormName::L2 => Norm::L2,
    };
    Budget { norm, radius: (epsilon_255 / 255.0) as f32 }
}

/// The size rule that a subject names.
///
/// # Errors
/// If it is neither `native` nor `WIDTHxHEIGHT`.
pub fn preparation(size: Option<&str>) -> Result<Option<Preparation>> {
    size.map(Preparation::parse).transpose()
}

/// What varies in a label: the name, and the value of every setting that has several.
fn label(name: &str, varied: &[(bool, String)]) -> String {
    let values: Vec<&str> =
        varied.iter().filter(|(many, _)| *many).map(|(_, words)| words.as_str()).collect();
    [&[name], values.as_slice()].concat().join(" ")
}

/// The columns of a subject: clean, attacks in order, corruptions in order.
///
/// # Errors
/// If an attack or corruption is unknown, or a value makes no sense.
pub fn columns(experiment: &Experiment, subject: &SubjectRule) -> Result<Vec<Column>> {
    let mut all = vec![Column { label: "clean".into(), threat: Threat::Clean, rows: None }];
    let epsilon = subject.epsilon_255.unwrap_or(experiment.epsilon_255);
    for rule in &experiment.attacks {
        if rule.subjects.is_empty() || rule.subjects.contains(&subject.name) {
            all.extend(attacks(rule, epsilon)?);
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
                let rows = (!rule.defended).then(|| vec!["none".to_string()]);
                all.push(Column { label: format!("{kind} {severity}"), threat, rows });
            }
        }
    }
    Ok(all)
}

fn attacks(rule: &AttackRule, epsilon: f64) -> Result<Vec<Column>> {
    let attack = Attack::named(&rule.kind)?;
    if rule.target.is_some() && !attack.targeted {
        return Err(Error::Request(format!("attack {}: has no targeted form", rule.kind)));
    }
    if rule.warm_steps > 0 && !attack.needs_defence {
        let words = "looks through no defence, so warm_steps are nothing to it";
        return Err(Error::Request(format!("attack {}: {words}", rule.kind)));
    }
    let radii = rule.epsilon_255.as_ref().map_or(vec![epsilon], |sweep| sweep.0.clone());
    let name = rule.name.as_deref().unwrap_or(&rule.kind);
    let mut all = Vec::new();
    for &epsilon_255 in &radii {
        for &steps in &rule.steps.0 {
            for &weight in &rule.weight.0 {
                for &draws in &rule.draws.0 {
                    for &sharpness in &rule.sharpness.0 {
                        let varied = [
                            (radii.len() > 1, format!("ε={epsilon_255}")),
                            (rule.steps.0.len() > 1, format!("T={steps}")),
                            (rule.weight.0.len() > 1, format!("λ={weight}")),
                            (rule.draws.0.len() > 1, format!("m={draws}")),
                            (rule.sharpness.0.len() > 1, format!("k={sharpness}")),
                        ];
                        let spec = AttackSpec {
                            kind: rule.kind.clone(),
                            epsilon_255,
                            norm: rule.norm,
                            steps,
                            step_255: rule.step_255,
                            restarts: rule.restarts,
                            weight,
                            draws,
                            warm_steps: rule.warm_steps,
                            momentum: rule.momentum,
                            confidence: rule.confidence,
                            targets: rule.targets,
                            sharpness,
                            target: rule.target.clone(),
                        };
                        let rows = (!rule.defences.is_empty()).then(|| rule.defences.clone());
                        all.push(Column { label: label(name, &varied), threat: Threat::Attack(spec), rows });
                    }
                }
            }
        }
    }
    Ok(all)
}

/// The rows of a subject: the bare network, then the defences in order.
///
/// # Errors
/// If a defence, schedule or set of views is unknown.
pub fn defences(experiment: &Experiment, subject: &SubjectRule) -> Result<Vec<DefenceSpec>> {
    let mut all = vec![DefenceSpec::none()];
    let epsilon = subject.epsilon_255.unwrap_or(experiment.epsilon_255);
    for rule in &experiment.defences {
        if !DEFENCES.contains(&rule.kind.as_str()) {
            return Err(Error::Request(format!(
                "defence {}: is not one of {}",
                rule.kind,
                DEFENCES.join(", ")
            )));
        }
        if rule.kind != "none" {
            all.extend(expanded(rule, epsilon)?);
        }
    }
    Ok(all)
}

fn expanded(rule: &DefenceRule, epsilon: f64) -> Result<Vec<DefenceSpec>> {
    let radii: Vec<(f64, String)> = match &rule.epsilon_255 {
        Some(sweep) => sweep.0.iter().map(|e| (*e, format!("ε_v={e}"))).collect(),
        None => rule.epsilon_ratio.0.iter().map(|r| (r * epsilon, format!("ε_v/ε={r}"))).collect(),
    };
    let schedules: Vec<Option<String>> = match &rule.schedule {
        Some(sweep) => sweep.0.iter().cloned().map(Some).collect(),
        None => vec![None],
    };
    for name in schedules.iter().flatten() {
        evenkeel::defence::Schedule::named(name)?;
    }
    let name = rule.name.as_deref().unwrap_or(&rule.kind);
    let mut all = Vec::new();
    for (epsilon_255, radius_words) in &radii {
        for schedule in &schedules {
            for &steps in &rule.steps.0 {
                for views in &rule.views.0 {
                    view_set(views)?;
                    for &cells in &rule.cells.0 {
                        let varied = [
                            (radii.len() > 1, radius_words.clone()),
                            (schedules.len() > 1, schedule.clone().unwrap_or_default()),
                            (rule.steps.0.len() > 1, format!("T={steps}")),
                            (rule.views.0.len() > 1, views.clone()),
                            (rule.cells.0.len() > 1, format!("p={cells}")),
                        ];
                        all.push(DefenceSpec {
                            label: label(name, &varied),
                            kind: rule.kind.clone(),
                            epsilon_255: *epsilon_255,
                            norm: rule.norm,
                            steps,
                            schedule: schedule.clone(),
                            step_255: rule.step_255,
                            views: views.clone(),
                            pairing: rule.pairing,
                            cells,
                        });
                    }
                }
            }
        }
    }
    Ok(all)
}

/// The detectors of an experiment.
///
/// # Errors
/// If one is unknown.
pub fn detectors(experiment: &Experiment) -> Result<Vec<DetectorSpec>> {
    let detector = |rule: &super::DetectorRule| {
        if !SCORES.contains(&rule.kind.as_str()) && rule.kind != ERROR_ESTIMATE {
            let words = format!("is not one of {}, {ERROR_ESTIMATE}", SCORES.join(", "));
            return Err(Error::Request(format!("detector {}: {words}", rule.kind)));
        }
        view_set(&rule.views)?;
        let label = rule.name.clone().unwrap_or_else(|| rule.kind.clone());
        Ok(DetectorSpec { label, kind: rule.kind.clone(), views: rule.views.clone() })
    };
    experiment.detectors.iter().map(detector).collect()
}
