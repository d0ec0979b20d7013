//! Detection: can the network be trusted on this image? Every score is larger for more anomalous images.
//!
//! Output variance: Σ over views of ‖undo_i(p(view_i(x))) − p(x)‖² over the overlap, per cell, on softmax outputs or one-hot answers; on values as they are;
//! for instances, how much the objects disagree (`instances`).
//! The others are minus the mean of an objective on views: equivariance, invariance, rotation, contrastive. A threshold is calibrated
//! on clean images to a false-alarm rate.

mod calibration;
mod conformal;
mod estimate;
mod evaluate;
mod gradient;
mod instances;
mod table;

#[cfg(test)]
mod tests;

pub use calibration::{Calibration, FALSE_ALARMS};
pub use conformal::{images_for, rank, threshold_for};
pub use estimate::{
    DELTA, ErrorEstimate, EstimateRule, Interval, LabelledCells, expected_error, fit_bias, theorem_half_width,
};
pub use evaluate::Evaluated;
pub use instances::{instance_disagreement, instance_variance};
pub use table::{DETECTORS, DetectorKind, DetectorSettings, DetectorSpec};

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::image::Image;
use crate::model::Model;
use crate::network::{Extents, Tensor};
use crate::objective::head::Head;
use crate::objective::{
    Bank, Contrastive, Equivariance, Invariance, Pairing, Progress, Rotation, Terms, ViewObjective, ViewTerm,
};
use crate::random::Random;
use crate::task::{Readout, best_classes};
use crate::view::{DrawnView as View, ViewSet};

/// How outputs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outputs {
    /// Probabilities.
    Softmax,
    /// 1 for the answer, 0 for the rest.
    OneHot,
}

/// What a detector measures.
pub enum Measure {
    /// How much outputs vary over views.
    Variance(Outputs),
    /// The expected error without a bias, from the variance of the answer.
    Error,
    /// Minus the mean of an objective.
    Objective {
        /// The objective.
        objective: Box<dyn ViewObjective>,
        /// What its sum is divided by.
        share: f64,
        /// Whether it compares the detector's own views, so that its passes serve an error estimate too.
        own_views: bool,
    },
}

/// A score of strangeness.
pub struct Detector {
    /// Its name.
    pub name: String,
    /// What it measures.
    pub measure: Measure,
    /// The views.
    pub views: ViewSet,
    /// The seed of the views: the same for every image, so that scores can be compared.
    pub seed: u64,
}

/// What a detector needs beyond its name.
#[derive(Clone, Debug, Default)]
pub struct Heads {
    /// The head, for `rotation` and `contrastive`.
    pub head: Option<Head>,
    /// Other images' embeddings, for `contrastive`.
    pub bank: Option<Bank>,
}

impl Detector {
    /// The detector of this name; [`DetectorSpec::build`] calls it.
    fn new(name: &str, model: &Model, views: ViewSet, heads: Heads, seed: u64) -> Result<Self> {
        let fixed = model.network.fixed_size().is_some();
        let views = views.fitted(fixed, model.multiple);
        views.check()?;
        let missing =
            |what: &str| Error::setting(format!("detector {name}"), crate::objective::head::needs_head(what));
        let per_view = |objective: Box<dyn ViewObjective>| Measure::Objective {
            objective,
            share: views.rules.len() as f64,
            own_views: true,
        };
        let head_only = |objective| Measure::Objective { objective, share: 1.0, own_views: false };
        let measure = match name {
            "variance" => Measure::Variance(Outputs::Softmax),
            "variance-onehot" => Measure::Variance(Outputs::OneHot),
            "error-estimate" => Measure::Error,
            "equivariance" => per_view(Box::new(Equivariance::new(views.clone()))),
            "invariance" => per_view(Box::new(Invariance { views: views.clone(), pairing: Pairing::Anchor })),
            "rotation" => {
                let head = heads.head.ok_or_else(|| missing("a rotation head"))?;
                head_only(Box::new(Rotation { head, fixed_canvas: fixed }))
            }
            "contrastive" => {
                let objective = Contrastive {
                    views: ViewSet::contrastive(4).fitted(fixed, model.multiple),
                    head: heads.head.ok_or_else(|| missing("a projection head"))?,
                    bank: heads.bank.ok_or_else(|| missing("a bank of other images' embeddings"))?,
                    temperature: 0.5,
                };
                head_only(Box::new(objective))
            }
            _ => {
                let names = crate::settings::names::<DetectorKind>().join(", ");
                return Err(Error::setting(format!("detector {name}"), format!("is not one of {names}")));
            }
        };
        Ok(Self { name: name.into(), measure, views, seed })
    }

