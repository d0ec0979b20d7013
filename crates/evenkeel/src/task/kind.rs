//! The table of tasks: what a contract may say, what it must say beside it, and how the task is made. Adding one is a folder and a line.

use evenkeel_network::zoo::Checkpoint;
use serde::de::DeserializeOwned;

use super::{Signs, Task, classification, instance, regression, semantic};
use crate::error::{Error, Result};
use crate::network::TensorNames;

/// The output and the feature of a contract.
pub type OwnTensors = (Option<TensorNames>, Option<TensorNames>);

type Make = fn(Option<&toml::Table>, Option<&Checkpoint>) -> Result<Box<dyn Task>>;

/// One task of the table.
pub struct TaskKind {
    /// Its name in contracts; a table of that name in the contract belongs to it.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The metric that sums up its answers over images, by its name in the table of metrics.
    pub figure: &'static str,
    /// Whether the error of its answers can be estimated from how views differ.
    pub estimates_error: bool,
    /// What the contract's table may hold.
    pub keys: &'static [TaskKey],
    /// The contract's output and feature, where its table leaves no choice.
    pub tensors: fn(&toml::Table) -> Result<OwnTensors>,
    /// What a graph tells of it.
    pub signs: Signs,
    pub(super) check: fn(Option<&toml::Table>) -> Result<()>,
    pub(super) make: Make,
}

/// One key of a task's table in the contract.
#[derive(Clone, Copy, Debug)]
pub struct TaskKey {
    /// The key.
    pub name: &'static str,
    /// What it says, in a line.
    pub help: &'static str,
    /// Its value where none is given, as TOML; none for a key that may be left out or must be given.
    pub default: Option<&'static str>,
}

/// Every task.
pub static TASKS: &[TaskKind] = &[
    classification::KIND,
    semantic::KIND,
    instance::KIND,
    regression::KIND,
    #[cfg(test)]
    super::counting::KIND,
];

impl TaskKind {
    /// The task of this name.
    ///
    /// # Errors
    /// Listing the names there are.
    pub fn find(name: &str) -> Result<&'static Self> {
        TASKS.iter().find(|kind| kind.name == name).ok_or_else(|| {
            Error::setting(format!("task {name}"), format!("is not one of {}", Self::names().join(", ")))
        })
    }

    /// The names of all tasks.
    pub fn names() -> Vec<&'static str> {
        TASKS.iter().map(|kind| kind.name).collect()
    }

    /// Refuses a table of the contract that makes no sense by itself, or is missing.
    ///
    /// # Errors
    /// Naming the key.
    pub fn check(&self, own: Option<&toml::Table>) -> Result<()> {
        (self.check)(own)
    }

    /// The task of a network under its contract's table. `weights` are the network's own with the name of their architecture, for heads that need them.
    ///
    /// # Errors
    /// As [`TaskKind::check`], and if the network is not one whose answers can be read so.
    pub fn make(&self, own: Option<&toml::Table>, weights: Option<&Checkpoint>) -> Result<Box<dyn Task>> {
        self.check(own)?;
        (self.make)(own, weights)
    }
}

/// For tasks whose tensors have to be named.
pub(super) const NO_TENSORS: fn(&toml::Table) -> Result<OwnTensors> = |_| Ok((None, None));

/// A task's table, read as its settings; an empty one if it is left out.
pub(super) fn settings<T: DeserializeOwned>(name: &str, own: Option<&toml::Table>) -> Result<T> {
    let table = own.cloned().unwrap_or_default();
    table.try_into().map_err(|e: toml::de::Error| Error::setting(format!("[{name}]"), e.message().to_owned()))
}

/// For tasks that have nothing to say: refuses a table.
pub(super) fn no_table(name: &'static str, own: Option<&toml::Table>) -> Result<()> {
    match own {
        None => Ok(()),
        Some(_) => Err(Error::setting(format!("[{name}]"), format!("the task {name} reads no table"))),
    }
}
