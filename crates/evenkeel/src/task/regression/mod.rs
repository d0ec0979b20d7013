//! Dense regression: a map of real values (depth, saliency, a matte), or a vector of them. The score of an answer is 1 − min(1, Σ|p − t| / Σ|t|) over what is known.
//!
//! Values are the network's own, in the unit that the contract names; a map is brought bilinearly to the image's size. Scores are never squashed: what the
//! network gives is what is reported.

mod answer;
mod colours;
mod loss;
mod values;

#[cfg(test)]
mod tests;

pub use loss::ValueLoss;
pub use values::{ValueMap, png_values};

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::kind::{NO_TENSORS, settings};
use super::{
    ClassInfo, OutputSign, Prediction, Readout, ScoreLoss, Signs, Task, TaskKey, TaskKind, Truth,
    TruthSource, size_words,
};
use crate::error::{Error, Result};
use crate::network::{Extents, Tensor};
use crate::settings::Choice;

pub(super) const KIND: TaskKind = TaskKind {
    name: "regression",
    about: "a map of real values (depth, saliency), or a vector of them",
    figure: "mae",
    estimates_error: true,
    keys: &[
        key("unit", "the unit of the values, such as m"),
        key(
            "range",
            "LOW,HIGH: what the values lie between; for PNGs, pictures and the theorem's half-width",
        ),
        key("loss", "what attacks raise and lower: l1, l2 or log-l1 [default: l1]"),
        key("step", "what one step of a PNG's numbers means; left out, PNGs hold the range"),
        key("unknown", "the number in PNGs that stands for an unknown value"),
    ],
    tensors: NO_TENSORS,
    signs: Signs {
        output: |shape, map| match *shape {
            [1, 1] => Some(OutputSign { words: "one value for the image".into(), classes: 0 }),
            [1, 1, _, _] if map => Some(OutputSign { words: "a map of one value a cell".into(), classes: 0 }),
            _ => None,
        },
        map: true,
        asks: |own| {
            let meant = ["unit", "range"].iter().any(|key| own.contains_key(*key));
            (!meant).then_some((
                "unit",
                "the unit of the values, or --range LOW,HIGH: `unit` or `range` says what they mean",
            ))
        },
        ..Signs::NONE
    },
    check: |own| settings::<RegressionRule>("regression", own)?.check(),
    make: |own, _| Ok(Box::new(Regression::new(settings("regression", own)?)?)),
};

const fn key(name: &'static str, help: &'static str) -> TaskKey {
    TaskKey { name, help, default: None }
}

/// What truths of values are called beside a picture: by its own name, or as `evenkeel predict --out` writes them.
const ENDINGS: [&str; 4] = [".npy", ".values.npy", ".png", ".values.png"];

/// What the values mean, as the contract says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegressionRule {
    /// The unit of the values; empty if they have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// What they lie between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f32; 2]>,
    /// The loss, of [`ValueLoss`]; l1 if left out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub loss: String,
    /// What one step of a PNG's numbers means; if left out, PNGs hold the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// The number in PNGs that stands for an unknown value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<u16>,
}

impl RegressionRule {
    /// Refuses what makes no sense by itself.
    ///
    /// # Errors
    /// Naming the key.
    pub fn check(&self) -> Result<()> {
        if self.unit.is_empty() && self.range.is_none() {
            let reason =
                "needs a table [regression] with `unit` or `range`: what the values mean is not guessed";
            return Err(Error::setting("task regression", reason));
        }
        if self.range.is_some_and(|[low, high]| !(low.is_finite() && high.is_finite() && low < high)) {
            return Err(Error::setting("regression.range", "must be two numbers, the lower first"));
        }
        if self.step.is_some_and(|step| !(step.is_finite() && step > 0.0)) {
            return Err(Error::setting("regression.step", "must be a number above 0"));
        }
        self.value_loss().map(|_| ())
    }

    fn value_loss(&self) -> Result<ValueLoss> {
        if self.loss.is_empty() {
            return Ok(ValueLoss::default());
        }
        ValueLoss::ALL.iter().copied().find(|loss| loss.name() == self.loss).ok_or_else(|| {
            let names: Vec<&str> = ValueLoss::ALL.iter().map(|loss| loss.name()).collect();
            Error::setting(
                format!("regression.loss {}", self.loss),
                format!("is not one of {}", names.join(", ")),
            )
        })
    }

    /// The value of number 0 in a PNG of the given number of bits, and of one step.
    pub fn png_scale(&self, bits: u8) -> Option<(f64, f64)> {
        match (self.step, self.range) {
            (Some(step), _) => Some((0.0, step)),
            (None, Some([low, high])) => {
                let most = f64::from((1u32 << u32::from(bits.min(16))) - 1);
                Some((f64::from(low), (f64::from(high) - f64::from(low)) / most))
            }
            (None, None) => None,
        }
    }
}

/// Real values of the image or of its pixels.
#[derive(Clone, Debug)]
pub struct Regression {
    rule: Arc<RegressionRule>,
    loss: ValueLoss,
}

impl Regression {
    /// The task under a rule.
    ///
    /// # Errors
    /// If the rule makes no sense.
    pub fn new(rule: RegressionRule) -> Result<Self> {
        rule.check()?;
        Ok(Self { loss: rule.value_loss()?, rule: Arc::new(rule) })
    }
}

