//! What a network's graph tells about its contract: task, score tensor, feature tensor, sizes, classes; each with the reason.
//!
//! One walk on a grey probe gives the shape of every tensor; rules on operators and shapes do the rest, so that exports of any tool and of any
//! names are read alike. What cannot be known (how pixels become input, unless the graph normalises by itself) is a [`Question`]: nothing is
//! guessed.

mod anatomy;
mod complete;
mod feature;
mod frame;
#[cfg(test)]
mod tests;

pub use complete::{Answers, Question};

use evenkeel_network::zoo::Checkpoint;
use evenkeel_network::{Network, NetworkFile};

use super::contract::ResizeRule;
use super::names::ClassSet;
use super::pixels::PixelPreset;
use crate::error::{Error, Result};
use crate::network::TensorNames;
use crate::task::{TASKS, TaskKind, instance};
use anatomy::{Anatomy, Frame};
use evenkeel_network::graph::ValueId;

/// Something found, with the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Known<T> {
    /// What.
    pub value: T,
    /// Why.
    pub why: String,
}

impl<T> Known<T> {
    pub(crate) fn new(value: T, why: impl Into<String>) -> Self {
        Self { value, why: why.into() }
    }
}

/// Tensors that views could be compared on.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Their names.
    pub names: TensorNames,
    /// Their shapes on the probe.
    pub shapes: Vec<Vec<usize>>,
    /// Why.
    pub why: String,
}

/// What is proposed for a network's contract.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The task, unless the outputs fit none.
    pub task: Option<Known<&'static str>>,
    /// The tensors of scores.
    pub output: Option<Known<TensorNames>>,
    /// What views could be compared on, the best first; three at most.
    pub features: Vec<Candidate>,
    /// The head of an instance segmenter.
    pub head: Option<&'static str>,
    /// How many classes there are.
    pub classes: Option<usize>,
    /// The data set whose classes they are likely to be.
    pub names: Option<Known<&'static ClassSet>>,
    /// Whether channels come last in the input.
    pub channels_last: bool,
    /// (height, width) that images must be brought to.
    pub size: Option<Known<(usize, usize)>>,
    /// What the sides must be multiples of.
    pub multiple: Known<usize>,
    /// How images are brought to size.
    pub resize: Known<ResizeRule>,
    /// How pixels become input, where the network tells.
    pub pixels: Option<Known<&'static PixelPreset>>,
    /// (height, width) of the probe that shapes are given for.
    pub probe: (usize, usize),
}

/// What the outputs of a network are.
struct Reading {
    kind: &'static TaskKind,
    why: String,
    head: Option<&'static str>,
    classes: usize,
    output: Known<TensorNames>,
    features: Vec<Candidate>,
}

impl Proposal {
    /// The proposal for the network in a file.
    ///
    /// # Errors
    /// If it cannot be read or run, or takes something else than one image.
    pub fn of_file(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        let opened = NetworkFile::read(path).and_then(|file| file.open(evenkeel_network::Limits::default()));
        let opened = opened.map_err(|e| Error::in_model(path, e))?;
        Self::of(&opened.network, opened.weights.as_ref()).map_err(|e| Error::in_model(path, e))
    }

    /// The proposal for a network; `weights` are those of a checkpoint, with the name of their architecture.
    ///
    /// # Errors
    /// If it cannot be run, or takes something else than one image.
    pub fn of(network: &Network, weights: Option<&Checkpoint>) -> Result<Self> {
        let frame = Frame::of(network)?;
        let anatomy = Anatomy::of(network, &frame)?;
        let architecture = weights.and_then(|checkpoint| checkpoint.architecture.as_deref());
        let reading = read(&anatomy, architecture);
        let signs = reading.as_ref().map(|reading| reading.kind.signs);
        let (size, multiple) = frame::sizes(network, &frame, &anatomy, signs.is_some_and(|s| s.map));
        let set = reading.as_ref().and_then(|r| frame::class_set(&r.kind.signs, r.classes, size.as_ref()));
        let size = size.or_else(|| frame::usual_size(set));
        let names = set.and_then(|set| Some(Known::new(ClassSet::find(set.name)?, set.why)));
        Ok(Self {
            resize: frame::resize(signs.as_ref(), reading.as_ref().and_then(|r| r.head), size.is_some()),
            channels_last: frame.channels_last,
            pixels: frame::pixels(&anatomy, reading.as_ref().and_then(|r| r.head), architecture),
            head: reading.as_ref().and_then(|r| r.head),
            classes: reading.as_ref().map(|r| r.classes).filter(|classes| *classes > 0),
            probe: anatomy.size,
            size,
            multiple,
            names,
            task: reading.as_ref().map(|r| Known::new(r.kind.name, r.why.clone())),
            output: reading.as_ref().map(|r| r.output.clone()),
            features: reading.map(|r| r.features).unwrap_or_default(),
        })
    }
}

