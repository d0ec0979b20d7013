//! `x (1 + erf(x / sqrt 2)) / 2` as exporters write it, node by node, becomes one activation.
//!
//! The joined function is computed from the tail of the normal distribution, which is closer to the exact value than the chain of
//! roundings it replaces; the last bits differ.

use std::sync::Arc;

use evenkeel_kernels::activation::Function;

use super::fuse::{Uses, fixed};
use super::{Graph, Node, ValueId};
use crate::op::activation::Smooth;

/// Joins every such chain whose inner values nobody else reads.
pub(super) fn join_gelu(graph: &Graph, mut nodes: Vec<Node>, wanted: &[ValueId]) -> Vec<Node> {
    let uses = Uses::of(graph, &nodes, wanted);
    let mut maker = vec![usize::MAX; graph.values.len()];
    for (i, node) in nodes.iter().enumerate() {
        node.outputs.iter().flatten().for_each(|&id| maker[id] = i);
    }
    let search = Search { graph, nodes: &nodes, uses: &uses, maker: &maker };
    let found: Vec<Found> = (0..nodes.len()).filter_map(|erf| search.chain(erf)).collect();
    let mut dropped = vec![false; nodes.len()];
    for Found { members, input } in found {
        let last = *members.iter().max().unwrap_or(&0);
        members.iter().filter(|&&i| i != last).for_each(|&i| dropped[i] = true);
        let node = &mut nodes[last];
        (node.operator, node.op) = ("Gelu".into(), Arc::new(Smooth(Function::Gelu)));
        node.inputs = vec![Some(input)];
    }
    nodes.into_iter().zip(dropped).filter(|(_, dropped)| !dropped).map(|(node, _)| node).collect()
}

/// The nodes of a chain and the value it starts from.
struct Found {
    members: Vec<usize>,
    input: ValueId,
}

struct Search<'a> {
    graph: &'a Graph,
    nodes: &'a [Node],
    uses: &'a Uses,
    maker: &'a [usize],
}

impl Search<'_> {
    fn chain(&self, erf: usize) -> Option<Found> {
        let node = &self.nodes[erf];
        let (&[Some(scaled)], &[Some(curve)]) = (&node.inputs[..], &node.outputs[..]) else { return None };
        if node.operator != "Erf" || self.uses.count[scaled] != 1 {
            return None;
        }
        let scale = self.maker[scaled];
        let (input, factor) = self.by_constant(scale)?;
        let inverse = match &*self.nodes[scale].operator {
            "Div" => self.nodes[scale].inputs[0] == Some(input) && near(factor, std::f32::consts::SQRT_2),
            "Mul" => near(factor, std::f32::consts::FRAC_1_SQRT_2),
            _ => false,
        };
        let (plus, raised) = self.only_reader(curve)?;
        let (_, one) = self.by_constant(plus).filter(|_| self.nodes[plus].operator == "Add")?;
        let (times, product) = self.only_reader(raised)?;
        if !inverse || one != 1.0 || self.nodes[times].operator != "Mul" {
            return None;
        }
        let other = self.nodes[times].inputs.iter().flatten().copied().find(|&id| id != raised)?;
        let mut members = vec![erf, scale, plus, times];
        if other == input {
            let (half, _) = self.only_reader(product)?;
            let (_, factor) = self.by_constant(half).filter(|_| self.nodes[half].operator == "Mul")?;
            members.push(half);
            return (factor == 0.5).then_some(Found { members, input });
        }
        // The half may come first: (x / 2) (1 + erf).
        let half = self.maker[other];
        let (source, factor) = self.by_constant(half).filter(|_| self.nodes[half].operator == "Mul")?;
        members.push(half);
        let halved = source == input && factor == 0.5 && self.uses.count[other] == 1;
        halved.then_some(Found { members, input })
    }

    /// The value that node `at` combines with a single constant number, and that number.
    fn by_constant(&self, at: usize) -> Option<(ValueId, f32)> {
        let &[Some(left), Some(right)] = &self.nodes.get(at)?.inputs[..] else { return None };
        let number = |id: ValueId| match fixed(self.graph, id)?.values::<f32>()? {
            &[value] if fixed(self.graph, id)?.rank() <= 1 => Some(value),
            _ => None,
        };
        match (number(left), number(right)) {
            (None, Some(value)) => Some((left, value)),
            (Some(value), None) => Some((right, value)),
            _ => None,
        }
    }

    /// The only reader of a value nobody asked for, and what that makes.
    fn only_reader(&self, id: ValueId) -> Option<(usize, ValueId)> {
        let reader = Some(self.uses.reader[id]).filter(|_| self.uses.count[id] == 1)?;
        Some((reader, self.nodes[reader].outputs.first().copied().flatten()?))
    }
}

fn near(value: f32, expected: f32) -> bool {
    (value - expected).abs() < 1e-6
}
