//! One append-only log: frames after a line of magic.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::frame::{HEADER, MAGIC, framed, header, sound};
use crate::{Error, Result};

/// A log on disk.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    /// Open only while it is written.
    file: Option<File>,
    /// Where the next frame goes.
    end: u64,
    damage: Vec<Range<u64>>,
}

/// What a walk over a log came to.
struct Walk {
    /// The end of the last sound frame.
    sound: u64,
    /// Whether bytes that are no sound frame follow.
    torn: bool,
    /// Bytes between sound frames that are none.
    damage: Vec<Range<u64>>,
}

/// Reads as much as there is, up to the whole buffer.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut have = 0;
    while have < buffer.len() {
        match reader.read(&mut buffer[have..]) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(have)
}

/// The payload of the frame at a place, if there is a sound one.
fn frame_at(mut file: &File, at: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut head = [0; HEADER];
    file.seek(SeekFrom::Start(at))?;
    if fill(&mut file, &mut head)? < HEADER {
        return Ok(None);
    }
    let Some((length, checksum)) = header(&head) else { return Ok(None) };
    let mut payload = Vec::new();
    file.take(length as u64).read_to_end(&mut payload)?;
    Ok((payload.len() == length && sound(&payload, &checksum)).then_some(payload))
}

/// Where the first sound frame from a place on begins.
fn next_sound(mut file: &File, from: u64) -> std::io::Result<Option<u64>> {
    let mut bytes = vec![0; 1 << 16];
    let mut start = from;
    loop {
        file.seek(SeekFrom::Start(start))?;
        let have = fill(&mut file, &mut bytes)?;
        if have < HEADER {
            return Ok(None);
        }
        let starts = have + 1 - HEADER;
        for skip in 0..starts {
            let head = bytes[skip..].first_chunk().and_then(header);
            if head.is_some() && frame_at(file, start + skip as u64)?.is_some() {
                return Ok(Some(start + skip as u64));
            }
        }
        start += starts as u64;
    }
}

