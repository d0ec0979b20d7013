//! What the run says, for the terminal and for docs/operators.md.

use std::collections::BTreeMap;
use std::fmt::Write;

use evenkeel_network::op::registry;

use crate::case::{Case, Outcome};

#[derive(Default)]
struct Count {
    passed: usize,
    failed: usize,
    widened: usize,
    not_claimed: usize,
}

impl Count {
    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Widened => self.widened += 1,
            Outcome::Failed(_) => self.failed += 1,
            Outcome::NotClaimed(_) => self.not_claimed += 1,
        }
    }

    fn total(&self) -> usize {
        self.passed + self.failed + self.widened + self.not_claimed
    }

    fn row(&self, first: &str) -> String {
        let Count { passed, failed, widened, not_claimed } = self;
        format!("| {first} | {passed} | {failed} | {widened} | {not_claimed} | {} |\n", self.total())
    }
}

fn by(cases: &[Case], key: impl Fn(&Case) -> &str) -> BTreeMap<&str, Count> {
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    cases.iter().for_each(|case| counts.entry(key(case)).or_default().add(&case.outcome));
    counts
}

fn kinds(cases: &[Case]) -> String {
    let mut text = String::from(
        "| tests | passed | failed | widened | not claimed | all |\n|---|---|---|---|---|---|\n",
    );
    let mut all = Count::default();
    cases.iter().for_each(|case| all.add(&case.outcome));
    by(cases, |case| &case.kind).iter().for_each(|(kind, count)| text += &count.row(kind));
    text + &all.row("all")
}

/// For the terminal.
pub(crate) fn summary(cases: &[Case]) -> String {
    kinds(cases)
}

/// docs/operators.md.
pub(crate) fn document(cases: &[Case]) -> String {
    let mut text = String::from(
        "# Operators\n\nWritten by `cargo run --release -p evenkeel-network --example conformance` from the table of operators and a run of the \
         ONNX standard's own tests\n(`testdata/onnx/export_cases.py` writes those out). Do not edit.\n\nA test passes if the fast walk and \
         the literal one both give the standard's outputs: type, shape, and values within the standard's tolerance\n(1e-3 relative, integers \
         exactly). Types held as they are: float, double, int32, int64, uint8, int8, bool. Half-precision floats, 16-bit\nintegers and unsigned \
         32- and 64-bit integers are widened at load; a test that uses them and gives the right values is counted as *widened*, not \
         as\npassed. *Not claimed*: the engine refuses in words, for an operator, an option or a type it does not have.\n\n",
    );
    text += &kinds(cases);
    text += "\n## By operator\n\nThe tests of a function that the standard also writes out as smaller operators are counted under the function's \
             name.\n\n| operator | input gradient | passed | failed | widened | not claimed | all |\n|---|---|---|---|---|---|---|\n";
    let node: Vec<&Case> = cases.iter().filter(|case| case.kind == "node").collect();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let mut gradients: BTreeMap<String, bool> = BTreeMap::new();
    for entry in registry::entries() {
        let name = if entry.domain.is_empty() {
            entry.name.into()
        } else {
            format!("{}.{}", entry.domain, entry.name)
        };
        counts.entry(name.clone()).or_default();
        gradients.insert(name, entry.gradient);
    }
    counts.entry("Constant".into()).or_default();
    gradients.insert("Constant".into(), false);
    let mut others = Count::default();
    for case in node {
        match counts.get_mut(&case.operator) {
            Some(count) => count.add(&case.outcome),
            None => others.add(&case.outcome),
        }
    }
    for (name, count) in &counts {
        let gradient = if gradients[name] { "yes" } else { "" };
        text += &count.row(&format!("{name} | {gradient}"));
    }
    let _ = write!(text, "{}", others.row("operators not in the table | "));
    text
}
