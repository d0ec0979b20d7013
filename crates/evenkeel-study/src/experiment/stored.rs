//! Specs in stored designs: a flat JSON object of the entry's name and the values it reads, with what the study adds (label, target, views).
//!
//! Designs of older versions hold every knob there was, read or not; what the entry does not read is left out. Views are stored with their content, so
//! that a design can be read where their file is not.

use evenkeel::answer::AnswerSpec;
use evenkeel::attack::Attack;
use evenkeel::defence::NamedViews;
use evenkeel::settings::{Entry, Spec, Value};
use evenkeel::view::ViewSet;
use serde_json::{Map, Value as Json, json};

use super::answers::{ANSWER, is_answers, knob};
use super::knobs::values;
use super::{AimedAttack, DefenceRow, DetectorRow};
use crate::{Error, Result};

/// A JSON object.
pub(super) type Object = Map<String, Json>;

const KIND: &str = "kind";
const LABEL: &str = "label";
const TARGET: &str = "target";
const VIEWS: &str = "views";
const FOOLED_VIEWS: &str = "fooled_views";
const VIEW_SET: &str = "view_set";

fn written<E: Entry>(spec: &Spec<E>) -> Object {
    let mut object = Object::new();
    object.insert(KIND.into(), json!(spec.name()));
    object.extend(values(spec).into_iter().map(|(key, value)| (key.to_string(), json!(value))));
    object
}

/// The spec, and whether the object holds knobs that its entry does not read, as those of older versions do.
fn read<E: Entry>(object: &Object) -> Result<(Spec<E>, bool)> {
    let mut spec = Spec::<E>::named(&text(object, KIND)?)?;
    let own = [KIND, LABEL, TARGET, VIEWS, FOOLED_VIEWS, VIEW_SET];
    let mut older = false;
    for (key, value) in object.iter().filter(|(key, _)| !own.contains(&key.as_str())) {
        match spec.knobs().any(|knob| knob.is_called(key)) {
            true if value.is_null() => {}
            true => spec.assign(key, &scalar(key, value)?)?,
            false => older = true,
        }
    }
    Ok((spec, older))
}

fn text(object: &Object, key: &str) -> Result<String> {
    let found = object.get(key).and_then(Json::as_str).map(str::to_string);
    found.ok_or_else(|| Error::Request(format!("a stored setting has no `{key}`")))
}

fn scalar(key: &str, value: &Json) -> Result<Value> {
    serde_json::from_value(value.clone()).map_err(|e| Error::Request(format!("{key}: {e}")))
}

/// The views of a stored spec; of those whose file is gone, only the name is known.
fn views(object: &Object, key: &str) -> Result<Option<NamedViews>> {
    let Some(Json::String(name)) = object.get(key).cloned() else { return Ok(None) };
    let set = match object.get(VIEW_SET) {
        Some(set) => {
            serde_json::from_value(set.clone()).map_err(|e| Error::Request(format!("{key} {name}: {e}")))?
        }
        None => {
            let unknown = || ViewSet { rules: Vec::new(), ..ViewSet::standard() };
            ViewSet::named(&name).unwrap_or_else(|_| unknown())
        }
    };
    Ok(Some(NamedViews { name, set }))
}

/// Adds the content of views to a spec that reads them.
fn with_view_set(mut object: Object, key: &str, views: &NamedViews) -> Object {
    if object.contains_key(key) {
        object.insert(VIEW_SET.into(), json!(views.set));
    }
    object
}

impl From<AimedAttack> for Object {
    fn from(aimed: AimedAttack) -> Self {
        let mut object = with_view_set(written(&aimed.attack), FOOLED_VIEWS, &aimed.attack.settings().views);
        object.insert(TARGET.into(), json!(aimed.target));
        object
    }
}

impl TryFrom<Object> for AimedAttack {
    type Error = Error;

    fn try_from(object: Object) -> Result<Self> {
        let (mut attack, older) = read(&object)?;
        // what an attack had no use for once may now ask for an attack through the defence
        if older && !Attack::named(attack.name())?.aims_through() && attack.aims_through() {
            attack = attack.on_bare_network();
        }
        if let Some(views) = views(&object, FOOLED_VIEWS)? {
            attack = attack.with_views(views);
        }
        Ok(Self { attack, target: object.get(TARGET).and_then(Json::as_str).map(str::to_string) })
    }
}

impl From<DefenceRow> for Object {
    fn from(row: DefenceRow) -> Self {
        let mut object = with_view_set(written(&row.spec), VIEWS, &row.spec.settings().views);
        object.insert(LABEL.into(), json!(row.label));
        if !row.answer.is_plain() {
            let own = with_view_set(written(&row.answer), VIEWS, &row.answer.settings().views);
            let name = |key: &str| if key == KIND { ANSWER.to_string() } else { format!("{ANSWER}_{key}") };
            object.extend(own.into_iter().map(|(key, value)| (name(&key), value)));
        }
        object
    }
}

/// The answer of a stored row; designs of older versions have none but the network's own.
fn answer(object: &Object) -> Result<AnswerSpec> {
    let Some(name) = object.get(ANSWER) else { return Ok(AnswerSpec::plain()) };
    let mut own: Object =
        object.iter().filter_map(|(key, value)| Some((knob(key)?.to_string(), value.clone()))).collect();
    own.insert(KIND.into(), name.clone());
    let (spec, _): (AnswerSpec, _) = read(&own)?;
    let reads = spec.values().contains_key(VIEWS);
    Ok(match views(&own, VIEWS)?.filter(|_| reads) {
        Some(views) => spec.with_views(views),
        None => spec,
    })
}

impl TryFrom<Object> for DefenceRow {
    type Error = Error;

    fn try_from(object: Object) -> Result<Self> {
        let answer = answer(&object)?;
        let object: Object = object.into_iter().filter(|(key, _)| !is_answers(key)).collect();
        let (spec, _) = read(&object)?;
        let spec: evenkeel::defence::DefenceSpec = spec;
        let reads = spec.values().contains_key(VIEWS);
        let views = views(&object, VIEWS)?.filter(|_| reads);
        let spec = views.map_or(spec.clone(), |views| spec.with_views(views));
        Ok(Self { label: text(&object, LABEL)?, spec, answer })
    }
}

impl From<DetectorRow> for Object {
    fn from(row: DetectorRow) -> Self {
        let mut object = with_view_set(written(&row.spec), VIEWS, &row.spec.settings().views);
        object.insert(LABEL.into(), json!(row.label));
        object
    }
}

impl TryFrom<Object> for DetectorRow {
    type Error = Error;

    fn try_from(object: Object) -> Result<Self> {
        let (spec, _) = read(&object)?;
        let spec: evenkeel::detect::DetectorSpec = spec;
        let reads = spec.values().contains_key(VIEWS);
        let views = views(&object, VIEWS)?.filter(|_| reads);
        let spec = views.map_or(spec.clone(), |views| spec.with_views(views));
        Ok(Self { label: text(&object, LABEL)?, spec })
    }
}
