//! Sets of views: rules that a seed turns into drawn views, the standard eight, and sets written in a settings file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::named::{self, STRETCH, colours, rule, view_sets};
use super::{Canvas, DrawnView, ViewRule};
use crate::error::{Error, Result};
use crate::random::Random;

/// A set of views, drawn together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewSet {
    /// The rules, in order.
    #[serde(rename = "view")]
    pub rules: Vec<ViewRule>,
    /// Whether views keep the image's size.
    #[serde(default)]
    pub fixed_canvas: bool,
    /// Sides of views are cut to multiples of this.
    #[serde(default = "one")]
    pub multiple: usize,
}

fn one() -> usize {
    1
}

impl ViewSet {
    /// These rules, on canvases of whatever size they give.
    pub fn of(rules: Vec<ViewRule>) -> Self {
        Self { rules, fixed_canvas: false, multiple: 1 }
    }

    /// The standard eight: four resizes, two rotations, colours, flip.
    pub fn standard() -> Self {
        let resize = |scale: f32| rule("resize", &[("scale", scale.into()), ("stretch", STRETCH.into())]);
        let rotate = || rule("rotate", &[("degrees", [-15.0, 15.0].into())]);
        Self::of(vec![
            resize(2.0),
            resize(0.3),
            resize(2.0),
            resize(0.5),
            rotate(),
            rotate(),
            colours(),
            rule("flip", &[("stretch", STRETCH.into())]),
        ])
    }

    /// The standard set with rotations in normalised coordinates, as the reference code has them.
    pub fn reference() -> Self {
        // only rotations read the key; the other rules stay as they are
        let normalised = |rule: ViewRule| rule.with("normalised", true).unwrap_or(rule);
        Self::of(Self::standard().rules.into_iter().map(normalised).collect())
    }

    /// `count` views of colours and windows, for contrastive objectives.
    pub fn contrastive(count: usize) -> Self {
        let [most, hue, greyscale] = [0.4, 0.1, 0.2];
        let given = [
            ("brightness", most.into()),
            ("contrast", most.into()),
            ("saturation", most.into()),
            ("hue", hue.into()),
            ("greyscale", greyscale.into()),
            ("crop", [0.6, 1.0].into()),
        ];
        Self::of(vec![rule("colour", &given); count])
    }

    /// The set fitted to what a network accepts.
    pub fn fitted(mut self, fixed_canvas: bool, multiple: usize) -> Self {
        self.fixed_canvas |= fixed_canvas;
        self.multiple = self.multiple.max(multiple);
        self
    }

    /// A set by one of the names of [`view_sets`], or else the path of a settings file.
    ///
    /// # Errors
    /// If it is neither, with the list of names; or as [`ViewSet::load`].
    pub fn named(name: &str) -> Result<Self> {
        match named::find(name) {
            Some(set) => Ok(set),
            None if Path::new(name).exists() => Self::load(name),
            None => {
                let names: Vec<String> = view_sets().into_iter().map(|(name, _)| name).collect();
                let reason = format!("is neither one of {} nor a file of views", names.join(", "));
                Err(Error::setting(format!("views {name}"), reason))
            }
        }
    }

    /// Reads a set from a TOML file of `[[view]]` tables.
    ///
    /// # Errors
    /// If the file cannot be read, or a kind, key or value is refused.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        let fail = |reason: String| Error::File { path: path.to_owned(), reason };
        let set: Self = toml::from_str(&text).map_err(|e| fail(e.to_string()))?;
        set.check().map_err(|e| fail(e.to_string()))?;
        Ok(set)
    }

    /// Refuses empty sets and a multiple of 0; rules were checked when they were made.
    ///
    /// # Errors
    /// Saying what is missing.
    pub fn check(&self) -> Result<()> {
        match self.rules.is_empty() || self.multiple == 0 {
            true => {
                Err(Error::setting("views", "a set needs at least one view and a multiple of at least 1"))
            }
            false => Ok(()),
        }
    }

    /// The views for a draw; each comes from its own stream, so adding one does not change the others.
    pub fn draw(&self, random: &Random) -> Vec<DrawnView> {
        let canvas = Canvas { fixed: self.fixed_canvas, multiple: self.multiple };
        let draw =
            |(i, rule): (usize, &ViewRule)| DrawnView::new(rule.draw(&mut random.fork(i as u64)), canvas);
        self.rules.iter().enumerate().map(draw).collect()
    }
}
