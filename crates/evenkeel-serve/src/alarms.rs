//! The alarm log: one line of JSON for every image that raised the alarm, appended; the images themselves only if a folder was named for them.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use evenkeel::image::{Image, write_atomically};
use serde::Serialize;

use crate::error::{Error, Result};

/// One alarm.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Alarm<'a> {
    /// Seconds since 1970.
    pub time: f64,
    /// The model.
    pub model: &'a str,
    /// The detection score.
    pub score: f64,
    /// What it was above.
    pub threshold: f64,
    /// BLAKE3 of the image: of the file's bytes, or of a tensor's values.
    pub blake3: &'a str,
    /// Whether the image was defended.
    pub defended: bool,
    /// The request's id, if it had one.
    pub id: Option<String>,
}

/// Where alarms go.
#[derive(Debug, Default)]
pub(crate) struct AlarmLog {
    file: Option<Mutex<File>>,
    keep: Option<Keep>,
}

#[derive(Debug)]
struct Keep {
    folder: PathBuf,
    most_bytes: u64,
    used: Mutex<u64>,
}

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

impl AlarmLog {
    /// A log that appends to a file, keeps images in a folder up to a number of bytes, or neither.
    ///
    /// # Errors
    /// If the file or the folder cannot be opened.
    pub(crate) fn open(file: Option<&PathBuf>, keep: Option<(&PathBuf, u64)>) -> Result<Self> {
        let open = |path: &PathBuf| {
            let file = OpenOptions::new().append(true).create(true).open(path).map_err(Error::io(path))?;
            Ok::<_, Error>(Mutex::new(file))
        };
        let keep = keep.map(|(folder, most_bytes)| {
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
            let files = std::fs::read_dir(folder).map_err(Error::io(folder))?;
            let used = files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len())).sum();
            Ok::<_, Error>(Keep { folder: folder.clone(), most_bytes, used: Mutex::new(used) })
        });
        Ok(Self { file: file.map(open).transpose()?, keep: keep.transpose()? })
    }

    /// Whether anything is done with alarms.
    pub(crate) fn is_idle(&self) -> bool {
        self.file.is_none() && self.keep.is_none()
    }

    /// Writes an alarm down, and keeps the image if there is room.
    ///
    /// # Errors
    /// If a file cannot be written; the request is answered all the same.
    pub(crate) fn write(&self, alarm: &Alarm<'_>, image: &Image) -> Result<()> {
        if let Some(file) = &self.file {
            let mut line = serde_json::to_vec(alarm).unwrap_or_default();
            line.push(b'\n');
            // one write, so that lines of several processes do not mix
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(&line).map_err(Error::io("alarm log"))?;
        }
        let Some(keep) = &self.keep else { return Ok(()) };
        let path = keep.folder.join(format!("{}.png", alarm.blake3));
        let png = image.encode_png()?;
        let mut used = keep.used.lock().unwrap_or_else(PoisonError::into_inner);
        if !path.exists() && *used + png.len() as u64 <= keep.most_bytes {
            write_atomically(&path, &png)?;
            *used += png.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_are_appended_and_images_kept_up_to_the_cap() {
        let folder = tempfile::tempdir().unwrap();
        let (file, keep) = (folder.path().join("alarms.jsonl"), folder.path().join("kept"));
        let image = Image::filled(16, 16, 0.5);
        let size = image.encode_png().unwrap().len() as u64;
        for _ in 0..2 {
            let log = AlarmLog::open(Some(&file), Some((&keep, size + 1))).unwrap();
            for blake3 in ["aa", "bb"] {
                let alarm = Alarm {
                    time: now(),
                    model: "net",
                    score: 2.0,
                    threshold: 1.0,
                    blake3,
                    defended: true,
                    id: None,
                };
                log.write(&alarm, &image).unwrap();
            }
        }
        let lines = std::fs::read_to_string(&file).unwrap();
        assert_eq!(lines.lines().filter(|line| line.contains("\"blake3\":\"bb\"")).count(), 2);
        assert_eq!(std::fs::read_dir(&keep).unwrap().count(), 1, "the cap holds over restarts");
    }
}