    /// The greatest score there is, where images reach it: objects of which no view finds any again.
    fn most(&self, model: &Model) -> Option<f64> {
        let objects = model.task.readout() == Readout::Objects;
        (objects && matches!(self.measure, Measure::Variance(_))).then_some(self.views.rules.len() as f64)
    }

    /// How strange an image (at the model's size) is.
    ///
    /// # Errors
    /// If the network refuses a view.
    pub fn score(&self, model: &Model, image: &Image) -> Result<f64> {
        let random = Random::new(self.seed);
        match &self.measure {
            Measure::Variance(_) if model.task.readout() == Readout::Objects => {
                instance_variance(model, image, &self.views.draw(&random))
            }
            Measure::Variance(outputs) => {
                let outputs = ViewOutputs::at(model, image, &self.views.draw(&random), *outputs)?;
                Ok(outputs.variance())
            }
            Measure::Error => {
                let outputs = ViewOutputs::at(model, image, &self.views.draw(&random), Outputs::Softmax)?;
                Ok(expected_error(&outputs.cell_variances(), 0.0))
            }
            Measure::Objective { objective, share, .. } => {
                let views = vec![ViewTerm { weight: 1.0, objective: &**objective }];
                let terms = Terms { output: None, feature: &model.feature, losses: vec![], views };
                let seen = terms.evaluate(&*model.network, image, Progress::ONCE, &random, false)?;
                Ok(-seen.value / share)
            }
        }
    }

    /// The score of an image and, if a rule is given, the error estimate, from one round of passes.
    ///
    /// # Errors
    /// If the network refuses a view.
    pub fn detect(&self, model: &Model, image: &Image, estimate: Option<&EstimateRule>) -> Result<Detection> {
        let Evaluated { score, outputs, scores } = self.evaluate(model, image, estimate.is_some())?;
        let estimate = outputs.zip(estimate);
        let estimate = estimate.map(|(outputs, rule)| ErrorEstimate::from_outputs(model, &outputs, rule));
        Ok(Detection { score, estimate: estimate.transpose()?, scores })
    }
}

/// What a detector finds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Detection {
    /// The score.
    pub score: f64,
    /// How wrong the answer probably is, if that was asked for.
    pub estimate: Option<ErrorEstimate>,
    /// The image's own scores, if a pass gave them: the answer, where nothing is changed about the image.
    pub scores: Option<Tensor>,
}

/// The outputs of an image and of its views, brought back to the image's own grid.
pub struct ViewOutputs {
    /// What they are: probabilities of classes, or values.
    pub readout: Readout,
    /// Form of the outputs.
    pub extents: Extents,
    /// The image's own.
    pub base: Vec<f32>,
    /// Each view's, undone, with the mask of cells in sight.
    pub views: Vec<(Vec<f32>, Vec<f32>)>,
}

impl ViewOutputs {
    /// ViewOutputs at an image through views.
    ///
    /// # Errors
    /// If the network refuses one.
    pub fn at(model: &Model, image: &Image, views: &[View], outputs: Outputs) -> Result<Self> {
        let (base, seen) = Self::passes(model, image, views)?;
        Self::of(model, image.size(), &base, &seen, outputs)
    }

