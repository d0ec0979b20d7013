//! What can go wrong while training.

use std::path::PathBuf;

/// The error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was wrong.
        reason: String,
    },
    /// A setting that makes no sense.
    #[error("{0}")]
    Setting(String),
    /// The method refused something.
    #[error(transparent)]
    Method(#[from] evenkeel::Error),
    /// The data set refused something.
    #[error(transparent)]
    Data(#[from] evenkeel_data::Error),
    /// The network cannot be read or written.
    #[error(transparent)]
    Network(#[from] evenkeel_network::Error),
    /// The loss is no longer a number.
    #[error("the loss is {loss} at step {step}; a smaller learning rate may help")]
    Diverged {
        /// The step.
        step: usize,
        /// The loss.
        loss: f64,
    },
}

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A file's error.
    pub fn file(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Self::File { path: path.into(), reason: reason.to_string() }
    }
}
