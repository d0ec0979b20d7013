//! Which tensor views should be compared on: the rules, task by task. Weights are never proposed, because only what nodes make is looked at.

use evenkeel_network::graph::ValueId;

use super::anatomy::Anatomy;
use super::{Candidate, Known};
use crate::network::TensorNames;

/// Operators that enlarge maps.
const ENLARGES: [&str; 5] = ["Resize", "Upsample", "ConvTranspose", "DepthToSpace", "MaxUnpool"];
/// Operators after a score map that change no class.
const PASSES: [&str; 13] = [
    "Identity",
    "Cast",
    "Softmax",
    "LogSoftmax",
    "Sigmoid",
    "Transpose",
    "Slice",
    "Pad",
    "Dropout",
    "Add",
    "Mul",
    "Div",
    "Sub",
];

/// A tensor, or several, with shapes and the reason to take them.
fn candidate(anatomy: &Anatomy<'_>, values: &[ValueId], why: impl Into<String>) -> Candidate {
    Candidate {
        names: TensorNames::from(values.iter().map(|&v| anatomy.name(v).to_owned()).collect::<Vec<_>>()),
        shapes: values.iter().map(|&v| anatomy.shape(v).unwrap_or_default().to_vec()).collect(),
        why: why.into(),
    }
}

/// The class scores before what only makes probabilities or labels of them.
pub(super) fn scores(anatomy: &Anatomy<'_>, output: ValueId) -> Known<ValueId> {
    let mut value = output;
    let mut passed = Vec::new();
    while let Some(node) = anatomy.maker(value) {
        let labels = node.operator == "ArgMax";
        if !labels && !["Softmax", "LogSoftmax", "Identity", "Cast", "Squeeze"].contains(&&*node.operator) {
            break;
        }
        let Some(&source) = anatomy.sources(value).first() else { break };
        passed.push((node.operator.clone(), source));
        value = source;
    }
    // what only renames the output is not worth another name
    match passed.iter().rposition(|(operator, _)| matches!(&**operator, "ArgMax" | "Softmax" | "LogSoftmax"))
    {
        Some(last) => {
            let (operator, source) = &passed[last];
            Known::new(*source, format!("the scores before {operator}, as losses need them"))
        }
        None => Known::new(output, "the network's output"),
    }
}

/// Of scores or values of the whole image: the last map before what pools or flattens it.
pub(super) fn of_vector(anatomy: &Anatomy<'_>, scores: ValueId) -> Vec<Candidate> {
    let Some(last) = anatomy.latest(scores, |_| true) else { return Vec::new() };
    let mut found = Vec::new();
    match of_tokens(anatomy, scores, last) {
        Some(vector) => {
            let why = "the vector that the class scores are made from: what a transformer makes of its tokens is no map";
            found.push(candidate(anatomy, &[vector], why));
            found.push(candidate(anatomy, &[last], "the last map, before it is cut into tokens"));
        }
        None => found.push(candidate(anatomy, &[last], "the last map before it is pooled to one vector")),
    }
    let mut finer = last;
    while found.len() < 3 {
        let Some((_, h, _)) = anatomy.grid(finer) else { break };
        let Some(next) = anatomy.latest(finer, |(c, other, _)| other > h && c > 3) else { break };
        finer = next;
        found.push(candidate(anatomy, &[finer], "the last map at the next finer resolution"));
    }
    found
}

/// The vector that a transformer's class scores are made from; `None` if no attention lies between the last map and the scores.
fn of_tokens(anatomy: &Anatomy<'_>, scores: ValueId, map: ValueId) -> Option<ValueId> {
    let (after, before) = (anatomy.ancestors(scores, |v| v != map), anatomy.ancestors(map, |_| true));
    let between = || after.iter().rev().copied().filter(|v| !before.contains(v));
    if !between().any(|v| anatomy.attends(v)) {
        return None;
    }
    let classes = anatomy.shape(scores)?.get(1)?;
    between().find(|&v| matches!(anatomy.shape(v), Some([1, width]) if width != classes))
}

