//! Finding files: every one under a folder with one of the endings asked for, in sorted order so that runs repeat.

use super::Offender;
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// Endings of picture files, lower case.
pub(crate) const PICTURES: &[&str] = &["png", "jpg", "jpeg"];

/// Whether the file's ending, in any case, is one of these.
pub(crate) fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension()
        .and_then(|e| e.to_str())
        .is_some_and(|e| endings.iter().any(|ending| e.eq_ignore_ascii_case(ending)))
}

/// Files under `folder`, subfolders included, sorted; hidden ones are left out. A missing folder is an offender.
pub(crate) fn files_under(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for path in entries(&next)? {
            if path.is_dir() {
                folders.push(path);
            } else if has_ending(&path, endings) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The visible entries of a folder, sorted.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        let fault = if folder.exists() { "is not a folder" } else { "there is no such folder" };
        return Err(Error::Offenders(vec![Offender::new(folder, fault, "check the path")]));
    }
    let listing = std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))?;
    let mut paths = Vec::new();
    for entry in listing {
        let path = entry.map_err(|e| Error::io(folder, e))?.path();
        if !name_of(&path).starts_with('.') {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// The last part of a path as text.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The file's name without its last ending.
pub(crate) fn stem_of(path: &Path) -> String {
    path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}
