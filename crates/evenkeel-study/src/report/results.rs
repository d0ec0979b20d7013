//! The results: a study's results gathered by subject, column and row, and the figures they come to.
//!
//! Accuracy is the share of images right; mIoU comes from one confusion matrix over the images, mask AP from the objects of all. Intervals are bootstrapped over images, a
//! drawn image with all its draws of randomness; the same seed for every figure, so intervals are paired. The worst case takes, for each image
//! and draw, the attack that left the lowest score.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use evenkeel::budget::Norm;
use evenkeel::task::TaskKind;

use crate::Result;
use crate::experiment::{Cell, Design, Threat};
use crate::record::{Body, Clock, Passes, Tally};
use crate::rows::Row;
use crate::store::Store;
use evenkeel_data::metric::{Better, Bootstrap, Metric, Summary, Unit};

/// Resamplings behind every interval.
const REPLICATES: u32 = 1000;

/// What one image came to in one cell.
#[derive(Clone, Debug)]
pub struct ImageResult {
    /// The image.
    pub id: String,
    /// The draw.
    pub draw: u64,
    /// How right the answer is.
    pub score: f64,
    /// The loss at the truth.
    pub loss: f64,
    /// How right the bare network's is, for the same image shown.
    pub bare_score: f64,
    /// How near the answer is to the attack's target.
    pub to_target: Option<f64>,
    /// The same for the bare network's.
    pub bare_to_target: Option<f64>,
    /// What adds up.
    pub tally: Tally,
    /// The same for the bare network's answer.
    pub bare: Tally,
    /// The defence's objective before and after.
    pub objective: Option<(f64, f64)>,
    /// Length of the gradient of the attack's second term.
    pub term_gradient: Option<f64>,
    /// What the defence took.
    pub defence: (Passes, Clock),
    /// Seconds of the one pass that answers, and the pixels of the image.
    pub answer_seconds: f64,
}

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The figure; shares from 0 to 1.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Images behind it.
    pub images: usize,
    /// What it is in.
    pub unit: Unit,
    /// Which way is good.
    pub better: Better,
}

impl Figure {
    /// The value with the sign that makes more better.
    pub fn merit(&self) -> f64 {
        match self.better {
            Better::Higher => self.value,
            Better::Lower => -self.value,
        }
    }

    /// A value of its kind in words.
    pub fn words(&self) -> String {
        self.unit.words(self.value)
    }

    /// A value of its kind, as charts draw it: shares in %.
    pub fn drawn(&self, value: f64) -> f64 {
        match self.unit {
            Unit::Share => 100.0 * value,
            Unit::Value => value,
        }
    }
}

/// (subject, column, row); no column for the worst case.
type Asked = (usize, Option<usize>, usize);

/// All results of a study.
pub struct Results<'a> {
    /// The design.
    pub design: &'a Design,
    /// By (subject, column, row).
    pub cells: BTreeMap<(usize, usize, usize), Vec<ImageResult>>,
    /// Images of which nothing is known, by subject; they are left out.
    unlabelled: BTreeMap<usize, BTreeSet<String>>,
    /// Figures that were asked for already: a thousand resamplings each.
    known: RefCell<BTreeMap<Asked, Option<Figure>>>,
}

