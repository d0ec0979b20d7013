//! What a request chooses: defence, answer, seed and their knobs, checked by the tables of settings and by what the server allows.
//!
//! A knob of the defence goes by its own name (`epsilon`, `steps`), one of the answer with `answer_` in front, as on the command line. A value that would make
//! the server read a file is refused: views go by the name of a set.

use std::time::Duration;

use evenkeel::answer::{AnswerKind, AnswerSpec};
use evenkeel::defence::{DefenceKind, DefenceSpec};
use evenkeel::settings::{Entry, Kind, Spec, Value};
use evenkeel::view::view_sets;
use serde_json::Value as Json;

use crate::error::{Error, Result};
use crate::protocol::Parameters;

/// What answers are read off, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// The defence, if any.
    pub defence: Option<DefenceSpec>,
    /// The answer, if it is another than the network's own.
    pub answer: Option<AnswerSpec>,
    /// The seed of everything random.
    pub seed: u64,
    /// Whether the image is defended even if it raises no alarm.
    pub always: bool,
    /// How long the client waits, if that is less than the server's own limit.
    pub timeout: Option<Duration>,
}

/// What a request may choose from.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// What is done if the request does not say.
    pub default: Choice,
    /// Whether the request may choose defence, answer and their knobs.
    pub free: bool,
    /// The largest whole number that a knob may be set to.
    pub most: u64,
}

/// Parameters that are not knobs.
pub(crate) const FIXED: [&str; 5] = ["defence", "answer", "seed", "always", "timeout"];
/// Those that are the client's under a policy as well.
const LEFT_BY_POLICIES: [&str; 3] = ["seed", "always", "timeout"];
const ANSWER_PREFIX: &str = "answer_";

impl Choice {
    /// What a request's parameters ask for.
    ///
    /// # Errors
    /// Naming the parameter that is unknown, out of range, or not left to the client.
    pub fn read(parameters: &Parameters, allowed: &Allowed) -> Result<Self> {
        let mut choice = allowed.default.clone();
        let chosen = parameters.keys().find(|name| !LEFT_BY_POLICIES.contains(&name.as_str()));
        if let Some(name) = chosen.filter(|_| !allowed.free) {
            let reason = "is decided by the policy of this server";
            return Err(Error::malformed(format!("parameter {name}"), reason));
        }
        if let Some(name) = parameters.get("defence") {
            choice.defence = Some(DefenceSpec::named(text("defence", name)?)?);
        }
        if let Some(name) = parameters.get("answer") {
            choice.answer = Some(AnswerSpec::named(text("answer", name)?)?);
        }
        for (name, value) in parameters {
            match name.as_str() {
                "defence" | "answer" => {}
                "seed" => choice.seed = whole(name, value)?,
                // as in the protocol's other servers: microseconds, and 0 is no limit
                "timeout" => {
                    choice.timeout = Some(whole(name, value)?).filter(|n| *n > 0).map(Duration::from_micros);
                }
                "always" => choice.always = switch(name, value)?,
                _ => match name.strip_prefix(ANSWER_PREFIX) {
                    Some(knob) => set(&mut choice.answer, name, knob, value, allowed.most)?,
                    None => set(&mut choice.defence, name, name, value, allowed.most)?,
                },
            }
        }
        choice.defence.iter().try_for_each(Spec::check)?;
        choice.answer.iter().try_for_each(Spec::check)?;
        Ok(choice)
    }

    /// Whether an image takes one pass of the network.
    pub fn is_plain(&self) -> bool {
        self.defence.as_ref().is_none_or(|spec| spec.name() == "none")
            && self.answer.as_ref().is_none_or(AnswerSpec::is_plain)
    }
}

fn text<'v>(name: &str, value: &'v Json) -> Result<&'v str> {
    value
        .as_str()
        .ok_or_else(|| Error::malformed(format!("parameter {name}"), format!("{value} is not a name")))
}

fn whole(name: &str, value: &Json) -> Result<u64> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.ok_or_else(|| {
        Error::malformed(format!("parameter {name}"), format!("{value} is not a whole number from 0 on"))
    })
}

fn switch(name: &str, value: &Json) -> Result<bool> {
    let known = value.as_bool().or_else(|| value.as_str()?.parse().ok());
    known.ok_or_else(|| {
        Error::malformed(format!("parameter {name}"), format!("{value} is neither true nor false"))
    })
}

