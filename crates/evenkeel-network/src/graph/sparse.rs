//! Products with constant matrices that are mostly zeros become maps along an axis.

use std::sync::Arc;

use super::fuse::{as_op, fixed};
use super::{Graph, Node};
use crate::op::axis_map::{Along, SparseProduct};
use crate::op::matmul::MatMul;
use crate::plan::Plan;

/// Replaces them, each by one node.
pub(super) fn sparse_products(graph: &Graph, nodes: Vec<Node>) -> Vec<Node> {
    nodes.into_iter().map(|node| replaced(graph, &node).unwrap_or(node)).collect()
}

fn replaced(graph: &Graph, node: &Node) -> Option<Node> {
    as_op::<MatMul>(node)?;
    let &[Some(left), Some(right)] = &node.inputs[..] else { return None };
    let (input, matrix, along) = match (fixed(graph, left), fixed(graph, right)) {
        (Some(matrix), None) => (right, matrix, Along::Rows),
        (None, Some(matrix)) => (left, matrix, Along::Columns),
        _ => return None,
    };
    let map = SparseProduct::map_of(matrix, along)?;
    let output = node.outputs.first().copied().flatten()?;
    let original = Arc::new(Plan::between(graph, vec![node.clone()], &[input], &[output], true));
    let op = SparseProduct { transposed: Arc::new(map.transposed()), map, along, original };
    let operator = "MatMul sparse".to_string();
    Some(Node { operator, op: Arc::new(op), inputs: vec![Some(input)], ..node.clone() })
}
