//! Data sets, read where they lie, in their official layouts.
//!
//! The first station of a study. A [`Kind`] knows a layout and lists it into a [`Listing`]; a [`Dataset`] is that listing
//! with a subset chosen and a size rule ([`Preparation`]) applied. Nothing is decoded before it is asked for, and
//! [`Dataset::ready`] looks at everything once and names all offenders together, so that a long run does not find them.
//! Invariant: same path, same subset and seed, same samples in the same order.

mod camvid;
mod check;
mod cifar10;
mod cityscapes;
pub mod cityscapes_labels;
mod coco;
pub mod coco_json;
mod far;
pub(crate) mod files;
mod folder;
mod imagenet;
mod manifest;
mod meta_mat;
mod mnist;
mod offender;
mod packed;
mod prepare;
pub mod scenes;
mod sheet;
mod subset;
mod voc;
pub(crate) mod walk;

pub use check::{Check, ClassCount};
pub use offender::Offender;
pub use prepare::Preparation;
pub use sheet::contact_sheet;
pub use subset::Subset;

use crate::mask::Rle;
use crate::{Error, Result, objects};
use evenkeel::{Image, LabelMap, Palette};
use std::path::{Path, PathBuf};

/// The table of data sets. Adding one is a file and a line here.
pub const KINDS: &[Kind] = &[
    imagenet::KIND,
    cityscapes::KIND,
    voc::KIND,
    coco::INSTANCES,
    coco::SEMANTIC,
    camvid::KIND,
    cifar10::KIND,
    mnist::MNIST,
    mnist::FASHION,
    folder::PLAIN,
    folder::LABELLED,
    manifest::KIND,
    scenes::SEMANTIC,
    scenes::INSTANCES,
    scenes::OBJECTS,
];

/// One kind of data set: its name, its layout, and how to list it.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The files it wants to see under the path given.
    pub layout: &'static str,
    /// The size rule unless another is asked for.
    pub preparation: Preparation,
    /// If it can be read from an object store: whether it reads the object of this name to list.
    pub far: Option<fn(&str, &Request) -> bool>,
    /// Lists what lies under a path.
    pub list: fn(&Path, &Request) -> Result<Listing>,
}

/// What the user asked of a data set.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The part to read (`val`, `test`, `train`…); each kind has its usual one.
    pub split: Option<String>,
    /// How many classes there are, for layouts that do not say.
    pub classes: Option<usize>,
    /// Which samples to take.
    pub subset: Subset,
    /// Another size rule than the kind's own.
    pub preparation: Option<Preparation>,
}

/// What a kind found under a path.
pub struct Listing {
    /// The samples.
    pub source: Box<dyn Source>,
    /// Names of the classes, in index order; empty if the layout names none.
    pub classes: Vec<String>,
    /// The colours labels are drawn in.
    pub palette: Palette,
    /// What is already known to be broken.
    pub offenders: Vec<Offender>,
}

/// Samples that can be loaded one by one, from several threads.
pub trait Source: Send + Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of a sample; unique within the data set.
    fn id(&self, index: usize) -> String;

    /// The files that a sample is read from, where each is one of its own.
    fn files(&self, _index: usize) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Reads a sample at its own size; whatever is wrong with it is an offender.
    fn load(&self, index: usize) -> std::result::Result<Sample, Offender>;

    /// Reads a sample at its prepared size; sources that can do both in one pass do.
    fn load_prepared(&self, index: usize, preparation: Preparation) -> std::result::Result<Sample, Offender> {
        preparation.apply(self.load(index)?)
    }
}

/// An image with its truth.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its name in the data set.
    pub id: String,
    /// The image.
    pub image: Image,
    /// What is known about it.
    pub truth: Truth,
}

/// What is known about an image.
#[derive(Clone, Debug, PartialEq)]
pub enum Truth {
    /// Nothing.
    Unlabelled,
    /// Its class.
    Class(usize),
    /// A class for every pixel.
    Labels(LabelMap),
    /// The objects in it.
    Objects(Vec<Object>),
    /// A word or the path of a file, which the network's task reads.
    Given(String),
}

/// A true object in an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The annotation's number.
    pub id: i64,
    /// The category's number in the file.
    pub category: i64,
    /// The category's place among the data set's classes.
    pub class: usize,
    /// A region of many objects.
    pub crowd: bool,
    /// Area in pixels, at the size of `mask`.
    pub area: f64,
    /// Where it is.
    pub mask: Rle,
}

