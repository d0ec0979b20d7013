//! The design: an experiment joined with what its subjects turned out to be, as cells with keys.
//!
//! A [`Work`] is one way of changing an image (clean, corrupted, attacked) with everything that is then run on it: defences, detectors. Its
//! image is made once. An attack that aims through a defence is a work of its own for each defence. A [`Cell`] is a place in a table and
//! points at a work and an answer; two columns whose settings come to the same point at the same work.
//! Invariant: a key is a hash of code version, network, settings and seed, and of nothing that a result does not depend on.

use std::collections::{BTreeMap, HashSet};

use evenkeel::attack::Attack;
use evenkeel::defence::DefenceSpec;
use evenkeel::task::TaskKind;
use serde::{Deserialize, Serialize};

use super::decisive::{Decisive, plain_objective};
use super::{AimedAttack, Column, DefenceRow, DetectorRow, Experiment, ForeignTo, SubjectRule, Threat, spec};
use crate::key::Key;
use crate::{Error, Result};

/// Changes when the same settings may give other results than before, or are written otherwise into keys.
pub const REVISION: &str = concat!(env!("CARGO_PKG_VERSION"), "/4");

/// What is known of a subject once it is loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubjectCard {
    /// As the experiment names it.
    pub rule: SubjectRule,
    /// A fingerprint of network and contract.
    pub model: Key,
    /// Fingerprints of heads, by defence.
    pub heads: BTreeMap<String, Key>,
    /// The name of the network's task.
    pub task: String,
    /// Names of the classes, if known.
    pub class_names: Vec<String>,
    /// How many classes figures are over.
    pub classes: usize,
    /// The width of the range of a cell's error, if it has one.
    #[serde(default = "of_probabilities")]
    pub error_range: Option<f64>,
    /// What tells its images from those of the same names that an earlier subject shows to the same network; `None` if there is no such subject,
    /// so that keys do not depend on where data lie.
    pub variant: Option<String>,
    /// The radius that attacks have unless they say otherwise.
    pub epsilon_255: f64,
    /// The names of the images, in order.
    pub images: Vec<String>,
    /// What is done to images.
    pub columns: Vec<Column>,
    /// What is done against that.
    pub rows: Vec<DefenceRow>,
    /// What is measured.
    pub detectors: Vec<DetectorRow>,
    /// For images that are not of the network's own kind: whose card this stands behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<ForeignTo>,
}

/// The range of errors in designs that do not say it, which are of probabilities.
fn of_probabilities() -> Option<f64> {
    Some(1.0)
}

/// An image changed in one way, and all that is run on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// The subject.
    pub subject: usize,
    /// The key.
    pub key: Key,
    /// The column that asked for it first.
    pub column: usize,
    /// The row that the attack aims through, or whose objective it keeps high.
    pub lens: Option<usize>,
    /// The draw.
    pub draw: u64,
    /// Defences that meet it.
    pub answers: Vec<Answer>,
    /// Detectors that score it: key and place.
    pub detections: Vec<(Key, usize)>,
}

/// A defence on the image of a work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The key.
    pub key: Key,
    /// The row.
    pub row: usize,
    /// The draw.
    pub draw: u64,
}

/// A place in a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The subject.
    pub subject: usize,
    /// The column.
    pub column: usize,
    /// The row.
    pub row: usize,
    /// The draw.
    pub draw: u64,
    /// The work whose image is met.
    pub work: usize,
    /// The answer; `None` is the bare network's.
    pub answer: Option<usize>,
}

/// What is to be done, and where each result stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// What was asked.
    pub experiment: Experiment,
    /// The code it is for.
    pub revision: String,
    /// The subjects.
    pub subjects: Vec<SubjectCard>,
    /// The works, of the first subject first.
    pub works: Vec<Work>,
    /// The cells, in the tables' order.
    pub cells: Vec<Cell>,
    /// What was asked and cannot be done, in words.
    pub left_out: Vec<String>,
}

