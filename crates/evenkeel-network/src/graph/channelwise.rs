//! Batch norms and PReLUs that no convolution took in: one after the other become one node, and each alone runs in place.

use std::sync::Arc;

use evenkeel_kernels::activation::ByChannel;

use super::fuse::{Uses, fixed};
use super::{Graph, Node, ValueId};
use crate::op::channelwise::Channelwise;
use crate::plan::Plan;

/// Joins a batch norm with the PReLU that alone reads it, at the place of the latter.
pub(super) fn join_channelwise(graph: &Graph, nodes: Vec<Node>, wanted: &[ValueId]) -> Vec<Node> {
    let uses = Uses::of(graph, &nodes, wanted);
    let mut replaced: Vec<Option<Option<Node>>> = vec![None; nodes.len()];
    for (i, node) in nodes.iter().enumerate() {
        if replaced[i].is_some() {
            continue;
        }
        if let Some(slopes) = slopes(graph, node) {
            replaced[i] = joined(graph, None, Some(&slopes), vec![node.clone()]).map(Some);
            continue;
        }
        let Some((scale, shift)) = affine(graph, node) else { continue };
        let output = node.outputs.first().copied().flatten();
        let next = output.filter(|&id| uses.count[id] == 1).map(|id| uses.reader[id]);
        let after = next.and_then(|next| Some((next, slopes(graph, &nodes[next])?)));
        let pair =
            after.filter(|(next, slopes)| slopes.len() == scale.len() && nodes[*next].inputs[0] == output);
        match pair {
            None => replaced[i] = joined(graph, Some((&scale, &shift)), None, vec![node.clone()]).map(Some),
            Some((next, slopes)) => {
                let members = vec![node.clone(), nodes[next].clone()];
                if let Some(node) = joined(graph, Some((&scale, &shift)), Some(&slopes), members) {
                    (replaced[i], replaced[next]) = (Some(None), Some(Some(node)));
                }
            }
        }
    }
    nodes.into_iter().zip(replaced).filter_map(|(node, new)| new.unwrap_or(Some(node))).collect()
}

fn affine(graph: &Graph, node: &Node) -> Option<(Vec<f32>, Vec<f32>)> {
    let constant = |id: &Option<ValueId>| id.and_then(|id| fixed(graph, id)?.values::<f32>());
    let constants: Vec<Option<&[f32]>> = node.inputs.iter().map(constant).collect();
    let single = node.outputs.iter().skip(1).all(Option::is_none);
    node.op.channel_affine(&constants).filter(|_| single && node.operator == "BatchNormalization")
}

/// The lower slopes of a PReLU of maps, one a channel.
fn slopes(graph: &Graph, node: &Node) -> Option<Vec<f32>> {
    let slope = node.inputs.get(1).copied().flatten().filter(|_| node.operator == "PRelu")?;
    let constant = fixed(graph, slope)?;
    let shape = constant.shape();
    let by_channel = matches!(*shape, [_, 1, 1] | [1, _, 1, 1]) && constant.len() > 1;
    by_channel.then(|| constant.values::<f32>().map(<[f32]>::to_vec))?
}

fn joined(
    graph: &Graph,
    affine: Option<(&[f32], &[f32])>,
    slopes: Option<&[f32]>,
    originals: Vec<Node>,
) -> Option<Node> {
    let channels = affine.map(|(scale, _)| scale.len()).or(slopes.map(<[f32]>::len))?;
    let (first, last) = (originals.first()?, originals.last()?);
    let (input, output) = (first.inputs[0]?, last.outputs.first().copied().flatten()?);
    let (name, operators) =
        (first.name.clone(), originals.iter().map(|node| &*node.operator).collect::<Vec<_>>());
    let operator = operators.join("+");
    let original = Arc::new(Plan::between(graph, originals, &[input], &[output], true));
    let by_channel = Arc::new(ByChannel::new(affine, slopes));
    let op = Arc::new(Channelwise { channels, by_channel, original });
    Some(Node { name, operator, op, inputs: vec![Some(input)], outputs: vec![Some(output)] })
}
