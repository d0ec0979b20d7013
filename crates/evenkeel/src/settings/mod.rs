//! Settings, described once: what every attack, defence and detector reads, for every front alike.
//!
//! A table (attacks, defences, detectors) has entries; an entry names the knobs it reads. A [`Knob`] has a name, a kind with its range, a line of
//! help, and a place in the settings struct, whose `Default` holds every default. A [`Spec`] is an entry with values. Command-line flags, TOML keys,
//! keys of stored results, JSON and Python arguments are all made from these, so they cannot differ.
//! Invariant: a knob that the entry does not read, and a value outside its range, are refused by name.

mod setting;
mod value;

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};

pub use setting::{Choice, Setting};
pub use value::{Kind, Value, parse_radius_255};

/// One thing that can be set.
pub struct Knob<S> {
    /// Its name on command lines (with dashes) and in Python.
    pub name: &'static str,
    /// Its key in files and records: the name, or for radii one that says the unit.
    pub key: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// What it does, in a line.
    pub help: &'static str,
    /// How labels abbreviate it where a list of values is tried.
    pub symbol: &'static str,
    /// A command-line switch that sets this value: `("l2", "l2")` for `--l2`.
    pub switch: Option<(&'static str, &'static str)>,
    /// A name it had before, which files and command lines may still use.
    pub former: Option<&'static str>,
    get: fn(&S) -> &dyn Setting,
    get_mut: fn(&mut S) -> &mut dyn Setting,
}

impl<S> Knob<S> {
    /// A knob whose key in files is its name.
    pub const fn new(
        name: &'static str,
        kind: Kind,
        help: &'static str,
        get: fn(&S) -> &dyn Setting,
        get_mut: fn(&mut S) -> &mut dyn Setting,
    ) -> Self {
        Self { name, key: name, kind, help, symbol: name, switch: None, former: None, get, get_mut }
    }

    /// The same knob under another key in files.
    pub const fn key(self, key: &'static str) -> Self {
        Self { key, ..self }
    }

    /// The same knob with an abbreviation for labels.
    pub const fn symbol(self, symbol: &'static str) -> Self {
        Self { symbol, ..self }
    }

    /// The same knob with a switch that sets a value of it.
    pub const fn switch(self, flag: &'static str, value: &'static str) -> Self {
        Self { switch: Some((flag, value)), ..self }
    }

    /// The same knob, which had another name before.
    pub const fn formerly(self, name: &'static str) -> Self {
        Self { former: Some(name), ..self }
    }

    /// Whether this is its name, its key in files, or the name it had before.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.key == name || self.former == Some(name)
    }

    /// Its value in settings; `None` if it is left to the entry.
    pub fn get(&self, settings: &S) -> Option<Value> {
        (self.get)(settings).value()
    }

    /// Its value in settings as a command line would write it.
    pub fn text(&self, settings: &S) -> Option<String> {
        let value = self.get(settings)?;
        Some(if let Kind::Radius = self.kind { format!("{value}/255") } else { value.to_string() })
    }
}

/// A struct of settings and its knobs.
pub trait Knobs: Clone + Default + std::fmt::Debug + PartialEq + Send + Sync + 'static {
    /// Every knob, in the order that help and records list them.
    fn knobs() -> &'static [Knob<Self>];

    /// Refuses values that do not go together.
    ///
    /// # Errors
    /// Naming the knob.
    fn check(&self) -> Result<()>;
}

/// What every entry of a table begins with.
#[derive(Clone, Copy, Debug)]
pub struct Heading {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The names of the knobs it reads.
    pub reads: &'static [&'static str],
}

impl Heading {
    /// A heading.
    pub const fn new(name: &'static str, about: &'static str, reads: &'static [&'static str]) -> Self {
        Self { name, about, reads }
    }
}

/// An entry of a table.
pub trait Entry: Sync + 'static {
    /// What its knobs set.
    type Settings: Knobs;
    /// What the table lists, in the singular: `attack`.
    const KIND: &'static str;
    /// The table.
    fn table() -> &'static [Self]
    where
        Self: Sized;
    /// Its name, line and knobs.
    fn heading(&self) -> &Heading;

    /// Sets where its defaults differ from the table's.
    fn preset(&self, _settings: &mut Self::Settings) {}

    /// Its name.
    fn name(&self) -> &'static str {
        self.heading().name
    }

    /// What it is, in a line.
    fn about(&self) -> &'static str {
        self.heading().about
    }

    /// The names of the knobs it reads.
    fn reads(&self) -> &'static [&'static str] {
        self.heading().reads
    }

    /// Its defaults.
    fn defaults(&self) -> Self::Settings {
        let mut settings = Self::Settings::default();
        self.preset(&mut settings);
        settings
    }
}

/// The names of a table.
pub fn names<E: Entry>() -> Vec<&'static str> {
    E::table().iter().map(Entry::name).collect()
}

/// An entry of a table with its settings.
pub struct Spec<E: Entry> {
    entry: &'static E,
    settings: E::Settings,
}

