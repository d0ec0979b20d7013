//! Fusing: a product with constant weights along the last axis (MatMul or Gemm) takes in the scale, the bias, the residual addition and the
//! two-slope activation that follow it, as long as nobody else reads (or asks for) what lies between.

use std::sync::Arc;

use evenkeel_kernels::conv2d::Source;
use evenkeel_kernels::epilogue::Activation;

use super::fuse::{Uses, as_op, fixed};
use super::packed::{self, Sizes};
use super::{Graph, Node, ValueId, flush_values};
use crate::op::gemm::Gemm;
use crate::op::linear::Linear;
use crate::op::matmul::MatMul;
use crate::op::two_slope::TwoSlope;
use crate::plan::Plan;
use crate::tensor::Tensor;

/// Rows of a multiple of this many elements lie in memory as the kernels want them.
const LANES: usize = 8;

/// Replaces chains that start with such a product by one node each, at the place of the chain's last node.
pub(super) fn fuse_linear(graph: &Graph, nodes: Vec<Node>, wanted: &[ValueId]) -> Vec<Node> {
    let uses = Uses::of(graph, &nodes, wanted);
    let mut taken = vec![false; nodes.len()];
    let mut fused: Vec<Option<Node>> = vec![None; nodes.len()];
    for start in 0..nodes.len() {
        let Some(mut chain) = Chain::start(graph, &nodes[start]).filter(|_| !taken[start]) else { continue };
        let mut members = vec![start];
        while uses.count[chain.output] == 1 && chain.activation == Activation::None {
            let next = uses.reader[chain.output];
            if taken[next] || !chain.absorb(graph, &nodes[next]) {
                break;
            }
            members.push(next);
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

/// A product and what it has taken in so far: `activation(x w + bias + residual)`.
struct Chain {
    input: ValueId,
    /// `[n][k]`.
    weights: Source,
    k: usize,
    bias: Vec<f32>,
    residual: Option<ValueId>,
    activation: Activation,
    output: ValueId,
}

impl Chain {
    fn start(graph: &Graph, node: &Node) -> Option<Chain> {
        let (input, right) = (node.inputs.first().copied()??, node.inputs.get(1).copied()??);
        let constant = fixed(graph, right)?;
        let &[rows, columns] = constant.shape() else { return None };
        let output = node.outputs.first().copied().flatten()?;
        let (turned, alpha, bias) = if as_op::<MatMul>(node).is_some() {
            (false, 1.0, None)
        } else {
            let gemm: &Gemm = as_op(node).filter(|gemm: &&Gemm| !gemm.a_turned)?;
            let bias = node.inputs.get(2).copied().flatten().map(|id| fixed(graph, id));
            let n = if gemm.b_turned { rows } else { columns };
            let bias = match bias {
                None => None,
                Some(bias) => Some(last_axis(bias?, n)?.iter().map(|b| b * gemm.beta).collect()),
            };
            (gemm.b_turned, gemm.alpha, bias)
        };
        let (n, k) = if turned { (rows, columns) } else { (columns, rows) };
        if n == 0
            || k == 0
            || !n.is_multiple_of(LANES)
            || !k.is_multiple_of(LANES)
            || fixed(graph, input).is_some()
        {
            return None;
        }
        let weights = packed::source(constant)?.flushed();
        let weights = if turned { weights } else { weights.turned() };
        let weights = if alpha == 1.0 { weights } else { weights.scaled(vec![alpha; n]) };
        let bias = bias.unwrap_or_else(|| vec![0.0; n]);
        Some(Chain { input, weights, k, bias, residual: None, activation: Activation::None, output })
    }

    /// Takes in `node`, which reads the chain's output, if it can.
    fn absorb(&mut self, graph: &Graph, node: &Node) -> bool {
        let Some(output) = node.outputs.first().copied().flatten() else { return false };
        let done = if let Some(TwoSlope(activation)) = as_op(node) {
            self.activation = *activation;
            true
        } else {
            self.combine(graph, node)
        };
        if done {
            self.output = output;
        }
        done
    }

    fn combine(&mut self, graph: &Graph, node: &Node) -> bool {
        let &[Some(left), Some(right)] = &node.inputs[..] else { return false };
        let other = if left == self.output { right } else { left };
        let Some(constant) = fixed(graph, other) else {
            let addable = node.operator == "Add" && self.residual.is_none() && other != self.output;
            if addable {
                self.residual = Some(other);
            }
            return addable;
        };
        let Some(values) = last_axis(constant, self.bias.len()) else { return false };
        match &*node.operator {
            "Add" => self.bias.iter_mut().zip(&values).for_each(|(bias, v)| *bias += v),
            "Mul" if self.residual.is_none() => {
                self.bias.iter_mut().zip(&values).for_each(|(bias, v)| *bias *= v);
                self.weights = self.weights.clone().scaled(values);
            }
            _ => return false,
        }
        true
    }

    fn into_node(mut self, graph: &Graph, originals: Vec<Node>) -> Node {
        flush_values(&mut self.bias);
        let inputs: Vec<ValueId> = [Some(self.input), self.residual].into_iter().flatten().collect();
        let original = Plan::between(graph, originals.clone(), &inputs, &[self.output], true);
        let n = self.bias.len();
        let op = Linear {
            weights: graph
                .packed
                .of(self.weights, Sizes { channels: [n, self.k], kernel: [1, 1], groups: 1 }),
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

/// One value for each of `n` places of the last axis, if the constant broadcasts over all others without adding any.
fn last_axis(constant: &Tensor, n: usize) -> Option<Vec<f32>> {
    let values = constant.values::<f32>()?;
    match (values.len(), constant.shape()) {
        (1, []) | (1, [1]) => Some(vec![values[0]; n]),
        (len, &[last]) if len == n && last == n => Some(values.to_vec()),
        (len, &[1, last]) if len == n && last == n => Some(values.to_vec()),
        _ => None,
    }
}
