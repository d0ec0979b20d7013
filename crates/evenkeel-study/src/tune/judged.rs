//! What is known of a candidate: clean, under attackers who do not know of it, under those who do, and what it costs; always on, and on alarm.
//!
//! On alarm an image is answered as defended if its detection score is above the threshold, and by the bare network otherwise. The threshold is the highest score
//! of the clean images of the choosing half, less a share of false alarms; each of those clean images meets the threshold that the others give. Costs are passes of any size for an answer, a pullback counted as one.

use std::collections::BTreeMap;

use evenkeel::detect::{FALSE_ALARMS, threshold_for};

use super::Candidate;
use crate::Result;
use crate::experiment::Threat;
use crate::record::{Body, Tally};
use crate::report::results::{Figure, ImageResult, Results};
use crate::store::{Shard, Store};

/// A candidate, always on or on alarm, and its figures.
#[derive(Clone, Debug)]
pub struct Judged {
    /// What it is called.
    pub label: String,
    /// The candidate; `none` for the bare network.
    pub candidate: String,
    /// The threshold, if it acts on alarm only.
    pub threshold: Option<f64>,
    /// Clean images behind the threshold.
    pub threshold_images: usize,
    /// Clean.
    pub clean: Figure,
    /// Under the worst attacker who does not know of it.
    pub unaware: Figure,
    /// Under the worst of all attackers; none if those who know it were not tried.
    pub aware: Option<Figure>,
    /// Forward passes of an answer.
    pub cost: f64,
}

/// What the bare network is called.
pub(super) const BARE: &str = "none";

/// Detection scores and passes by column, lens row and image.
struct Scores {
    by_work: BTreeMap<(usize, String), f64>,
    passes: f64,
}

impl Scores {
    fn gather(results: &Results<'_>, store: &Store) -> Result<Self> {
        let (mut by_work, mut passes) = (BTreeMap::new(), 0.0f64);
        for (number, work) in results.design.works.iter().enumerate() {
            let Some((key, _)) = work.detections.first() else { continue };
            for id in &results.design.subjects[0].images {
                let Some((entry, _)) = store.get(key, id)? else { continue };
                passes = passes.max((entry.passes.forwards + entry.passes.backwards) as f64);
                if let Body::Detected(detected) = &entry.body {
                    by_work.insert((number, id.clone()), detected.score);
                }
            }
        }
        Ok(Self { by_work, passes })
    }

    /// The score of the image that a cell shows.
    fn of(&self, results: &Results<'_>, column: usize, row: usize, id: &str) -> Option<f64> {
        let cell = results.design.cells.iter().find(|cell| cell.column == column && cell.row == row)?;
        self.by_work.get(&(cell.work, id.to_string())).copied()
    }
}

/// Everything about one row on one half.
struct Row<'r> {
    results: &'r Results<'r>,
    scores: &'r Scores,
    half: Shard,
    row: usize,
    threshold: Option<f64>,
    /// For clean images behind the threshold, the one without them.
    without: &'r BTreeMap<&'r str, f64>,
}

