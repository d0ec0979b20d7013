//! Simplifying before fusing: nodes that pass a value on are dropped, a value times its own gate becomes one activation, and so do the
//! chains that exporters write for one operator: GELU, a channel shuffle, an interpolation as a product.

use std::sync::Arc;

use evenkeel_kernels::activation::Function;

use super::gelu::join_gelu;
use super::shuffle::join_shuffles;
use super::sparse::sparse_products;
use super::{Graph, Node, ValueId};
use crate::op::Operator;
use crate::op::activation::Smooth;
use crate::op::clip::HardSigmoid;

/// Drops Identity and Dropout nodes whose output nobody asked for, and joins what belongs together.
pub(crate) fn simplify(graph: &Graph, nodes: Vec<Node>, wanted: &[ValueId]) -> Vec<Node> {
    let nodes = join_gates(graph, pass_through(graph, nodes, wanted), wanted);
    let nodes = join_shuffles(graph, join_gelu(graph, nodes, wanted), wanted);
    sparse_products(graph, nodes)
}

fn pass_through(graph: &Graph, nodes: Vec<Node>, wanted: &[ValueId]) -> Vec<Node> {
    let mut source: Vec<ValueId> = (0..graph.values.len()).collect();
    let mut kept = Vec::with_capacity(nodes.len());
    for mut node in nodes {
        node.inputs.iter_mut().flatten().for_each(|id| *id = source[*id]);
        // A Dropout with a training flag decides for itself.
        let passes = node.operator == "Identity" || (node.operator == "Dropout" && node.inputs.len() <= 2);
        match (&node.inputs[..], &node.outputs[..]) {
            (&[Some(from), ..], &[Some(to), ..])
                if passes && !wanted.contains(&to) && node.outputs[1..].iter().all(Option::is_none) =>
            {
                source[to] = from;
            }
            _ => kept.push(node),
        }
    }
    kept
}

/// `x * sigmoid(x)` and `x * hard_sigmoid(x)` as one node.
fn join_gates(graph: &Graph, nodes: Vec<Node>, wanted: &[ValueId]) -> Vec<Node> {
    let mut uses = vec![0; graph.values.len()];
    nodes.iter().flat_map(|node| node.inputs.iter().flatten()).for_each(|&id| uses[id] += 1);
    wanted.iter().for_each(|&id| uses[id] += 1);
    let mut maker = vec![usize::MAX; graph.values.len()];
    for (i, node) in nodes.iter().enumerate() {
        node.outputs.iter().flatten().for_each(|&id| maker[id] = i);
    }
    let mut dropped = vec![false; nodes.len()];
    let mut joined: Vec<Node> = Vec::with_capacity(nodes.len());
    for node in &nodes {
        let gate = |value: ValueId, gated: ValueId| {
            let gate = nodes.get(maker[gated]).filter(|_| uses[gated] == 1)?;
            (gate.inputs.first() == Some(&Some(value))).then_some((maker[gated], gate_function(gate)?))
        };
        let found = match (&*node.operator, &node.inputs[..]) {
            ("Mul", &[Some(a), Some(b)]) => {
                gate(a, b).map(|found| (a, found)).or_else(|| gate(b, a).map(|found| (b, found)))
            }
            _ => None,
        };
        let Some((value, (at, function))) = found else {
            joined.push(node.clone());
            continue;
        };
        dropped[at] = true;
        let operator = format!("{}+Mul", nodes[at].operator);
        joined.push(Node {
            operator,
            op: Arc::new(Smooth(function)),
            inputs: vec![Some(value)],
            ..node.clone()
        });
    }
    let gone = |node: &Node| {
        node.outputs
            .first()
            .copied()
            .flatten()
            .is_some_and(|id| maker[id] != usize::MAX && dropped[maker[id]])
    };
    joined.retain(|node| !gone(node));
    joined
}

/// The activation that a value times this gate of it is.
fn gate_function(gate: &Node) -> Option<Function> {
    if gate.operator == "Sigmoid" {
        return Some(Function::Silu { beta: 1.0 });
    }
    let op: &dyn std::any::Any = &*gate.op as &dyn Operator;
    let hard: &HardSigmoid = op.downcast_ref()?;
    let sixth = (hard.alpha - 1.0 / 6.0).abs() < 1e-6 && hard.beta == 0.5;
    sixth.then_some(Function::HardSwish)
}
