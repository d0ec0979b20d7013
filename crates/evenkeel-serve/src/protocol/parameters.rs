//! Parameters in JSON: few, each once, and numbers, texts or truth values only, so that they cannot take much more memory than they have bytes.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;

use super::Parameters;

/// The most parameters of a request, an input or an output.
const MOST: usize = 64;

/// Reads them.
pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Parameters, D::Error> {
    from.deserialize_map(All)
}

struct All;

impl<'de> Visitor<'de> for All {
    type Value = Parameters;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("parameters")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameters, A::Error> {
        let mut all = Parameters::new();
        while let Some((name, Scalar(value))) = map.next_entry::<String, Scalar>()? {
            if all.len() >= MOST {
                return Err(A::Error::custom(format_args!("more than {MOST} parameters")));
            }
            if all.contains_key(&name) {
                return Err(A::Error::custom(format_args!("parameter {name:?} comes twice")));
            }
            all.insert(name, value);
        }
        Ok(all)
    }
}

/// A number, a text, a truth value or null.
struct Scalar(Value);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(One)
    }
}

struct One;

impl Visitor<'_> for One {
    type Value = Scalar;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a number, a text, true or false")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar(value.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar(Value::Null))
    }
}
