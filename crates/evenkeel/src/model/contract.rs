//! The preprocessing contract: a small TOML file beside the network that says how pixels become its input and what comes out.
//!
//! input = (pixel·scale − mean) / std, channel by channel in the network's own order. Nothing is guessed: every field that changes
//! the numbers must be written down, unknown fields are refused, and the whole is checked against the network at load.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::names::{CLASS_SETS, ClassSet, NamesRule};
use crate::error::{Error, Result};
use crate::image::{Palette, write_atomically};
use crate::network::{PixelRule, TensorNames};
use crate::task::TaskKind;

/// What must be known to use a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contract {
    /// The name of a task of [`crate::task::TASKS`].
    pub task: String,
    /// The tensor of class scores (before softmax) or of values; for instances, the list of the head's tensors.
    pub output: TensorNames,
    /// The tensor of features that views are compared on; a list of them is compared each by itself and summed.
    pub feature: TensorNames,
    /// How pixels become input.
    pub input: InputRule,
    /// Names and colours.
    #[serde(default)]
    pub classes: Classes,
    /// The task's own table, under the task's name; any other name is refused.
    #[serde(flatten)]
    pub tables: BTreeMap<String, toml::Value>,
}

/// How pixels become input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputRule {
    /// The order of the channels.
    pub order: Order,
    /// What a pixel in [0, 1] is multiplied by first.
    pub scale: f32,
    /// What is subtracted then, in the network's channel order.
    pub mean: [f32; 3],
    /// What it is divided by then.
    pub std: [f32; 3],
    /// Whether channels come last in the network's input.
    #[serde(default)]
    pub channels_last: bool,
    /// (height, width) that images are brought to; left out, they keep theirs. In a file "WIDTHxHEIGHT", or the list `[height, width]`.
    #[serde(default, with = "size_in_words", skip_serializing_if = "Option::is_none")]
    pub size: Option<[usize; 2]>,
    /// How.
    pub resize: ResizeRule,
    /// Sides must be multiples of this.
    #[serde(default = "one")]
    pub multiple: usize,
}

fn one() -> usize {
    1
}

/// A size as people say it, `"640x480"`; the list that older contracts have is read as well.
mod size_in_words {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Words(String),
        Sides([usize; 2]),
    }

    pub(super) fn serialize<S: Serializer>(size: &Option<[usize; 2]>, to: S) -> Result<S::Ok, S::Error> {
        match size {
            Some([height, width]) => to.serialize_str(&format!("{width}x{height}")),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<[usize; 2]>, D::Error> {
        let cure = "size: \"WIDTHxHEIGHT\" is needed, such as \"640x480\", or the list [height, width]";
        match Option::<Written>::deserialize(from).map_err(|_| D::Error::custom(cure))? {
            None => Ok(None),
            Some(Written::Sides(sides)) => Ok(Some(sides)),
            Some(Written::Words(words)) => {
                let sides = words.split_once('x').map(|(w, h)| Some([h.parse().ok()?, w.parse().ok()?]));
                sides.flatten().map(Some).ok_or_else(|| D::Error::custom(cure))
            }
        }
    }
}

impl InputRule {
    /// Refuses a size that is none, naming the nearest that is.
    fn check_size(&self) -> Result<()> {
        if self.multiple == 0 {
            return Err(Error::setting("input.multiple", "must be at least 1"));
        }
        let Some([height, width]) = self.size else { return Ok(()) };
        if [height, width].iter().all(|side| *side > 0 && side % self.multiple == 0) {
            return Ok(());
        }
        let near = |side: usize| ((side + self.multiple / 2) / self.multiple).max(1) * self.multiple;
        let reason = format!(
            "{width}x{height}: both sides must be multiples of {}; {}x{} is near",
            self.multiple,
            near(width),
            near(height)
        );
        Err(Error::setting("input.size", reason))
    }

    /// The rule by which pixels become input.
    pub fn pixels(&self) -> PixelRule {
        let source = match self.order {
            Order::Rgb => [0, 1, 2],
            Order::Bgr => [2, 1, 0],
        };
        let factor = [0, 1, 2].map(|k| self.scale / self.std[k]);
        let shift = [0, 1, 2].map(|k| -self.mean[k] / self.std[k]);
        PixelRule { source, factor, shift, channels_last: self.channels_last }
    }
}

/// The order of the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
}

/// What to do with an image of another size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResizeRule {
    /// Refuse it.
    Refuse,
    /// Stretch it.
    Stretch,
    /// Take the largest middle part of the right proportions, then resize that.
    Crop,
    /// Resize it to fit inside, and fill the borders with grey.
    Letterbox,
}

/// Names and colours of the classes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classes {
    /// The names in class order, or the name of a known set.
    #[serde(default)]
    pub names: NamesRule,
    /// The colours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub palette: Option<PaletteRule>,
    /// The numbers that the data set gives the classes, in class order, where they are not 0, 1, 2…
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<i64>,
}

/// Colours by name (those of a known set of classes, such as `cityscapes`, or `voc:N`) or one by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PaletteRule {
    /// By name.
    Named(String),
    /// One by one.
    Colours(Vec<[u8; 3]>),
}

