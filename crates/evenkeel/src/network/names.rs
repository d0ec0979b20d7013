//! The names of the tensors that a model's scores or features are made of.
//!
//! In a file, one name is a string and several are a list of strings; `"a + b"`, the older way to write several, is read as that list.

use std::fmt::Display;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What stood between names in older files.
const OLD_SEPARATOR: &str = " + ";

/// The names of one tensor or of several, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorNames(Vec<String>);

impl TensorNames {
    /// The names, to be asked for.
    pub fn list(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }
}

impl Deref for TensorNames {
    type Target = [String];
    fn deref(&self) -> &[String] {
        &self.0
    }
}

impl From<Vec<String>> for TensorNames {
    fn from(names: Vec<String>) -> Self {
        Self(names)
    }
}

/// One name, or several as older files have them: `"a + b"`.
impl From<&str> for TensorNames {
    fn from(text: &str) -> Self {
        Self(text.split(OLD_SEPARATOR).map(|name| name.trim().to_owned()).collect())
    }
}

impl From<String> for TensorNames {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

/// The names with commas between them, for messages.
impl Display for TensorNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl Serialize for TensorNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    One(String),
    Several(Vec<String>),
}

impl<'de> Deserialize<'de> for TensorNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Written::deserialize(deserializer)? {
            Written::One(text) => text.into(),
            Written::Several(names) => Self(names),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        output: TensorNames,
    }

    #[test]
    fn one_name_is_a_string_several_are_a_list_and_the_old_way_is_read() {
        let read = |text: &str| toml::from_str::<Holder>(text).unwrap().output;
        assert_eq!(read("output = \"a\"").list(), ["a"]);
        assert_eq!(read("output = [\"a\", \"b\"]").list(), ["a", "b"]);
        assert_eq!(read("output = \"a + b\""), read("output = [\"a\", \"b\"]"));
        for text in ["output = \"a\"\n", "output = [\"a\", \"b\"]\n"] {
            assert_eq!(toml::to_string(&Holder { output: read(text) }).unwrap(), text);
        }
        assert_eq!(read("output = \"a + b\"").to_string(), "a, b");
        assert!(toml::from_str::<Holder>("output = 3").is_err());
    }
}