/// What the outputs mean; `None` if they fit no task.
fn read(anatomy: &Anatomy<'_>, architecture: Option<&str>) -> Option<Reading> {
    if architecture.is_some_and(|name| name.starts_with("maskrcnn")) {
        return mask_rcnn(anatomy);
    }
    let outputs = &anatomy.graph().outputs;
    if let Some(reading) = yolo(anatomy, outputs) {
        return Some(reading);
    }
    let name = |v: &ValueId| anatomy.name(*v).to_lowercase();
    let rank = |v: &ValueId| match name(v).as_str() {
        "out" | "logits" | "scores" | "output" => 0,
        name if name.contains("aux") => 2,
        _ => 1,
    };
    let mut ranked: Vec<ValueId> = outputs.clone();
    ranked.sort_by_key(rank);
    let mut readings: Vec<Reading> =
        ranked.into_iter().filter_map(|output| single(anatomy, output)).collect();
    // values beside class scores are something in passing
    let best = readings.iter().position(|reading| reading.classes > 0).unwrap_or(0);
    (best < readings.len()).then(|| readings.swap_remove(best))
}

/// One output that a task of the table knows by its shape.
fn single(anatomy: &Anatomy<'_>, output: ValueId) -> Option<Reading> {
    let scores = feature::scores(anatomy, output);
    let name = anatomy.name(scores.value);
    let shape = anatomy.shape(scores.value)?;
    let shown = format!("{name} has the shape {}", shape_words(shape));
    let map = anatomy.grid(scores.value).is_some();
    let (kind, sign) = TASKS.iter().find_map(|kind| Some((kind, (kind.signs.output)(shape, map)?)))?;
    let what = if sign.classes > 0 { "class scores" } else { "values" };
    Some(Reading {
        kind,
        why: format!("{shown}: {}", sign.words),
        head: None,
        classes: sign.classes,
        output: Known::new(TensorNames::from(vec![name.to_owned()]), scores.why),
        features: match map {
            true => feature::of_map(anatomy, scores.value, what),
            false => feature::of_vector(anatomy, scores.value),
        },
    })
}

/// Predictions `[1, 4 + classes + m, anchors]` and prototypes `[1, m, h, w]`.
fn yolo(anatomy: &Anatomy<'_>, outputs: &[ValueId]) -> Option<Reading> {
    let fits = |predictions: ValueId, coefficients: usize| matches!(anatomy.shape(predictions), Some(&[1, c, anchors]) if c > 4 + coefficients && anchors > c);
    let pairs = outputs.iter().flat_map(|&a| outputs.iter().map(move |&b| (a, b)));
    let fitting = |&(a, b): &(ValueId, ValueId)| anatomy.grid(b).is_some_and(|map| fits(a, map.0));
    let mut pairs: Vec<_> = pairs.filter(fitting).collect();
    // features may be among the outputs as well
    pairs.sort_by_key(|&(_, b)| !anatomy.name(b).to_lowercase().contains("proto"));
    let &(predictions, prototypes) = pairs.first()?;
    let coefficients = anatomy.map(prototypes)?.0;
    let classes = anatomy.shape(predictions)?[1] - 4 - coefficients;
    let (a, b) = (anatomy.name(predictions), anatomy.name(prototypes));
    Some(Reading {
        kind: &instance::KIND,
        why: format!(
            "{a} and {b} are a YOLO-seg head's: 4 + {classes} classes + {coefficients} coefficients, and prototypes"
        ),
        head: Some("yolo-seg"),
        classes,
        output: Known::new(TensorNames::from(vec![a.to_owned(), b.to_owned()]), "predictions and prototypes"),
        features: feature::of_yolo(anatomy, predictions, prototypes),
    })
}

/// The zoo's Mask R-CNN, whose head knows its tensors.
fn mask_rcnn(anatomy: &Anatomy<'_>) -> Option<Reading> {
    let own = toml::Table::from_iter([("head".to_owned(), toml::Value::from("mask-rcnn"))]);
    let (output, names) = (instance::KIND.tensors)(&own).ok()?;
    let (output, names) = (output?, names?);
    let shape = |name: &String| anatomy.graph().find(name).and_then(|v| anatomy.shape(v)).unwrap_or_default();
    let shapes = names.iter().map(|name| shape(name).to_vec()).collect();
    Some(Reading {
        kind: &instance::KIND,
        why: "the checkpoint is a Mask R-CNN's".into(),
        head: Some("mask-rcnn"),
        classes: 91,
        output: Known::new(output, "what its head reads"),
        features: vec![Candidate { names, shapes, why: "the maps of its feature pyramid".into() }],
    })
}

/// `1x21x33x33`.
pub fn shape_words(shape: &[usize]) -> String {
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}