impl Contract {
    /// Where the contract of a network lies: its own name ending in `.evenkeel.toml`.
    pub fn path_beside(network: &Path) -> PathBuf {
        network.with_extension("evenkeel.toml")
    }

    /// Reads the contract beside a network.
    ///
    /// # Errors
    /// If there is none (saying how to make one) or it makes no sense.
    pub fn beside(network: &Path) -> Result<Self> {
        let path = Self::path_beside(network);
        if !path.exists() {
            let reason = format!(
                "there is no such file, and how pixels become input is not guessed; write it with `evenkeel model init {}`",
                network.display()
            );
            return Err(Error::File { path, reason });
        }
        Self::load(&path)
    }

    /// Reads a contract.
    ///
    /// # Errors
    /// If it cannot be read or makes no sense.
    pub fn load(path: &Path) -> Result<Self> {
        Self::parse(&std::fs::read_to_string(path).map_err(Error::io(path))?, path)
    }

    /// A contract from its text; `path` is used in sentences.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let fail = |reason: String| Error::File { path: path.to_owned(), reason };
        let contract: Self = toml::from_str(text).map_err(|e| fail(e.to_string()))?;
        contract.check().map_err(|e| fail(e.to_string()))?;
        Ok(contract)
    }

    /// Writes the contract.
    ///
    /// # Errors
    /// If it makes no sense or the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        self.check()?;
        let text = toml::to_string(self)
            .map_err(|e| Error::File { path: path.to_owned(), reason: e.to_string() })?;
        write_atomically(path, text.as_bytes())
    }

    /// Refuses what makes no sense by itself.
    ///
    /// # Errors
    /// Naming the field.
    pub fn check(&self) -> Result<()> {
        let kind = TaskKind::find(&self.task)?;
        if let Some((name, _)) = self.tables.iter().find(|(name, own)| **name != self.task || !own.is_table())
        {
            let reason = match TaskKind::find(name) {
                Ok(_) => format!("has no meaning for the task {}", self.task),
                Err(_) => "is no field of a contract".into(),
            };
            return Err(Error::setting(format!("[{name}]"), reason));
        }
        kind.check(self.own_table())?;
        for (field, names) in [("output", &self.output), ("feature", &self.feature)] {
            if names.is_empty() || names.iter().any(String::is_empty) {
                return Err(Error::setting(field, "must name at least one tensor"));
            }
        }
        let input = &self.input;
        if !input.scale.is_finite() || input.scale == 0.0 {
            return Err(Error::setting("input.scale", "must be a number other than 0"));
        }
        if !input.mean.iter().all(|m| m.is_finite()) {
            return Err(Error::setting("input.mean", "must be numbers"));
        }
        if !input.std.iter().all(|s| s.is_finite() && *s > 0.0) {
            return Err(Error::setting("input.std", "must be numbers above 0"));
        }
        input.check_size()?;
        self.class_names()?;
        self.palette().map(|_| ())
    }

    /// The task's own table.
    pub fn own_table(&self) -> Option<&toml::Table> {
        self.tables.get(&self.task).and_then(toml::Value::as_table)
    }

    /// The same with this table of the task's own, a struct with named fields.
    ///
    /// # Errors
    /// If it has no form in TOML.
    pub fn with_table(mut self, own: &impl Serialize) -> Result<Self> {
        let fail = |reason: String| Error::setting(format!("[{}]", self.task), reason);
        // by way of text, which keeps 0.01 of 32 bits what a person would write
        let text = toml::to_string(own).map_err(|e| fail(e.to_string()))?;
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| fail(e.to_string()))?;
        self.tables.insert(self.task.clone(), toml::Value::Table(table));
        Ok(self)
    }

    /// The names of the classes: those written down, or else those that the palette or COCO's numbers bring; none if nothing does.
    ///
    /// # Errors
    /// If the set of names is unknown.
    pub fn class_names(&self) -> Result<Vec<String>> {
        let written = self.classes.names.list()?;
        let of_palette = match &self.classes.palette {
            Some(PaletteRule::Named(name)) => ClassSet::find(name),
            _ => None,
        };
        let of_ids =
            || CLASS_SETS.iter().find(|set| !self.classes.ids.is_empty() && set.ids() == self.classes.ids);
        match (written.is_empty(), of_palette.or_else(of_ids)) {
            (true, Some(set)) => Ok(set.names()),
            _ => Ok(written),
        }
    }

    /// The colours.
    ///
    /// # Errors
    /// If the name is unknown or two classes share a colour.
    pub fn palette(&self) -> Result<Option<Palette>> {
        match &self.classes.palette {
            None => Ok(None),
            Some(PaletteRule::Colours(colours)) => Palette::new(colours.clone()).map(Some),
            Some(PaletteRule::Named(name)) => match (ClassSet::find(name), name.strip_prefix("voc:")) {
                (Some(set), _) => set.palette().map(Some),
                (None, Some(count)) if count.parse::<usize>().is_ok_and(|n| (1..=256).contains(&n)) => {
                    Ok(Some(Palette::of_voc(count.parse().unwrap_or(1))))
                }
                _ => Err(Error::setting(
                    format!("palette {name}"),
                    "is not cityscapes, cityscapes:20 (with background), coco, cifar10 or voc:N with N from 1 to 256",
                )),
            },
        }
    }
}
