//! The tensors of `model inspect --tensors`: name, type and shape, with marks on those that a contract would name.

use anyhow::Result;
use evenkeel::model::Proposal;
use evenkeel::model::propose::shape_words;
use evenkeel_network::Network;
use serde_json::{Value, json};

use super::network_args::{NetworkArgs, borrowed};

/// A tensor that can be asked for by name.
pub(super) struct Row {
    name: String,
    kind: String,
    shape: Vec<usize>,
    mark: Option<String>,
}

/// All tensors that lead to the outputs, in order, on the subject's inputs.
pub(super) fn rows(network: &Network, subject: &NetworkArgs) -> Result<Vec<Row>> {
    let inputs = subject.inputs(network)?;
    let proposal = subject.model.as_ref().and_then(|path| Proposal::of_file(path).ok());
    let mark = |name: &str| {
        let proposal = proposal.as_ref()?;
        let place = proposal.features.iter().position(|c| c.names.iter().any(|n| n == name));
        let scores = proposal.output.as_ref().is_some_and(|output| output.value.iter().any(|n| n == name));
        match (scores, place) {
            (true, Some(0)) => Some("scores and proposed feature".to_owned()),
            (true, _) => Some("scores".to_owned()),
            (false, Some(0)) => Some(format!("proposed feature: {}", proposal.features[0].why)),
            (false, Some(place)) => Some(format!("or feature: {}", proposal.features[place].why)),
            (false, None) => None,
        }
    };
    let made = network.shapes(&borrowed(&inputs))?;
    let row = |made: evenkeel_network::Made| {
        let name = network.graph().values[made.value].name.clone();
        Row { mark: mark(&name), kind: made.dtype.to_string(), shape: made.shape, name }
    };
    Ok(made.into_iter().map(row).collect())
}

/// For machines.
pub(super) fn value(rows: &[Row]) -> Vec<Value> {
    let one = |row: &Row| json!({ "name": row.name, "type": row.kind, "shape": row.shape, "mark": row.mark });
    rows.iter().map(one).collect()
}

/// For people.
pub(super) fn print(rows: &[Row]) {
    println!("  tensors");
    let widest = rows.iter().map(|row| row.name.len()).max().unwrap_or(0).min(60);
    for row in rows {
        let mark = row.mark.as_ref().map_or(String::new(), |mark| format!("  <- {mark}"));
        println!("    {:widest$}  {} {}{mark}", row.name, row.kind, shape_words(&row.shape));
    }
}
