//! What a graph tells of a task: the form of its output, and what usually goes with it in a contract. Each task's line of the table has its own [`Signs`], which
//! proposals of contracts ([`crate::model::Proposal`]) read; a task without any is declared by hand.

use crate::model::ResizeRule;

/// What proposals know of a task.
#[derive(Clone, Copy, Debug)]
pub struct Signs {
    /// What one output of this shape would hold, if it is of the task; the flag says whether it lies over the image like a map.
    pub output: fn(&[usize], bool) -> Option<OutputSign>,
    /// The data sets that likely have this number of classes; the first that fits.
    pub sets: &'static [UsualSet],
    /// Whether an answer lies over the image pixel for pixel.
    pub map: bool,
    /// Whether classes have colours.
    pub coloured: bool,
    /// How images of another shape are brought to a size, and why.
    pub resize: (ResizeRule, &'static str),
    /// What the contract's table cannot do without: a key and the question.
    pub asks: fn(&toml::Table) -> Option<(&'static str, &'static str)>,
}

/// What an output holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSign {
    /// In words, after the tensor and its shape.
    pub words: String,
    /// How many classes it tells apart; 0 if it holds values.
    pub classes: usize,
}

/// A data set by the number of its classes.
#[derive(Clone, Copy, Debug)]
pub struct UsualSet {
    /// How many classes.
    pub classes: usize,
    /// Its name among [`crate::model::CLASS_SETS`].
    pub name: &'static str,
    /// Why it is likely.
    pub why: &'static str,
    /// Only for networks of this one (height, width).
    pub only_at: Option<(usize, usize)>,
    /// The (height, width) that most of its networks were trained at.
    pub usual_size: Option<(usize, usize)>,
}

impl UsualSet {
    /// A set that likely has this number of classes.
    pub const fn new(classes: usize, name: &'static str, why: &'static str) -> Self {
        Self { classes, name, why, only_at: None, usual_size: None }
    }
}

impl Signs {
    /// Of a task that nothing tells.
    pub const NONE: Self = Self {
        output: |_, _| None,
        sets: &[],
        map: false,
        coloured: false,
        resize: (ResizeRule::Stretch, "every pixel gets an answer"),
        asks: |_| None,
    };
}
