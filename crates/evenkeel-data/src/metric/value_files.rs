//! Scores of maps of values in files: a folder of predictions against a folder of truths, `.npy` arrays or grey PNGs.
//!
//! Files are matched by name without ending; `NAME.values.npy`, as `evenkeel predict --out` writes it, is NAME's. What a PNG's numbers mean, the rule of a contract says; a number may
//! stand for "unknown" in PNGs of truths. Cells whose truth is not finite count for nothing, cells without an answer (NaN) are left out and counted. Every fault of either folder is found before figures are given.

use super::bootstrap::{Bootstrap, Interval, Resampled, key_of};
use super::regression::ValueTally;
use super::table::{Metric, TaskTally};
use crate::dataset::Offender;
use crate::dataset::files::broken;
use crate::dataset::walk::{files_under, has_ending, stem_of};
use crate::{Error, Result};
use evenkeel::task::regression::{RegressionRule, png_values};
use evenkeel_network::format::npz;
use evenkeel_network::tensor::Tensor;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const ENDINGS: [&str; 2] = ["npy", "png"];
const REMEDY: &str = "write it again as a .npy array or a grey PNG of 16 bits";

/// Two folders of maps and how to compare them.
#[derive(Clone, Debug)]
pub struct ValueComparison<'a> {
    /// The true maps.
    pub truth: &'a Path,
    /// The predicted ones.
    pub predicted: &'a Path,
    /// What the numbers of PNGs mean; which of them stands for "unknown" is about true ones only.
    pub rule: RegressionRule,
    /// Resampling for confidence intervals.
    pub plan: Bootstrap,
    /// Leave offenders out instead of refusing.
    pub skip_bad: bool,
}

/// The score of maps of values.
#[derive(Clone, Debug)]
pub struct ValueScore {
    tally: Resampled<TaskTally>,
    unlabelled: u64,
}

impl ValueScore {
    /// An empty score.
    pub fn new(plan: Bootstrap) -> Self {
        Self { tally: Resampled::new(TaskTally::Values(Box::default()), plan), unlabelled: 0 }
    }

    /// Takes in an image; one of which nothing is known is left out and counted as such.
    pub fn push(&mut self, key: u64, image: ValueTally) {
        match image.cells() {
            0 => self.unlabelled += 1,
            _ => self.tally.push(key, &TaskTally::Values(Box::new(image))),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.tally.merge(&other.tally);
        self.unlabelled += other.unlabelled;
    }

    /// Images counted.
    pub fn images(&self) -> u64 {
        self.tally.images()
    }

    /// Images of which nothing is known, which are left out.
    pub fn unlabelled(&self) -> u64 {
        self.unlabelled
    }

    /// Labelled cells without an answer, which are left out.
    pub fn unanswered(&self) -> u64 {
        match self.tally.whole() {
            TaskTally::Values(values) => values.unanswered(),
            _ => 0,
        }
    }

    /// A metric of the table with its interval.
    pub fn figure(&self, metric: &Metric, confidence: f64) -> (Option<f64>, Option<Interval>) {
        let interval = self.tally.interval(confidence, |tally| metric.value(tally));
        (metric.value(self.tally.whole()), interval)
    }
}

/// The values of an array of numbers.
fn numbers(array: &Tensor) -> Option<Vec<f64>> {
    match (array.values::<f64>(), array.values::<f32>()) {
        (Some(values), _) => Some(values.to_vec()),
        (_, Some(values)) => Some(values.iter().map(|v| f64::from(*v)).collect()),
        _ => Some(array.integers()?.into_iter().map(|v| v as f64).collect()),
    }
}

/// The name of the picture that a file of values is about.
fn bare(path: &Path) -> String {
    let stem = stem_of(path);
    stem.strip_suffix(".values").unwrap_or(&stem).to_string()
}

/// The file that counts for each name: of NAME.values.npy, NAME.values.png, NAME.npy and NAME.png the first that is there.
fn by_name(files: Vec<PathBuf>) -> BTreeMap<String, PathBuf> {
    let rank = |path: &Path| (stem_of(path).ends_with(".values"), has_ending(path, &["npy"]));
    let mut named: BTreeMap<String, PathBuf> = BTreeMap::new();
    for path in files {
        if named.get(&bare(&path)).is_none_or(|known| rank(&path) > rank(known)) {
            named.insert(bare(&path), path);
        }
    }
    named
}

impl ValueComparison<'_> {
    /// The score, and the offenders that were left out. Without `skip_bad` any offender is an error that lists all.
    pub fn score(&self) -> Result<(ValueScore, Vec<Offender>)> {
        let truths = files_under(self.truth, &ENDINGS)?;
        if truths.is_empty() {
            let offender =
                Offender::new(self.truth, "there is no .npy or .png in it", "give a folder of true maps");
            return Err(Error::Offenders(vec![offender]));
        }
        // pictures may lie beside their truths
        let truths: Vec<PathBuf> = by_name(truths).into_values().collect();
        let predicted = by_name(files_under(self.predicted, &ENDINGS)?);
        let compared: Vec<_> = truths.par_iter().map(|truth| self.compare(truth, &predicted)).collect();
        let (mut score, mut offenders) = (ValueScore::new(self.plan), Vec::new());
        for (path, found) in truths.iter().zip(compared) {
            match found {
                Ok(tally) => {
                    let mut own = ValueScore::new(self.plan);
                    own.push(key_of(&bare(path)), tally);
                    score.merge(&own);
                }
                Err(offender) => offenders.push(offender),
            }
        }
        match !offenders.is_empty() && !self.skip_bad {
            true => Err(Error::Offenders(offenders)),
            false => Ok((score, offenders)),
        }
    }

    fn compare(
        &self,
        truth: &Path,
        predicted: &BTreeMap<String, PathBuf>,
    ) -> std::result::Result<ValueTally, Offender> {
        let name = bare(truth);
        let Some(other) = predicted.get(&name) else {
            let fault = format!("has no prediction in {}", self.predicted.display());
            return Err(Offender::new(truth, fault, format!("write {name}.values.npy there")));
        };
        let answered = RegressionRule { unknown: None, ..self.rule.clone() };
        let (is, said) = (load(truth, &self.rule)?, load(other, &answered)?);
        if is.0 != said.0 {
            let fault = format!("has the shape {:?} but its truth {:?}", said.0, is.0);
            return Err(Offender::new(other, fault, "bring it to the size of the truth before scoring"));
        }
        ValueTally::of(&said.1, &is.1).ok_or_else(|| {
            Offender::new(
                other,
                "is infinite somewhere, or answers no labelled cell",
                "look at the network's answer",
            )
        })
    }
}

/// The shape without leading ones, and the values.
fn load(path: &Path, rule: &RegressionRule) -> std::result::Result<(Vec<usize>, Vec<f64>), Offender> {
    if has_ending(path, &["png"]) {
        let ((height, width), values) = png_values(path, rule).map_err(|e| broken(path, &e, REMEDY))?;
        return Ok((vec![height, width], values));
    }
    let fail = |words: String| Offender::new(path, words, REMEDY);
    let bytes = std::fs::read(path).map_err(|e| fail(e.to_string()))?;
    let array = npz::array(&bytes).map_err(|e| fail(e.to_string()))?;
    let values = numbers(&array).ok_or_else(|| fail("holds no numbers".into()))?;
    Ok((array.shape().iter().copied().skip_while(|side| *side == 1).collect(), values))
}
