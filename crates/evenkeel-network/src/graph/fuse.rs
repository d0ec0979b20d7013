//! Fusing: a convolution with constant weights takes in the per-channel arithmetic, residual addition and two-slope
//! activation that follow it, as long as nobody else reads (or asks for) what lies between.

use std::sync::Arc;

use evenkeel_kernels::conv2d::Source;
use evenkeel_kernels::epilogue::Activation;

use super::channelwise::join_channelwise;
use super::linear::fuse_linear;
use super::packed::{self, Sizes};
use super::{Graph, Node, ValueId, flush_values};
use crate::op::Operator;
use crate::op::clip::Clip;
use crate::op::conv::{Conv, FusedConv};
use crate::op::two_slope::TwoSlope;
use crate::plan::Plan;
use crate::tensor::Tensor;

/// Who reads what, among the nodes of a plan to be.
pub(super) struct Uses {
    /// How often each value is read or asked for; being asked for counts twice, so that nobody takes it for a value read once.
    pub(super) count: Vec<usize>,
    /// The last node that reads it.
    pub(super) reader: Vec<usize>,
}

impl Uses {
    pub(super) fn of(graph: &Graph, nodes: &[Node], wanted: &[ValueId]) -> Uses {
        let len = graph.values.len();
        let mut uses = Uses { count: vec![0; len], reader: vec![usize::MAX; len] };
        for (i, node) in nodes.iter().enumerate() {
            for &id in node.inputs.iter().flatten() {
                uses.count[id] += 1;
                uses.reader[id] = i;
            }
        }
        wanted.iter().for_each(|&id| uses.count[id] += 2);
        uses
    }
}

/// Fuses what can be: convolutions and products with constants with what follows them, then what is left of batch norms and PReLUs.
pub(crate) fn fuse(graph: &Graph, nodes: Vec<Node>, wanted: &[ValueId]) -> Vec<Node> {
    let nodes = fuse_linear(graph, fuse_convolutions(graph, nodes, wanted), wanted);
    join_channelwise(graph, nodes, wanted)
}

/// Replaces chains that start with a convolution by one node each, at the place of the chain's last node.
fn fuse_convolutions(graph: &Graph, nodes: Vec<Node>, wanted: &[ValueId]) -> Vec<Node> {
    let uses = Uses::of(graph, &nodes, wanted);
    let mut taken = vec![false; nodes.len()];
    let mut fused: Vec<Option<Node>> = vec![None; nodes.len()];
    for start in 0..nodes.len() {
        if taken[start] {
            continue;
        }
        let Some(mut chain) = Chain::start(graph, &nodes[start]) else { continue };
        let mut members = vec![start];
        let mut end = chain.output;
        while uses.count[end] == 1 && chain.activation == Activation::None {
            let next = uses.reader[end];
            if taken[next] || !chain.absorb(graph, &nodes[next], end) {
                break;
            }
            members.push(next);
            end = chain.output;
        }
        let last = *members.iter().max().unwrap_or(&start);
        members.iter().for_each(|&i| taken[i] = true);
        let originals: Vec<Node> = members.iter().map(|&i| nodes[i].clone()).collect();
        fused[last] = Some(chain.into_node(graph, originals));
    }
    let kept =
        nodes.into_iter().enumerate().map(|(i, node)| if taken[i] { fused[i].take() } else { Some(node) });
    kept.flatten().collect()
}

/// A convolution and what it has taken in so far: `activation(scale * (w * x + bias) + shift + residual)` with scale and shift
/// already in weights and bias.
struct Chain {
    conv: Arc<dyn Operator>,
    input: ValueId,
    shape: Tensor,
    weights: Source,
    bias: Vec<f32>,
    groups: usize,
    residual: Option<ValueId>,
    activation: Activation,
    output: ValueId,
}

pub(super) fn as_op<T: Operator>(node: &Node) -> Option<&T> {
    let any: &dyn std::any::Any = &*node.op;
    any.downcast_ref()
}

impl Chain {
    fn start(graph: &Graph, node: &Node) -> Option<Chain> {
        let conv: &Conv = as_op(node)?;
        let constant = |i: usize| node.inputs.get(i).copied().flatten().map(|id| fixed(graph, id));
        let shape = constant(1)??.clone();
        let weights = packed::source(&shape)?.flushed();
        if shape.rank() != 4 || shape.is_empty() || !shape.shape()[0].is_multiple_of(conv.groups) {
            return None;
        }
        let out_c = shape.shape()[0];
        let bias = match constant(2) {
            None => vec![0.0; out_c],
            Some(bias) => bias?.values::<f32>().filter(|bias| bias.len() == out_c)?.to_vec(),
        };
        let (input, output) = (node.inputs[0]?, node.outputs.first().copied().flatten()?);
        let (conv, groups) = (node.op.clone(), conv.groups);
        Some(Chain {
            conv,
            input,
            shape,
            weights,
            bias,
            groups,
            residual: None,
            activation: Activation::None,
            output,
        })
    }

