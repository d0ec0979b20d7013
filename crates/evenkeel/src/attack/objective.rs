//! The task's objective: a loss on the attacked network's scores, plus whatever an adaptive attacker adds.

use super::{Aim, Scenario};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::network::{Network, Tensor};
use crate::objective::{Loss, LossKind, Progress, Terms, ViewTerm};
use crate::optimise::{Evaluation, Objective};
use crate::random::Random;
use crate::task::{Labels, Truth};

/// A loss at the image itself.
pub struct TaskObjective<'a> {
    pub(crate) aim: Aim<'a>,
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
        let score = |truth| self.model.task.score_of(scores, self.image.size(), truth);
        match self.target {
            Some(target) => Ok(1.0 - score(target)?),
            None => score(self.truth),
        }
    }
}

impl TaskObjective<'_> {
    /// The loss on a network's scores, and the view objective where its features are the image's own.
    fn on(
        &self,
        network: &dyn Network,
        views: Vec<ViewTerm<'_>>,
        (image, progress, random): (&Image, Progress, &Random),
        want_gradient: bool,
    ) -> Result<Evaluation> {
        let model = self.aim.scenario.model;
        let terms = Terms {
            output: Some(&model.output),
            feature: &model.feature,
            losses: vec![(1.0, &self.loss)],
            views,
        };
        let seen = terms.evaluate(network, image, progress, random, want_gradient)?;
        let score = seen.scores.as_ref().map_or(Ok(1.0), |scores| self.aim.scenario.score(scores))?;
        Ok(Evaluation { value: seen.value, gradient: seen.gradient, score, loss: Some(seen.parts[0]) })
    }

    fn view_terms(&self) -> Vec<ViewTerm<'_>> {
        let objective = self.aim.scenario.objective.filter(|_| self.weight != 0.0);
        objective.map(|objective| ViewTerm { weight: self.weight, objective }).into_iter().collect()
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
        let at = (image, progress, random);
        if self.aim.through.is_none() {
            return self.on(&*self.aim.scenario.model.network, self.view_terms(), at, want_gradient);
        }
        let mut seen = self.aim.mean(image, random, |network| self.on(network, vec![], at, want_gradient))?;
        let views = self.view_terms();
        if !views.is_empty() {
            // The second term is what the defence raises: the views' likeness on the bare network, from the attacked image on. Kept high
            // there, it leaves the defence little to gain; behind the defence it would be high for any image.
            let model = self.aim.scenario.model;
            let terms = Terms { output: None, feature: &model.feature, losses: vec![], views };
            let own = terms.evaluate(&*model.network, image, progress, random, want_gradient)?;
            seen.value += own.value;
            if let (Some(sum), Some(own)) = (&mut seen.gradient, &own.gradient) {
                sum.iter_mut().zip(own).for_each(|(s, o)| *s += o);
            }
        }
        Ok(seen)
    }
}
