//! One round of passes over an image and its views, which serves the detection score, the error estimate and the answer.
//!
//! A detector that compares the outputs or the features of its own views asks each pass for both, so the estimate costs no pass of its own.
//! The heads' detectors (rotation, contrastive) see other views than an estimate needs and share the image's own pass alone.

use rayon::prelude::*;

use super::{Detector, Measure, Outputs, ViewOutputs, expected_error, instance_variance};
use crate::error::Result;
use crate::image::Image;
use crate::model::Model;
use crate::network::{Tensor, TensorNames};
use crate::objective::{Progress, Seen, Terms, ViewObjective, ViewTerm};
use crate::random::Random;
use crate::task::Readout;
use crate::view::DrawnView;

/// What a round of passes finds.
pub struct Evaluated {
    /// The score.
    pub score: f64,
    /// The outputs of the image and of its views, if they were wanted.
    pub outputs: Option<ViewOutputs>,
    /// The image's own scores, if a pass gave them.
    pub scores: Option<Tensor>,
}

impl Detector {
    /// The score of an image (at the model's size), with what an error estimate is made of if that is wanted.
    ///
    /// # Errors
    /// If the network refuses a view.
    pub fn evaluate(&self, model: &Model, image: &Image, want_outputs: bool) -> Result<Evaluated> {
        let random = Random::new(self.seed);
        match &self.measure {
            Measure::Variance(_) if model.task.readout() == Readout::Objects => {
                let score = instance_variance(model, image, &self.views.draw(&random))?;
                Ok(Evaluated { score, outputs: self.outputs(model, image, want_outputs)?, scores: None })
            }
            Measure::Variance(_) | Measure::Error => {
                let (base, seen) = ViewOutputs::passes(model, image, &self.views.draw(&random))?;
                let of = |outputs| ViewOutputs::of(model, image.size(), &base, &seen, outputs);
                let (score, kept) = match self.measure {
                    Measure::Variance(Outputs::OneHot) => (of(Outputs::OneHot)?.variance(), None),
                    Measure::Variance(Outputs::Softmax) => {
                        let outputs = of(Outputs::Softmax)?;
                        (outputs.variance(), Some(outputs))
                    }
                    _ => {
                        let outputs = of(Outputs::Softmax)?;
                        (expected_error(&outputs.cell_variances(), 0.0), Some(outputs))
                    }
                };
                let kept = match kept {
                    None if want_outputs => Some(of(Outputs::Softmax)?),
                    kept => kept.filter(|_| want_outputs),
                };
                Ok(Evaluated { score, outputs: kept, scores: Some(base) })
            }
            Measure::Objective { objective, share, own_views: true } if want_outputs => {
                let shared = Shared::at(model, image, &**objective, &random.fork(0))?;
                let outputs =
                    ViewOutputs::of(model, image.size(), &shared.scores, &shared.seen, Outputs::Softmax)?;
                let score = -shared.value / share;
                Ok(Evaluated { score, outputs: Some(outputs), scores: Some(shared.scores) })
            }
            Measure::Objective { objective, share, .. } => {
                let views = vec![ViewTerm { weight: 1.0, objective: &**objective }];
                let output = Some(&model.output);
                let terms = Terms { output, feature: &model.feature, losses: vec![], views };
                let seen = terms.evaluate(&*model.network, image, Progress::ONCE, &random, false)?;
                let outputs = self.outputs(model, image, want_outputs)?;
                Ok(Evaluated { score: -seen.value / share, outputs, scores: seen.scores })
            }
        }
    }

    /// Outputs that no other pass serves.
    fn outputs(&self, model: &Model, image: &Image, wanted: bool) -> Result<Option<ViewOutputs>> {
        let views = || self.views.draw(&Random::new(self.seed));
        wanted.then(|| ViewOutputs::at(model, image, &views(), Outputs::Softmax)).transpose()
    }
}

/// The value of an objective on views, with the scores that the same passes give.
struct Shared {
    value: f64,
    scores: Tensor,
    seen: Vec<(DrawnView, Tensor)>,
}

/// The tensors of a pass as features and scores.
struct Split<'a> {
    names: Vec<&'a str>,
    features: Vec<usize>,
    scores: Vec<usize>,
}

impl<'a> Split<'a> {
    fn of(feature: &'a TensorNames, output: &'a TensorNames) -> Self {
        let mut names: Vec<&str> = Vec::new();
        let mut place = |name: &'a String| {
            names.iter().position(|own| *own == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            })
        };
        let features = feature.iter().map(&mut place).collect();
        let scores = output.iter().map(&mut place).collect();
        Self { names, features, scores }
    }

    fn apart(&self, tensors: &[Tensor]) -> (Vec<Tensor>, Tensor) {
        let at = |places: &[usize]| places.iter().map(|place| tensors[*place].clone()).collect::<Vec<_>>();
        (at(&self.features), Tensor::joined(at(&self.scores)))
    }
}

impl Shared {
    fn at(model: &Model, image: &Image, objective: &dyn ViewObjective, random: &Random) -> Result<Self> {
        let split = Split::of(objective.tensors().unwrap_or(&model.feature), &model.output);
        let views = objective.draw(random);
        let network = &*model.network;
        let (base, scores) = split.apart(&network.run_one(image, &split.names)?);
        let tensors = if network.prefers_batches() {
            let images: Vec<Image> = views.par_iter().map(|view| view.apply(image)).collect();
            network.run(&images.iter().collect::<Vec<_>>(), &split.names)?
        } else {
            let one = |view: &DrawnView| network.run_one(&view.apply(image), &split.names);
            views.par_iter().map(one).collect::<Result<_>>()?
        };
        let (mut seen, mut compared) = (Vec::new(), Vec::new());
        for (view, tensors) in views.into_iter().zip(&tensors) {
            let (features, scores) = split.apart(tensors);
            compared.push(Seen { view: view.placed(image.size()), features });
            seen.push((view, scores));
        }
        let value = match objective.over_views(&base)? {
            Some(mut sum) => {
                for (place, one) in compared.iter().enumerate() {
                    let share = sum.share(place, one, false)?;
                    sum.add(share);
                }
                sum.finish()?.0
            }
            None => objective.compare(&base, &compared)?.value,
        };
        Ok(Self { value, scores, seen })
    }
}