impl<E: Entry> Clone for Spec<E> {
    fn clone(&self) -> Self {
        Self { entry: self.entry, settings: self.settings.clone() }
    }
}

impl<E: Entry> std::fmt::Debug for Spec<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(E::KIND).field("name", &self.entry.name()).field("settings", &self.settings).finish()
    }
}

impl<E: Entry> PartialEq for Spec<E> {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name() == other.entry.name() && self.settings == other.settings
    }
}

impl<E: Entry> Spec<E> {
    /// The entry of this name, with its defaults.
    ///
    /// # Errors
    /// Listing the names there are.
    pub fn named(name: &str) -> Result<Self> {
        let entry = E::table().iter().find(|entry| entry.name() == name).ok_or_else(|| {
            Error::setting(
                format!("{} {name}", E::KIND),
                format!("is not one of {}", names::<E>().join(", ")),
            )
        })?;
        Ok(Self { entry, settings: entry.defaults() })
    }

    /// The entry.
    pub fn entry(&self) -> &'static E {
        self.entry
    }

    /// The entry's name.
    pub fn name(&self) -> &'static str {
        self.entry.name()
    }

    /// The settings.
    pub fn settings(&self) -> &E::Settings {
        &self.settings
    }

    pub(crate) fn settings_mut(&mut self) -> &mut E::Settings {
        &mut self.settings
    }

    /// The knobs that the entry reads.
    pub fn knobs(&self) -> impl Iterator<Item = &'static Knob<E::Settings>> + use<E> {
        read_by(self.entry)
    }

    /// The same with a knob set; by its name, or by its key in files.
    ///
    /// # Errors
    /// If the entry does not read the knob, or the value is outside its range.
    pub fn with(mut self, knob: &str, value: impl Into<Value>) -> Result<Self> {
        self.assign(knob, &value.into())?;
        Ok(self)
    }

    /// Sets a knob, by its name or by its key in files.
    ///
    /// # Errors
    /// As [`Spec::with`].
    pub fn assign(&mut self, name: &str, value: &Value) -> Result<()> {
        let place = format!("{} {}", E::KIND, self.name());
        let Some(knob) = self.knobs().find(|k| k.is_called(name)) else {
            let own: Vec<_> = self.knobs().map(|k| k.name).collect();
            let known = E::Settings::knobs().iter().any(|k| k.is_called(name));
            let what = if known { "does not read" } else { "has no setting" };
            return Err(Error::setting(place, format!("{what} `{name}`; it reads {}", own.join(", "))));
        };
        let read = knob.kind.read(value, name == knob.key && knob.key != knob.name).ok_or_else(|| {
            Error::setting(place, format!("{name} = {value} must be {}", knob.kind.words()))
        })?;
        (knob.get_mut)(&mut self.settings).assign(&read)
    }

    /// Sets several knobs, then checks that they go together.
    ///
    /// # Errors
    /// As [`Spec::with`] and [`Knobs::check`].
    pub fn assign_all<'v>(&mut self, values: impl IntoIterator<Item = (&'v str, &'v Value)>) -> Result<()> {
        values.into_iter().try_for_each(|(name, value)| self.assign(name, value))?;
        self.check()
    }

    /// Refuses values that do not go together.
    ///
    /// # Errors
    /// Naming the entry and the knob.
    pub fn check(&self) -> Result<()> {
        self.settings.check().map_err(|e| match e {
            Error::Setting { what, reason } => {
                Error::setting(format!("{} {}: {what}", E::KIND, self.name()), reason)
            }
            other => other,
        })
    }

    /// The value of every knob that the entry reads, by its key in files: everything that decides what it does.
    pub fn values(&self) -> BTreeMap<&'static str, Value> {
        self.knobs().filter_map(|knob| Some((knob.key, knob.get(&self.settings)?))).collect()
    }
}

/// The knobs that an entry reads.
pub fn read_by<E: Entry>(entry: &'static E) -> impl Iterator<Item = &'static Knob<E::Settings>> + use<E> {
    E::Settings::knobs().iter().filter(|knob| entry.reads().contains(&knob.name))
}

impl<E: Entry> Serialize for Spec<E> {
    fn serialize<Z: Serializer>(&self, to: Z) -> std::result::Result<Z::Ok, Z::Error> {
        let values = self.values();
        let mut map = to.serialize_map(Some(values.len() + 1))?;
        map.serialize_entry("kind", self.name())?;
        values.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

impl<'de, E: Entry> Deserialize<'de> for Spec<E> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let mut values = BTreeMap::<String, Option<Value>>::deserialize(from)?;
        let Some(Some(Value::Text(name))) = values.remove("kind") else {
            return Err(D::Error::custom(format!("{}: `kind` is missing", E::KIND)));
        };
        let mut spec = Self::named(&name).map_err(D::Error::custom)?;
        let given = values.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_ref()?)));
        spec.assign_all(given).map_err(D::Error::custom)?;
        Ok(spec)
    }
}
