//! The tables of settings for Python: what can be given, and what was given as a [`Spec`].
//!
//! Names, defaults, ranges and refusals are the tables' own; nothing is spelled here.

use evenkeel::answer::{AnswerKind, AnswerSpec};
use evenkeel::attack::{Attack, AttackKind};
use evenkeel::defence::{DefenceKind, DefenceSpec};
use evenkeel::detect::{DetectorKind, DetectorSpec};
use evenkeel::settings::{Entry, Spec, Value, read_by};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use serde_json::json;

use crate::error::{OrRaise, refuse};
use crate::views::PyViews;

/// A table whose entries may use views.
pub(crate) trait Table: Entry + Sized {
    /// The spec with views that no name stands for, if its table has views.
    fn with_views(spec: Spec<Self>, views: evenkeel::ViewSet) -> Option<Spec<Self>>;
}

impl Table for AttackKind {
    fn with_views(_: Attack, _: evenkeel::ViewSet) -> Option<Attack> {
        None
    }
}

impl Table for DefenceKind {
    fn with_views(spec: DefenceSpec, views: evenkeel::ViewSet) -> Option<DefenceSpec> {
        Some(spec.with_views(views))
    }
}

impl Table for DetectorKind {
    fn with_views(spec: DetectorSpec, views: evenkeel::ViewSet) -> Option<DetectorSpec> {
        Some(spec.with_views(views))
    }
}

impl Table for AnswerKind {
    fn with_views(spec: AnswerSpec, views: evenkeel::ViewSet) -> Option<AnswerSpec> {
        Some(spec.with_views(views))
    }
}

/// A Python value as settings take it; `None` leaves the knob to its entry.
fn value(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    let number = |given: &Bound<'_, PyAny>| given.extract::<f64>().ok().map(Value::Number);
    Ok(Some(if given.is_none() {
        return Ok(None);
    } else if let Ok(yes) = given.cast::<PyBool>() {
        Value::Switch(yes.is_true())
    } else if let Ok(text) = given.cast::<PyString>() {
        Value::Text(text.to_str()?.to_owned())
    } else if given.is_instance_of::<PyInt>()
        || (!given.is_instance_of::<PyFloat>() && given.hasattr("__index__")?)
    {
        match given.extract::<u64>() {
            Ok(whole) => Value::Whole(whole),
            Err(_) => number(given).ok_or_else(|| refuse(format!("{name}: {given} is out of range")))?,
        }
    } else if let Ok(path) = given.call_method0("__fspath__") {
        Value::Text(path.extract()?)
    } else if let Some(value) = number(given) {
        value
    } else {
        let kind = given.get_type();
        return Err(refuse(format!("{name}: a {} is no value of a setting", kind.name()?)));
    }))
}

/// An entry of a table with the settings given.
pub(crate) fn spec<E: Table>(name: &str, given: &Bound<'_, PyDict>) -> PyResult<Spec<E>> {
    let mut spec = Spec::<E>::named(name).or_raise()?;
    for (knob, given) in given {
        let knob: String = knob.extract()?;
        if let Ok(views) = given.cast::<PyViews>() {
            let reads = knob == "views" && spec.knobs().any(|own| own.name == "views");
            let taken = reads.then(|| E::with_views(spec.clone(), views.get().0.clone())).flatten();
            // an entry that does not read them refuses the name
            match taken {
                Some(taken) => spec = taken,
                None => spec.assign(&knob, &Value::Text("given".into())).or_raise()?,
            }
        } else if let Some(value) = value(&knob, &given)? {
            spec.assign(&knob, &value).or_raise()?;
        }
    }
    spec.check().or_raise()?;
    Ok(spec)
}

fn described<E: Entry>() -> serde_json::Value {
    let entry = |entry: &'static E| {
        let defaults = entry.defaults();
        let knob = |knob: &'static evenkeel::settings::Knob<E::Settings>| {
            json!({
                "name": knob.name,
                "key": knob.key,
                "help": knob.help,
                "accepts": knob.kind.words(),
                "default": knob.text(&defaults),
            })
        };
        json!({ "name": entry.name(), "about": entry.about(), "settings": read_by(entry).map(knob).collect::<Vec<_>>() })
    };
    E::table().iter().map(entry).collect()
}

/// Every table as JSON: its entries, each with the settings it reads.
#[pyfunction]
pub(crate) fn tables() -> String {
    json!({
        "attack": described::<AttackKind>(),
        "defence": described::<DefenceKind>(),
        "answer": described::<AnswerKind>(),
        "detector": described::<DetectorKind>(),
    })
    .to_string()
}

/// Refuses what an entry of a table does not take, and gives every value that decides what it does, as JSON.
#[pyfunction]
pub(crate) fn settings(table: &str, name: &str, given: &Bound<'_, PyDict>) -> PyResult<String> {
    let text = |values: Result<String, serde_json::Error>| values.or_raise();
    match table {
        "attack" => text(serde_json::to_string(&spec::<AttackKind>(name, given)?)),
        "defence" => text(serde_json::to_string(&spec::<DefenceKind>(name, given)?)),
        "answer" => text(serde_json::to_string(&spec::<AnswerKind>(name, given)?)),
        "detector" => text(serde_json::to_string(&spec::<DetectorKind>(name, given)?)),
        _ => Err(refuse(format!("table {table}: is not one of attack, defence, answer, detector"))),
    }
}
