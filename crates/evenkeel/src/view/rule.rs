//! How one view of a set is drawn: a kind from the table and a value for each of its keys.
//!
//! As a file has it: `kind = "resize"` and the keys of that kind. A rule is complete and within bounds from its construction on:
//! unknown kinds and keys, missing keys and values out of bounds are refused by name.

use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::{Map, Value as Json};

use super::View;
use super::key::{Key, Value};
use super::kind::ViewKind;
use crate::error::{Error, Result};
use crate::random::Random;

/// How one view of a set is drawn.
#[derive(Clone)]
pub struct ViewRule {
    kind: &'static ViewKind,
    /// In the order of the kind's keys.
    values: Vec<Value>,
}

impl ViewRule {
    /// A rule of this kind with these values; keys that are left out take their defaults.
    ///
    /// # Errors
    /// If there is no such kind, or a key is unknown, missing, of another form or out of bounds.
    pub fn of(kind: &str, given: &[(&str, Value)]) -> Result<Self> {
        let kind = ViewKind::named(kind)?;
        if let Some((other, _)) = given.iter().find(|(name, _)| kind.keys.iter().all(|k| k.name != *name)) {
            return Err(kind.unread(other));
        }
        let value = |key: &'static Key| {
            let own = given.iter().find(|(name, _)| *name == key.name).map(|(_, value)| value.clone());
            let value = own.or_else(|| key.default.clone()).ok_or_else(|| kind.missing(key))?;
            match key.form.admits(&value) {
                true => Ok(value),
                false => Err(kind.refused(key, &serde_json::json!(value))),
            }
        };
        Ok(Self { kind, values: kind.keys.iter().map(value).collect::<Result<_>>()? })
    }

    /// A rule from the keys of a file or of JSON, `kind` among them.
    ///
    /// # Errors
    /// As [`ViewRule::of`].
    pub fn read(given: &Map<String, Json>) -> Result<Self> {
        let name = given.get("kind").and_then(Json::as_str);
        let kind = ViewKind::named(name.ok_or_else(|| Error::setting("view", "needs a kind"))?)?;
        let mut values = Vec::new();
        for (name, json) in given.iter().filter(|(name, _)| *name != "kind") {
            let key = kind.keys.iter().find(|key| key.name == name).ok_or_else(|| kind.unread(name))?;
            values.push((key.name, key.form.read(json).ok_or_else(|| kind.refused(key, json))?));
        }
        Self::of(kind.name, &values)
    }

    /// Its kind.
    pub fn kind(&self) -> &'static ViewKind {
        self.kind
    }

    /// The value of the key of this name, if its kind reads one.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.kind.keys.iter().position(|key| key.name == name).map(|i| &self.values[i])
    }

    /// The same rule with another value.
    ///
    /// # Errors
    /// If the kind does not read the key, or the key does not admit the value.
    pub fn with(&self, name: &str, value: impl Into<Value>) -> Result<Self> {
        let others = self.kind.keys.iter().zip(&self.values).filter(|(key, _)| key.name != name);
        let mut given: Vec<(&str, Value)> = others.map(|(key, value)| (key.name, value.clone())).collect();
        given.push((name, value.into()));
        Self::of(self.kind.name, &given)
    }

    /// Draws a view.
    pub fn draw(&self, random: &mut Random) -> Arc<dyn View> {
        (self.kind.draw)(self, random)
    }

    fn own(&self, key: &Key) -> &Value {
        self.value(key.name).expect("a kind draws from keys that it declares")
    }

    pub(super) fn number(&self, key: &Key) -> f32 {
        match self.own(key) {
            Value::Number(number) => *number,
            other => unreachable!("{} is {other:?}", key.name),
        }
    }

    pub(super) fn range(&self, key: &Key) -> [f32; 2] {
        self.optional_range(key).unwrap_or_else(|| unreachable!("{} is no range", key.name))
    }

    pub(super) fn optional_range(&self, key: &Key) -> Option<[f32; 2]> {
        match self.own(key) {
            Value::Range(range) => Some(*range),
            _ => None,
        }
    }

    pub(super) fn flag(&self, key: &Key) -> bool {
        *self.own(key) == Value::Flag(true)
    }

    pub(super) fn choices(&self, key: &Key) -> &[u8] {
        match self.own(key) {
            Value::Choices(all) => all,
            other => unreachable!("{} is {other:?}", key.name),
        }
    }
}

impl PartialEq for ViewRule {
    fn eq(&self, other: &Self) -> bool {
        self.kind.name == other.kind.name && self.values == other.values
    }
}

impl std::fmt::Debug for ViewRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct(self.kind.name);
        for (key, value) in self.kind.keys.iter().zip(&self.values) {
            shown.field(key.name, value);
        }
        shown.finish()
    }
}

impl Serialize for ViewRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("ViewRule", 1 + self.values.len())?;
        out.serialize_field("kind", self.kind.name)?;
        for (key, value) in self.kind.keys.iter().zip(&self.values) {
            match value {
                // as an option: null in JSON, left out of TOML
                Value::Nothing => out.serialize_field(key.name, &None::<f32>)?,
                value => out.serialize_field(key.name, value)?,
            }
        }
        out.end()
    }
}

impl<'de> Deserialize<'de> for ViewRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(&Map::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
