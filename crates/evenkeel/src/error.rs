//! What can go wrong in the method: one enum, each variant a sentence that names what and where.
//!
//! Anything a user hands over (files, sizes, labels, settings) ends here as an `Err`, never as a panic.

use std::path::{Path, PathBuf};

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, with the facts a person needs to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a file.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file is not the picture it should be: empty, cut short, of an unknown format, or damaged.
    #[error("{path}: {reason}", path = path.display())]
    Picture {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A picture announces more pixels than this program will allocate for.
    #[error("{path}: the header announces {width}x{height} pixels, more than the {limit} million accepted", path = path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Pixels across.
        width: usize,
        /// Pixels down.
        height: usize,
        /// The limit, in millions of pixels.
        limit: usize,
    },
    /// Two things that must have the same size do not.
    #[error("{what}: expected {expected}, got {got}")]
    Mismatch {
        /// What was compared.
        what: String,
        /// What it should be.
        expected: String,
        /// What it is.
        got: String,
    },
    /// A label stands outside the classes of the network or palette.
    #[error("{what}: label {label} has no class or colour; there are {classes} (0 to {last}, and 255 for ignored pixels)", last = classes.saturating_sub(1))]
    UnknownClass {
        /// Where the label was met.
        what: String,
        /// The label.
        label: usize,
        /// How many classes there are.
        classes: usize,
    },
    /// A setting has a value that makes no sense.
    #[error("{what}: {reason}")]
    Setting {
        /// The setting, as the user names it.
        what: String,
        /// Why it cannot be used.
        reason: String,
    },
    /// A settings file cannot be read as one.
    #[error("{path}: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        reason: String,
    },
    /// The network refused or failed.
    #[error("network: {source}")]
    Network {
        /// What the executor said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A network's file cannot be used, or its contract does not fit it.
    #[error("{path}: {source}", path = path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A number that must be finite is not.
    #[error("{0} is not a finite number; the weights or the input hold NaN or infinity")]
    NotFinite(String),
    /// Somebody raised the flag of an [`Interruptible`](crate::network::Interruptible) network.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// An operating system error with the file it happened on.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// What an executor said.
    pub fn network(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Network { source: source.into() }
    }

    /// What is wrong with a network's file.
    pub(crate) fn in_model(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Model { path: path.to_owned(), source: source.into() }
    }

    /// A refused setting.
    pub fn setting(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Setting { what: what.into(), reason: reason.into() }
    }

    /// A difference between what was expected and what came.
    pub fn mismatch(what: impl Into<String>, expected: impl ToString, got: impl ToString) -> Self {
        Self::Mismatch { what: what.into(), expected: expected.to_string(), got: got.to_string() }
    }

    pub(crate) fn picture(path: &Path, reason: impl ToString) -> Self {
        Self::Picture { path: path.to_owned(), reason: reason.to_string() }
    }
}
