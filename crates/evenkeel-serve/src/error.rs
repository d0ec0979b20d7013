//! What can go wrong in the server: one enum, each variant a sentence; the ones that a request can cause have an HTTP status.
//!
//! Whatever a client sends ends here, never in a panic, and every answer to it is `{"error": "…"}`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, with the facts a person needs to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be listened on.
    #[error("{address}: cannot listen: {source}; choose another with --host and --port")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The operating system refused a file or a thread.
    #[error("{what}: {source}")]
    Io {
        /// The file, or what was to be done.
        what: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The server cannot be set up so.
    #[error("{what}: {reason}")]
    Setup {
        /// The option.
        what: String,
        /// Why it cannot be used.
        reason: String,
    },
    /// A part of a request is not what it should be.
    #[error("{what}: {reason}")]
    Malformed {
        /// The part.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A part of a request is larger than the server takes.
    #[error("{what}: more than the {limit} {unit} accepted here")]
    TooLarge {
        /// The part.
        what: &'static str,
        /// The most that is accepted.
        limit: usize,
        /// What is counted.
        unit: &'static str,
    },
    /// There is no such model.
    #[error("model {name}: is not served here; there are {known}")]
    NoModel {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// There is no such page.
    #[error("{path}: no such endpoint; /openapi.json lists them")]
    NoRoute {
        /// The path asked for.
        path: String,
    },
    /// The endpoint exists, but not with this method.
    #[error("{method} {path}: this endpoint has no such method; /openapi.json lists them")]
    NoMethod {
        /// The method.
        method: String,
        /// The path.
        path: String,
    },
    /// The body is in a form that is not read here.
    #[error("{what} {value}: is not read here; {accepted}")]
    Unsupported {
        /// The header.
        what: &'static str,
        /// Its value.
        value: String,
        /// What is.
        accepted: &'static str,
    },
    /// The token is missing or wrong.
    #[error("a token is needed: send the header `Authorization: Bearer TOKEN`")]
    Unauthorized,
    /// There is more work than fits.
    #[error("the server is busy; try again in {} s", retry_after.as_secs())]
    Full {
        /// When to try again, in whole seconds.
        retry_after: Duration,
    },
    /// The requests that are being read, wait or are computed hold as much as they may.
    #[error("the server is busy: requests hold the {limit} bytes that they may together; try again in 1 s")]
    NoRoom {
        /// The most bytes.
        limit: usize,
    },
    /// The request waited or ran for too long.
    #[error("no answer within {} s", limit.as_secs_f64())]
    Deadline {
        /// The time there was.
        limit: Duration,
    },
    /// The body did not come in time.
    #[error("the body did not arrive within {} s", limit.as_secs_f64())]
    SlowBody {
        /// The time there was.
        limit: Duration,
    },
    /// The client stopped sending.
    #[error("the body broke off")]
    Broken,
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Draining,
    /// The worker that had the request failed; it was replaced.
    #[error("an internal error; the request was not answered and the worker was replaced")]
    Panicked,
    /// The method refused.
    #[error(transparent)]
    Method(#[from] evenkeel::Error),
}

impl Error {
    /// A part of a request that is wrong.
    pub(crate) fn malformed(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Malformed { what: shortened(what.into()), reason: shortened(reason.into()) }
    }

    /// What the operating system said about a file.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let what = path.into().display().to_string();
        move |source| Self::Io { what, source }
    }

    /// An option that cannot be used.
    pub fn setup(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Setup { what: what.into(), reason: reason.into() }
    }

    /// The HTTP status that tells a client of it.
    pub fn status(&self) -> u16 {
        match self {
            Self::Malformed { .. } | Self::Broken => 400,
            Self::Unauthorized => 401,
            Self::NoModel { .. } | Self::NoRoute { .. } => 404,
            Self::NoMethod { .. } => 405,
            Self::SlowBody { .. } => 408,
            Self::TooLarge { .. } => 413,
            Self::Unsupported { .. } => 415,
            Self::Full { .. } | Self::NoRoom { .. } => 429,
            Self::Draining => 503,
            Self::Deadline { .. } => 504,
            Self::Method(error) => method_status(error),
            Self::Bind { .. } | Self::Io { .. } | Self::Setup { .. } | Self::Panicked => 500,
        }
    }
}

/// A part of a message, which may hold what a client sent: at most so much of it.
fn shortened(mut text: String) -> String {
    const MOST: usize = 600;
    if text.len() > MOST {
        text.truncate((0..=MOST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0));
        text.push('…');
    }
    text
}

/// What a client can put right is its own error; what the network or the disk did is the server's.
fn method_status(error: &evenkeel::Error) -> u16 {
    match error {
        evenkeel::Error::TooLarge { .. } => 413,
        evenkeel::Error::Io { .. }
        | evenkeel::Error::File { .. }
        | evenkeel::Error::Network { .. }
        | evenkeel::Error::Model { .. } => 500,
        _ => 400,
    }
}