    /// The scores of an image and of its views.
    fn passes(model: &Model, image: &Image, views: &[View]) -> Result<(Tensor, Vec<(View, Tensor)>)> {
        let base = model.scores(image)?;
        let seen: Vec<(View, Tensor)> = if model.network.prefers_batches() {
            let images: Vec<Image> = views.par_iter().map(|view| view.apply(image)).collect();
            let scores = model.scores_of(&images.iter().collect::<Vec<_>>())?;
            views.iter().cloned().zip(scores).collect()
        } else {
            let shown = |view: &View| Ok((view.clone(), model.scores(&view.apply(image))?));
            views.par_iter().map(shown).collect::<Result<_>>()?
        };
        Ok((base, seen))
    }

    /// The same from scores that are there already: the image's own, and each view's.
    ///
    /// # Errors
    /// If they are not scores of this model, or not finite.
    pub fn of(
        model: &Model,
        size: (usize, usize),
        base: &Tensor,
        seen: &[(View, Tensor)],
        outputs: Outputs,
    ) -> Result<Self> {
        base.check_finite(&model.output)?;
        let extents = base.extents(&model.output)?;
        let flat = extents.cells() == 1;
        let undone = |(view, scores): &(View, Tensor)| {
            scores.check_finite(&model.output)?;
            let seen = scores.extents(&model.output)?;
            let map = compared(model.task.readout(), scores, seen, outputs);
            // a classifier's answer has no place to be brought back to
            Ok(match flat {
                true => (map, vec![1.0]),
                false => (
                    view.undo(size, &map, seen, extents.size()),
                    view.mask(size, seen.size(), extents.size()),
                ),
            })
        };
        let views = seen.par_iter().map(undone).collect::<Result<Vec<_>>>()?;
        let readout = model.task.readout();
        Ok(Self { readout, extents, base: compared(readout, base, extents, outputs), views })
    }

    /// Σ over views of the mean squared distance per cell in sight.
    pub fn variance(&self) -> f64 {
        let cells = self.extents.cells();
        let view = |(map, mask): &(Vec<f32>, Vec<f32>)| {
            let in_sight: f64 = mask.iter().map(|m| f64::from(*m)).sum();
            let square =
                |(i, (a, b)): (usize, (&f32, &f32))| f64::from(mask[i % cells]) * f64::from(a - b).powi(2);
            map.iter().zip(&self.base).enumerate().map(square).sum::<f64>() / in_sight.max(1.0)
        };
        self.views.iter().map(view).sum()
    }
}

/// What is compared of scores: probabilities, one-hot answers, or the values themselves.
fn compared(readout: Readout, scores: &Tensor, extents: Extents, outputs: Outputs) -> Vec<f32> {
    match readout {
        Readout::Classes => probabilities(scores, extents, outputs),
        _ => scores.data().to_vec(),
    }
}

fn probabilities(scores: &Tensor, extents: Extents, outputs: Outputs) -> Vec<f32> {
    let cells = extents.cells();
    let data = scores.data();
    let mut out = vec![0.0; data.len()];
    match outputs {
        Outputs::OneHot => {
            let best = best_classes(data, extents);
            best.iter().enumerate().for_each(|(i, class)| out[usize::from(*class) * cells + i] = 1.0);
        }
        Outputs::Softmax => {
            let mut top = vec![f32::NEG_INFINITY; cells];
            data.iter().enumerate().for_each(|(i, v)| top[i % cells] = top[i % cells].max(*v));
            let mut sum = vec![0.0; cells];
            for (i, (o, v)) in out.iter_mut().zip(data).enumerate() {
                *o = (v - top[i % cells]).exp();
                sum[i % cells] += *o;
            }
            out.iter_mut().enumerate().for_each(|(i, o)| *o /= sum[i % cells]);
        }
    }
    out
}
