//! How an answer is set: every knob of the table of answers, with its default.

use super::Combine;
use crate::defence::NamedViews;
use crate::error::{Error, Result};
use crate::settings::{Choice, Kind, Knob, Knobs};
use crate::view::ViewSet;

/// What an answer does.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AnswerSettings {
    /// How votes are combined.
    pub combine: Combine,
    /// The views that vote beside the image.
    pub views: NamedViews,
    /// The noise's deviation in 1/255.
    pub sigma_255: f64,
    /// Draws of noise.
    pub draws: usize,
    /// The chance that a certificate does not hold.
    pub alpha: f64,
    /// A seed of the votes for every image; left out, they are drawn afresh with the pipeline's seed.
    pub fixed_seed: Option<u64>,
}

impl Default for AnswerSettings {
    fn default() -> Self {
        Self {
            combine: Combine::Mean,
            views: NamedViews::named("vote").unwrap_or_else(|_| ViewSet::standard().into()),
            sigma_255: 8.0,
            draws: 64,
            alpha: 0.001,
            fixed_seed: None,
        }
    }
}

/// What a vote of views reads.
pub(super) const VOTE: [&str; 3] = ["views", "combine", "fixed_seed"];
/// What a vote over noise reads.
pub(super) const NOISE: [&str; 5] = ["sigma", "draws", "alpha", "combine", "fixed_seed"];

type K = Knob<AnswerSettings>;

static KNOBS: [K; 6] = [
    K::new(
        "views",
        Kind::Text,
        "which views vote beside the image: a set of `evenkeel list views`, or a TOML file of views",
        |s| &s.views,
        |s| &mut s.views,
    )
    .symbol(""),
    K::new(
        "combine",
        Kind::Choice(Combine::names),
        "how the votes become one answer",
        |s| &s.combine,
        |s| &mut s.combine,
    )
    .symbol(""),
    K::new(
        "sigma",
        Kind::Radius,
        "standard deviation of the noise that is added to every value",
        |s| &s.sigma_255,
        |s| &mut s.sigma_255,
    )
    .key("sigma_255")
    .symbol("σ"),
    K::new("draws", Kind::Whole(1), "draws of noise that vote", |s| &s.draws, |s| &mut s.draws).symbol("N"),
    K::new(
        "alpha",
        Kind::Above(0.0, 0.5),
        "the chance that a classifier's certificate does not hold",
        |s| &s.alpha,
        |s| &mut s.alpha,
    )
    .symbol("α"),
    K::new(
        "fixed_seed",
        Kind::Whole(0),
        "one seed of the votes for every image, which makes the answer deterministic; left out, they are drawn afresh",
        |s| &s.fixed_seed,
        |s| &mut s.fixed_seed,
    ),
];

impl Knobs for AnswerSettings {
    fn knobs() -> &'static [Knob<Self>] {
        &KNOBS
    }

    fn check(&self) -> Result<()> {
        if self.sigma_255 <= 0.0 || self.sigma_255 > 255.0 {
            let reason = format!("{}/255 must be above 0 and at most 255/255", self.sigma_255);
            return Err(Error::setting("sigma", reason));
        }
        self.views.set.check()
    }
}