/// Sets a knob of an entry that was chosen.
fn set<E: Entry>(spec: &mut Option<Spec<E>>, name: &str, knob: &str, value: &Json, most: u64) -> Result<()> {
    let place = || format!("parameter {name}");
    let Some(spec) = spec else {
        let known = E::table().iter().any(|entry| entry.reads().contains(&knob));
        let reason = match known {
            true => format!("has no effect without {}", E::KIND),
            false => format!("is unknown; there are {}, the knobs of the {}", FIXED.join(", "), E::KIND),
        };
        return Err(Error::malformed(place(), reason));
    };
    let value = match value {
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => match number.as_u64() {
            Some(whole) => Value::from(whole),
            None => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        _ => return Err(Error::malformed(place(), "is neither a number, nor text, nor true or false")),
    };
    let kind = spec.knobs().find(|k| k.is_called(knob)).map(|k| k.kind);
    match kind {
        Some(Kind::Text) if !view_sets().iter().any(|(set, _)| value == Value::from(set.as_str())) => {
            let names: Vec<_> = view_sets().into_iter().map(|(set, _)| set).collect();
            return Err(Error::malformed(place(), format!("{value} is not one of {}", names.join(", "))));
        }
        _ => spec.assign(knob, &value)?,
    }
    let set = spec.knobs().find(|k| k.is_called(knob)).and_then(|k| k.get(spec.settings()));
    match (kind, set) {
        (Some(Kind::Whole(_)), Some(Value::Whole(whole))) if whole > most && !knob.ends_with("seed") => {
            Err(Error::malformed(place(), format!("{whole} is more than the {most} that this server allows")))
        }
        _ => Ok(()),
    }
}

/// The knobs that a request may set, for metadata and the page: one list for each entry of a table.
pub(crate) fn described<E: Entry>(most: u64) -> Json {
    let entry = |entry: &'static E| {
        let defaults = entry.defaults();
        let knob = |knob: &evenkeel::settings::Knob<E::Settings>| {
            let (least, high, choices) = match knob.kind {
                Kind::Whole(least) if knob.name.ends_with("seed") => (Some(least as f64), None, None),
                Kind::Whole(least) => (Some(least as f64), Some(most as f64), None),
                Kind::Level(least, high) => (Some(least as f64), Some(high as f64), None),
                Kind::Number(least, high) | Kind::Above(least, high) => (Some(least), Some(high), None),
                Kind::Radius => (Some(0.0), Some(1.0), None),
                Kind::Choice(names) => (None, None, Some(names().into_iter().map(String::from).collect())),
                Kind::Text => {
                    (None, None, Some(view_sets().into_iter().map(|(set, _)| set).collect::<Vec<_>>()))
                }
                Kind::Switch => (None, None, None),
            };
            let high = high.filter(|v: &f64| v.is_finite());
            serde_json::json!({
                "name": knob.name, "help": knob.help, "accepts": knob.kind.words(),
                "default": knob.text(&defaults), "least": least, "most": high, "choices": choices,
            })
        };
        let knobs: Vec<Json> = evenkeel::settings::read_by(entry).map(knob).collect();
        serde_json::json!({ "name": entry.name(), "about": entry.about(), "knobs": knobs })
    };
    Json::from(E::table().iter().map(entry).collect::<Vec<_>>())
}

/// Defences and answers with their knobs.
pub(crate) fn tables(most: u64) -> (Json, Json) {
    (described::<DefenceKind>(most), described::<AnswerKind>(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(parameters: Json, free: bool) -> Result<Choice> {
        let Json::Object(parameters) = parameters else { panic!("an object") };
        Choice::read(&parameters, &Allowed { default: Choice::default(), free, most: 50 })
    }

    #[test]
    fn knobs_are_the_tables() {
        let choice =
            read(json!({"defence": "equivariance", "steps": 5, "epsilon": "3/255", "seed": 7}), true)
                .unwrap();
        let spec = choice.defence.as_ref().unwrap();
        assert_eq!((spec.settings().steps, spec.settings().epsilon_255, choice.seed), (5, 3.0, 7));
        assert!(!choice.is_plain());
        let choice = read(json!({"answer": "noise-vote", "answer_draws": 9}), true).unwrap();
        assert_eq!(choice.answer.unwrap().settings().draws, 9);
        assert!(read(json!({"defence": "none", "answer": "plain"}), true).unwrap().is_plain());
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (parameters, word) in [
            (json!({"defence": "moat"}), "moat"),
            (json!({"defence": 3}), "defence"),
            (json!({"steps": 3}), "without defence"),
            (json!({"walls": 3}), "walls"),
            (json!({"defence": "equivariance", "walls": 3}), "walls"),
            (json!({"defence": "equivariance", "steps": 51}), "50"),
            (json!({"defence": "equivariance", "steps": -1}), "steps"),
            (json!({"defence": "equivariance", "steps": [1]}), "steps"),
            (json!({"defence": "equivariance", "epsilon": "2/0"}), "epsilon"),
            (json!({"defence": "equivariance", "views": "/etc/passwd"}), "views"),
            (json!({"defence": "equivariance", "views": "only-flip.toml"}), "views"),
            (json!({"answer": "noise-vote", "answer_draws": 1000000}), "50"),
            (json!({"seed": -1}), "seed"),
            (json!({"timeout": 0.5}), "timeout"),
            (json!({"always": "perhaps"}), "always"),
        ] {
            let sentence = read(parameters.clone(), true).unwrap_err().to_string();
            assert!(sentence.contains(word), "{parameters}: {sentence}");
        }
    }

    #[test]
    fn a_policy_leaves_only_the_seed() {
        let choice = read(json!({"seed": 3, "always": true, "timeout": 250}), false).unwrap();
        assert_eq!(choice.timeout, Some(Duration::from_micros(250)));
        let sentence = read(json!({"defence": "none"}), false).unwrap_err().to_string();
        assert!(sentence.contains("policy"), "{sentence}");
    }
}
