//! PGD on the vote of the image and its views, drawn afresh at every step: an attacker who wants every view fooled at once.
//!
//! It knows of no defence in particular, so its images serve all of them; they are the hardest for defences that trust the views. Objects have no vote that
//! could be differentiated; there it is PGD on the bare network.

use std::sync::Arc;

use super::{AttackSettings, Estimator, Outcome, Scenario, family};
use crate::answer::AnswerSpec;
use crate::error::Result;
use crate::pipeline::Pipeline;

pub(super) fn eot(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    let answer = AnswerSpec::named("vote")?.with_views(settings.views.clone()).build(scenario.model)?;
    let pipeline = Pipeline::new(Arc::new(scenario.model.clone())).with_answer(answer);
    let through = Scenario { pipeline: Some(&pipeline), ..*scenario };
    let settings =
        AttackSettings { estimator: Some(Estimator::Identity), final_draws: 0, ..settings.clone() };
    family::pgd(&through, &settings)
}
