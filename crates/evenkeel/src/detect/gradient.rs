//! The gradient of a detection score with respect to the image, for attackers who want to pass unnoticed.
//!
//! Scores made of objectives have theirs already. The output variance V = Σ_i 1/n_i Σ m_i (u_i − p)², u_i the undone probabilities of view i and p the
//! image's, is an objective on scores ([`VarianceObjective`]): dV/du_i = 2 m_i (u_i − p)/n_i, dV/dp = −Σ_i of these, each led through the softmax. The
//! variance of one-hot answers, which has no gradient, is led by that of the probabilities.

use super::{Detector, Measure, Outputs, compared};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::model::Model;
use crate::network::{Extents, Tensor, pull_softmax};
use crate::objective::{Compared, Progress, Seen, Terms, ViewObjective, ViewTerm};
use crate::random::Random;
use crate::task::Readout;
use crate::view::{DrawnView, ViewSet};

/// The output variance as an objective on the tensors of scores.
struct VarianceObjective<'a> {
    views: &'a ViewSet,
    seed: u64,
    readout: Readout,
}

impl VarianceObjective<'_> {
    /// From a cotangent on what is compared to one on the scores.
    fn pull(&self, compared: &[f32], cotangent: &[f32], extents: Extents) -> Vec<f32> {
        match self.readout {
            Readout::Classes => pull_softmax(compared, cotangent, extents),
            _ => cotangent.to_vec(),
        }
    }
}

impl ViewObjective for VarianceObjective<'_> {
    fn draw(&self, _: &Random) -> Vec<DrawnView> {
        self.views.draw(&Random::new(self.seed))
    }

    fn compare(&self, base: &[Tensor], seen: &[Seen]) -> Result<Compared> {
        let own = |tensors: &[Tensor]| -> Result<(Vec<f32>, Extents)> {
            let scores = tensors.first().ok_or_else(|| Error::mismatch("scores", "one tensor", "none"))?;
            scores.check_finite("scores")?;
            let extents = scores.extents("scores")?;
            Ok((compared(self.readout, scores, extents, Outputs::Softmax), extents))
        };
        let (answer, extents) = own(base)?;
        let flat = extents.cells() == 1;
        let (mut value, mut on_base) = (0.0, vec![0.0f32; answer.len()]);
        let mut on_seen = Vec::with_capacity(seen.len());
        for one in seen {
            let (shown, form) = own(&one.features)?;
            // a classifier's answer has no place to be brought back to
            let undo = (!flat).then(|| one.view.undo_onto(form.size(), extents.size()));
            let map = undo.as_ref().map_or_else(|| shown.clone(), |undo| undo.apply(&shown, form.channels));
            let all = [1.0];
            let mask = undo.as_ref().map_or(&all[..], |undo| undo.mask());
            let in_sight = mask.iter().sum::<f32>().max(1.0);
            let off = |(i, (u, p)): (usize, (&f32, &f32))| mask[i % mask.len()] * (u - p);
            let differences: Vec<f32> = map.iter().zip(&answer).enumerate().map(off).collect();
            value += differences.iter().map(|d| f64::from(*d).powi(2)).sum::<f64>() / f64::from(in_sight);
            let on_map: Vec<f32> = differences.iter().map(|d| 2.0 * d / in_sight).collect();
            on_base.iter_mut().zip(&on_map).for_each(|(b, m)| *b -= m);
            let on_view = undo.as_ref().map_or(on_map.clone(), |undo| undo.pullback(&on_map, form.channels));
            on_seen.push(vec![self.pull(&shown, &on_view, form)]);
        }
        Ok(Compared { value, base: vec![self.pull(&answer, &on_base, extents)], seen: on_seen })
    }
}

impl Detector {
    /// The score of an image and, if it is wanted, its gradient `[3, h, w]`.
    ///
    /// # Errors
    /// If the network refuses a view, or the score has no gradient.
    pub fn score_with_gradient(
        &self,
        model: &Model,
        image: &Image,
        wanted: bool,
    ) -> Result<(f64, Option<Vec<f32>>)> {
        if !wanted {
            return Ok((self.score(model, image)?, None));
        }
        let random = Random::new(self.seed);
        let scaled = |gradient: Vec<f32>, by: f64| gradient.into_iter().map(|g| g * by as f32).collect();
        match &self.measure {
            Measure::Objective { objective, share, .. } => {
                let views = vec![ViewTerm { weight: 1.0, objective: &**objective }];
                let terms = Terms { output: None, feature: &model.feature, losses: vec![], views };
                let seen = terms.evaluate(&*model.network, image, Progress::ONCE, &random, true)?;
                Ok((-seen.value / share, seen.gradient.map(|g| scaled(g, -1.0 / share))))
            }
            Measure::Variance(_) if model.task.readout() == Readout::Objects => {
                let reason = "has no gradient where objects are matched; use equivariance or invariance";
                Err(Error::setting(format!("detector {}", self.name), reason))
            }
            Measure::Variance(_) | Measure::Error => {
                let objective =
                    VarianceObjective { views: &self.views, seed: self.seed, readout: model.task.readout() };
                let views = vec![ViewTerm { weight: 1.0, objective: &objective }];
                let terms = Terms { output: None, feature: &model.output, losses: vec![], views };
                let seen = terms.evaluate(&*model.network, image, Progress::ONCE, &random, true)?;
                let score = match &self.measure {
                    Measure::Variance(Outputs::Softmax) => seen.value,
                    _ => self.score(model, image)?,
                };
                Ok((score, seen.gradient))
            }
        }
    }
}