    /// Takes in `node`, which reads `from`, if it can.
    fn absorb(&mut self, graph: &Graph, node: &Node, from: ValueId) -> bool {
        let Some(output) = node.outputs.first().copied().flatten() else { return false };
        if node.outputs.iter().skip(1).any(Option::is_some) {
            return false;
        }
        let done = if let Some(TwoSlope(activation)) = as_op(node) {
            self.activation = *activation;
            true
        } else {
            match &*node.operator {
                "Add" | "Sub" | "Mul" | "Div" => self.combine(graph, node, from),
                "Clip" => self.clip(graph, node, from),
                _ => node.inputs.first() == Some(&Some(from)) && self.affine(graph, node),
            }
        };
        if done {
            self.output = output;
        }
        done
    }

    /// Scales and shifts each channel as `node` would.
    fn affine(&mut self, graph: &Graph, node: &Node) -> bool {
        let constant = |id: &Option<ValueId>| id.and_then(|id| fixed(graph, id)?.values::<f32>());
        let constants: Vec<Option<&[f32]>> = node.inputs.iter().map(constant).collect();
        let Some((scales, shifts)) = node.op.channel_affine(&constants) else { return false };
        if self.residual.is_some() || scales.len() != self.bias.len() || shifts.len() != self.bias.len() {
            return false;
        }
        self.scale(scales);
        self.bias.iter_mut().zip(&shifts).for_each(|(bias, shift)| *bias += shift);
        true
    }

    fn scale(&mut self, factors: Vec<f32>) {
        self.bias.iter_mut().zip(&factors).for_each(|(bias, factor)| *bias *= factor);
        self.weights = self.weights.clone().scaled(factors);
    }

    /// Arithmetic with one value a channel goes into weights and bias; the addition of another map becomes the residual.
    fn combine(&mut self, graph: &Graph, node: &Node, from: ValueId) -> bool {
        let &[Some(left), Some(right)] = &node.inputs[..] else { return false };
        let other = if left == from { right } else { left };
        let Some(constant) = fixed(graph, other) else {
            let addable = node.operator == "Add" && self.residual.is_none() && other != from;
            if addable {
                self.residual = Some(other);
            }
            return addable;
        };
        let Some(values) = per_channel(constant, self.bias.len()) else { return false };
        if self.residual.is_some() && node.operator != "Add" {
            return false;
        }
        match &*node.operator {
            "Add" => self.bias.iter_mut().zip(&values).for_each(|(bias, v)| *bias += v),
            "Mul" => self.scale(values),
            "Sub" if left == from => self.bias.iter_mut().zip(&values).for_each(|(bias, v)| *bias -= v),
            "Div" if left == from && values.iter().all(|&v| v != 0.0) => {
                let inverse: Vec<f32> = values.iter().map(|v| 1.0 / v).collect();
                self.scale(inverse);
            }
            _ => return false,
        }
        true
    }

    fn clip(&mut self, graph: &Graph, node: &Node, from: ValueId) -> bool {
        let Some(clip) = as_op::<Clip>(node).filter(|_| node.inputs[0] == Some(from)) else { return false };
        let bounds: Option<Vec<Option<&Tensor>>> = node.inputs[1..]
            .iter()
            .map(|id| id.map_or(Some(None), |id| fixed(graph, id).map(Some)))
            .collect();
        let Some(bounds) = bounds else { return false };
        let bound = |i: usize| bounds.get(i).copied().flatten();
        match clip.activation(bound(0), bound(1)) {
            Ok(Activation::Clip(low, high)) if low <= high => {
                self.activation = Activation::Clip(low, high);
                true
            }
            _ => false,
        }
    }

    fn into_node(mut self, graph: &Graph, originals: Vec<Node>) -> Node {
        flush_values(&mut self.bias);
        let inputs: Vec<ValueId> = [Some(self.input), self.residual].into_iter().flatten().collect();
        let original = Plan::between(graph, originals.clone(), &inputs, &[self.output], true);
        let dims = self.shape.shape();
        let (out_c, in_c, kernel) = (dims[0], dims[1] * self.groups, [dims[2], dims[3]]);
        let op = FusedConv {
            conv: self.conv,
            shape: self.shape.clone(),
            weights: graph
                .packed
                .of(self.weights, Sizes { channels: [out_c, in_c], kernel, groups: self.groups }),
            bias: self.bias,
            activation: self.activation,
            original: Arc::new(original),
        };
        let name = originals[0].name.clone();
        let operator = originals.iter().map(|node| &*node.operator).collect::<Vec<_>>().join("+");
        let inputs = inputs.into_iter().map(Some).collect();
        Node { name, operator, op: Arc::new(op), inputs, outputs: vec![Some(self.output)] }
    }
}

/// The tensor of a value that never changes.
pub(super) fn fixed(graph: &Graph, id: ValueId) -> Option<&Tensor> {
    let given = graph.inputs.iter().any(|input| input.value == id);
    graph.values[id].constant.as_ref().filter(|_| !given)
}

/// One value for each of `channels` channels, if the constant broadcasts over everything else of a map.
pub(super) fn per_channel(constant: &Tensor, channels: usize) -> Option<Vec<f32>> {
    let values = constant.values::<f32>()?;
    let (dims, rank) = (constant.shape(), constant.rank());
    if values.len() == 1 && rank <= 4 {
        return Some(vec![values[0]; channels]);
    }
    let by_channel = (3..=4).contains(&rank)
        && values.len() == channels
        && dims[rank - 3] == channels
        && dims[rank - 2..] == [1, 1];
    by_channel.then(|| values.to_vec())
}
