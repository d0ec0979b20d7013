//! A setting that may be one value or a list of them: `steps = 20` or `steps = [1, 2, 5]`. A list asks for one cell each.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IntoDeserializer, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// The values of one setting, in the order given.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep<T>(pub Vec<T>);

impl<T> Sweep<T> {
    /// One value.
    pub fn one(value: T) -> Self {
        Self(vec![value])
    }
}

impl<T: Serialize> Serialize for Sweep<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            many => many.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Sweep<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMany(PhantomData))
    }
}

struct OneOrMany<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
    type Value = Sweep<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a list of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        let values = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
        match values.is_empty() {
            true => Err(serde::de::Error::custom("an empty list asks for nothing")),
            false => Ok(Sweep(values)),
        }
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Sweep::one)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Sweep::one)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Sweep::one)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Sweep::one)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(Sweep::one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Rule {
        steps: Sweep<usize>,
    }

    #[test]
    fn one_and_many_are_read_and_nonsense_is_refused() {
        let read = |text: &str| toml::from_str::<Rule>(text).map(|rule| rule.steps.0);
        assert_eq!(read("steps = 20").unwrap(), [20]);
        assert_eq!(read("steps = [1, 2]").unwrap(), [1, 2]);
        assert!(read("steps = []").unwrap_err().to_string().contains("asks for nothing"));
        assert!(read("steps = -1").unwrap_err().to_string().contains("-1"));
    }
}
