//! Keys: 128 bits of a BLAKE3 hash, written as hexadecimal.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Error, Result};

/// The hash of what a result depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 16]);

impl Key {
    /// The key of anything with a form in JSON.
    ///
    /// # Errors
    /// If it has none.
    pub fn of<T: Serialize>(value: &T) -> Result<Self> {
        let bytes = serde_json::to_vec(value).map_err(|e| Error::Request(e.to_string()))?;
        Ok(Self::of_parts(&[&bytes]))
    }

    /// The key of some bytes in parts; where one part ends matters.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut key = [0; 16];
        key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(key)
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let byte = |i: usize| text.get(2 * i..2 * i + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
        let bytes: Option<Vec<u8>> = (0..16).map(byte).collect();
        match (text.len(), bytes.and_then(|b| b.try_into().ok())) {
            (32, Some(bytes)) => Ok(Self(bytes)),
            _ => Err(serde::de::Error::custom("a key has 32 hexadecimal digits")),
        }
    }
}
