//! Where results may be kept beyond one disk: named objects that are created once, whole or not at all.
//!
//! A folder is one such place, a prefix in an object store (`remote.rs`, a cargo feature) another; nothing above this file knows which. Invariant:
//! of all that create an object of one name, at whatever time, one succeeds and the others are told so; nobody ever reads half an object.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::experiment::Design;
use crate::key::Key;
use crate::{Error, Result};

/// An object's name and its bytes.
pub(super) type Listed = (String, u64);

/// A place for objects.
pub trait Objects: Send + Sync {
    /// Every object directly in it, by name.
    ///
    /// # Errors
    /// If the place does not answer.
    fn list(&self) -> Result<Vec<Listed>>;

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

/// A folder as a place for objects.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Folder {
    /// The bytes in a file beside the one they are for.
    fn written(&self, bytes: &[u8]) -> Result<tempfile::NamedTempFile> {
        let refused = |e: std::io::Error| Error::File {
            path: self.0.clone(),
            reason: format!("a result could not be written ({e}); make room and run the same command again"),
        };
        std::fs::create_dir_all(&self.0).map_err(refused)?;
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let mut file = builder.prefix(".part-").tempfile_in(&self.0).map_err(refused)?;
        file.write_all(bytes).and_then(|()| file.as_file().sync_data()).map_err(refused)?;
        Ok(file)
    }
}

impl Objects for Folder {
    fn list(&self) -> Result<Vec<Listed>> {
        let fail = |e| Error::io(&self.0, e);
        let mut all = Vec::new();
        let entries = match std::fs::read_dir(&self.0) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(all),
            entries => entries.map_err(fail)?,
        };
        for entry in entries {
            let entry = entry.map_err(fail)?;
            let known = entry.metadata().map_err(fail)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if known.is_file() && !name.starts_with('.') {
                all.push((name, known.len()));
            }
        }
        all.sort();
        Ok(all)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.0.join(name);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io(path, e)),
        }
    }

    fn create(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        let path = self.0.join(name);
        match self.written(&bytes)?.persist_noclobber(&path) {
            Ok(_) => Ok(true),
            Err(e) if e.error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(Error::io(path, e.error)),
        }
    }

    fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        let path = self.0.join(name);
        self.written(&bytes)?.persist(&path).map_err(|e| Error::io(path, e.error))?;
        Ok(())
    }
}

/// Where a study's results are: a folder, or a URL with a folder here that mirrors it.
#[derive(Clone)]
pub struct Site {
    folder: PathBuf,
    remote: Option<Arc<dyn Objects>>,
}

/// Whether this names an object store.
pub fn is_url(place: &Path) -> bool {
    place.to_str().is_some_and(|text| text.contains("://"))
}

impl Site {
    /// From a folder's path or a URL (`s3://`, `gs://`, `az://`). Credentials come from the environment.
    ///
    /// # Errors
    /// If the URL is of no known kind, or this build has no network.
    pub fn at(place: &Path) -> Result<Self> {
        if !is_url(place) {
            return Ok(Self { folder: place.to_owned(), remote: None });
        }
        let url = place.to_string_lossy().trim_end_matches('/').to_string();
        let folder = cache()?.join("studies").join(Key::of_parts(&[url.as_bytes()]).to_string());
        Self::mirrored(folder, remote(&url)?)
    }

    /// A folder that mirrors a place.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn mirrored(folder: PathBuf, remote: Arc<dyn Objects>) -> Result<Self> {
        std::fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
        Ok(Self { folder, remote: Some(remote) })
    }

    /// The folder on this machine.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the folder only mirrors what lies elsewhere.
    pub fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// The place itself.
    pub fn objects(&self) -> Arc<dyn Objects> {
        self.remote.clone().unwrap_or_else(|| Arc::new(Folder(self.folder.clone())))
    }

    /// Brings here what is there and not here: logs, which never change, and the design. Says how many logs came.
    ///
    /// # Errors
    /// If the place does not answer, or this disk is full.
    pub fn refresh(&self) -> Result<usize> {
        let Some(remote) = &self.remote else { return Ok(0) };
        let here = Folder(self.folder.clone());
        let mut came = 0;
        for (name, bytes) in remote.list()? {
            let log = name.starts_with("item-") && name.ends_with(".log");
            let path = self.folder.join(&name);
            let known = std::fs::metadata(&path).is_ok_and(|there| log && there.len() == bytes);
            if known || !(log || name == "study.json" || name == "experiment.toml") {
                continue;
            }
            if let Some(bytes) = remote.read(&name)? {
                here.put(&name, bytes)?;
                came += usize::from(log);
            }
        }
        Ok(came)
    }
}

impl Site {
    /// Keeps the design there, before any result.
    ///
    /// # Errors
    /// If the place does not answer or refuses.
    pub fn keep_design(&self, design: &Design) -> Result<()> {
        let json = design.to_json()?.into_bytes();
        let place = self.objects();
        if place.read("study.json")?.as_ref() != Some(&json) {
            place.put("experiment.toml", design.experiment.to_toml()?.into_bytes())?;
            place.put("study.json", json)?;
        }
        Ok(())
    }
}

impl Site {
    /// Brings the tables of the folder to where it mirrors from.
    ///
    /// # Errors
    /// If that place does not answer.
    pub fn publish_tables(&self) -> Result<()> {
        self.publish(&super::publish::tables())
    }

    /// Brings files of the folder to where it mirrors from, as they are.
    pub(super) fn publish(&self, names: &[String]) -> Result<()> {
        let Some(remote) = &self.remote else { return Ok(()) };
        for name in names {
            let path = self.folder.join(name);
            if path.exists() {
                let bytes = std::fs::read(&path).map_err(|e| Error::io(&path, e))?;
                remote.put(name, bytes)?;
            }
        }
        Ok(())
    }
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

#[cfg(feature = "remote")]
fn remote(url: &str) -> Result<Arc<dyn Objects>> {
    Ok(Arc::new(super::remote::Bucket::open(url)?))
}

#[cfg(not(feature = "remote"))]
fn remote(url: &str) -> Result<Arc<dyn Objects>> {
    let words = "this build knows folders only; build with `--features remote` for object stores";
    Err(Error::Request(format!("{url}: {words}")))
}