impl Design {
    /// The design of an experiment on loaded subjects.
    ///
    /// # Errors
    /// If a file of views cannot be read.
    pub fn new(experiment: Experiment, mut subjects: Vec<SubjectCard>) -> Result<Self> {
        let mut left_out = Vec::new();
        for card in &mut subjects {
            card.columns = spec::columns(&experiment, &card.rule)?;
            card.detectors = spec::detectors(&experiment)?;
            card.rows = spec::defences(&experiment, &card.rule)?;
            let impossible = drop_impossible(card);
            match &card.foreign {
                Some(foreign) => (card.columns, card.rows) = (vec![foreign.rule.column()], Vec::new()),
                None => left_out.extend(impossible),
            }
        }
        for subject in 1..subjects.iter().filter(|card| card.foreign.is_none()).count() {
            subjects[subject].variant = variant(&subjects[..subject], &subjects[subject]);
        }
        let mut design = Self {
            experiment,
            revision: REVISION.into(),
            subjects,
            works: Vec::new(),
            cells: Vec::new(),
            left_out,
        };
        for subject in 0..design.subjects.len() {
            design.lay_out(subject)?;
        }
        Ok(design)
    }

    fn lay_out(&mut self, subject: usize) -> Result<()> {
        let card = self.subjects[subject].clone();
        let draws = self.experiment.seeds.clone();
        if card.foreign.is_some() {
            self.work(subject, &card, 0, 0, draws[0])?;
            return Ok(());
        }
        for (column, of) in card.columns.iter().enumerate() {
            for row in 0..card.rows.len() {
                if of.rows.as_ref().is_some_and(|rows| !rows.contains(&card.rows[row].label)) {
                    continue;
                }
                for &draw in &draws {
                    let work = self.work(subject, &card, column, row, draw)?;
                    let answer = match card.rows[row].is_none() {
                        true => None,
                        false => Some(self.answer(&card, work, row, draw)?),
                    };
                    self.cells.push(Cell { subject, column, row, draw, work, answer });
                }
            }
        }
        Ok(())
    }

    /// The place of the work for a cell, made if it is not there.
    fn work(
        &mut self,
        subject: usize,
        card: &SubjectCard,
        column: usize,
        row: usize,
        draw: u64,
    ) -> Result<usize> {
        let root = (REVISION, &card.model, &card.variant, self.experiment.seed);
        let (key, lens) = match &card.columns[column].threat {
            Threat::Clean => (Key::of(&("clean", root))?, None),
            threat @ Threat::Corruption { .. } => (Key::of(&("corruption", root, threat))?, None),
            threat @ Threat::Foreign { .. } => (Key::of(&("foreign", root, threat))?, None),
            Threat::Attack(aimed) => {
                let plain = plain_objective()?;
                let known = Knowledge::of(aimed, &card.rows[row], &plain);
                let through = known.through.map(|row| Decisive::of_row(row).with_head(&card.heads));
                let keeps = known.keeps.map(|spec| Decisive::of_objective(spec).with_head(&card.heads));
                let lens = (through.is_some() || keeps.is_some()).then_some(row);
                let own = (Decisive::of_attack(&known.attack), &aimed.target);
                (Key::of(&("attack", root, own, through, keeps, draw))?, lens)
            }
        };
        if let Some(place) = self.works.iter().position(|w| w.key == key && w.subject == subject) {
            return Ok(place);
        }
        let mut detections = Vec::new();
        for (place, detector) in card.detectors.iter().enumerate() {
            if card.foreign.is_some() && detector.spec.estimates_error() {
                continue;
            }
            let own = Decisive::of_detector(&detector.spec).with_head(&card.heads);
            detections.push((Key::of(&("detector", &key, own))?, place));
        }
        self.works.push(Work { subject, key, column, lens, draw, answers: Vec::new(), detections });
        Ok(self.works.len() - 1)
    }

    fn answer(&mut self, card: &SubjectCard, work: usize, row: usize, draw: u64) -> Result<usize> {
        let own = Decisive::of_row(&card.rows[row]).with_head(&card.heads);
        let measured = self.experiment.objective;
        let work = &mut self.works[work];
        let key = Key::of(&("defence", &work.key, own, draw, measured))?;
        if let Some(place) = work.answers.iter().position(|a| a.key == key) {
            return Ok(place);
        }
        work.answers.push(Answer { key, row, draw });
        Ok(work.answers.len() - 1)
    }

