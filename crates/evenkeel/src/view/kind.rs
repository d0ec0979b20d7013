//! The table of kinds of views. Adding one is a file that implements [`View`] and declares its `KIND`, and a line in [`VIEWS`].

use std::sync::Arc;

use super::key::Key;
use super::{View, ViewRule, colour, crop, elastic, flip, gamma, resize, rotate, shear, translate, turn};
use crate::error::{Error, Result};
use crate::random::Random;

/// A kind of view: what it is called, which keys it reads, and how it is drawn.
#[derive(Debug)]
pub struct ViewKind {
    /// Its name in files.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The keys it reads, in the order of files.
    pub keys: &'static [Key],
    /// Draws a view by a rule of this kind.
    pub(super) draw: fn(&ViewRule, &mut Random) -> Arc<dyn View>,
}

/// Every kind of view.
pub static VIEWS: &[ViewKind] = &[
    resize::KIND,
    rotate::KIND,
    flip::KIND,
    turn::KIND,
    crop::KIND,
    translate::KIND,
    colour::KIND,
    shear::KIND,
    gamma::KIND,
    elastic::KIND,
];

impl ViewKind {
    /// The kind of this name.
    ///
    /// # Errors
    /// If there is none; the error lists those there are.
    pub fn named(name: &str) -> Result<&'static Self> {
        VIEWS.iter().find(|kind| kind.name == name).ok_or_else(|| {
            let names: Vec<_> = VIEWS.iter().map(|kind| kind.name).collect();
            Error::setting(format!("view {name}"), format!("is not one of {}", names.join(", ")))
        })
    }

    fn refuse(&self, reason: String) -> Error {
        Error::setting(format!("view {}", self.name), reason)
    }

    pub(super) fn unread(&self, name: &str) -> Error {
        let names: Vec<_> = self.keys.iter().map(|key| key.name).collect();
        self.refuse(format!("does not read {name}; it reads {}", names.join(", ")))
    }

    pub(super) fn missing(&self, key: &Key) -> Error {
        self.refuse(format!("needs {}: {}, {}", key.name, key.help, key.form))
    }

    pub(super) fn refused(&self, key: &Key, given: &serde_json::Value) -> Error {
        self.refuse(format!("{} is {given}, but must be {}", key.name, key.form))
    }
}