/// Of a map of class scores or values (`what`): the map before its last enlargement.
pub(super) fn of_map(anatomy: &Anatomy<'_>, scores: ValueId, what: &str) -> Vec<Candidate> {
    let (best, why) = match before_enlargement(anatomy, scores) {
        Some(value) => (value, format!("the {what} before they are enlarged to the image")),
        None => (scores, format!("the {what}, which the network does not enlarge")),
    };
    let mut found = vec![candidate(anatomy, &[best], why)];
    let Some((channels, h, _)) = anatomy.map(best) else { return found };
    let inner = anatomy.latest(best, |(c, _, _)| c != channels && c > 3);
    found.extend(
        inner.map(|value| candidate(anatomy, &[value], format!("the map that the {what} are made from"))),
    );
    let deeper = anatomy.latest(inner.unwrap_or(best), |(c, other, _)| other < h && c > 3);
    let other = deeper.or_else(|| anatomy.latest(inner.unwrap_or(best), |(c, other, _)| other != h && c > 3));
    found.extend(other.map(|value| candidate(anatomy, &[value], "the last map at another resolution")));
    found
}

/// Follows the scores back to the enlargement they come from, past what changes no class.
fn before_enlargement(anatomy: &Anatomy<'_>, scores: ValueId) -> Option<ValueId> {
    let mut value = scores;
    loop {
        let node = anatomy.maker(value)?;
        let source = *anatomy.sources(value).first()?;
        let (here, before) = (anatomy.map(value)?, anatomy.map(source)?);
        if ENLARGES.contains(&&*node.operator) && before.1 < here.1 {
            return Some(source);
        }
        let alone = anatomy.sources(value).len() == 1;
        if !PASSES.contains(&&*node.operator) || !alone || before.0 != here.0 {
            return None;
        }
        value = source;
    }
}

/// The maps of a YOLO-seg head's neck: for each resolution that predictions are read at, the last map that all its branches share.
pub(super) fn of_yolo(anatomy: &Anatomy<'_>, predictions: ValueId, prototypes: ValueId) -> Vec<Candidate> {
    let ends = branch_ends(anatomy, predictions);
    let mut levels: Vec<(usize, usize)> =
        ends.iter().filter_map(|&v| anatomy.grid(v)).map(|m| (m.1, m.2)).collect();
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    let shared = |level: &(usize, usize)| -> Option<ValueId> {
        let inside = |v: ValueId| anatomy.grid(v).is_some_and(|m| (m.1, m.2) == *level);
        let mut branches = ends.iter().filter(|&&end| inside(end)).map(|&end| anatomy.ancestors(end, inside));
        let first = branches.next()?;
        let mut others: Vec<_> = branches.collect();
        // where there is no pyramid, the masks are read off the same map
        let of_masks = anatomy.ancestors(prototypes, |_| true);
        if levels.len() == 1 && first.iter().any(|v| of_masks.contains(v)) {
            others.push(of_masks);
        }
        let ends_here: Vec<_> = ends.iter().filter(|&&end| inside(end)).collect();
        let common = |v: &ValueId| others.iter().all(|branch| branch.contains(v));
        let whole = |v: &ValueId| !ends_here.contains(&v) && channels_of(anatomy, *v) > 4;
        first.into_iter().rev().filter(|v| whole(v)).find(common)
    };
    let necks: Vec<ValueId> = levels.iter().filter_map(shared).collect();
    let mut found = Vec::new();
    if !necks.is_empty() {
        found.push(candidate(
            anatomy,
            &necks,
            "the neck's maps, which boxes, classes and masks are read off",
        ));
    }
    if necks.len() > 1 {
        found.push(candidate(anatomy, &necks[..1], "the finest of them alone"));
    }
    found.push(candidate(anatomy, &[prototypes], "the prototypes of the masks"));
    found
}

fn channels_of(anatomy: &Anatomy<'_>, value: ValueId) -> usize {
    anatomy.map(value).map_or(0, |map| map.0)
}

/// The last grids on every way back from the predictions; of grids that are joined there, each.
fn branch_ends(anatomy: &Anatomy<'_>, predictions: ValueId) -> Vec<ValueId> {
    let flat = anatomy.ancestors(predictions, |v| anatomy.grid(v).is_none());
    let mut ends: Vec<ValueId> = flat.iter().flat_map(|&v| anatomy.sources(v)).collect();
    ends.retain(|&v| anatomy.grid(v).is_some());
    let mut open = std::mem::take(&mut ends);
    while let Some(end) = open.pop() {
        let joined = anatomy.maker(end).is_some_and(|node| node.operator == "Concat");
        match joined {
            true => open.extend(anatomy.sources(end)),
            false => ends.push(end),
        }
    }
    ends.sort_unstable();
    ends.dedup();
    ends
}
