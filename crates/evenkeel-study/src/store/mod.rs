//! The store of a study: a folder with the design, one append-only log for each shard, and a lock for each log.
//!
//! ```text
//! DIR/study.json            the design, as last run         DIR/shard-1-of-1.log     results as they came
//! DIR/experiment.toml       the experiment, for people      DIR/shard-1-of-1.lock    held while a process writes the log
//! ```
//!
//! A result belongs to a key (what was done, see `experiment::design`) and an image. The index in memory knows where each lies; the results
//! themselves stay on disk, so memory grows by some bytes a result and not with images. Later results replace earlier ones of the
//! same key and image. Logs named `item-*.log` were created whole, by work items (`run/item.rs`) or by publishing (`publish.rs`), and never change. Invariant: what [`Store::append`] has returned from is not lost when the process is killed.

mod frame;
mod log;
mod publish;
mod site;

#[cfg(test)]
mod tests;

pub use evenkeel_data::objects::{Folder, Objects};
pub use log::Log;
pub use site::Site;

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use evenkeel::image::write_atomically;

use crate::experiment::Design;
use crate::key::Key;
use crate::record::Entry;
use crate::{Error, Result};

/// A part of a study: the images whose number leaves this remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub number: usize,
    /// How many there are.
    pub count: usize,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { number: 1, count: 1 };

    /// From `3/16`.
    ///
    /// # Errors
    /// In words.
    pub fn parse(text: &str) -> Result<Self> {
        let parts = text.split_once('/').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        match parts {
            Some((number, count)) if (1..=count).contains(&number) => Ok(Self { number, count }),
            _ => Err(Error::Request(format!("shard {text}: write NUMBER/COUNT, 1/16 to 16/16 say"))),
        }
    }

    /// Whether the image at this place is in it.
    pub fn has(self, place: usize) -> bool {
        place % self.count == self.number - 1
    }

    fn stem(self) -> String {
        format!("shard-{}-of-{}", self.number, self.count)
    }
}

/// Where a result lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    log: u32,
    offset: u64,
    image: Key,
    made_at_ms: u64,
}

/// The results of a study, and a log to add to.
pub struct Store {
    folder: PathBuf,
    logs: Vec<Log>,
    index: HashMap<Key, Place>,
    /// The log that is written, and the lock that is held for it.
    own: Option<(usize, File)>,
    amiss: Vec<String>,
    /// Logs that are open to be read, by their number.
    open: Mutex<HashMap<u32, File>>,
    publishing: Option<publish::Publishing>,
}

/// Logs that are open at a time: fewer than any system allows.
const OPEN: usize = 200;

/// The key of a result: what was done, and to which image.
fn place_key(key: &Key, image: &str) -> Key {
    Key::of_parts(&[&key.bytes(), image.as_bytes()])
}

