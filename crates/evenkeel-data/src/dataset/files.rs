//! Data sets whose samples are picture files, each with a class, a label-map file, or nothing beside it.

use super::{Offender, Preparation, Sample, Source, Truth};
use crate::metric::IGNORE;
use evenkeel::image::Picture;
use evenkeel::{Image, LabelMap};
use std::path::{Path, PathBuf};

/// A picture file and where its truth is.
pub(crate) struct FileItem {
    pub(crate) id: String,
    pub(crate) picture: PathBuf,
    pub(crate) truth: FileTruth,
}

/// Where a file's truth is.
pub(crate) enum FileTruth {
    Unlabelled,
    Class(usize),
    LabelFile(PathBuf),
    /// A word or the path of a file, which the network's task reads.
    Given(String),
}

/// How the numbers in label files become class indices.
#[derive(Clone, Copy)]
pub(crate) struct LabelRule {
    /// Classes there are.
    pub(crate) classes: usize,
    /// The class (or [`IGNORE`]) of a stored number; `None` if it has no meaning.
    pub(crate) recode: fn(u16) -> Option<u16>,
}

impl LabelRule {
    /// Stored numbers are class indices.
    pub(crate) fn plain(classes: usize) -> Self {
        Self { classes, recode: Some }
    }
}

/// The source over such files.
pub(crate) struct FileSource {
    pub(crate) items: Vec<FileItem>,
    pub(crate) rule: LabelRule,
}

impl Source for FileSource {
    fn len(&self) -> usize {
        self.items.len()
    }

    fn id(&self, index: usize) -> String {
        self.items[index].id.clone()
    }

    fn files(&self, index: usize) -> Vec<PathBuf> {
        let item = &self.items[index];
        let truth = match &item.truth {
            FileTruth::LabelFile(path) => Some(path.clone()),
            FileTruth::Given(given) => Some(PathBuf::from(given)),
            FileTruth::Unlabelled | FileTruth::Class(_) => None,
        };
        std::iter::once(item.picture.clone()).chain(truth).collect()
    }

    fn load(&self, index: usize) -> Result<Sample, Offender> {
        let item = &self.items[index];
        let image = load_picture(&item.picture)?;
        let truth = match &item.truth {
            FileTruth::Unlabelled => Truth::Unlabelled,
            FileTruth::Class(class) => Truth::Class(*class),
            FileTruth::Given(given) => Truth::Given(given.clone()),
            FileTruth::LabelFile(path) => {
                let map = self.rule.load(path)?;
                if map.size() != image.size() {
                    let ((h, w), (ih, iw)) = (map.size(), image.size());
                    let fault = format!("is {w}x{h} but its image {} is {iw}x{ih}", item.picture.display());
                    return Err(Offender::new(
                        path,
                        fault,
                        "one of the two is not the original: fetch it again",
                    ));
                }
                Truth::Labels(map)
            }
        };
        Ok(Sample { id: item.id.clone(), image, truth })
    }

    /// Pictures without a label map are resized as they come out of the decoder.
    fn load_prepared(&self, index: usize, preparation: Preparation) -> Result<Sample, Offender> {
        let item = &self.items[index];
        let truth = match &item.truth {
            FileTruth::Unlabelled => Truth::Unlabelled,
            FileTruth::Class(class) => Truth::Class(*class),
            FileTruth::Given(given) => Truth::Given(given.clone()),
            FileTruth::LabelFile(_) => return preparation.apply(self.load(index)?),
        };
        let fault = |e| {
            broken(
                &item.picture,
                &e,
                "fetch it again or remove it; `data check` and `score` leave it out with --skip-bad",
            )
        };
        let image = preparation.image(Picture::load(&item.picture).map_err(fault)?).map_err(fault)?;
        Ok(Sample { id: item.id.clone(), image, truth })
    }
}

impl LabelRule {
    pub(crate) fn load(&self, path: &Path) -> Result<LabelMap, Offender> {
        let map = LabelMap::load(path)
            .map_err(|e| broken(path, &e, "write it as a grey or palette PNG of class numbers"))?;
        let mut labels = Vec::with_capacity(map.labels().len());
        for &stored in map.labels() {
            match (self.recode)(stored) {
                Some(label) if usize::from(label) < self.classes || label == IGNORE => labels.push(label),
                _ => {
                    let fault =
                        format!("holds the label {stored}, which is none of the {} classes", self.classes);
                    return Err(Offender::new(
                        path,
                        fault,
                        "repair the label map, or say how many classes there are",
                    ));
                }
            }
        }
        let (height, width) = map.size();
        LabelMap::new(height, width, labels).map_err(|e| broken(path, &e, "repair the label map"))
    }
}

pub(crate) fn load_picture(path: &Path) -> Result<Image, Offender> {
    Image::load(path).map_err(|e| {
        broken(path, &e, "fetch it again or remove it; `data check` and `score` leave it out with --skip-bad")
    })
}

/// An offender out of an error whose text may begin with the path already.
pub(crate) fn broken(path: &Path, error: &evenkeel::Error, remedy: &str) -> Offender {
    if let evenkeel::Error::Io { source, .. } = error
        && source.kind() == std::io::ErrorKind::NotFound
    {
        return Offender::new(path, "there is no such file", remedy);
    }
    let text = error.to_string();
    let fault = text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text);
    Offender::new(path, fault, remedy)
}
