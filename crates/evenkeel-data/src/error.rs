//! What can go wrong with data: files that are not what they should be, and questions that have no answer.

use crate::dataset::Offender;
use std::path::PathBuf;

/// The error of this crate. Every message names the file and, where there is one, the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A place for objects that does not answer, or refuses.
    #[error("{}: {reason}", path.display())]
    Place {
        /// The folder or the URL.
        path: PathBuf,
        /// What it said, and what to do.
        reason: String,
    },
    /// A mask that is no mask.
    #[error("not a mask: {0}")]
    Mask(String),
    /// Everything that was found wrong with the files of a run, at once.
    #[error("{}", list(.0))]
    Offenders(Vec<Offender>),
    /// The method refused or failed.
    #[error(transparent)]
    Method(#[from] evenkeel::Error),
    /// A request that cannot be met as it stands.
    #[error("{0}")]
    Request(String),
}

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An input or output error with its path.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }
}

fn list(offenders: &[Offender]) -> String {
    let mut text = match offenders.len() {
        1 => "1 offender:".to_string(),
        n => format!("{n} offenders:"),
    };
    for offender in offenders {
        text.push_str("\n  ");
        text.push_str(&offender.to_string());
    }
    text
}