impl<'r> Row<'r> {
    fn of_half(&self, column: usize) -> impl Iterator<Item = &'r ImageResult> {
        let images = &self.results.design.subjects[0].images;
        let half = self.half;
        let here = move |one: &&ImageResult| {
            images.iter().position(|id| *id == one.id).is_some_and(|place| half.has(place))
        };
        self.results.results(0, column, self.row).iter().filter(here)
    }

    /// Whether an image is answered as defended.
    fn acts(&self, column: usize, id: &str) -> bool {
        let Some(threshold) = self.threshold else { return true };
        let own = self.without.get(id).filter(|_| column == 0);
        let threshold = own.copied().unwrap_or(threshold);
        self.scores.of(self.results, column, self.row, id).is_none_or(|score| score > threshold)
    }

    /// The tallies of the images under a column, with the score that each answer has.
    fn tallies(&self, column: usize) -> BTreeMap<&'r str, (f64, &'r Tally)> {
        let one = |r: &'r ImageResult| match self.acts(column, &r.id) {
            true => (r.id.as_str(), (r.score, &r.tally)),
            false => (r.id.as_str(), (r.bare_score, &r.bare)),
        };
        self.of_half(column).map(one).collect()
    }

    fn figure(&self, tallies: &BTreeMap<&'r str, (f64, &'r Tally)>) -> Option<Figure> {
        self.results.figure_of(0, tallies.iter().map(|(id, (_, tally))| (*id, *tally)))
    }

    /// The worst of columns: the attack that hurts each image most, or the one that leaves least in all.
    fn worst(&self, columns: &[usize]) -> Option<Figure> {
        let mut worst: BTreeMap<&'r str, (f64, &'r Tally)> = BTreeMap::new();
        let mut figures = Vec::new();
        for column in columns {
            let own = self.tallies(*column);
            figures.extend(self.figure(&own));
            for (id, (score, tally)) in own {
                let kept = worst.entry(id).or_insert((score, tally));
                if score < kept.0 {
                    *kept = (score, tally);
                }
            }
        }
        let chosen = self.figure(&worst)?;
        let whole = figures.into_iter().filter(|figure| figure.images == chosen.images);
        whole.chain([chosen]).min_by(|a, b| a.value.total_cmp(&b.value))
    }

    fn cost(&self, column: usize) -> f64 {
        let passes = |r: &ImageResult| (r.defence.0.forwards + r.defence.0.backwards) as f64;
        let all: Vec<f64> = self.of_half(column).map(passes).collect();
        1.0 + all.iter().sum::<f64>() / all.len().max(1) as f64
    }

    fn judged(&self, label: String, candidate: &str, threshold_images: usize) -> Option<Judged> {
        let columns = &self.results.design.subjects[0].columns;
        let attacks = self.results.attacks(0);
        let knows = |c: &usize| matches!(&columns[*c].threat, Threat::Attack(a) if a.knows_defence() || a.attack.name() == "views-eot");
        let blind: Vec<usize> = attacks.iter().copied().filter(|c| !knows(c)).collect();
        let clean = self.tallies(0);
        let acting = clean.keys().filter(|id| self.acts(0, id)).count() as f64 / clean.len().max(1) as f64;
        let cost = match self.threshold {
            Some(_) => 1.0 + self.scores.passes + acting * self.cost(0),
            None => self.cost(0),
        };
        let aware = attacks.iter().any(knows).then(|| self.worst(&attacks)).flatten();
        Some(Judged {
            label,
            candidate: candidate.into(),
            threshold: self.threshold,
            threshold_images,
            clean: self.figure(&clean)?,
            unaware: self.worst(&blind)?,
            aware,
            cost,
        })
    }
}

/// What is known of the bare network and of candidates on a half of the images. Thresholds come from the clean images of the other half, or of this one where it
/// is the half that chooses.
///
/// # Errors
/// If the store cannot be read.
pub fn judged(
    results: &Results<'_>,
    store: &Store,
    candidates: &[&Candidate],
    half: Shard,
) -> Result<Vec<Judged>> {
    let scores = Scores::gather(results, store)?;
    let [choosing, _] = super::halves()?;
    let images = &results.design.subjects[0].images;
    let calm = images.iter().enumerate().filter(|(place, _)| choosing.has(*place));
    let calm: Vec<(&str, f64)> =
        calm.filter_map(|(_, id)| Some((id.as_str(), scores.of(results, 0, 0, id)?))).collect();
    let limit = |but: Option<&str>| {
        let others = calm.iter().filter(|(id, _)| but != Some(*id)).map(|(_, score)| *score);
        threshold_for(&others.collect::<Vec<_>>(), FALSE_ALARMS).ok()
    };
    let threshold = limit(None);
    let without = calm.iter().filter_map(|(id, _)| Some((*id, limit(Some(id))?))).collect();
    let mut all = Vec::new();
    for (row, of) in results.design.subjects[0].rows.iter().enumerate() {
        let candidate = candidates.iter().find(|c| c.label == of.label).map_or(BARE, |c| c.label.as_str());
        let always = Row { results, scores: &scores, half, row, threshold: None, without: &without };
        all.extend(always.judged(of.label.clone(), candidate, 0));
        if candidate != BARE && threshold.is_some() {
            let on_alarm = Row { threshold, ..always };
            all.extend(on_alarm.judged(format!("{}, on alarm", of.label), candidate, calm.len()));
        }
    }
    Ok(all)
}