/// Visits every sound frame. Damage is stepped over: what stands after it was written whole.
fn walk(path: &Path, mut visit: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<Walk> {
    let fail = |e| Error::io(path, e);
    let file = File::open(path).map_err(fail)?;
    let total = file.metadata().map_err(fail)?.len();
    let mut magic = [0; MAGIC.len()];
    let have = fill(&mut &file, &mut magic).map_err(fail)?;
    if have < MAGIC.len() && MAGIC.starts_with(&magic[..have]) {
        return Ok(Walk { sound: 0, torn: have > 0, damage: Vec::new() });
    }
    let mut walk = Walk { sound: MAGIC.len() as u64, torn: false, damage: Vec::new() };
    if magic != *MAGIC {
        let Some(first) = next_sound(&file, 0).map_err(fail)? else {
            let reason = "is not a log of a study; move it away".into();
            return Err(Error::File { path: path.to_owned(), reason });
        };
        walk.damage.push(0..first);
        walk.sound = first;
    }
    while walk.sound < total {
        let at = walk.sound;
        if let Some(payload) = frame_at(&file, at).map_err(fail)? {
            visit(at, &payload)?;
            walk.sound += (HEADER + payload.len()) as u64;
        } else if let Some(next) = next_sound(&file, at + 1).map_err(fail)? {
            walk.damage.push(at..next);
            walk.sound = next;
        } else {
            walk.torn = true;
            break;
        }
    }
    Ok(walk)
}

impl Log {
    /// A new log.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let fail = |e| Error::io(path, e);
        let mut file = File::options().create_new(true).read(true).write(true).open(path).map_err(fail)?;
        file.write_all(MAGIC).map_err(|e| full(path, e))?;
        Ok(Self { path: path.to_owned(), file: Some(file), end: MAGIC.len() as u64, damage: Vec::new() })
    }

    /// Cuts off what a crash left at the end of a log, if anything; says so.
    pub(super) fn mend(path: &Path) -> Result<Option<String>> {
        if !path.exists() {
            return Ok(None);
        }
        let walk = walk(path, |_, _| Ok(()))?;
        let fail = |e| Error::io(path, e);
        if walk.sound == 0 {
            std::fs::remove_file(path).map_err(fail)?;
            return Ok(None);
        }
        if !walk.torn {
            return Ok(None);
        }
        let file = File::options().write(true).open(path).map_err(fail)?;
        let lost = file.metadata().map_err(fail)?.len() - walk.sound;
        file.set_len(walk.sound).map_err(fail)?;
        Ok(Some(format!(
            "{}: its last {lost} bytes were cut short or damaged; what stood there is redone",
            path.display()
        )))
    }

    /// Opens a log and shows where each payload begins. A torn end and damage are left out.
    pub(super) fn read(path: &Path, visit: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<Self> {
        let walk = walk(path, visit)?;
        let end = walk.sound.max(MAGIC.len() as u64);
        Ok(Self { path: path.to_owned(), file: None, end, damage: walk.damage })
    }

    /// Makes it one that can be added to.
    pub(super) fn open_to_write(&mut self) -> Result<()> {
        let file = File::options().read(true).write(true).open(&self.path);
        self.file = Some(file.map_err(|e| Error::io(&self.path, e))?);
        Ok(())
    }

    /// The file, to be read.
    pub(super) fn open(&self) -> Result<File> {
        File::open(&self.path).map_err(|e| Error::io(&self.path, e))
    }

    /// Whether there is no frame in it.
    pub(super) fn is_empty(&self) -> bool {
        self.end <= MAGIC.len() as u64
    }

    /// Gives the file another name; it is not added to any more.
    pub(super) fn rename(&mut self, path: &Path) -> Result<()> {
        std::fs::rename(&self.path, path).map_err(|e| Error::io(path, e))?;
        self.path = path.to_owned();
        self.file = None;
        Ok(())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is damaged, in words: a sentence for each stretch.
    pub(super) fn complaints(&self) -> impl Iterator<Item = String> {
        self.damage.iter().map(|bytes| {
            format!(
                "{}: {} bytes from byte {} on are damaged; what stood there does not count, all else does, and `study run` makes what is missing",
                self.path.display(),
                bytes.end - bytes.start,
                bytes.start
            )
        })
    }

    /// The payload of the frame at this place.
    pub(super) fn at(&self, file: &File, offset: u64) -> Result<Vec<u8>> {
        let fail = |e| Error::io(&self.path, e);
        let reason = || format!("was sound and is damaged at byte {offset} now; run the same command again");
        frame_at(file, offset)
            .map_err(fail)?
            .ok_or_else(|| Error::File { path: self.path.clone(), reason: reason() })
    }

    /// Adds a frame and gives its place. If the disk refuses, the log ends where it ended before.
    pub(super) fn append(&mut self, payload: &[u8]) -> Result<u64> {
        let Some(frame) = framed(payload) else {
            return Err(Error::Request("a result of more than a gigabyte cannot be kept".into()));
        };
        let at = self.end;
        let Some(file) = &mut self.file else {
            return Err(Error::Request(format!("{} is not open to be written", self.path.display())));
        };
        let written = file.seek(SeekFrom::Start(at)).and_then(|_| file.write_all(&frame));
        if let Err(e) = written {
            // nothing more can be done if this fails too; the next run finds a torn end
            let _ = file.set_len(at);
            return Err(full(&self.path, e));
        }
        self.end = at + frame.len() as u64;
        Ok(at)
    }

    /// Brings everything to the disk itself.
    pub(super) fn sync(&self) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.sync_data().map_err(|e| full(&self.path, e)))
    }
}

fn full(path: &Path, error: std::io::Error) -> Error {
    let reason = format!(
        "a result could not be written ({error}); everything before it is safe. Make room and run the same command again"
    );
    Error::File { path: path.to_owned(), reason }
}
