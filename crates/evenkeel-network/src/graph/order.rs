//! Putting nodes in order, and running at load what never changes.

use std::collections::VecDeque;

use super::{Graph, Node};
use crate::error::{Error, Result};
use crate::op::Call;
use crate::tensor::{Room, Tensor};

/// See [`Graph::sort`]. Nodes keep their relative order where it is free.
pub(super) fn sort(graph: &mut Graph) -> Result<()> {
    let mut made = vec![false; graph.values.len()];
    let twice = |name: &str| Error::Graph(format!("tensor {name:?} is made twice"));
    for input in &graph.inputs {
        // Older files list initialisers among the inputs; then the initialiser is a default.
        if std::mem::replace(&mut made[input.value], true) {
            return Err(twice(&graph.values[input.value].name));
        }
    }
    for (id, value) in graph.values.iter().enumerate() {
        made[id] |= value.constant.is_some();
    }
    let mut maker = vec![usize::MAX; graph.values.len()];
    for (i, node) in graph.nodes.iter().enumerate() {
        for &output in node.outputs.iter().flatten() {
            if made[output] || maker[output] != usize::MAX {
                return Err(twice(&graph.values[output].name));
            }
            maker[output] = i;
        }
    }
    let mut waiting = vec![0usize; graph.nodes.len()];
    let mut users = vec![Vec::new(); graph.nodes.len()];
    for (i, node) in graph.nodes.iter().enumerate() {
        for &input in node.inputs.iter().flatten().filter(|&&input| !made[input]) {
            if maker[input] == usize::MAX {
                let (name, of) = (&graph.values[input].name, &node.name);
                return Err(Error::Graph(format!("node {of:?} reads tensor {name:?}, which nothing makes")));
            }
            waiting[i] += 1;
            users[maker[input]].push(i);
        }
    }
    for &output in &graph.outputs {
        if !made[output] && maker[output] == usize::MAX {
            let name = &graph.values[output].name;
            return Err(Error::Graph(format!("output {name:?} is made by no node")));
        }
    }
    let mut ready: VecDeque<usize> = (0..graph.nodes.len()).filter(|&i| waiting[i] == 0).collect();
    let mut order = Vec::with_capacity(graph.nodes.len());
    while let Some(i) = ready.pop_front() {
        order.push(i);
        for &user in &users[i] {
            waiting[user] -= 1;
            if waiting[user] == 0 {
                ready.push_back(user);
            }
        }
    }
    if order.len() < graph.nodes.len() {
        let stuck = (0..graph.nodes.len()).find(|&i| waiting[i] > 0).map(|i| &graph.nodes[i].name);
        return Err(Error::Graph(format!(
            "the nodes form a cycle through {:?}",
            stuck.map_or("", |name| name)
        )));
    }
    let mut nodes: Vec<Option<Node>> = std::mem::take(&mut graph.nodes).into_iter().map(Some).collect();
    graph.nodes = order.into_iter().filter_map(|i| nodes[i].take()).collect();
    Ok(())
}

/// See [`Graph::fold`].
pub(super) fn fold(graph: &mut Graph, room: &Room) -> Result<()> {
    let free: Vec<bool> = {
        let mut free = vec![false; graph.values.len()];
        graph.inputs.iter().for_each(|input| free[input.value] = true);
        free
    };
    let mut kept = Vec::with_capacity(graph.nodes.len());
    for node in std::mem::take(&mut graph.nodes) {
        let constant = |id: usize| if free[id] { None } else { graph.values[id].constant.clone() };
        let known = node.inputs.iter().flatten().all(|&id| constant(id).is_some());
        let inputs: Vec<_> = node.inputs.iter().map(|id| id.and_then(constant)).collect();
        let elements: usize = inputs.iter().flatten().map(Tensor::len).sum();
        if !known || elements > node.op.folds_up_to() {
            kept.push(node);
            continue;
        }
        let wants = vec![false; inputs.len()];
        let call = Call { inputs, wants: &wants, outputs: node.outputs.len(), room };
        let answer = node.op.apply(call).map_err(|fault| node.error(fault))?;
        for (id, tensor) in node.outputs.iter().zip(answer.outputs) {
            if let &Some(id) = id {
                graph.values[id].constant = Some(tensor);
            }
        }
    }
    graph.nodes = kept;
    Ok(())
}
