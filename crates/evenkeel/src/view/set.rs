//! Sets of views: rules that a seed turns into drawn views, the standard eight, and sets written in a settings file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Colour, Motion, View};
use crate::error::{Error, Result};
use crate::random::Random;

/// How one view of a set is drawn. Ranges are [low, high]; equal ends fix a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ViewRule {
    /// Both sides times `scale`, the width again by a factor from `stretch`.
    Resize {
        /// Factor of both sides.
        scale: f32,
        /// Range of a further factor of the width.
        #[serde(default = "no_stretch")]
        stretch: [f32; 2],
    },
    /// A turn by an angle from `degrees`.
    Rotate {
        /// Range of the angle.
        degrees: [f32; 2],
        /// Whether to turn in normalised coordinates, as the reference does.
        #[serde(default)]
        normalised: bool,
    },
    /// Mirrored left to right, the width times a factor from `stretch`.
    Flip {
        /// Range of the factor of the width.
        #[serde(default = "no_stretch")]
        stretch: [f32; 2],
    },
    /// Turned by one of these numbers of quarters.
    Turn {
        /// What to choose from.
        quarters: Vec<u8>,
    },
    /// A window of a share of each side from `share`, anywhere.
    Crop {
        /// Range of the share.
        share: [f32; 2],
    },
    /// Moved by up to this share of each side, either way.
    Translate {
        /// The most.
        most: f32,
    },
    /// Other colours; factors are drawn from 1 ± the given amounts (not below 0), hue from ± its amount.
    Colour {
        /// Amount of brightness.
        brightness: f32,
        /// Amount of contrast.
        contrast: f32,
        /// Amount of saturation.
        saturation: f32,
        /// Amount of hue, in turns.
        hue: f32,
        /// Probability of greyscale.
        #[serde(default)]
        greyscale: f32,
        /// Range of the factor of the width.
        #[serde(default = "no_stretch")]
        stretch: [f32; 2],
        /// Range of the share of a window taken as well, if any.
        #[serde(default)]
        crop: Option<[f32; 2]>,
    },
}

fn no_stretch() -> [f32; 2] {
    [1.0, 1.0]
}

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
    /// The standard eight: four resizes, two rotations, colours, flip.
    pub fn standard() -> Self {
        let stretch = [0.8, 1.2];
        let resize = |scale| ViewRule::Resize { scale, stretch };
        let rotate = || ViewRule::Rotate { degrees: [-15.0, 15.0], normalised: false };
        let colour = ViewRule::Colour {
            brightness: 0.8,
            contrast: 0.8,
            saturation: 0.8,
            hue: 0.2,
            greyscale: 0.2,
            stretch,
            crop: None,
        };
        let rules = vec![
            resize(2.0),
            resize(0.3),
            resize(2.0),
            resize(0.5),
            rotate(),
            rotate(),
            colour,
            ViewRule::Flip { stretch },
        ];
        Self { rules, fixed_canvas: false, multiple: 1 }
    }

    /// The standard set with rotations in normalised coordinates, as the reference code has them.
    pub fn reference() -> Self {
        let mut set = Self::standard();
        for rule in &mut set.rules {
            if let ViewRule::Rotate { normalised, .. } = rule {
                *normalised = true;
            }
        }
        set
    }

    /// `count` views of colours and windows, for contrastive objectives.
    pub fn contrastive(count: usize) -> Self {
        let rule = ViewRule::Colour {
            brightness: 0.4,
            contrast: 0.4,
            saturation: 0.4,
            hue: 0.1,
            greyscale: 0.2,
            stretch: no_stretch(),
            crop: Some([0.6, 1.0]),
        };
        Self { rules: vec![rule; count], fixed_canvas: false, multiple: 1 }
    }

    /// The set fitted to what a network accepts.
    pub fn fitted(mut self, fixed_canvas: bool, multiple: usize) -> Self {
        self.fixed_canvas |= fixed_canvas;
        self.multiple = self.multiple.max(multiple);
        self
    }

    /// A set by name: `standard` or `reference`, or else the path of a settings file.
    ///
    /// # Errors
    /// As [`ViewSet::load`].
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "standard" => Ok(Self::standard()),
            "reference" => Ok(Self::reference()),
            path => Self::load(path),
        }
    }

    /// Reads a set from a TOML file of `[[view]]` tables.
    ///
    /// # Errors
    /// If the file cannot be read or a rule makes no sense.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        let fail = |reason: String| Error::File { path: path.to_owned(), reason };
        let set: Self = toml::from_str(&text).map_err(|e| fail(e.to_string()))?;
        set.check().map_err(|e| fail(e.to_string()))?;
        Ok(set)
    }

    /// Refuses empty sets and values outside their meaning.
    ///
    /// # Errors
    /// Naming the rule.
    pub fn check(&self) -> Result<()> {
        if self.rules.is_empty() || self.multiple == 0 {
            return Err(Error::setting(
                "views",
                "a set needs at least one view and a multiple of at least 1",
            ));
        }
        self.rules.iter().enumerate().try_for_each(|(i, rule)| {
            let complain = |reason: &str| Err(Error::setting(format!("view {i}"), reason));
            let factor = |[low, high]: [f32; 2]| low > 0.0 && low <= high && high <= 16.0;
            match rule {
                ViewRule::Resize { scale, stretch } if !factor([*scale; 2]) || !factor(*stretch) => {
                    complain("factors must be above 0, at most 16, and in order")
                }
                ViewRule::Flip { stretch } | ViewRule::Colour { stretch, .. } if !factor(*stretch) => {
                    complain("stretch must be above 0, at most 16, and in order")
                }
                ViewRule::Rotate { degrees: [low, high], .. }
                    if low.is_nan() || high.is_nan() || low > high =>
                {
                    complain("degrees must be in order")
                }
                ViewRule::Turn { quarters } if quarters.is_empty() => {
                    complain("quarters has nothing to choose from")
                }
                ViewRule::Crop { share } if !factor(*share) || share[1] > 1.0 => {
                    complain("share must be above 0 and at most 1")
                }
                ViewRule::Translate { most } if !(0.0..1.0).contains(most) => complain("most must be 0 to 1"),
                _ => Ok(()),
            }
        })
    }

    /// The views for a draw; each comes from its own stream, so adding one does not change the others.
    pub fn draw(&self, random: &Random) -> Vec<View> {
        let draw = |(i, rule): (usize, &ViewRule)| {
            let (motion, colour) = rule.draw(&mut random.fork(i as u64));
            View { colour, motion, fixed_canvas: self.fixed_canvas, multiple: self.multiple }
        };
        self.rules.iter().enumerate().map(draw).collect()
    }
}

