//! What is true of a picture, from what `--labels` gives: one class, a CSV file, folders that are called as classes, or what the task itself reads.

use std::path::Path;

use anyhow::{Context, Result, bail};
use evenkeel::model::Model;
use evenkeel::task::Truth;

use crate::images::Picture;
use crate::workbench::read_truth;

/// The truth about a picture of this (height, width).
pub(crate) fn truth(model: &Model, given: &str, picture: &Picture, size: (usize, usize)) -> Result<Truth> {
    let class = class(given, &picture.path).with_context(|| given.to_owned())?;
    let known = class.as_ref().map(|class| model.class_info().class(class));
    if let (Some(Err(error)), true) = (&known, is_table(given)) {
        bail!("{given}: the class of {}: {error}", picture.path.display());
    }
    let known = class.filter(|_| matches!(known, Some(Ok(_))));
    read_truth(model, known.as_deref().unwrap_or(given), &picture.path, size)
}

/// Whether this is a CSV file.
fn is_table(given: &str) -> bool {
    let path = Path::new(given);
    path.is_file() && path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"))
}

/// The truth where no labels were given: the data set's class, or else nothing.
pub(crate) fn of_data_set(model: &Model, picture: &Picture, size: (usize, usize)) -> Option<Truth> {
    read_truth(model, &picture.class()?, &picture.path, size).ok()
}

/// The class of a picture in a CSV file of `picture,class` lines, or the folder that holds a picture of that name.
fn class(given: &str, picture: &Path) -> Result<Option<String>> {
    let path = Path::new(given);
    if is_table(given) {
        return Ok(in_table(&std::fs::read_to_string(path)?, picture));
    }
    let Some(name) = picture.file_name().filter(|_| path.is_dir()) else { return Ok(None) };
    let mut folders: Vec<_> = std::fs::read_dir(path)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    let own = picture.parent().filter(|parent| parent.parent() == Some(path)).map(Path::to_owned);
    let holding = folders.into_iter().find(|folder| folder.is_dir() && folder.join(name).is_file());
    let folder = own.or(holding);
    Ok(folder.and_then(|folder| Some(folder.file_name()?.to_string_lossy().into_owned())))
}

/// The second field of the line whose first is the picture's name, with or without folders and ending.
fn in_table(text: &str, picture: &Path) -> Option<String> {
    let (name, stem) = (picture.file_name()?, picture.file_stem()?);
    let fields = text.lines().filter_map(|line| line.split_once([',', ';', '\t']));
    let matches = |first: &str| {
        let first = Path::new(first.trim().trim_matches('"'));
        first.file_name() == Some(name) || first.as_os_str() == stem
    };
    let found = fields.into_iter().find(|(first, _)| matches(first))?;
    let class = found.1.split([',', ';', '\t']).next()?;
    Some(class.trim().trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_folders_name_classes() {
        let table = "file,class\na/cat1.png,cat\ndog1,\"dog\",0.9\n";
        assert_eq!(in_table(table, Path::new("x/cat1.png")).as_deref(), Some("cat"));
        assert_eq!(in_table(table, Path::new("dog1.jpg")).as_deref(), Some("dog"));
        assert_eq!(in_table(table, Path::new("cow.jpg")), None);
        let folder = tempfile::tempdir().unwrap();
        let cats = folder.path().join("cat");
        std::fs::create_dir(&cats).unwrap();
        std::fs::write(cats.join("1.png"), []).unwrap();
        let given = folder.path().display().to_string();
        assert_eq!(class(&given, &cats.join("1.png")).unwrap().as_deref(), Some("cat"));
        assert_eq!(class(&given, Path::new("elsewhere/1.png")).unwrap().as_deref(), Some("cat"));
        assert_eq!(class(&given, Path::new("elsewhere/2.png")).unwrap(), None);
        assert_eq!(class("3", Path::new("1.png")).unwrap(), None);
    }
}
