//! What decides a result, as keys are made of it: the entry and the values that it reads, views by their content and not by the name of a file.
//!
//! A setting that changes nothing is not in here, so that it makes nothing run again.

use std::collections::BTreeMap;

use evenkeel::answer::AnswerSpec;
use evenkeel::attack::Attack;
use evenkeel::defence::DefenceSpec;
use evenkeel::detect::DetectorSpec;
use evenkeel::settings::Value;
use evenkeel::view::ViewSet;
use serde::Serialize;

use super::DefenceRow;
use super::knobs::values;
use crate::Result;
use crate::key::Key;

/// The key of views in the values of a spec.
const VIEWS: &str = "views";
/// The same of an attack.
const FOOLED_VIEWS: &str = "fooled_views";

/// What decides what an entry of a table does.
#[derive(Serialize)]
pub(super) struct Decisive<'a> {
    kind: &'static str,
    values: BTreeMap<&'static str, Value>,
    views: Option<&'a ViewSet>,
    head: Option<&'a Key>,
    /// How the answer is read off; left out where it is the network's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Box<Decisive<'a>>>,
}

impl<'a> Decisive<'a> {
    fn new(kind: &'static str, mut values: BTreeMap<&'static str, Value>, views: &'a ViewSet) -> Self {
        let views = values.remove(VIEWS).map(|_| views);
        Self { kind, values, views, head: None, answer: None }
    }

    /// Of an attack.
    pub(super) fn of_attack(attack: &'a Attack) -> Self {
        let mut values = values(attack);
        let views = values.remove(FOOLED_VIEWS).map(|_| &attack.settings().views.set);
        Self { kind: attack.name(), values, views, head: None, answer: None }
    }

    /// Of a defence and the answer after it.
    pub(super) fn of_row(row: &'a DefenceRow) -> Self {
        let own = Self::new(row.spec.name(), values(&row.spec), &row.spec.settings().views.set);
        Self { answer: (!row.answer.is_plain()).then(|| Box::new(Self::of_answer(&row.answer))), ..own }
    }

    fn of_answer(spec: &'a AnswerSpec) -> Self {
        Self::new(spec.name(), values(spec), &spec.settings().views.set)
    }

    /// Of what a defence raises.
    pub(super) fn of_objective(spec: &'a DefenceSpec) -> Self {
        Self::new(spec.name(), spec.objective_values(), &spec.settings().views.set)
    }

    /// Of a detector.
    pub(super) fn of_detector(spec: &'a DetectorSpec) -> Self {
        Self::new(spec.name(), values(spec), &spec.settings().views.set)
    }

    /// With the head that it uses, if there is one.
    pub(super) fn with_head(self, heads: &'a BTreeMap<String, Key>) -> Self {
        Self { head: heads.get(self.kind), ..self }
    }
}

/// What an adaptive attacker keeps high where the defence raises nothing.
///
/// # Errors
/// Never, as long as the table has it.
pub(crate) fn plain_objective() -> Result<DefenceSpec> {
    Ok(DefenceSpec::named("equivariance")?)
}
