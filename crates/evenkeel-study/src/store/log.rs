//! One append-only log: frames after a line of magic.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::frame::{Found, HEADER, MAGIC, framed, header, sound};
use crate::{Error, Result};

/// A log on disk.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    /// Where the next frame goes.
    end: u64,
}

/// What a walk over a log came to.
struct Walk {
    /// The end of the last sound frame.
    sound: u64,
    /// Whether bytes of a frame cut short follow.
    torn: bool,
}

fn damaged(path: &Path, at: u64, sound: usize) -> Error {
    let file = path.display();
    let reason = format!(
        "is damaged at byte {at}; the {sound} results before it are sound. Put back a copy of the file, or keep those results and redo the \
         rest: truncate -s {at} {file}"
    );
    Error::File { path: path.to_owned(), reason }
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

/// Visits every sound frame.
fn walk(path: &Path, mut visit: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<Walk> {
    let fail = |e| Error::io(path, e);
    let file = File::open(path).map_err(fail)?;
    let total = file.metadata().map_err(fail)?.len();
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut magic = [0; MAGIC.len()];
    let have = fill(&mut reader, &mut magic).map_err(fail)?;
    if have < MAGIC.len() && MAGIC.starts_with(&magic[..have]) {
        return Ok(Walk { sound: 0, torn: have > 0 });
    }
    if magic != *MAGIC {
        return Err(Error::File {
            path: path.to_owned(),
            reason: "is not a log of a study; move it away".into(),
        });
    }
    let (mut at, mut count) = (MAGIC.len() as u64, 0);
    loop {
        let mut head = [0; HEADER];
        let have = fill(&mut reader, &mut head).map_err(fail)?;
        if have == 0 {
            return Ok(Walk { sound: at, torn: false });
        }
        if have < HEADER {
            return Ok(Walk { sound: at, torn: true });
        }
        let Found::Frame { length, checksum } = header(&head) else {
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).map_err(fail)?;
            return match head.iter().chain(&rest).all(|b| *b == 0) {
                true => Ok(Walk { sound: at, torn: true }),
                false => Err(damaged(path, at, count)),
            };
        };
        let end = at + (HEADER + length) as u64;
        if end > total {
            return Ok(Walk { sound: at, torn: true });
        }
        let mut payload = vec![0; length];
        let have = fill(&mut reader, &mut payload).map_err(fail)?;
        if have < length || !sound(&payload, &checksum) {
            // the last frame may have its length on disk and not its bytes
            return match end == total {
                true => Ok(Walk { sound: at, torn: true }),
                false => Err(damaged(path, at, count)),
            };
        }
        visit(at, &payload)?;
        at = end;
        count += 1;
    }
}

impl Log {
    /// A new log.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let fail = |e| Error::io(path, e);
        let mut file = File::options().create_new(true).read(true).write(true).open(path).map_err(fail)?;
        file.write_all(MAGIC).map_err(|e| full(path, e))?;
        Ok(Self { path: path.to_owned(), file, end: MAGIC.len() as u64 })
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
        Ok(Some(format!("{}: a result was cut short ({lost} bytes); it is redone", path.display())))
    }

    /// Opens a log and shows where each payload begins. A torn end is left out.
    pub(super) fn read(path: &Path, visit: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<Self> {
        let walk = walk(path, visit)?;
        let writable = File::options().read(true).write(true).open(path);
        let file = writable.or_else(|_| File::open(path)).map_err(|e| Error::io(path, e))?;
        Ok(Self { path: path.to_owned(), file, end: walk.sound.max(MAGIC.len() as u64) })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The payload of the frame at this place.
    pub(super) fn at(&self, offset: u64) -> Result<Vec<u8>> {
        let fail = |e| Error::io(&self.path, e);
        let mut file = &self.file;
        let mut head = [0; HEADER];
        file.seek(SeekFrom::Start(offset)).map_err(fail)?;
        file.read_exact(&mut head).map_err(fail)?;
        let Found::Frame { length, checksum } = header(&head) else {
            return Err(damaged(&self.path, offset, 0));
        };
        let mut payload = vec![0; length];
        file.read_exact(&mut payload).map_err(fail)?;
        match sound(&payload, &checksum) {
            true => Ok(payload),
            false => Err(damaged(&self.path, offset, 0)),
        }
    }

    /// Adds a frame and gives its place. If the disk refuses, the log ends where it ended before.
    pub(super) fn append(&mut self, payload: &[u8]) -> Result<u64> {
        let Some(frame) = framed(payload) else {
            return Err(Error::Request("a result of more than a gigabyte cannot be kept".into()));
        };
        let at = self.end;
        let written = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.write_all(&frame));
        if let Err(e) = written {
            // nothing more can be done if this fails too; the next run finds a torn end
            let _ = self.file.set_len(at);
            return Err(full(&self.path, e));
        }
        self.end = at + frame.len() as u64;
        Ok(at)
    }

    /// Brings everything to the disk itself.
    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| full(&self.path, e))
    }
}

fn full(path: &Path, error: std::io::Error) -> Error {
    let reason = format!(
        "a result could not be written ({error}); everything before it is safe. Make room and run the same command again"
    );
    Error::File { path: path.to_owned(), reason }
}
