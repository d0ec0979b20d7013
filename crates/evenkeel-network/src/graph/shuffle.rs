//! Reshape, Transpose and Reshape that shuffle the channels of a map become one node.

use std::sync::Arc;

use super::fuse::{Uses, as_op, fixed};
use super::{Graph, Node, ValueId};
use crate::op::shuffle::ChannelShuffle;
use crate::op::transpose::Transpose;
use crate::plan::Plan;

/// Joins every such chain whose inner values nobody else reads, at the place of its last node.
pub(super) fn join_shuffles(graph: &Graph, nodes: Vec<Node>, wanted: &[ValueId]) -> Vec<Node> {
    let uses = Uses::of(graph, &nodes, wanted);
    let mut dropped = vec![false; nodes.len()];
    let mut joined: Vec<Option<Node>> = vec![None; nodes.len()];
    for first in 0..nodes.len() {
        if let Some((members, node)) = shuffle(graph, &nodes, &uses, first) {
            members.iter().for_each(|&i| dropped[i] = true);
            joined[members[2]] = Some(node);
        }
    }
    let kept =
        nodes.into_iter().enumerate().map(|(i, node)| if dropped[i] { joined[i].take() } else { Some(node) });
    kept.flatten().collect()
}

fn shuffle(graph: &Graph, nodes: &[Node], uses: &Uses, first: usize) -> Option<([usize; 3], Node)> {
    let only_reader = |node: &Node| {
        let id = node.outputs.first().copied().flatten()?;
        Some(uses.reader[id]).filter(|_| uses.count[id] == 1)
    };
    let target = |node: &Node| {
        let id = node.inputs.get(1).copied().flatten().filter(|_| node.operator == "Reshape")?;
        // A zero stands for a dimension kept or for none at all, as an attribute says.
        fixed(graph, id)?.integers().filter(|dims| !dims.contains(&0))
    };
    let apart = target(&nodes[first]).filter(|dims| dims.len() == 5)?;
    let second = only_reader(&nodes[first])?;
    let transpose: &Transpose = as_op(&nodes[second])?;
    if transpose.order.as_deref() != Some(&[0, 2, 1, 3, 4]) {
        return None;
    }
    let third = only_reader(&nodes[second])?;
    let together = target(&nodes[third]).filter(|dims| dims.len() == 4)?;
    let (input, output) = (nodes[first].inputs[0]?, nodes[third].outputs.first().copied().flatten()?);
    let members = [first, second, third];
    let originals = members.iter().map(|&i| nodes[i].clone()).collect();
    let original = Arc::new(Plan::between(graph, originals, &[input], &[output], true));
    let op = ChannelShuffle { apart, together, original };
    let name = nodes[first].name.clone();
    let (inputs, outputs) = (vec![Some(input)], vec![Some(output)]);
    Some((members, Node { name, operator: "ChannelShuffle".into(), op: Arc::new(op), inputs, outputs }))
}
