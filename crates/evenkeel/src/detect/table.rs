//! The table of detectors and how one is set.

use super::{Detector, Heads};
use crate::defence::NamedViews;
use crate::error::Result;
use crate::model::Model;
use crate::settings::{Entry, Heading, Kind, Knob, Knobs, Spec};

/// One detector of the table.
pub struct DetectorKind {
    heading: Heading,
}

/// What is used where a detector is asked for and none is named.
const USUAL: &str = "variance";
/// The detector that estimates how wrong the answer is.
const ERROR_ESTIMATE: &str = "error-estimate";

/// Every detector.
pub static DETECTORS: [DetectorKind; 7] = [
    kind(USUAL, "how much class probabilities vary over the views", &["views", "seed"]),
    kind("variance-onehot", "how much the answers vary over the views", &["views", "seed"]),
    kind("equivariance", "minus the mean cosine of undone features with the image's", &["views", "seed"]),
    kind("invariance", "minus the mean cosine of pooled features with the image's", &["views", "seed"]),
    kind("rotation", "the loss of a head that classifies rotations", &["seed"]),
    kind("contrastive", "the loss of a head that separates images", &["seed"]),
    kind(
        ERROR_ESTIMATE,
        "the expected error, from the variance of the answer over the views",
        &["views", "seed"],
    ),
];

const fn kind(name: &'static str, about: &'static str, reads: &'static [&'static str]) -> DetectorKind {
    DetectorKind { heading: Heading::new(name, about, reads) }
}

/// The settings of a detector.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DetectorSettings {
    /// The views.
    pub views: NamedViews,
    /// The seed of the views, the same for every image.
    pub seed: u64,
}

impl Default for DetectorSettings {
    fn default() -> Self {
        Self { views: NamedViews::standard(), seed: 0 }
    }
}

static KNOBS: [Knob<DetectorSettings>; 2] = [
    Knob::new(
        "views",
        Kind::Text,
        "which views are compared: a set by name, or a TOML file of views",
        |s| &s.views,
        |s| &mut s.views,
    ),
    Knob::new(
        "seed",
        Kind::Whole(0),
        "the seed of the views, the same for every image",
        |s| &s.seed,
        |s| &mut s.seed,
    ),
];

impl Knobs for DetectorSettings {
    fn knobs() -> &'static [Knob<Self>] {
        &KNOBS
    }

    fn check(&self) -> Result<()> {
        self.views.set.check()
    }
}

impl Entry for DetectorKind {
    type Settings = DetectorSettings;
    const KIND: &'static str = "detector";

    fn table() -> &'static [Self] {
        &DETECTORS
    }

    fn heading(&self) -> &Heading {
        &self.heading
    }
}

/// A detector of the table with its settings, before it meets a model.
pub type DetectorSpec = Spec<DetectorKind>;

impl DetectorSpec {
    /// The detector that is used where none is named.
    pub fn usual() -> Self {
        Self::named(USUAL).expect("the table has it")
    }

    /// The same with these views, whatever file they came from.
    #[must_use]
    pub fn with_views(mut self, views: impl Into<NamedViews>) -> Self {
        self.settings_mut().views = views.into();
        self
    }

    /// Whether its score is an estimate of the answer's error.
    pub fn estimates_error(&self) -> bool {
        self.name() == ERROR_ESTIMATE
    }

    /// Whether it uses a head that was trained for it.
    pub fn needs_head(&self) -> bool {
        !self.knobs().any(|knob| knob.name == "views")
    }

    /// The detector for a model. Views are fitted to what the model accepts.
    ///
    /// # Errors
    /// If a head or bank is missing.
    pub fn build(&self, model: &Model, heads: Heads) -> Result<Detector> {
        self.check()?;
        let DetectorSettings { views, seed } = self.settings().clone();
        Detector::new(self.name(), model, views.set, heads, seed)
    }
}
