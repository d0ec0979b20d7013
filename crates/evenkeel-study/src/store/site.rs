//! Where the results of a study are: a folder, or a place elsewhere (`evenkeel_data::objects`) with a folder here that mirrors it.
//!
//! Logs of items never change, so what is here of them is not fetched again. Invariant: the place is what counts; the mirror can be deleted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenkeel_data::objects::{Folder, Objects, cache, is_url, open};

use crate::experiment::Design;
use crate::key::Key;
use crate::{Error, Result};

/// Where a study's results are: a folder, or a URL with a folder here that mirrors it.
#[derive(Clone)]
pub struct Site {
    folder: PathBuf,
    remote: Option<Arc<dyn Objects>>,
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
        Self::mirrored(folder, open(&url)?)
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

    /// Brings here what is there and not here: logs, which never change, and the design; takes away copies of what is not there any more. Says how
    /// many logs came.
    ///
    /// # Errors
    /// If the place does not answer, or this disk is full.
    pub fn refresh(&self) -> Result<usize> {
        let Some(remote) = &self.remote else { return Ok(0) };
        let here = Folder(self.folder.clone());
        let mut came = 0;
        let is_item = |name: &str| name.starts_with("item-") && name.ends_with(".log");
        // first what is here: what another process here publishes meanwhile is there by then
        let copies = here.list()?.into_iter().filter(|object| is_item(&object.name));
        let mut gone: BTreeSet<String> = copies.map(|object| object.name).collect();
        for object in remote.list()? {
            let (name, bytes) = (object.name, object.bytes);
            gone.remove(&name);
            let log = is_item(&name);
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
        for name in gone {
            let path = self.folder.join(name);
            match std::fs::remove_file(&path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::io(path, e)),
                _ => {}
            }
        }
        Ok(came)
    }

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