/// The logs of a folder, in the order of their names.
fn log_paths(folder: &Path) -> Result<Vec<PathBuf>> {
    let fail = |e| Error::io(folder, e);
    let entries = std::fs::read_dir(folder).map_err(fail)?;
    let paths = entries.map(|e| Ok(e?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut paths = paths.map_err(fail)?;
    paths.retain(|p| p.extension().is_some_and(|e| e == "log"));
    paths.sort();
    Ok(paths)
}

/// Whether a log was created whole and never changes.
fn is_item(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("item-"))
}

/// Reads a log into the index; of two results of one key and image the later counts.
fn index_log(path: &Path, log: u32, index: &mut HashMap<Key, Place>) -> Result<Log> {
    Log::read(path, |offset, payload| {
        let entry = Entry::parse(payload).map_err(|reason| Error::File { path: path.to_owned(), reason })?;
        let place = Place { log, offset, image: entry.image, made_at_ms: entry.clock.made_at_ms };
        let kept = index.entry(place_key(&entry.key, &entry.id)).or_insert(place);
        if kept.made_at_ms <= place.made_at_ms {
            *kept = place;
        }
        Ok(())
    })
}

impl Store {
    /// Opens a folder to read what is there.
    ///
    /// # Errors
    /// If a log cannot be read.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut store = Self {
            folder: folder.to_owned(),
            logs: Vec::new(),
            index: HashMap::new(),
            own: None,
            amiss: Vec::new(),
            open: Mutex::default(),
            publishing: None,
        };
        for path in log_paths(folder)? {
            store.take_in(&path)?;
        }
        Ok(store)
    }

    /// Opens a folder to add the results of a shard, making the folder if need be. A result cut short by a crash is cut off.
    ///
    /// # Errors
    /// If another process writes this shard, the folder cannot be written, or a log cannot be read.
    pub fn open(folder: &Path, shard: Shard) -> Result<Self> {
        let fail = |e: std::io::Error| Error::File {
            path: folder.to_owned(),
            reason: format!("cannot be written ({e}); name another folder with --out"),
        };
        std::fs::create_dir_all(folder).map_err(fail)?;
        let lock_path = folder.join(format!("{}.lock", shard.stem()));
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path).map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let reason = format!(
                    "another process is running shard {}/{} of this study here; wait for it, or run another shard",
                    shard.number, shard.count
                );
                return Err(Error::File { path: folder.to_owned(), reason });
            }
            Err(TryLockError::Error(e)) => return Err(Error::io(lock_path, e)),
        }
        let path = folder.join(format!("{}.log", shard.stem()));
        let mended = Log::mend(&path)?;
        let mut store = Self::read(folder)?;
        let own = match store.logs.iter().position(|l| l.path() == path) {
            Some(own) => {
                store.logs[own].open_to_write()?;
                own
            }
            None => {
                store.logs.push(Log::create(&path)?);
                store.logs.len() - 1
            }
        };
        store.own = Some((own, lock));
        store.amiss.extend(mended);
        Ok(store)
    }

    fn take_in(&mut self, path: &Path) -> Result<()> {
        let read = index_log(path, self.logs.len() as u32, &mut self.index)?;
        self.amiss.extend(read.complaints());
        self.logs.push(read);
        Ok(())
    }

    /// Takes in what other shards have written since this was opened.
    ///
    /// # Errors
    /// If a log cannot be read.
    pub fn look_again(&mut self) -> Result<()> {
        if let Some(publishing) = &self.publishing {
            publishing.site.refresh()?;
        }
        let own = self.own.as_ref().map(|(own, _)| self.logs[*own].path().to_owned());
        let known: HashMap<PathBuf, usize> =
            self.logs.iter().enumerate().map(|(number, log)| (log.path().to_owned(), number)).collect();
        for path in log_paths(&self.folder)? {
            if Some(&path) == own.as_ref() {
                continue;
            }
            match known.get(&path).copied() {
                Some(_) if is_item(&path) => {}
                Some(known) => self.logs[known] = index_log(&path, known as u32, &mut self.index)?,
                None => self.take_in(&path)?,
            }
        }
        Ok(())
    }

    /// What was found amiss on opening, in words.
    pub fn amiss(&self) -> &[String] {
        &self.amiss
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many results there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Whether there is a result for this key and image; with the image's hash, whether it is for the same bytes.
    pub fn has(&self, key: &Key, id: &str, image: Option<&Key>) -> bool {
        let place = self.index.get(&place_key(key, id));
        place.is_some_and(|p| image.is_none_or(|image| p.image == *image))
    }

    /// The result for this key and image, with its picture if it has one.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn get(&self, key: &Key, id: &str) -> Result<Option<(Entry, Vec<u8>)>> {
        let Some(place) = self.index.get(&place_key(key, id)) else { return Ok(None) };
        let log = &self.logs[place.log as usize];
        let payload = {
            let mut open = self.open.lock().unwrap_or_else(|e| e.into_inner());
            if open.len() >= OPEN && !open.contains_key(&place.log) {
                open.clear();
            }
            let file = match open.entry(place.log) {
                std::collections::hash_map::Entry::Occupied(file) => file.into_mut(),
                std::collections::hash_map::Entry::Vacant(none) => none.insert(log.open()?),
            };
            log.at(file, place.offset)?
        };
        let fail = |reason| Error::File { path: log.path().to_owned(), reason };
        let entry = Entry::parse(&payload).map_err(fail)?;
        let picture = Entry::picture(&payload).to_vec();
        Ok(Some((entry, picture)))
    }

    /// Adds a result. It is safe from this process's death once this returns.
    ///
    /// # Errors
    /// If the disk refuses; what was there before stays as it was.
    pub fn append(&mut self, entry: &Entry, picture: &[u8]) -> Result<()> {
        let Some((own, _)) = &self.own else {
            return Err(Error::Request("this store was opened to be read only".into()));
        };
        let log = &mut self.logs[*own];
        let offset = log.append(&entry.payload(picture)?)?;
        let place =
            Place { log: *own as u32, offset, image: entry.image, made_at_ms: entry.clock.made_at_ms };
        self.index.insert(place_key(&entry.key, &entry.id), place);
        Ok(())
    }

    /// Adds what another store has of a design and this one has not; says how many results that were.
    ///
    /// # Errors
    /// If two results of one image are of different pixels, or a store cannot be read or written.
    pub fn take_from(&mut self, other: &Self, design: &Design) -> Result<usize> {
        let mut taken = 0;
        for (subject, card) in design.subjects.iter().enumerate() {
            for key in design.keys(subject) {
                for id in &card.images {
                    let Some((entry, picture)) = other.get(&key, id)? else { continue };
                    if self.has(&key, id, Some(&entry.image)) {
                        continue;
                    }
                    if self.has(&key, id, None) {
                        let words = "has other pixels in another shard; run the shards on the same images";
                        return Err(Error::Request(format!("{} {id}: {words}", card.rule.name)));
                    }
                    self.append(&entry, &picture)?;
                    taken += 1;
                }
            }
        }
        Ok(taken)
    }

    /// The log that is written.
    pub fn own_path(&self) -> Option<&Path> {
        self.own.as_ref().map(|(own, _)| self.logs[*own].path())
    }

    /// The file name of the log that holds the result for this key and image.
    pub fn log_of(&self, key: &Key, id: &str) -> Option<&str> {
        let place = self.index.get(&place_key(key, id))?;
        self.logs[place.log as usize].path().file_name()?.to_str()
    }

    /// Brings everything to the disk itself, and from time to time to where it is published.
    ///
    /// # Errors
    /// If the disk or that place refuses.
    pub fn sync(&mut self) -> Result<()> {
        if let Some((own, _)) = &self.own {
            self.logs[*own].sync()?;
        }
        self.publish_if_due()
    }

    /// Keeps the design beside the logs.
    ///
    /// # Errors
    /// If it cannot be written, or another process is at work on another experiment here.
    pub fn keep_design(&self, design: &Design) -> Result<()> {
        // one that cannot be read is written anew: results are in the logs
        let before = read_design(&self.folder).unwrap_or(None);
        if before.as_ref() != Some(design) {
            if let Some(other) = self.others_at_work()?.filter(|_| before.is_some()) {
                let reason = format!(
                    "{other} is running another experiment here; wait for it, or name another folder with --out"
                );
                return Err(Error::File { path: self.folder.clone(), reason });
            }
            // tables of the experiment before would pass for this one's
            for name in publish::tables() {
                let path = self.folder.join(name);
                match std::fs::remove_file(&path) {
                    Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::io(path, e)),
                    _ => {}
                }
            }
        }
        write_atomically(self.folder.join("experiment.toml"), design.experiment.to_toml()?.as_bytes())?;
        write_atomically(self.folder.join("study.json"), design.to_json()?.as_bytes())?;
        self.publish_design()
    }

    /// A lock in the folder that another process holds.
    fn others_at_work(&self) -> Result<Option<String>> {
        let own = self.own.as_ref().map(|(own, _)| self.logs[*own].path().with_extension("lock"));
        let entries = std::fs::read_dir(&self.folder).map_err(|e| Error::io(&self.folder, e))?;
        for entry in entries {
            let path = entry.map_err(|e| Error::io(&self.folder, e))?.path();
            if path.extension().is_some_and(|e| e == "lock") && Some(&path) != own.as_ref() {
                let file = File::open(&path).map_err(|e| Error::io(&path, e))?;
                if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
                    return Ok(path.file_stem().map(|s| s.to_string_lossy().into_owned()));
                }
            }
        }
        Ok(None)
    }
}

/// The design kept in a folder, if there is one.
///
/// # Errors
/// If it cannot be read.
pub fn read_design(folder: &Path) -> Result<Option<Design>> {
    let path = folder.join("study.json");
    match std::fs::read(&path) {
        Ok(bytes) => {
            let design = serde_json::from_slice(&bytes);
            let fail = |e: serde_json::Error| Error::File {
                path,
                reason: format!(
                    "is not a design of this version ({e}); run the study again with its experiment"
                ),
            };
            Ok(Some(design.map_err(fail)?))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(path, e)),
    }
}