impl<'a> Results<'a> {
    /// Reads everything that is there.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn gather(design: &'a Design, store: &Store) -> Result<Self> {
        let mut cells: BTreeMap<_, Vec<ImageResult>> = BTreeMap::new();
        let mut unlabelled: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for cell in &design.cells {
            let all = cells.entry((cell.subject, cell.column, cell.row)).or_default();
            for id in &design.subjects[cell.subject].images {
                if let Some(row) = Row::find(design, store, cell, id)? {
                    if row.answer().is_some_and(|answer| !answer.tally.is_labelled()) {
                        unlabelled.entry(cell.subject).or_default().insert(id.clone());
                        continue;
                    }
                    all.extend(result(cell, &row));
                }
            }
        }
        Ok(Self { design, cells, unlabelled, known: RefCell::default() })
    }

    /// What was left out because nothing is known of it, in words.
    pub fn unlabelled(&self) -> Vec<String> {
        let words = |(subject, images): (&usize, &BTreeSet<String>)| {
            let name = &self.design.subjects[*subject].rule.name;
            format!(
                "{} images of {name} have no label that counts; all figures leave them out.",
                images.len()
            )
        };
        self.unlabelled.iter().map(words).collect()
    }

    /// The results of a cell over all draws.
    pub fn results(&self, subject: usize, column: usize, row: usize) -> &[ImageResult] {
        self.cells.get(&(subject, column, row)).map_or(&[], Vec::as_slice)
    }

    /// The figure of a cell.
    pub fn figure(&self, subject: usize, column: usize, row: usize) -> Option<Figure> {
        self.remembered((subject, Some(column), row), || self.results(subject, column, row).iter().collect())
    }

    fn remembered<'s>(
        &'s self,
        asked: Asked,
        results: impl FnOnce() -> Vec<&'s ImageResult>,
    ) -> Option<Figure> {
        if let Some(known) = self.known.borrow().get(&asked) {
            return *known;
        }
        let figure = self.figure_of(asked.0, results().iter().map(|r| (r.id.as_str(), &r.tally)));
        self.known.borrow_mut().insert(asked, figure);
        figure
    }

    /// The figure of any choice of tallies.
    pub fn figure_of<'t>(
        &self,
        subject: usize,
        tallies: impl Iterator<Item = (&'t str, &'t Tally)>,
    ) -> Option<Figure> {
        self.summed(subject, self.main_metric(subject)?, tallies)
    }

    /// Any metric of the table, of any choice of tallies.
    pub fn summed<'t>(
        &self,
        subject: usize,
        metric: &Metric,
        tallies: impl Iterator<Item = (&'t str, &'t Tally)>,
    ) -> Option<Figure> {
        let plan = Bootstrap { seed: self.design.experiment.seed, replicates: REPLICATES };
        let classes = self.design.subjects[subject].classes;
        let tallies = tallies.filter_map(|(id, tally)| Some((id, tally.for_metrics(classes)?)));
        let Summary { value, interval, images, .. } = metric.over(tallies, plan)?;
        let interval = interval.map(|i| (i.low, i.high));
        Some(Figure { value, interval, images, unit: metric.unit, better: metric.better })
    }

    /// The metric that sums up a subject's answers.
    pub fn main_metric(&self, subject: usize) -> Option<&'static Metric> {
        Metric::named(TaskKind::find(&self.design.subjects[subject].task).ok()?.figure)
    }

    /// The columns of a subject that count for its worst case: untargeted attacks at the subject's own radius, in its norm.
    pub fn attacks(&self, subject: usize) -> Vec<usize> {
        let card = &self.design.subjects[subject];
        let counts = |threat: &Threat| match threat {
            Threat::Attack(a) => {
                let settings = a.attack.settings();
                a.target.is_none() && settings.epsilon_255 <= card.epsilon_255 && settings.norm == Norm::Linf
            }
            _ => false,
        };
        (0..card.columns.len()).filter(|c| counts(&card.columns[*c].threat)).collect()
    }

    /// For each image and draw, what the most harmful attack left: the lowest score, and of equal ones the highest loss.
    pub fn worst(&self, subject: usize, row: usize) -> Vec<&ImageResult> {
        let mut worst: BTreeMap<(&str, u64), &ImageResult> = BTreeMap::new();
        for column in self.attacks(subject) {
            for result in self.results(subject, column, row) {
                let kept = worst.entry((&result.id, result.draw)).or_insert(result);
                if result.score < kept.score || (result.score == kept.score && result.loss > kept.loss) {
                    *kept = result;
                }
            }
        }
        worst.into_values().collect()
    }

    /// The figure of the worst case: of the attacks chosen image by image, or of the one attack that left less than those together. (An image is judged by
    /// its own score and the figure pools all images, so that can happen.)
    pub fn worst_figure(&self, subject: usize, row: usize) -> Option<Figure> {
        let chosen = self.remembered((subject, None, row), || self.worst(subject, row))?;
        let whole = |f: &Figure| f.images == chosen.images;
        let single =
            self.attacks(subject).into_iter().filter_map(|c| self.figure(subject, c, row)).filter(whole);
        let worse = |a: &Figure, b: &Figure| a.merit().total_cmp(&b.merit());
        Some(single.chain([chosen]).min_by(worse).unwrap_or(chosen))
    }

    /// How many of the attacks that count for the worst case a row has met.
    pub fn met(&self, subject: usize, row: usize) -> usize {
        self.attacks(subject).into_iter().filter(|c| !self.results(subject, *c, row).is_empty()).count()
    }

    /// The columns of a subject that are no corruptions: clean images and attacks.
    pub fn plain_columns(&self, subject: usize) -> Vec<usize> {
        let columns = &self.design.subjects[subject].columns;
        (0..columns.len()).filter(|c| !matches!(columns[*c].threat, Threat::Corruption { .. })).collect()
    }

    /// The name of a subject's figure.
    pub fn metric(&self, subject: usize) -> &'static str {
        self.main_metric(subject).map_or("score", |metric| metric.title)
    }

    /// What the figure is in, as titles say it.
    pub fn unit(&self, subject: usize) -> &'static str {
        match self.main_metric(subject).map(|metric| metric.unit) {
            Some(Unit::Value) => "",
            _ => " in %",
        }
    }
}

fn result(cell: &Cell, row: &Row) -> Option<ImageResult> {
    let (answer, bare) = (row.answer()?.clone(), row.bare()?.clone());
    let Body::Shown(shown) = &row.shown.body else { return None };
    let answered = row.answered.as_ref().and_then(|entry| match &entry.body {
        Body::Answered(answered) => Some(answered),
        _ => None,
    });
    let defence =
        row.answered.as_ref().map_or((Passes::default(), Clock::default()), |e| (e.passes, e.clock));
    let answer_seconds =
        row.answered.as_ref().map_or(row.shown.clock.answer_seconds, |e| e.clock.answer_seconds);
    Some(ImageResult {
        id: row.shown.id.clone(),
        draw: cell.draw,
        score: answer.score,
        loss: answer.loss,
        bare_score: bare.score,
        to_target: answer.to_target,
        bare_to_target: bare.to_target,
        tally: answer.tally,
        bare: bare.tally,
        objective: answered.and_then(|a| a.objective_before.zip(a.objective_after)),
        term_gradient: shown.term_gradient,
        defence,
        answer_seconds,
    })
}

#[cfg(test)]
mod tests;
