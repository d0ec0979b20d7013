//! Values of tensors: as they come in, and as they go out in JSON or binary form.

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeSeq, Serializer};

use super::Datatype;

/// Values of an input.
#[derive(Clone, Debug, PartialEq)]
pub enum InputData {
    /// Numbers.
    Fp32(Vec<f32>),
    /// Bytes.
    Uint8(Bytes),
    /// Encoded images.
    Bytes(Vec<Bytes>),
}

impl InputData {
    /// The bytes that the values take.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::Fp32(values) => size_of_val(values.as_slice()),
            Self::Uint8(bytes) => bytes.len(),
            Self::Bytes(files) => files.iter().map(Bytes::len).sum(),
        }
    }
}

/// Values of an output.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputData {
    /// Yes or no.
    Bool(Vec<bool>),
    /// Bytes.
    Uint8(Vec<u8>),
    /// Whole numbers.
    Int64(Vec<i64>),
    /// Numbers.
    Fp32(Vec<f32>),
    /// Numbers of double precision.
    Fp64(Vec<f64>),
    /// Text.
    Bytes(Vec<String>),
}

impl OutputData {
    /// What the values are.
    pub fn datatype(&self) -> Datatype {
        match self {
            Self::Bool(_) => Datatype::Bool,
            Self::Uint8(_) => Datatype::Uint8,
            Self::Int64(_) => Datatype::Int64,
            Self::Fp32(_) => Datatype::Fp32,
            Self::Fp64(_) => Datatype::Fp64,
            Self::Bytes(_) => Datatype::Bytes,
        }
    }

    /// Appends the binary form.
    pub fn write_binary(&self, to: &mut Vec<u8>) {
        match self {
            Self::Bool(values) => to.extend(values.iter().map(|v| u8::from(*v))),
            Self::Uint8(values) => to.extend_from_slice(values),
            Self::Int64(values) => values.iter().for_each(|v| to.extend_from_slice(&v.to_le_bytes())),
            Self::Fp32(values) => {
                to.reserve(4 * values.len());
                values.iter().for_each(|v| to.extend_from_slice(&v.to_le_bytes()));
            }
            Self::Fp64(values) => values.iter().for_each(|v| to.extend_from_slice(&v.to_le_bytes())),
            Self::Bytes(texts) => texts.iter().for_each(|text| {
                to.extend_from_slice(&(text.len() as u32).to_le_bytes());
                to.extend_from_slice(text.as_bytes());
            }),
        }
    }
}

/// The JSON form: a flat list.
impl Serialize for OutputData {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        fn list<S: Serializer, T: Serialize>(to: S, values: &[T]) -> Result<S::Ok, S::Error> {
            let mut list = to.serialize_seq(Some(values.len()))?;
            values.iter().try_for_each(|value| list.serialize_element(value))?;
            list.end()
        }
        match self {
            Self::Bool(values) => list(to, values),
            Self::Uint8(values) => list(to, values),
            Self::Int64(values) => list(to, values),
            Self::Fp32(values) => list(to, values),
            Self::Fp64(values) => list(to, values),
            Self::Bytes(values) => list(to, values),
        }
    }
}

/// JSON data, nested to any depth that the parser allows, as one flat list.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Flat {
    pub(super) numbers: Vec<f64>,
    pub(super) texts: Vec<String>,
}

impl<'de> Deserialize<'de> for Flat {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut flat = Self::default();
        from.deserialize_any(Into(&mut flat))?;
        match flat.numbers.is_empty() || flat.texts.is_empty() {
            true => Ok(flat),
            false => Err(D::Error::custom("data mixes numbers and strings")),
        }
    }
}

/// Strings of one tensor: an empty one takes three bytes of JSON and many more of memory.
const MOST_TEXTS: usize = 65_536;

/// Appends one value, or all values of a list.
struct Into<'f>(&'f mut Flat);

impl<'de> serde::de::DeserializeSeed<'de> for Into<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Into<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("numbers, strings, or lists of them")
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.0.numbers.push(value);
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.visit_f64(value as f64)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        if self.0.texts.len() >= MOST_TEXTS {
            return Err(E::custom(format_args!("more than {MOST_TEXTS} strings")));
        }
        self.0.texts.push(value.to_owned());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Into(&mut *self.0))?.is_some() {}
        Ok(())
    }
}
