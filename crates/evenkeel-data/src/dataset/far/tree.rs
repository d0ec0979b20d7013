//! What lies at a place, as a tree of files here that are empty until they are needed.
//!
//! A file is filled by a rename, and emptied in place under a lock that nobody shares; who reads it holds a shared lock. So several processes may
//! use one tree. `.objects.json` says which version of each object a file would hold: one that has changed since is emptied when the tree is laid.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use evenkeel::image::write_atomically;

use super::Room;
use crate::dataset::Offender;
use crate::objects::{Folder, Listed, Objects};
use crate::{Error, Result};

/// Where the versions stand.
const INDEX: &str = ".objects.json";

/// Objects by name: length and version.
type Known = BTreeMap<String, (u64, String)>;

pub(super) struct Tree {
    place: Arc<dyn Objects>,
    url: String,
    local: PathBuf,
    known: Known,
    room: Room,
}

/// Whether a name can be a file of the tree: no part of it leads elsewhere or is hidden.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.contains('\\'))
}

impl Tree {
    /// Lays out what is at a place in a folder of this machine.
    pub(super) fn lay(place: Arc<dyn Objects>, url: &str, local: PathBuf, room: Room) -> Result<Self> {
        let listed = place.list_below()?.into_iter().filter(|object| is_plain(&object.name));
        let known: Known = listed.map(|Listed { name, bytes, version }| (name, (bytes, version))).collect();
        if known.is_empty() {
            let remedy = "check bucket and prefix; a prefix is a whole folder name";
            return Err(Error::Offenders(vec![Offender::new(url, "there is nothing below it", remedy)]));
        }
        let tree = Self { place, url: url.to_string(), local, known, room };
        tree.laid().map_err(|e| Error::io(&tree.local, e))?;
        Ok(tree)
    }

    /// Makes the files, empties those of other versions and takes away those whose object is gone.
    fn laid(&self) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.local)?;
        let index = self.local.join(INDEX);
        let before: Known = std::fs::read(&index)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        for name in before.keys().filter(|name| !self.known.contains_key(*name)) {
            let _ = std::fs::remove_file(self.local.join(name));
        }
        let mut folder = PathBuf::new();
        for (name, now) in &self.known {
            let path = self.local.join(name);
            if before.get(name).is_some_and(|then| then == now) && path.is_file() {
                continue;
            }
            let above = path.parent().unwrap_or(&self.local);
            if folder != above {
                std::fs::create_dir_all(above)?;
                folder = above.to_owned();
            }
            // a new file, so that whoever reads the version before goes on reading it
            let _ = std::fs::remove_file(&path);
            File::create(&path)?;
        }
        if before != self.known {
            write_atomically(&index, &serde_json::to_vec(&self.known)?).map_err(std::io::Error::other)?;
        }
        Ok(())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(String::as_str)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.local.clone() } else { self.local.join(name) }
    }

    /// The name of the object that a file stands for.
    fn name_of(&self, file: &Path) -> Option<String> {
        let inner = file.strip_prefix(&self.local).ok()?;
        let parts: Vec<_> = inner.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        Some(parts.join("/"))
    }

    /// Whether a file is as long as its object.
    fn is_here(&self, name: &str) -> bool {
        let here = std::fs::metadata(self.local.join(name)).map(|known| known.len());
        here.is_ok_and(|here| self.known.get(name).is_some_and(|(bytes, _)| *bytes == here))
    }

    pub(super) fn all_here(&self, files: &[PathBuf]) -> bool {
        files.iter().filter_map(|file| self.name_of(file)).all(|name| self.is_here(&name))
    }

    /// Brings the objects of these files here, and keeps them while the answer lives.
    pub(super) fn hold_all(&self, files: &[PathBuf]) -> std::result::Result<Vec<File>, Offender> {
        let names = files.iter().filter_map(|file| self.name_of(file));
        names.filter(|name| self.known.contains_key(name)).map(|name| self.hold(&name)).collect()
    }

    /// Brings an object here, and keeps it while the answer lives.
    pub(super) fn hold(&self, name: &str) -> std::result::Result<File, Offender> {
        let path = self.local.join(name);
        let fail = |e: std::io::Error| {
            Offender::new(
                &path,
                format!("the copy here cannot be used ({e})"),
                "make room, or set EVENKEEL_CACHE",
            )
        };
        for _ in 0..super::TRIES {
            if let Ok(file) = File::open(&path) {
                // a file system without locks has nobody who would take the file away
                let _ = file.lock_shared();
                if self.is_here(name) && file.metadata().map_err(fail)?.len() == self.known[name].0 {
                    let _ = file.set_modified(SystemTime::now());
                    return Ok(file);
                }
            }
            self.fetch(name)?;
        }
        let fault = "was fetched and taken away again by other processes";
        Err(Offender::new(self.abroad_path(&path), fault, "set EVENKEEL_CACHE_GB to more"))
    }

    fn fetch(&self, name: &str) -> std::result::Result<(), Offender> {
        let offender = |fault: String, remedy: &str| {
            Offender::new(self.abroad_path(&self.local.join(name)), fault, remedy)
        };
        let (bytes, _) = &self.known[name];
        self.room.make(*bytes).map_err(|fault| offender(fault, "set EVENKEEL_CACHE_GB to more"))?;
        let object =
            self.place.read(name).map_err(|e| offender(e.to_string(), "run the same command again"))?;
        let object =
            object.ok_or_else(|| offender("is not there any more".into(), "run the same command again"))?;
        if object.len() as u64 != *bytes {
            let fault = format!("was {bytes} bytes long when listed and is {} now", object.len());
            return Err(offender(fault, "run the same command again when nobody changes the data"));
        }
        let kept = Folder(self.local.clone()).put(name, object);
        kept.map_err(|e| offender(e.to_string(), "make room, or set EVENKEEL_CACHE"))
    }

    /// The URL of a file of the tree.
    fn abroad_path(&self, file: &Path) -> PathBuf {
        match self.name_of(file) {
            Some(name) if name.is_empty() => self.url.clone().into(),
            Some(name) => format!("{}/{name}", self.url).into(),
            None => file.to_owned(),
        }
    }

    fn abroad_words(&self, words: &str) -> String {
        words.replace(&*self.local.to_string_lossy(), &self.url)
    }

    /// An offender under its URL.
    pub(super) fn named(&self, offender: Offender) -> Offender {
        let Offender { file, fault, remedy } = offender;
        Offender::new(self.abroad_path(&file), self.abroad_words(&fault), self.abroad_words(&remedy))
    }

    /// An error whose files are under their URLs.
    pub(super) fn abroad(&self, error: Error) -> Error {
        match error {
            Error::Offenders(all) => Error::Offenders(all.into_iter().map(|one| self.named(one)).collect()),
            Error::Io { path, source } => Error::Io { path: self.abroad_path(&path), source },
            other => other,
        }
    }
}
