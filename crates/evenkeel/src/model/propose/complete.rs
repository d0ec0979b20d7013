//! A proposal and what somebody answered made a contract; what neither knows comes back as questions, all of them together.

use std::collections::BTreeMap;

use super::Proposal;
use crate::error::Result;
use crate::model::contract::{Classes, Contract, InputRule, Order, PaletteRule, ResizeRule};
use crate::model::names::{ClassSet, NamesRule};
use crate::network::TensorNames;
use crate::task::{TaskKey, TaskKind};

/// What is known beforehand; it goes before what the graph tells.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// The task.
    pub task: Option<String>,
    /// The tensors of scores.
    pub output: Option<TensorNames>,
    /// The tensors that views are compared on.
    pub feature: Option<TensorNames>,
    /// The order of the channels.
    pub order: Option<Order>,
    /// What a pixel in [0, 1] is multiplied by first.
    pub scale: Option<f32>,
    /// What is subtracted then.
    pub mean: Option<[f32; 3]>,
    /// What it is divided by then.
    pub std: Option<[f32; 3]>,
    /// Channels come last.
    pub channels_last: bool,
    /// (height, width).
    pub size: Option<(usize, usize)>,
    /// How images are brought to size.
    pub resize: Option<ResizeRule>,
    /// What sides must be multiples of.
    pub multiple: Option<usize>,
    /// The colours.
    pub palette: Option<PaletteRule>,
    /// The names; an empty list for none.
    pub names: Option<NamesRule>,
    /// The numbers that the data set gives the classes.
    pub ids: Option<Vec<i64>>,
    /// What the contract's table of the task holds: keys and values as a person writes them.
    pub own: Vec<(String, String)>,
}

/// Something that neither the graph nor an answer tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The field of [`Answers`].
    pub field: &'static str,
    /// What is asked.
    pub text: String,
}

impl Proposal {
    /// The contract; or, if something is not known, every question that is left.
    ///
    /// # Errors
    /// If what was answered makes no sense.
    pub fn contract(&self, answers: &Answers) -> Result<std::result::Result<Contract, Vec<Question>>> {
        let questions = self.questions(answers);
        if !questions.is_empty() {
            return Ok(Err(questions));
        }
        let kind = TaskKind::find(self.task_of(answers).unwrap_or_default())?;
        let table = self.table(kind, answers);
        let (own_output, own_feature) = (kind.tensors)(&table)?;
        let output =
            answers.output.clone().or(own_output).or_else(|| Some(self.output.as_ref()?.value.clone()));
        let feature =
            answers.feature.clone().or(own_feature).or_else(|| Some(self.features.first()?.names.clone()));
        let contract = Contract {
            task: kind.name.to_owned(),
            output: output.unwrap_or_default(),
            feature: feature.unwrap_or_default(),
            input: self.input(answers),
            classes: self.named_classes(answers),
            tables: match table.is_empty() {
                true => BTreeMap::new(),
                false => BTreeMap::from([(kind.name.to_owned(), toml::Value::Table(table))]),
            },
        };
        contract.check()?;
        Ok(Ok(contract))
    }

    fn task_of<'a>(&'a self, answers: &'a Answers) -> Option<&'a str> {
        answers.task.as_deref().or(self.task.as_ref().map(|task| task.value))
    }

    /// The task's table: what was given, the head that was seen, and what has a default.
    fn table(&self, kind: &TaskKind, answers: &Answers) -> toml::Table {
        let given =
            |name: &str| answers.own.iter().find(|(key, _)| key == name).map(|(_, text)| text.as_str());
        let seen = |name: &str| self.head.filter(|_| name == "head");
        let entry = |key: &TaskKey| {
            let text = given(key.name).or(seen(key.name)).or(key.default)?;
            Some((key.name.to_owned(), written(text)))
        };
        kind.keys.iter().filter_map(entry).collect()
    }

