//! The answer of a row: the keys `answer` and `answer_…` of a `[[defence]]`, which say how the answer is read off what the defence leaves.
//!
//! `answer` may be a list; a key `answer_KNOB` goes to those of it that read the knob, and one must. Invariant: a rule without such keys asks for the
//! network's own answer.

use evenkeel::answer::{AnswerKind, AnswerSpec};
use evenkeel::settings::Value;

use super::knobs::expanded;
use super::rule::Given;
use super::{DefenceRule, Sweep};
use crate::{Error, Result};

/// The key of the answer's name, and with an underscore the prefix of its knobs.
pub(super) const ANSWER: &str = "answer";

/// The knob that a key of an answer names.
pub(super) fn knob(key: &str) -> Option<&str> {
    key.strip_prefix(ANSWER)?.strip_prefix('_')
}

/// Whether a key is about the answer.
pub(super) fn is_answers(key: &str) -> bool {
    key == ANSWER || knob(key).is_some()
}

/// The knobs of a rule that are its defence's own.
pub(super) fn of_defence(given: &Given) -> Given {
    given.iter().filter(|(key, _)| !is_answers(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// An answer, and the words that tell it from the others of its rule.
pub(super) struct RuleAnswer {
    pub(super) spec: AnswerSpec,
    pub(super) varied: Vec<String>,
    /// Whether its rule names it, so that its name tells nothing more.
    pub(super) only: bool,
}

impl RuleAnswer {
    /// The name of a row with this answer.
    pub(super) fn label(&self, rule: &DefenceRule) -> String {
        match (self.spec.is_plain(), rule.name.as_ref().filter(|_| self.only), rule.kind.as_str()) {
            (true, ..) => rule.label().to_string(),
            (false, Some(name), _) => name.clone(),
            (false, None, "none") if rule.name.is_none() => self.spec.name().to_string(),
            (false, None, _) => format!("{} + {}", rule.label(), self.spec.name()),
        }
    }
}

/// The answers that a rule asks for.
///
/// # Errors
/// If one is unknown, or a key is read by none of them.
pub(super) fn of_rule(rule: &DefenceRule) -> Result<Vec<RuleAnswer>> {
    let given: Vec<(&String, &str, &Sweep<Value>)> =
        rule.knobs.iter().filter_map(|(key, values)| Some((key, knob(key)?, values))).collect();
    let plain = Sweep::one(Value::from("plain"));
    let named = rule.knobs.get(ANSWER).unwrap_or(&plain);
    let specs =
        named.0.iter().map(|name| Ok(AnswerSpec::named(&name.to_string())?)).collect::<Result<Vec<_>>>()?;
    let reads = |spec: &AnswerSpec, name: &str| spec.knobs().any(|k| k.is_called(name));
    if let Some((key, _, _)) = given.iter().find(|(_, name, _)| specs.iter().all(|spec| !reads(spec, name))) {
        let names: Vec<&str> = specs.iter().map(|spec| spec.name()).collect();
        let own: Vec<String> =
            specs.iter().flat_map(|s| s.knobs().map(|k| format!("answer_{}", k.name))).collect();
        let own = if own.is_empty() { "nothing".to_string() } else { own.join(", ") };
        let words = format!("answer {} does not read `{key}`; it reads {own}", names.join(", "));
        return Err(Error::Request(format!("defence {}: {words}", rule.label())));
    }
    let mut all = Vec::new();
    for spec in &specs {
        let own: Given = given
            .iter()
            .filter(|(_, name, _)| reads(spec, name))
            .map(|(_, name, values)| (name.to_string(), (*values).clone()))
            .collect();
        let only = specs.len() == 1;
        let answers = expanded::<AnswerKind>(spec, &own)?.into_iter();
        all.extend(answers.map(|(spec, varied)| RuleAnswer { spec, varied, only }));
    }
    Ok(all)
}
