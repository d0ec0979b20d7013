//! The keys that a kind of view reads: name, form, default, bounds and help, declared once.
//!
//! Files, JSON, listings and refusals are all derived from these declarations, and a value that a key does not admit never becomes
//! part of a rule.

use serde::Serialize;
use serde_json::Value as Json;

/// One key of a kind of view.
#[derive(Debug)]
pub struct Key {
    /// Its name in files and JSON.
    pub name: &'static str,
    /// One line: what it does and its unit.
    pub help: &'static str,
    /// What values it takes.
    pub form: Form,
    /// Its value where none is given; a key without one is required.
    pub default: Option<Value>,
}

/// What values a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A number within bounds.
    Number(Bounds),
    /// `[low, high]`, in order and within bounds; a value is drawn between the two.
    Range(Bounds),
    /// A range, or nothing.
    OptionalRange(Bounds),
    /// True or false.
    Flag,
    /// A list of whole numbers from 0 to this one, of which one is drawn.
    Choices(u8),
}

/// What numbers are accepted.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The least.
    pub low: f32,
    /// The greatest.
    pub high: f32,
    /// Whether the least itself is refused.
    pub above_low: bool,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(f32),
    /// A range.
    Range([f32; 2]),
    /// Nothing, for a range that may be left out.
    Nothing,
    /// True or false.
    Flag(bool),
    /// Whole numbers to choose from.
    Choices(Vec<u8>),
}

impl From<f32> for Value {
    fn from(number: f32) -> Self {
        Self::Number(number)
    }
}

impl From<[f32; 2]> for Value {
    fn from(range: [f32; 2]) -> Self {
        Self::Range(range)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<Vec<u8>> for Value {
    fn from(choices: Vec<u8>) -> Self {
        Self::Choices(choices)
    }
}

impl Bounds {
    /// Factors of a side or of a value: above 0, at most 16.
    pub const FACTOR: Self = Self { low: 0.0, high: 16.0, above_low: true };
    /// Shares of a side: above 0, at most 1.
    pub const SHARE: Self = Self { low: 0.0, high: 1.0, above_low: true };

    /// From `low` to `high`, both included.
    pub const fn closed(low: f32, high: f32) -> Self {
        Self { low, high, above_low: false }
    }

    fn admit(self, number: f32) -> bool {
        number <= self.high && if self.above_low { number > self.low } else { number >= self.low }
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let from = if self.above_low { "above" } else { "at least" };
        write!(f, "{from} {} and at most {}", self.low, self.high)
    }
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(bounds) => write!(f, "a number {bounds}"),
            Self::Range(bounds) => write!(f, "[low, high] in order, each {bounds}"),
            Self::OptionalRange(bounds) => write!(f, "left out, or [low, high] in order, each {bounds}"),
            Self::Flag => write!(f, "true or false"),
            Self::Choices(last) => write!(f, "a list of at least one whole number from 0 to {last}"),
        }
    }
}

impl Form {
    /// Whether a value has this form and lies within its bounds.
    pub fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Number(bounds), Value::Number(number)) => bounds.admit(*number),
            (Self::Range(bounds) | Self::OptionalRange(bounds), Value::Range([low, high])) => {
                low <= high && bounds.admit(*low) && bounds.admit(*high)
            }
            (Self::OptionalRange(_), Value::Nothing) | (Self::Flag, Value::Flag(_)) => true,
            (Self::Choices(last), Value::Choices(all)) => {
                !all.is_empty() && all.iter().all(|choice| choice <= last)
            }
            _ => false,
        }
    }

    /// The value that a file or JSON gives, if it has this form; its bounds are not looked at.
    pub fn read(&self, given: &Json) -> Option<Value> {
        let number = |json: &Json| json.as_f64().map(|v| v as f32);
        match self {
            Self::Number(_) => number(given).map(Value::Number),
            Self::OptionalRange(_) if given.is_null() => Some(Value::Nothing),
            Self::Range(_) | Self::OptionalRange(_) => match given.as_array()?.as_slice() {
                [low, high] => Some(Value::Range([number(low)?, number(high)?])),
                _ => None,
            },
            Self::Flag => given.as_bool().map(Value::Flag),
            Self::Choices(_) => {
                let choice = |json: &Json| u8::try_from(json.as_u64()?).ok();
                given.as_array()?.iter().map(choice).collect::<Option<_>>().map(Value::Choices)
            }
        }
    }
}

/// The key of several kinds that stretches the width.
pub(super) const STRETCH: Key = Key {
    name: "stretch",
    help: "range of a further factor of the width",
    form: Form::Range(Bounds::FACTOR),
    default: Some(Value::Range([1.0, 1.0])),
};
