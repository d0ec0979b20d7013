//! What is true of an image, or what an attacker wants said of it. Each task has its own kind; everybody else sees a [`Truth`].

use std::any::Any;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ClassInfo, Prediction, instance::Instance};
use crate::error::{Error, Result};
use crate::view::Letterbox;

/// What is true of an image, or what an attacker wants said of it. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Truth(Arc<dyn TruthData>);

/// A task's own kind of truth.
pub trait TruthData: Any + Debug + Send + Sync {
    /// What tells it from others of its kind.
    fn bytes(&self) -> Vec<u8>;

    /// What it is, in a few words, for messages.
    fn kind(&self) -> &'static str;

    /// The truth as an answer that is sure of it, to be painted or written.
    fn as_prediction(&self) -> Prediction;

    /// What is true of an image, in the frame that it is brought into: the other way than [`super::PredictionData::unframed`].
    ///
    /// # Errors
    /// If the truth is not one for such an image.
    fn framed(&self, frame: &Letterbox) -> Result<Truth>;

    /// Whether anything about the image is known: a label map of ignored pixels says nothing.
    fn is_labelled(&self) -> bool {
        true
    }
}

impl Truth {
    /// A truth of a task's own kind.
    pub fn new(data: impl TruthData) -> Self {
        Self(Arc::new(data))
    }

    /// The truth, if it is of this kind; for the task's own folder.
    pub fn get<T: TruthData>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref()
    }

    /// What tells it from others of its kind, for hashes.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.bytes()
    }

    /// What it is, in a few words.
    pub fn kind(&self) -> &'static str {
        self.0.kind()
    }

    /// The truth as an answer that is sure of it, to be painted or written.
    pub fn as_prediction(&self) -> Prediction {
        self.0.as_prediction()
    }

    /// What is true of an image, in the frame that it is brought into ([`crate::Model::framing`]).
    ///
    /// # Errors
    /// If the truth is not one for such an image.
    pub fn framed(&self, frame: &Letterbox) -> Result<Self> {
        if frame.is_identity() { Ok(self.clone()) } else { self.0.framed(frame) }
    }

    /// Whether anything about the image is known: a label map of ignored pixels says nothing.
    pub fn is_labelled(&self) -> bool {
        self.0.is_labelled()
    }

    /// The error of a truth where another kind was expected.
    pub(crate) fn mismatch(&self, what: &str, expected: &str) -> Error {
        Error::mismatch(what, expected, self.kind())
    }
}

impl PartialEq for Truth {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.bytes() == other.bytes()
    }
}

/// Where the truth about a picture is to be read.
#[derive(Clone, Copy)]
pub struct TruthSource<'a> {
    /// What a person gave: a class, a file, or a folder of files with the pictures' names.
    pub given: &'a str,
    /// The picture.
    pub picture: &'a Path,
    /// Where the picture stands in the network's frame.
    pub frame: &'a Letterbox,
    /// The model's classes.
    pub classes: ClassInfo<'a>,
    /// Reads the true objects of the picture, in the frame, from an annotations file: the crate that knows its format gives this.
    pub objects: fn(&TruthSource<'_>) -> Result<Vec<Instance>>,
}

impl TruthSource<'_> {
    /// The file that belongs to the picture: the one given, or the one in the folder given that has the picture's name and one of these endings, or the only
    /// one whose name begins with the part before the picture's last `_`.
    ///
    /// # Errors
    /// If there is none, or several.
    pub fn file(&self, endings: &[&str]) -> Result<PathBuf> {
        let given = Path::new(self.given);
        let Some(stem) = self.picture.file_stem().filter(|_| given.is_dir()) else {
            return Ok(given.to_owned());
        };
        let stem = stem.to_string_lossy();
        let same = endings.iter().map(|ending| given.join(format!("{stem}{ending}")));
        if let Some(file) = same.into_iter().find(|file| file.is_file()) {
            return Ok(file);
        }
        let start = stem.rsplit_once('_').map_or(&*stem, |(start, _)| start);
        let entries = std::fs::read_dir(given).map_err(Error::io(given))?;
        let mut near = Vec::new();
        for entry in entries {
            let path = entry.map_err(Error::io(given))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(start) && endings.iter().any(|ending| name.ends_with(ending)) {
                near.push(path);
            }
        }
        match near.as_slice() {
            [one] => Ok(one.clone()),
            _ => {
                let reason = format!(
                    "{} files ({}) for {stem}; one of the same name is needed",
                    near.len(),
                    endings.join(", ")
                );
                Err(Error::File { path: given.to_owned(), reason })
            }
        }
    }

    /// Whether something of this size is about the picture itself (`true`) or about the network's frame (`false`).
    ///
    /// # Errors
    /// If it is about neither.
    pub fn is_original(&self, size: (usize, usize), path: &Path) -> Result<bool> {
        let words = |(h, w): (usize, usize)| format!("{w}x{h}");
        if size == self.frame.frame() {
            return Ok(false);
        }
        if size == self.frame.image() {
            return Ok(true);
        }
        let reason = format!("is {}, the image {}", words(size), words(self.frame.image()));
        Err(Error::File { path: path.to_owned(), reason })
    }
}
