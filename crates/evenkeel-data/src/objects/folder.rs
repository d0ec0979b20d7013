//! A folder as a place for objects: each is written beside its name and given it once it is whole.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use super::{Listed, Objects};
use crate::{Error, Result};

/// A folder as a place for objects. Names that begin with a dot are its own.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Folder {
    /// The bytes in a file beside the one they are for.
    fn written(&self, name: &str, bytes: &[u8]) -> Result<tempfile::NamedTempFile> {
        let refused = |e: std::io::Error| Error::Place {
            path: self.0.clone(),
            reason: format!("{name} could not be written ({e}); make room and run the same command again"),
        };
        let path = self.0.join(name);
        let folder = path.parent().unwrap_or(&self.0);
        std::fs::create_dir_all(folder).map_err(refused)?;
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let mut file = builder.prefix(".part-").tempfile_in(folder).map_err(refused)?;
        file.write_all(bytes).and_then(|()| file.as_file().sync_data()).map_err(refused)?;
        Ok(file)
    }

    /// The objects of a folder below this one, and the folders in it.
    fn entries(&self, inner: &str, all: &mut Vec<Listed>) -> Result<Vec<String>> {
        let folder = self.0.join(inner);
        let fail = |e| Error::io(&folder, e);
        let mut folders = Vec::new();
        let entries = match std::fs::read_dir(&folder) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(folders),
            entries => entries.map_err(fail)?,
        };
        for entry in entries {
            let entry = entry.map_err(fail)?;
            let own = entry.file_name().to_string_lossy().into_owned();
            if own.starts_with('.') {
                continue;
            }
            let name = if inner.is_empty() { own } else { format!("{inner}/{own}") };
            let known = match std::fs::metadata(entry.path()) {
                // gone since it was listed
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                known => known.map_err(fail)?,
            };
            if known.is_dir() {
                folders.push(name);
            } else if known.is_file() {
                let version = known.modified().map(|at| format!("{at:?}")).unwrap_or_default();
                all.push(Listed { name, bytes: known.len(), version });
            }
        }
        Ok(folders)
    }
}

impl Objects for Folder {
    fn list(&self) -> Result<Vec<Listed>> {
        let mut all = Vec::new();
        self.entries("", &mut all)?;
        all.sort();
        Ok(all)
    }

    fn list_below(&self) -> Result<Vec<Listed>> {
        let (mut all, mut folders) = (Vec::new(), vec![String::new()]);
        while let Some(inner) = folders.pop() {
            folders.extend(self.entries(&inner, &mut all)?);
        }
        all.sort();
        Ok(all)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.0.join(name);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io(path, e)),
        }
    }

    fn create(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        let path = self.0.join(name);
        match self.written(name, &bytes)?.persist_noclobber(&path) {
            Ok(_) => Ok(true),
            Err(e) if e.error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(Error::io(path, e.error)),
        }
    }

    fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        let path = self.0.join(name);
        self.written(name, &bytes)?.persist(&path).map_err(|e| Error::io(path, e.error))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of many that create one object at once, one call reports that it did, and what it wrote is what everybody reads.
    #[test]
    fn one_of_many_creates_an_object() {
        let folder = tempfile::tempdir().unwrap();
        let place = Folder(folder.path().join("deep"));
        let make = |number: u8| place.create("item", vec![number; 100_000]).unwrap().then_some(number);
        let made: Vec<u8> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|number| scope.spawn(move || make(number))).collect();
            all.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(made.len(), 1, "{made:?}");
        assert_eq!(place.read("item").unwrap(), Some(vec![made[0]; 100_000]));
        assert!(!place.create("item", b"late".to_vec()).unwrap());
        place.put("a/b/c", b"x".to_vec()).unwrap();
        let names = |all: Vec<Listed>| all.into_iter().map(|o| (o.name, o.bytes)).collect::<Vec<_>>();
        assert_eq!(names(place.list().unwrap()), [("item".to_string(), 100_000)]);
        let below = [("a/b/c".to_string(), 1), ("item".to_string(), 100_000)];
        assert_eq!(names(place.list_below().unwrap()), below);
        assert_eq!(place.read("none").unwrap(), None);
        assert!(Folder(folder.path().join("nowhere")).list().unwrap().is_empty());
    }
}
