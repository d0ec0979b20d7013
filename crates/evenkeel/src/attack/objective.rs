//! The task's objective: the height of an image is a loss on its scores, plus whatever an adaptive attacker adds.

use super::Scenario;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::network::Tensor;
use crate::objective::{Loss, LossKind, Progress, Terms, ViewTerm};
use crate::optimise::{Evaluation, Objective};
use crate::random::Random;
use crate::task::{Labels, Truth};

/// A loss at the image itself.
pub struct TaskObjective<'a> {
    /// What is attacked.
    pub scenario: Scenario<'a>,
    /// The loss, to be raised.
    pub loss: Loss,
    /// Weight of the scenario's view objective, evaluated at the attacked image.
    pub weight: f64,
}

impl Scenario<'_> {
    /// The labels that losses are about: the target's if there is one.
    ///
    /// # Errors
    /// If they do not fit the network.
    pub fn labels(&self, truth: &Truth) -> Result<Labels> {
        let scores = self.model.scores(self.image)?;
        self.model.task.labels(truth, scores.extents(&self.model.output)?, self.image.size())
    }

    /// The loss to raise: away from the truth, or towards the target.
    ///
    /// # Errors
    /// If the labels do not fit the network.
    pub fn loss(&self, kind: LossKind) -> Result<Loss> {
        let (truth, sign) = self.target.map_or((self.truth, 1.0), |target| (target, -1.0));
        if let Some(own) = self.model.task.own_loss(truth) {
            if kind != LossKind::CrossEntropy {
                let reason = format!("the task {} has its own loss only", self.model.task.name());
                return Err(Error::setting(format!("loss {kind:?}"), reason));
            }
            return Ok(Loss::of_task(own?, sign));
        }
        Ok(match self.target {
            Some(target) => Loss::towards(kind, self.labels(target)?),
            None => Loss::against(kind, self.labels(self.truth)?),
        })
    }

    /// How much is left for the attacker to do: how right the answer is, or how far from the target.
    ///
    /// # Errors
    /// If the scores are not finite.
    pub fn score(&self, scores: &Tensor) -> Result<f64> {
        let prediction = self.model.task.predict(scores, self.image.size())?;
        Ok(match self.target {
            Some(target) => 1.0 - self.model.task.score(&prediction, target),
            None => self.model.task.score(&prediction, self.truth),
        })
    }
}

impl Objective for TaskObjective<'_> {
    fn evaluate(
        &self,
        image: &Image,
        progress: Progress,
        random: &Random,
        want_gradient: bool,
    ) -> Result<Evaluation> {
        let model = self.scenario.model;
        let objective = self.scenario.objective.filter(|_| self.weight != 0.0);
        let views =
            objective.map(|objective| ViewTerm { weight: self.weight, objective }).into_iter().collect();
        let terms =
            Terms { output: &model.output, feature: &model.feature, losses: vec![(1.0, &self.loss)], views };
        let seen = terms.evaluate(&*model.network, image, progress, random, want_gradient)?;
        let score = match &seen.scores {
            Some(scores) => self.scenario.score(scores)?,
            None => 1.0,
        };
        Ok(Evaluation { value: seen.value, gradient: seen.gradient, score, loss: Some(seen.parts[0]) })
    }
}
