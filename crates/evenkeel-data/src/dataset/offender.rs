//! One thing wrong with one file, said so that its owner can put it right.

use std::fmt;
use std::path::{Path, PathBuf};

/// A file that cannot be used as it is: where, what is wrong, and what would help.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Offender {
    /// The file, or the file an entry stands in.
    pub file: PathBuf,
    /// What is wrong with it.
    pub fault: String,
    /// What would put it right.
    pub remedy: String,
}

impl Offender {
    /// An offender from its three parts.
    pub fn new(file: impl AsRef<Path>, fault: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { file: file.as_ref().to_path_buf(), fault: fault.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Offender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.file.display(), self.fault, self.remedy)
    }
}
