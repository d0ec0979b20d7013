//! What was found in a graph, in words: each choice with its reason, and the flag that changes it.

use std::path::Path;

use evenkeel::model::ResizeRule;
use evenkeel::model::propose::{Answers, Candidate, Proposal, shape_words};

use crate::size;

/// One line of the table.
fn line(field: &str, value: &str, why: &str) {
    println!("  {field:9} {value}");
    if !why.is_empty() {
        println!("  {:9}   {why}", "");
    }
}

pub(super) fn proposal(model: &Path, proposal: &Proposal, answers: &Answers) {
    println!("{}", model.display());
    match (&answers.task, &proposal.task) {
        (Some(task), _) => line("task", task, "as you say"),
        (None, Some(known)) => line("task", known.value, &known.why),
        (None, None) => line(
            "task",
            "not known",
            "the outputs are neither class scores, values, maps of them, nor a known head's",
        ),
    }
    if let (None, Some(known)) = (&answers.output, &proposal.output) {
        line("scores", &known.value.to_string(), &known.why);
    }
    if answers.feature.is_none() {
        features(&proposal.features);
    }
    let asked = answers.size.map(|size| (size, String::from("as you say")));
    match asked.or_else(|| proposal.size.as_ref().map(|known| (known.value, known.why.clone()))) {
        Some((size, why)) => line("size", &size::words(size), &why),
        None if proposal.multiple.value == 1 => line("size", "any", &proposal.multiple.why),
        None => line("size", &format!("any multiple of {}", proposal.multiple.value), &proposal.multiple.why),
    }
    if answers.resize.is_none() {
        line("resize", resize(proposal.resize.value), &proposal.resize.why);
    }
    match (&answers.names, &proposal.names) {
        (None, Some(known)) => {
            line("classes", known.value.about, &format!("{}; --names changes it", known.why))
        }
        (None, None) if proposal.classes.is_some() => {
            let count = proposal.classes.unwrap_or_default();
            line("classes", &count.to_string(), "they have numbers only; --names FILE or SET names them");
        }
        _ => {}
    }
    if let (Some(known), None) = (&proposal.pixels, answers.order) {
        line("pixels", known.value.name, &known.why);
    }
}

fn features(candidates: &[Candidate]) {
    for (place, candidate) in candidates.iter().enumerate() {
        let field = if place == 0 { "features" } else { "  or" };
        let tensors: Vec<String> = candidate
            .names
            .iter()
            .zip(&candidate.shapes)
            .map(|(name, shape)| format!("{name} ({})", shape_words(shape)))
            .collect();
        line(field, &tensors.join(" + "), &candidate.why);
    }
}

fn resize(rule: ResizeRule) -> &'static str {
    match rule {
        ResizeRule::Refuse => "refuse",
        ResizeRule::Stretch => "stretch",
        ResizeRule::Crop => "crop",
        ResizeRule::Letterbox => "letterbox",
    }
}
