//! A defence's objective as the loop takes it.
//!
//! The value is the objective on an image's views. Where the views teach, their target is kept for as many steps as `refresh` says.

use std::cell::RefCell;

use crate::error::Result;
use crate::image::Image;
use crate::model::Model;
use crate::objective::{Consensus, Learned, Progress, Target, Terms, ViewObjective, ViewTerm};
use crate::optimise::{Evaluation, Objective};
use crate::random::Random;

/// A defence's objective as the loop takes it: the objective on an image's views. One for each run, since views that teach are not asked at every step.
pub struct DefenceObjective<'a> {
    model: &'a Model,
    /// None is flat.
    objective: Option<&'a dyn ViewObjective>,
    /// What the views said when they were last asked.
    held: RefCell<Option<Target>>,
}

impl<'a> DefenceObjective<'a> {
    /// Of a model; without an objective it is flat.
    pub fn new(model: &'a Model, objective: Option<&'a dyn ViewObjective>) -> Self {
        Self { model, objective, held: RefCell::default() }
    }

    /// What the image was taught at the step just evaluated, and whether the views were asked for it then; none where views do not teach.
    pub(crate) fn held_target(&self, progress: Progress) -> Option<(Target, bool)> {
        let refresh = self.objective?.teacher()?.refresh.max(1);
        Some((self.held.borrow().clone()?, progress.step.is_multiple_of(refresh)))
    }

    /// An image that learns. Its score is how far it disagrees with its views.
    fn taught(
        &self,
        teacher: &Consensus,
        image: &Image,
        progress: Progress,
        random: &Random,
        want_gradient: bool,
    ) -> Result<Evaluation> {
        let held = self.held.take().filter(|_| !progress.step.is_multiple_of(teacher.refresh.max(1)));
        let taught = teacher.teach(&*self.model.network, image, held, &random.fork(0), want_gradient)?;
        self.held.replace(Some(taught.target));
        let Learned { value, agreement, .. } = taught.learned;
        Ok(Evaluation { value, gradient: taught.gradient, score: 1.0 - agreement, loss: None })
    }
}

impl Objective for DefenceObjective<'_> {
    fn evaluate(
        &self,
        image: &Image,
        progress: Progress,
        random: &Random,
        want_gradient: bool,
    ) -> Result<Evaluation> {
        let Some(objective) = self.objective else {
            return Ok(Evaluation { value: 0.0, gradient: None, score: 1.0, loss: None });
        };
        if let Some(teacher) = objective.teacher() {
            return self.taught(teacher, image, progress, random, want_gradient);
        }
        let views = vec![ViewTerm { weight: 1.0, objective }];
        let terms = Terms { output: None, feature: &self.model.feature, losses: vec![], views };
        let seen = terms.evaluate(&*self.model.network, image, progress, random, want_gradient)?;
        Ok(Evaluation { value: seen.value, gradient: seen.gradient, score: 1.0, loss: None })
    }
}