impl ViewRule {
    fn draw(&self, random: &mut Random) -> (Motion, Option<Colour>) {
        let from = |random: &mut Random, [low, high]: [f32; 2]| random.uniform(low, high);
        match self {
            Self::Resize { scale, stretch } => {
                (Motion::Resize { height: *scale, width: scale * from(random, *stretch) }, None)
            }
            Self::Rotate { degrees, normalised } => {
                (Motion::Rotate { degrees: from(random, *degrees), normalised: *normalised }, None)
            }
            Self::Flip { stretch } => (Motion::Flip { width: from(random, *stretch) }, None),
            Self::Turn { quarters } => {
                (Motion::Turn { quarters: quarters[random.below(quarters.len())] }, None)
            }
            Self::Crop { share } => (window(random, *share), None),
            Self::Translate { most } => (
                Motion::Translate { down: random.uniform(-most, *most), right: random.uniform(-most, *most) },
                None,
            ),
            Self::Colour { brightness, contrast, saturation, hue, greyscale, stretch, crop } => {
                let factor =
                    |random: &mut Random, amount: f32| random.uniform((1.0 - amount).max(0.0), 1.0 + amount);
                let colour = Colour {
                    brightness: factor(random, *brightness),
                    contrast: factor(random, *contrast),
                    saturation: factor(random, *saturation),
                    hue: random.uniform(-hue, *hue),
                    order: std::array::from_fn(|_| 0),
                    greyscale: random.chance(*greyscale),
                };
                let order = random.order(4);
                let colour = Colour { order: std::array::from_fn(|i| order[i] as u8), ..colour };
                let motion = match crop {
                    Some(share) => window(random, *share),
                    None => Motion::Resize { height: 1.0, width: from(random, *stretch) },
                };
                (motion, Some(colour))
            }
        }
    }
}

fn window(random: &mut Random, [low, high]: [f32; 2]) -> Motion {
    let share = random.uniform(low, high);
    let (top, left) = (random.unit() * (1.0 - share), random.unit() * (1.0 - share));
    Motion::Crop { top, left, height: share, width: share }
}