    /// What is asked for: everything without which there is no contract.
    fn questions(&self, answers: &Answers) -> Vec<Question> {
        let mut questions = Vec::new();
        let mut ask = |missing: bool, field, text: &str| {
            if missing {
                questions.push(Question { field, text: text.to_owned() });
            }
        };
        let task = self.task_of(answers);
        let kind = task.and_then(|task| TaskKind::find(task).ok());
        let table = kind.map(|kind| self.table(kind, answers)).unwrap_or_default();
        let (output, feature) = kind.and_then(|kind| (kind.tensors)(&table).ok()).unwrap_or_default();
        ask(task.is_none(), "task", &format!("what the network does: {}", TaskKind::names().join(", ")));
        if let Some((field, text)) = kind.and_then(|kind| (kind.signs.asks)(&table)) {
            ask(true, field, text);
        }
        let known = answers.output.is_some() || self.output.is_some() || output.is_some();
        ask(!known, "output", "the tensor of class scores or values");
        let known = answers.feature.is_some() || !self.features.is_empty() || feature.is_some();
        ask(!known, "feature", "the tensor of features that views are compared on");
        if self.pixels.is_none() {
            ask(answers.order.is_none(), "order", "the order of the channels: rgb or bgr");
            ask(answers.scale.is_none(), "scale", "what a pixel in [0, 1] is multiplied by: 1 or 255");
            ask(answers.mean.is_none(), "mean", "what is subtracted then: three numbers");
            ask(answers.std.is_none(), "std", "what it is divided by then: three numbers");
        }
        questions
    }

    fn input(&self, answers: &Answers) -> InputRule {
        let pixels = self.pixels.as_ref().map(|known| known.value);
        let size = answers.size.or_else(|| Some(self.size.as_ref()?.value));
        let multiple = answers.multiple.unwrap_or(self.multiple.value);
        let fits = |(h, w): (usize, usize)| h % multiple.max(1) == 0 && w % multiple.max(1) == 0;
        InputRule {
            order: answers.order.or(pixels.map(|p| p.order)).unwrap_or(Order::Rgb),
            scale: answers.scale.or(pixels.map(|p| p.scale)).unwrap_or(1.0),
            mean: answers.mean.or(pixels.map(|p| p.mean)).unwrap_or_default(),
            std: answers.std.or(pixels.map(|p| p.std)).unwrap_or([1.0; 3]),
            channels_last: answers.channels_last || self.channels_last,
            size: size.filter(|&size| answers.size.is_some() || fits(size)).map(|(h, w)| [h, w]),
            resize: answers.resize.unwrap_or(self.resize.value),
            multiple,
        }
    }

    /// Names, colours and numbers: what was answered, and otherwise the known set's.
    fn named_classes(&self, answers: &Answers) -> Classes {
        let said = matches!(&answers.names, Some(NamesRule::Each(_)));
        let of_names = match &answers.names {
            Some(NamesRule::Known(name)) => ClassSet::find(name),
            _ => None,
        };
        let of_palette = match &answers.palette {
            Some(PaletteRule::Named(name)) => ClassSet::find(name),
            _ => None,
        };
        let proposed = self.names.as_ref().map(|known| known.value).filter(|_| !said);
        let set = of_names.or(of_palette).or(proposed);
        let set = set.filter(|set| self.classes.is_none_or(|classes| set.len() >= classes));
        let task = self.task.as_ref().and_then(|task| TaskKind::find(task.value).ok());
        let coloured = set.filter(|set| task.is_some_and(|task| task.signs.coloured) && set.len() < 256);
        let names = match (&answers.names, set) {
            (Some(NamesRule::Each(names)), _) => NamesRule::Each(names.clone()),
            (_, Some(set)) => NamesRule::Known(set.name.to_owned()),
            (names, None) => names.clone().unwrap_or_default(),
        };
        let palette = coloured
            .map(|set| PaletteRule::Named(if set.name == "voc" { "voc:21" } else { set.name }.to_owned()));
        Classes {
            names,
            palette: answers.palette.clone().or(palette.filter(|_| !said)),
            ids: answers.ids.clone().unwrap_or_else(|| set.map(ClassSet::ids).unwrap_or_default()),
        }
    }
}

/// A value as a person writes it: a number, or a list of them, if it looks like one; otherwise a text.
fn written(text: &str) -> toml::Value {
    let listed = if text.contains(',') { format!("[{text}]") } else { text.to_owned() };
    let parsed: Option<toml::Table> = format!("x = {listed}").parse().ok();
    parsed.and_then(|mut table| table.remove("x")).unwrap_or_else(|| toml::Value::String(text.to_owned()))
}
