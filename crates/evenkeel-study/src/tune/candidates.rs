//! What is tried: votes, input transforms, objectives with a few numbers of steps, each with its own answer. Every one of them is tried always on and on alarm.

use evenkeel::settings::Value;

use super::given;
use crate::experiment::DefenceRule;

/// Something to be tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// What it is called.
    pub label: String,
    /// The row of a study that it is.
    pub rule: DefenceRule,
}

fn candidate(label: &str, kind: &str, knobs: &[(&str, Value)]) -> Candidate {
    let rule =
        DefenceRule { kind: kind.into(), name: Some(label.into()), epsilon_ratio: None, knobs: given(knobs) };
    Candidate { label: label.into(), rule }
}

/// Every candidate for attacks of this radius. The published loop is not among them: nowhere was it better than the average of directions.
pub fn candidates(epsilon_255: f64) -> Vec<Candidate> {
    let times = |factor: f64| ("epsilon_255", Value::Number(factor * epsilon_255));
    let radius = || times(1.5);
    let vote = || ("answer", Value::from("vote"));
    vec![
        candidate("vote", "none", &[vote()]),
        candidate("vote, median", "none", &[vote(), ("answer_combine", "median".into())]),
        candidate("gaussian-blur", "gaussian-blur", &[]),
        candidate("median-blur", "median-blur", &[]),
        candidate("jpeg", "jpeg", &[]),
        candidate("bit-depth", "bit-depth", &[]),
        candidate("rescale x0.75", "rescale", &[("scale", 0.75.into())]),
        candidate("rescale x0.5", "rescale", &[("scale", 0.5.into())]),
        candidate("random-resize-pad", "random-resize-pad", &[]),
        candidate("consensus", "consensus", &[radius()]),
        candidate("consensus + vote", "consensus", &[radius(), vote()]),
        candidate("consensus, 5 steps + vote", "consensus", &[radius(), ("steps", 5.into()), vote()]),
        candidate("consensus, wide + vote", "consensus", &[times(2.5), vote()]),
        candidate("consensus, all steps + vote", "consensus", &[radius(), ("agree", 1.0.into()), vote()]),
        candidate("leave-out + vote", "leave-out", &[radius(), vote()]),
        candidate(
            "consensus of features + vote",
            "consensus",
            &[radius(), ("teach", "features".into()), vote()],
        ),
        candidate("equivariance, averaged", "equivariance", &[radius(), ("steps", 10.into())]),
        candidate("equivariance, averaged + vote", "equivariance", &[radius(), ("steps", 10.into()), vote()]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_is_one_row_and_has_its_own_name() {
        let all = candidates(4.0);
        let mut labels: Vec<&str> = all.iter().map(|c| c.label.as_str()).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), all.len());
        assert!(all.iter().all(|c| c.rule.name.as_deref() == Some(&c.label)));
        assert!(!all.iter().any(|c| c.rule.knobs.contains_key("schedule")), "never the published loop");
    }
}
