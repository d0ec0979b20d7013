//! Places beyond one disk: named objects that are created once, whole or not at all.
//!
//! A folder is one such place, a prefix in an object store (`bucket.rs`, the cargo feature `remote`) another; nothing above this file knows which.
//! Results of studies are kept in them, and data sets are read from them (`dataset/far.rs`). Invariant: of all that create an object of one name,
//! at whatever time, one succeeds and the others get an error that says so; nobody ever reads half an object.

#[cfg(feature = "remote")]
mod bucket;
mod folder;

pub use folder::Folder;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Error, Result};

/// An object as a list names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Its name below the place, with forward slashes.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// What changes when the object does: the store's tag, or nothing.
    pub version: String,
}

/// A place for objects.
pub trait Objects: Send + Sync {
    /// Every object directly in it, by name.
    ///
    /// # Errors
    /// If the place does not answer.
    fn list(&self) -> Result<Vec<Listed>>;

    /// Every object below it, by name.
    ///
    /// # Errors
    /// If the place does not answer.
    fn list_below(&self) -> Result<Vec<Listed>>;

    /// An object, if there is one of this name.
    ///
    /// # Errors
    /// If the place does not answer.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>>;

    /// Makes an object that is not there yet; false if there is one of this name, which stays as it is.
    ///
    /// # Errors
    /// If the place does not answer, or refuses.
    fn create(&self, name: &str, bytes: Vec<u8>) -> Result<bool>;

    /// Makes an object, or replaces it.
    ///
    /// # Errors
    /// If the place does not answer, or refuses.
    fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()>;
}

/// Whether this names an object store.
pub fn is_url(place: &Path) -> bool {
    place.to_str().is_some_and(|text| text.contains("://"))
}

/// Where this machine keeps copies of what lies elsewhere: `EVENKEEL_CACHE`, or `evenkeel` in the user's cache folder.
///
/// # Errors
/// If neither is known.
pub fn cache() -> Result<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let usual = || var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|home| home.join(".cache")));
    let found = var("EVENKEEL_CACHE").or_else(|| usual().map(|folder| folder.join("evenkeel")));
    found.ok_or_else(|| {
        Error::Request("set EVENKEEL_CACHE to a folder for copies of what lies elsewhere".into())
    })
}

/// The place of a URL (`s3://bucket/prefix`, `gs://`, `az://`). Credentials come from the environment.
///
/// # Errors
/// If the URL is of no known kind, or this build has no network.
#[cfg(feature = "remote")]
pub fn open(url: &str) -> Result<Arc<dyn Objects>> {
    Ok(Arc::new(bucket::Bucket::open(url)?))
}

/// The place of a URL; this build has no network.
///
/// # Errors
/// Always.
#[cfg(not(feature = "remote"))]
pub fn open(url: &str) -> Result<Arc<dyn Objects>> {
    let words = "this build knows folders only; build with `--features remote` for object stores";
    Err(Error::Request(format!("{url}: {words}")))
}