fn values_of<'a>(truth: &'a Truth, what: &str) -> Result<&'a ValueMap> {
    truth.values().ok_or_else(|| truth.mismatch(what, "values"))
}

/// Σ|p − t| / Σ|t| over what is known; where the truth is 0 everywhere, the sum alone.
pub fn relative_error(said: &ValueMap, is: &ValueMap) -> f64 {
    let pairs = said.values().iter().zip(is.values()).filter(|(_, t)| t.is_finite());
    let (apart, size) = pairs.fold((0.0, 0.0), |(apart, size), (p, t)| {
        (apart + (f64::from(*p) - f64::from(*t)).abs(), size + f64::from(t.abs()))
    });
    if size > 0.0 { apart / size } else { apart }
}

impl Task for Regression {
    fn kind(&self) -> &'static TaskKind {
        &KIND
    }

    fn readout(&self) -> Readout {
        Readout::Values
    }

    fn classes(&self, scores: &Tensor) -> Result<usize> {
        scores.extents("values").map(|_| 0)
    }

    fn predict(&self, scores: &Tensor, size: (usize, usize)) -> Result<Prediction> {
        scores.check_finite("values")?;
        let map = ValueMap::new(scores.extents("values")?, scores.data().to_vec())?;
        Ok(Prediction::of_values(map.resized(size)?, &self.rule))
    }

    fn own_loss(&self, truth: &Truth) -> Option<Result<Arc<dyn ScoreLoss>>> {
        let loss = |truth: &ValueMap| -> Arc<dyn ScoreLoss> {
            Arc::new(loss::LossAt { kind: self.loss, truth: truth.clone() })
        };
        Some(values_of(truth, "truth of a regression").map(loss))
    }

    fn score(&self, prediction: &Prediction, truth: &Truth) -> f64 {
        match (prediction.values(), truth.values()) {
            (Some(said), Some(is)) if said.extents() == is.extents() => {
                1.0 - relative_error(said, is).min(1.0)
            }
            _ => 0.0,
        }
    }

    fn reached(&self) -> f64 {
        0.9
    }

    fn error_range(&self) -> Option<f64> {
        self.rule.range.map(|[low, high]| f64::from(high) - f64::from(low))
    }

    fn error_words(&self) -> String {
        let unit = if self.rule.unit.is_empty() { String::new() } else { format!(" in {}", self.rule.unit) };
        format!("mean absolute error{unit}")
    }

    fn check_truth(&self, truth: &Truth, _: usize, size: (usize, usize), what: &str) -> Result<()> {
        let map = values_of(truth, &format!("{what}: truth of a regression"))?;
        match map.is_vector() || map.size() == size {
            true => Ok(()),
            false => Err(Error::mismatch(what, size_words(size), size_words(map.size()))),
        }
    }

    fn read_truth(&self, source: &TruthSource<'_>) -> Result<Truth> {
        let numbers: std::result::Result<Vec<f32>, _> =
            source.given.split(',').map(|n| n.trim().parse()).collect();
        if let Ok(numbers) = numbers {
            return Ok(Truth::of_values(ValueMap::vector(numbers)?));
        }
        let path = source.file(&ENDINGS)?;
        let map = ValueMap::load(&path, &self.rule)?;
        if map.is_vector() || !source.is_original(map.size(), &path)? {
            return Ok(Truth::of_values(map));
        }
        Ok(Truth::of_values(map.framed(source.frame)?))
    }

    /// A number: that value everywhere; `times:X`: the truth, X times as large.
    fn target(&self, wish: &str, truth: &Truth, _: &ClassInfo<'_>, _: u64) -> Result<Option<Truth>> {
        let map = values_of(truth, "truth of a regression")?;
        let change: Box<dyn Fn(f32) -> f32> = match (wish.parse::<f32>(), wish.strip_prefix("times:")) {
            (Ok(value), _) => Box::new(move |_| value),
            (_, Some(factor)) => {
                let factor: f32 =
                    factor.parse().map_err(|_| Error::setting(wish, "times:X with a number X is needed"))?;
                Box::new(move |value| factor * value)
            }
            _ if wish == "permuted" => {
                return Err(Error::setting(
                    wish,
                    "values have no classes; write a number, times:X or a file",
                ));
            }
            _ => return Ok(None),
        };
        let values = map.values().iter().map(|v| change(*v)).collect();
        Ok(Some(Truth::of_values(ValueMap::new(map.extents(), values)?)))
    }

    fn cell_errors(&self, outputs: &[f32], extents: Extents, truth: &Truth) -> Result<Vec<Option<f32>>> {
        let truth = values_of(truth, "truth of a regression")?.nearest(extents.size())?;
        if truth.extents() != extents {
            let words = |e: Extents| format!("[{}, {}, {}]", e.channels, e.height, e.width);
            return Err(Error::mismatch("truth of a regression", words(extents), words(truth.extents())));
        }
        let cells = extents.cells();
        let error = |i: usize| {
            let apart = |c: usize| (outputs[c * cells + i] - truth.values()[c * cells + i]).abs();
            let mean = (0..extents.channels).map(apart).sum::<f32>() / extents.channels as f32;
            mean.is_finite().then_some(mean)
        };
        Ok((0..cells).map(error).collect())
    }
}
