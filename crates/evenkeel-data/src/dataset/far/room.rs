//! How much of other places may lie here: the files used longest ago are emptied to make room for new ones.
//!
//! What lies here is counted by a walk over the folder, again whenever this process has added an eighth of the limit since; so `n` processes that
//! share a cache stay below `1 + n/8` times the limit. A file that somebody reads is locked and stays.

use std::fs::{File, FileTimes};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use crate::{Error, Result, objects};

/// The limit unless `EVENKEEL_CACHE_GB` says otherwise.
const USUAL_GB: f64 = 20.0;
/// A write that a killed process left is taken away after this long.
const LEFT: Duration = Duration::from_secs(24 * 3600);

pub(super) struct Room {
    folder: PathBuf,
    limit: u64,
    state: Mutex<Option<Counted>>,
}

/// What a walk found, and what was added since.
struct Counted {
    there: u64,
    added: u64,
}

impl Room {
    /// The cache of this machine.
    pub(super) fn of_environment() -> Result<Self> {
        let folder = objects::cache()?.join("data");
        let said = std::env::var("EVENKEEL_CACHE_GB").ok().filter(|text| !text.trim().is_empty());
        let wrong = |text: &str| {
            Error::Request(format!("EVENKEEL_CACHE_GB={text}: give a number of gigabytes, 20 say"))
        };
        let gb = match &said {
            None => USUAL_GB,
            Some(text) => text
                .trim()
                .parse()
                .ok()
                .filter(|gb: &f64| *gb > 0.0 && gb.is_finite())
                .ok_or_else(|| wrong(text))?,
        };
        Ok(Self::new(folder, (gb * 1e9) as u64))
    }

    pub(super) fn new(folder: PathBuf, limit: u64) -> Self {
        Self { folder, limit, state: Mutex::new(None) }
    }

    /// Makes room for that many more bytes, which count as there from now on; or says why there is none.
    pub(super) fn make(&self, bytes: u64) -> std::result::Result<(), String> {
        if bytes > self.limit {
            return Err(self.full());
        }
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        let old =
            state.as_ref().is_none_or(|s| s.added > self.limit / 8 || s.there + s.added + bytes > self.limit);
        if old {
            let there = self.emptied_down_to(self.limit.saturating_sub(bytes))?;
            *state = Some(Counted { there, added: 0 });
        }
        if let Some(counted) = state.as_mut() {
            counted.added += bytes;
        }
        Ok(())
    }

    /// Empties files, those used longest ago first, until no more than this is there; a tenth of the limit more at once, so that it is not done
    /// for every file.
    fn emptied_down_to(&self, most: u64) -> std::result::Result<u64, String> {
        let mut files = Vec::new();
        let walked = walk(&self.folder, &mut files);
        walked.map_err(|e| format!("the cache {} cannot be read ({e})", self.folder.display()))?;
        let mut there: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        if there <= most {
            return Ok(there);
        }
        files.sort();
        let goal = most.saturating_sub(self.limit / 10);
        for (_, bytes, path) in files {
            if there <= goal {
                break;
            }
            if emptied(&path).unwrap_or(false) {
                there = there.saturating_sub(bytes);
            }
        }
        if there <= most { Ok(there) } else { Err(self.full()) }
    }

    fn full(&self) -> String {
        let (gb, folder) = (self.limit as f64 / 1e9, self.folder.display());
        format!("there is no room for it: {folder} may hold {gb} GB, and it or what is in use fills that")
    }
}

/// The filled files below a folder: when last used, bytes, path.
fn walk(folder: &Path, all: &mut Vec<(SystemTime, u64, PathBuf)>) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let (entry, used) = match entry.and_then(|entry| entry.metadata().map(|known| (entry, known))) {
            // gone since it was listed
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            found => found?,
        };
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let when = used.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        if used.is_dir() {
            walk(&entry.path(), all)?;
        } else if hidden && entry.file_name().to_string_lossy().starts_with(".part-") {
            if when.elapsed().is_ok_and(|age| age > LEFT) {
                let _ = std::fs::remove_file(entry.path());
            }
        } else if !hidden && used.len() > 0 {
            all.push((when, used.len(), entry.path()));
        }
    }
    Ok(())
}

/// Empties a file, unless somebody reads it.
fn emptied(path: &Path) -> std::io::Result<bool> {
    let file = File::options().write(true).open(path)?;
    if file.try_lock().is_err() {
        return Ok(false);
    }
    file.set_len(0)?;
    file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH))?;
    Ok(true)
}
