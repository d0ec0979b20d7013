//! Whether a pipeline can be evaluated on the terms of public benchmarks of robustness (RobustBench with AutoAttack): it must be deterministic, run no
//! optimisation for an answer, and have gradients that are not zero almost everywhere.

use super::Pipeline;

impl Pipeline {
    /// What stands against a public benchmark's evaluation, in words; nothing if it is eligible.
    pub fn objections(&self) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(defence) = self.defence.as_deref().filter(|defence| !defence.is_none()) {
            if defence.objective.is_some() {
                all.push(format!("{} optimises the image for every answer", defence.name));
            }
            if defence.transform.as_ref().is_some_and(|transform| !transform.has_derivative()) {
                all.push(format!("the gradient of {} is zero almost everywhere", defence.name));
            }
            if defence.is_random() && defence.objective.is_none() {
                all.push(format!("{} draws random numbers", defence.name));
            }
        }
        if let Some(answer) = self.vote().filter(|answer| answer.is_random()) {
            all.push(format!("{} draws its voters afresh; a fixed_seed makes it deterministic", answer.name));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::task::Semantic;
    use crate::toy::Conv;
    use crate::{AnswerSpec, DefenceSpec, Heads, Model, Pipeline};

    #[test]
    fn a_vote_with_a_fixed_seed_is_eligible_and_loops_are_not() {
        let network = Box::new(Conv::random(&[6, 8], 5, true, 3));
        let model = Arc::new(Model::new(network, Box::new(Semantic), "map", "features"));
        let defended = |name: &str| {
            let defence = DefenceSpec::named(name).unwrap().build(&model, &Heads::default()).unwrap();
            Pipeline::new(model.clone()).with_defence(defence).objections().join("; ")
        };
        assert!(Pipeline::new(model.clone()).objections().is_empty());
        assert_eq!([defended("none"), defended("gaussian-blur"), defended("rescale")], ["", "", ""]);
        assert!(defended("consensus").contains("optimises"));
        assert!(defended("jpeg").contains("zero almost everywhere"));
        assert!(defended("random-resize-pad").contains("random") && defended("random").contains("random"));
        let vote = AnswerSpec::named("vote").unwrap();
        let voted = |spec: AnswerSpec| Pipeline::new(model.clone()).with_answer(spec.build(&model).unwrap());
        assert!(voted(vote.clone()).objections()[0].contains("fixed_seed"));
        assert!(voted(vote.with("fixed_seed", 1).unwrap()).objections().is_empty());
    }
}