/// A data set opened at a path: a chosen subset, prepared to size, loaded when asked.
pub struct Dataset {
    kind: &'static Kind,
    listing: Listing,
    preparation: Preparation,
    selection: Vec<usize>,
    skipped: Vec<Offender>,
}

impl Dataset {
    /// Opens the data set of this kind under a path, or below a URL (`s3://`, `gs://`, `az://`; the cargo feature `remote`). Lists, does not decode.
    ///
    /// # Errors
    /// If the kind is unknown, the layout is not there, or the subset is empty.
    pub fn open(kind: &str, path: &Path, request: &Request) -> Result<Self> {
        let kind = KINDS.iter().find(|k| k.name == kind).ok_or_else(|| {
            let names: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
            Error::Request(format!("there is no data set kind `{kind}`; there are {}", names.join(", ")))
        })?;
        let listing = match objects::is_url(path) {
            true => far::list(kind, path, request)?,
            false => (kind.list)(path, request)?,
        };
        Self::of_listing(kind, listing, path, request)
    }

    /// A chosen subset of what was found under a path.
    fn of_listing(kind: &'static Kind, mut listing: Listing, path: &Path, request: &Request) -> Result<Self> {
        listing.offenders.sort();
        if listing.source.is_empty() && listing.offenders.is_empty() {
            let remedy = format!("{} wants {}", kind.name, kind.layout);
            return Err(Error::Offenders(vec![Offender::new(path, "there are no samples in it", remedy)]));
        }
        let selection = request.subset.select(listing.source.len())?;
        let preparation = request.preparation.unwrap_or(kind.preparation);
        Ok(Self { kind, listing, preparation, selection, skipped: Vec::new() })
    }

    /// The kind.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// Samples selected.
    pub fn len(&self) -> usize {
        self.selection.len()
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.selection.is_empty()
    }

    /// Names of the classes, in index order.
    pub fn classes(&self) -> &[String] {
        &self.listing.classes
    }

    /// The colours labels are drawn in.
    pub fn palette(&self) -> &Palette {
        &self.listing.palette
    }

    /// The size rule in force.
    pub fn preparation(&self) -> Preparation {
        self.preparation
    }

    /// What listing found to be broken; samples that do not load are found by reading them.
    pub fn offenders(&self) -> &[Offender] {
        &self.listing.offenders
    }

    /// What `ready` left out, for the result to count.
    pub fn skipped(&self) -> &[Offender] {
        &self.skipped
    }

    /// The name of the selected sample at this position.
    pub fn id(&self, position: usize) -> String {
        self.listing.source.id(self.selection[position])
    }

    /// Loads and prepares the selected sample at this position.
    ///
    /// # Errors
    /// An offender, if the files have changed since they were checked, or were not.
    pub fn sample(&self, position: usize) -> Result<Sample> {
        self.listing
            .source
            .load_prepared(self.selection[position], self.preparation)
            .map_err(|offender| Error::Offenders(vec![offender]))
    }

    /// Loads the selected samples one after the other.
    pub fn samples(&self) -> impl Iterator<Item = Result<Sample>> + '_ {
        (0..self.len()).map(|position| self.sample(position))
    }

    /// Reads every selected sample once, so that a long run does not stop at a broken one. With `skip_bad`, broken samples are taken out of the
    /// selection and listed by [`Dataset::skipped`].
    ///
    /// # Errors
    /// Without `skip_bad`, if any sample is broken: all of them are named.
    pub fn ready(mut self, skip_bad: bool) -> Result<Self> {
        let check = Check::of(&self);
        if !check.offenders.is_empty() && !skip_bad {
            return Err(Error::Offenders(check.offenders));
        }
        let mut position = 0;
        self.selection.retain(|_| {
            position += 1;
            !check.broken.contains(&(position - 1))
        });
        self.skipped = check.offenders;
        if self.selection.is_empty() {
            return Err(Error::Request("no sample is left once the broken ones are skipped".into()));
        }
        Ok(self)
    }
}

fn voc_palette(classes: usize) -> Palette {
    Palette::of_voc(classes.clamp(1, 255))
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_string()).collect()
}
