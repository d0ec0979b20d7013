//! What can go wrong in a study: files that are not what they should be, and questions that have no answer.

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
    /// A file that is not what it should be.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// The method refused or failed.
    #[error(transparent)]
    Method(#[from] evenkeel::Error),
    /// A data set, a mask or a metric was refused.
    #[error(transparent)]
    Data(#[from] evenkeel_data::Error),
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
