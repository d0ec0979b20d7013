//! Values of settings as they come from outside: a word of a command line, a TOML or JSON value, a Python argument.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A value before its knob has said what it must be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Yes or no.
    Switch(bool),
    /// A whole number.
    Whole(u64),
    /// A number.
    Number(f64),
    /// Words: a name, a fraction such as `4/255`, or a number as typed.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Switch(value) => value.fmt(f),
            Self::Whole(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Switch(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Whole(value as u64)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        u64::try_from(value).map_or(Self::Number(f64::from(value)), Self::Whole)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// What a knob accepts.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A distance between pixel values in [0, 1]: `4/255` or `0.0157` by name, 4 under its key in units of 1/255.
    Radius,
    /// A whole number of at least this.
    Whole(u64),
    /// A whole number in a range, both ends included, that is no count of anything to be done.
    Level(u64, u64),
    /// A number in a range, both ends included.
    Number(f64, f64),
    /// A number above the first and at most the second.
    Above(f64, f64),
    /// One of these words.
    Choice(fn() -> Vec<&'static str>),
    /// Yes or no.
    Switch,
    /// A name or the path of a file.
    Text,
}

impl Kind {
    /// What is accepted, in words.
    pub fn words(self) -> String {
        let most = |most: f64| if most.is_finite() { format!(" and at most {most}") } else { String::new() };
        match self {
            Self::Radius => "a distance such as 4/255".into(),
            Self::Whole(0) => "a whole number".into(),
            Self::Whole(least) => format!("a whole number of at least {least}"),
            Self::Level(least, most) => format!("a whole number from {least} to {most}"),
            Self::Number(least, high) => format!("a number of at least {least}{}", most(high)),
            Self::Above(least, high) => format!("a number above {least}{}", most(high)),
            Self::Choice(names) => format!("one of {}", names().join(", ")),
            Self::Switch => "true or false".into(),
            Self::Text => "a name or a file".into(),
        }
    }

    /// The value as this kind stores it: radii as numbers of 1/255, `in_255` saying that they come so.
    pub(super) fn read(self, value: &Value, in_255: bool) -> Option<Value> {
        let number = |value: &Value| match value {
            Value::Whole(n) => Some(*n as f64),
            Value::Number(n) => Some(*n),
            Value::Text(text) => text.trim().parse().ok(),
            Value::Switch(_) => None,
        };
        let whole = |value: &Value| match value {
            Value::Whole(n) => Some(*n),
            Value::Number(n) if n.fract() == 0.0 && (0.0..=9.0e15).contains(n) => Some(*n as u64),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        };
        match self {
            Self::Radius => match value {
                Value::Text(text) if !in_255 => fraction_255(text),
                other => number(other).map(|v| if in_255 { v } else { snapped(255.0 * v) }),
            }
            .filter(|v| v.is_finite() && *v >= 0.0)
            .map(Value::Number),
            Self::Whole(least) => whole(value).filter(|n| *n >= least).map(Value::Whole),
            Self::Level(least, most) => whole(value).filter(|n| (least..=most).contains(n)).map(Value::Whole),
            Self::Number(least, most) => {
                number(value).filter(|v| v.is_finite() && *v >= least && *v <= most).map(Value::Number)
            }
            Self::Above(least, most) => {
                number(value).filter(|v| v.is_finite() && *v > least && *v <= most).map(Value::Number)
            }
            Self::Choice(names) => match value {
                Value::Text(text) if names().contains(&text.as_str()) => Some(value.clone()),
                _ => None,
            },
            Self::Switch => match value {
                Value::Switch(_) => Some(value.clone()),
                Value::Text(text) => text.parse().ok().map(Value::Switch),
                _ => None,
            },
            Self::Text => match value {
                Value::Text(_) => Some(value.clone()),
                _ => None,
            },
        }
    }
}

/// A whole number of 1/255 as written, without the rounding of 4/255·255.
fn snapped(value_255: f64) -> f64 {
    let whole = value_255.round();
    if (value_255 - whole).abs() < 1e-9 { whole } else { value_255 }
}

/// A fraction such as `4/255`, or a plain number, in units of 1/255.
fn fraction_255(text: &str) -> Option<f64> {
    let number = |part: &str| part.trim().parse::<f64>().ok();
    match text.split_once('/') {
        Some((above, below)) => {
            let (above, below) = (number(above)?, number(below)?);
            (below > 0.0).then(|| if below == 255.0 { above } else { snapped(255.0 * above / below) })
        }
        None => number(text).map(|v| snapped(255.0 * v)),
    }
}

/// A radius from a command line: `4/255` or `0.0157`, in units of 1/255.
///
/// # Errors
/// If it is neither, or negative.
pub fn parse_radius_255(text: &str) -> Result<f64> {
    match Kind::Radius.read(&Value::from(text), false) {
        Some(Value::Number(value)) => Ok(value),
        _ => Err(Error::setting(format!("radius {text}"), "is not a number or a fraction such as 4/255")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radii_are_read_as_people_write_them() {
        for (text, expected) in
            [("4/255", 4.0), ("2.5/255", 2.5), (" 8 / 255", 8.0), ("1", 255.0), ("1/2", 127.5)]
        {
            assert_eq!(parse_radius_255(text).unwrap(), expected, "{text}");
        }
        assert_eq!(Kind::Radius.read(&Value::Number(4.0 / 255.0), false), Some(Value::Number(4.0)));
        assert_eq!(Kind::Radius.read(&Value::Whole(4), true), Some(Value::Number(4.0)));
        for bad in ["", "a", "1/0", "-1", "nan", "inf", "4/255/2"] {
            assert!(parse_radius_255(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn kinds_refuse_what_they_are_not() {
        let names = || vec!["linf", "l2"];
        for (kind, good, bad) in [
            (Kind::Whole(1), vec!["1", "20"], vec!["0", "-1", "1.5", "many"]),
            (Kind::Number(0.0, 1.0), vec!["0", "1"], vec!["-0.1", "1.1", "nan", "x"]),
            (Kind::Above(0.0, 1.0), vec!["0.1", "1"], vec!["0", "2", "inf"]),
            (Kind::Choice(names), vec!["l2"], vec!["L2", ""]),
            (Kind::Switch, vec!["true", "false"], vec!["yes", "1"]),
        ] {
            good.iter().for_each(|t| assert!(kind.read(&Value::from(*t), false).is_some(), "{kind:?} {t}"));
            bad.iter().for_each(|t| assert!(kind.read(&Value::from(*t), false).is_none(), "{kind:?} {t}"));
        }
    }
}
