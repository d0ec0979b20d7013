//! Losses between values p and a truth t, means over what is known: l1 |p − t|, l2 (p − t)², log-l1 |ln p − ln t|.
//!
//! A map's scores are brought bilinearly to the truth's size, and the cotangent back through the same resize. Below [`LEAST`] a value has no logarithm worth
//! taking: it is held there, with no derivative. At p = t the derivative of an absolute value is 0.

use super::ValueMap;
use crate::error::{Error, Result};
use crate::network::{Extents, Tensor};
use crate::settings::Choice;
use crate::task::ScoreLoss;
use crate::view::Sampler;

/// What logarithms are taken of at least.
const LEAST: f64 = 1e-6;

/// Which loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueLoss {
    /// |p − t|.
    #[default]
    L1,
    /// (p − t)².
    L2,
    /// |ln p − ln t|.
    LogL1,
}

impl Choice for ValueLoss {
    const ALL: &'static [Self] = &[Self::L1, Self::L2, Self::LogL1];
    const KIND: &'static str = "loss";

    fn name(self) -> &'static str {
        match self {
            Self::L1 => "l1",
            Self::L2 => "l2",
            Self::LogL1 => "log-l1",
        }
    }
}

impl ValueLoss {
    /// The loss at one value and its derivative.
    fn at(self, p: f64, t: f64) -> (f64, f64) {
        let sign = |d: f64| if d == 0.0 { 0.0 } else { d.signum() };
        match self {
            Self::L1 => ((p - t).abs(), sign(p - t)),
            Self::L2 => ((p - t) * (p - t), 2.0 * (p - t)),
            Self::LogL1 => {
                let difference = p.max(LEAST).ln() - t.max(LEAST).ln();
                let derivative = if p > LEAST { sign(difference) / p } else { 0.0 };
                (difference.abs(), derivative)
            }
        }
    }
}

/// A loss at a truth.
#[derive(Debug)]
pub(super) struct LossAt {
    pub(super) kind: ValueLoss,
    pub(super) truth: ValueMap,
}

impl ScoreLoss for LossAt {
    fn evaluate(&self, scores: &Tensor) -> Result<(f64, Vec<f32>)> {
        let given = scores.extents("values")?;
        let wanted = self.truth.extents();
        if given.channels != wanted.channels || (given.cells() == 1) != (wanted.cells() == 1) {
            let words = |e: Extents| format!("[{}, {}, {}]", e.channels, e.height, e.width);
            return Err(Error::mismatch("values of a loss", words(wanted), words(given)));
        }
        let resize = (given.size() != wanted.size()).then(|| Sampler::resize(given.size(), wanted.size()));
        let fine = match &resize {
            Some(resize) => resize.apply(scores.data(), given.channels),
            None => scores.data().to_vec(),
        };
        let known = self.truth.values().iter().filter(|t| t.is_finite()).count().max(1) as f64;
        let (mut sum, mut cotangent) = (0.0, vec![0.0f32; fine.len()]);
        for ((p, t), c) in fine.iter().zip(self.truth.values()).zip(&mut cotangent) {
            if t.is_finite() {
                let (value, derivative) = self.kind.at(f64::from(*p), f64::from(*t));
                sum += value;
                *c = (derivative / known) as f32;
            }
        }
        let cotangent = match &resize {
            Some(resize) => resize.transpose(&cotangent, given.channels),
            None => cotangent,
        };
        Ok((sum / known, cotangent))
    }
}