    /// The column of a cell.
    pub fn column(&self, cell: &Cell) -> &Column {
        &self.subjects[cell.subject].columns[cell.column]
    }

    /// The row of a cell.
    pub fn row(&self, cell: &Cell) -> &DefenceRow {
        &self.subjects[cell.subject].rows[cell.row]
    }

    /// Every key that a complete study has for each image of a subject.
    pub fn keys(&self, subject: usize) -> Vec<Key> {
        self.works.iter().filter(|w| w.subject == subject).flat_map(|w| self.keys_of(w)).collect()
    }

    /// The same for a work. Of foreign images, of which nothing is true, only detections are kept.
    pub fn keys_of(&self, work: &Work) -> Vec<Key> {
        let own = (!self.is_foreign(work)).then_some(work.key);
        let answers = work.answers.iter().map(|a| a.key);
        own.into_iter().chain(answers).chain(work.detections.iter().map(|d| d.0)).collect()
    }

    /// Whether the images of a work are not of the network's own kind.
    pub fn is_foreign(&self, work: &Work) -> bool {
        self.subjects[work.subject].foreign.is_some()
    }

    /// The design as a file.
    ///
    /// # Errors
    /// If a value has no form in JSON.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Error::Request(e.to_string()))
    }
}

/// What an attack knows of the row that it meets.
pub(crate) struct Knowledge<'a> {
    /// The attack; on a bare network without what only concerns a defence.
    pub(crate) attack: Attack,
    /// The defence and answer that it aims through.
    pub(crate) through: Option<&'a DefenceRow>,
    /// The defence whose objective it keeps high.
    pub(crate) keeps: Option<&'a DefenceSpec>,
}

impl<'a> Knowledge<'a> {
    /// Of a row; `plain` has the objective that stands for that of a defence without one.
    pub(crate) fn of(aimed: &AimedAttack, row: &'a DefenceRow, plain: &'a DefenceSpec) -> Self {
        let through = (aimed.attack.aims_through() && !row.is_none()).then_some(row);
        let attack = if through.is_some() { aimed.attack.clone() } else { aimed.attack.on_bare_network() };
        let own = if row.spec.takes_gradients() { &row.spec } else { plain };
        Self { keeps: attack.entry().reads_objective.then_some(own), attack, through }
    }
}

/// Drops the defences and detectors that a subject cannot have, and says why.
fn drop_impossible(card: &mut SubjectCard) -> Vec<String> {
    let (subject, heads) = (&card.rule.name, &card.heads);
    let no_cells = TaskKind::find(&card.task).is_ok_and(|kind| !kind.estimates_error);
    let mut words = Vec::new();
    let mut keep = |label: &str, lacks_head: bool, lacks_cells: bool| {
        if lacks_head {
            words.push(format!("{label} on {subject}: the subject names no head for it"));
        } else if lacks_cells {
            words.push(format!("{label} on {subject}: objects have no cells whose error could be estimated"));
        }
        !lacks_head && !lacks_cells
    };
    card.rows
        .retain(|row| keep(&row.label, row.spec.needs_head() && !heads.contains_key(row.spec.name()), false));
    card.detectors.retain(|row| {
        let lacks_head = row.spec.needs_head() && !heads.contains_key(row.spec.name());
        keep(&row.label, lacks_head, no_cells && row.spec.estimates_error())
    });
    words
}

/// Where a subject's images come from, if an earlier one shows others of the same names to the same network.
fn variant(earlier: &[SubjectCard], card: &SubjectCard) -> Option<String> {
    let source = |rule: &SubjectRule| {
        format!("{} {} {:?} {:?} {:?}", rule.data, rule.path.display(), rule.split, rule.size, rule.classes)
    };
    let own = source(&card.rule);
    let ids: HashSet<&String> = card.images.iter().collect();
    let clashes = |other: &SubjectCard| {
        other.model == card.model
            && source(&other.rule) != own
            && other.images.iter().any(|id| ids.contains(id))
    };
    earlier.iter().any(clashes).then_some(own)
}
