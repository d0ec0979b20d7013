//! A plan: the steps that give the tensors asked for, in order, with the place of every value and the moment it can be let go.
//!
//! A graph has one plan for each set of tensors asked for, because what is asked for cannot be fused away.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Fault};
use crate::graph::{Graph, Node, ValueId, fuse, simplify};
use crate::op::Operator;
use crate::op::conv::ConvPair;
use crate::op::ending::Ending;
use crate::tensor::Tensor;

/// One application of an operator. Places index the values of a walk.
#[derive(Clone, Debug)]
pub struct Step {
    /// The node's name.
    pub name: String,
    /// The operator's name.
    pub operator: String,
    /// What it does.
    pub op: Arc<dyn Operator>,
    /// The places of its inputs.
    pub inputs: Vec<Option<usize>>,
    /// The places of its outputs.
    pub outputs: Vec<Option<usize>>,
    /// For each input, whether nothing needs it afterwards.
    pub last_use: Vec<bool>,
}

impl Step {
    /// Places a fault at this step.
    pub fn error(&self, fault: Fault) -> Error {
        Error::Node { node: self.name.clone(), operator: self.operator.clone(), fault }
    }
}

/// Steps, and where values live. See the [module](self).
#[derive(Debug)]
pub struct Plan {
    /// In order.
    pub steps: Vec<Step>,
    /// How many places there are.
    pub places: usize,
    /// Values that never change.
    pub constants: Vec<(usize, Tensor)>,
    /// The places of the graph's inputs, in order; `None` if nothing asked for depends on it.
    pub inputs: Vec<Option<usize>>,
    /// The places of the tensors asked for, in order.
    pub outputs: Vec<usize>,
    /// For each place, whether a gradient arriving there can have come from a tensor asked for.
    pub useful: Vec<bool>,
    /// Whether maps may be kept channels last.
    pub free_layout: bool,
}

impl Plan {
    /// The plan that runs the nodes as they are, in plain layout.
    pub fn literal(graph: &Graph, wanted: &[ValueId]) -> Plan {
        Plan::between(graph, needed(graph, &graph.nodes, wanted), &inputs(graph), wanted, false)
    }

    /// The plan that runs as few passes as it can: convolutions with what follows them.
    pub fn fused(graph: &Graph, wanted: &[ValueId]) -> Plan {
        let nodes = simplify(graph, needed(graph, &graph.nodes, wanted), wanted);
        let nodes = fuse(graph, nodes, wanted);
        Plan::between(graph, nodes, &inputs(graph), wanted, true)
    }

    /// The same plan for walks that keep no tape: smooth activations end the pass that makes what they read, and then convolutions
    /// that can share a pass do.
    pub fn without_tape(&self) -> Plan {
        let ended = self.joined(|first, second| Some(Arc::new(Ending::of(&first.op, &second.op)?)));
        ended.joined(|first, second| {
            let pair = (first.inputs.len() == 1).then(|| ConvPair::of(&first.op, &second.op))?;
            Some(Arc::new(pair?))
        })
    }

    /// The plan in which what `join` makes of a step and the only one that reads it takes their place.
    fn joined(&self, join: impl Fn(&Step, &Step) -> Option<Arc<dyn Operator>>) -> Plan {
        let mut readers = vec![Vec::new(); self.places];
        for (i, step) in self.steps.iter().enumerate() {
            step.inputs.iter().flatten().for_each(|&place| readers[place].push(i));
        }
        let mut done = vec![false; self.steps.len()];
        let mut steps = Vec::with_capacity(self.steps.len());
        for (i, step) in self.steps.iter().enumerate() {
            if done[i] {
                continue;
            }
            match self.both(step, &readers, &join) {
                Some((next, both)) => {
                    done[next] = true;
                    steps.push(both);
                }
                None => steps.push(step.clone()),
            }
        }
        Plan {
            steps,
            places: self.places,
            constants: self.constants.clone(),
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
            useful: self.useful.clone(),
            free_layout: self.free_layout,
        }
    }

    /// `step` and the only step that reads what it makes as one, at the place of the first, and which step the other was.
    fn both(
        &self,
        step: &Step,
        readers: &[Vec<usize>],
        join: &impl Fn(&Step, &Step) -> Option<Arc<dyn Operator>>,
    ) -> Option<(usize, Step)> {
        let &[Some(between)] = &step.outputs[..] else { return None };
        let &[next] = &readers[between][..] else { return None };
        let other = &self.steps[next];
        if other.inputs != [Some(between)] || self.outputs.contains(&between) {
            return None;
        }
        let both = Step {
            name: step.name.clone(),
            operator: format!("{} > {}", step.operator, other.operator),
            op: join(step, other)?,
            inputs: step.inputs.clone(),
            outputs: other.outputs.clone(),
            last_use: step.last_use.clone(),
        };
        Some((next, both))
    }

    /// The plan that runs `nodes` (those of the graph or what they were fused into), in order, from these inputs.
    pub(crate) fn between(
        graph: &Graph,
        nodes: Vec<Node>,
        inputs: &[ValueId],
        wanted: &[ValueId],
        free_layout: bool,
    ) -> Plan {
        let mut places: HashMap<ValueId, usize> = HashMap::new();
        let mut constants = Vec::new();
        let mut place = |id: ValueId| {
            let next = places.len();
            *places.entry(id).or_insert_with(|| {
                if let Some(tensor) = &graph.values[id].constant {
                    constants.push((next, tensor.clone()));
                }
                next
            })
        };
        let mut steps: Vec<Step> = nodes
            .into_iter()
            .map(|node| Step {
                inputs: node.inputs.iter().map(|id| id.map(&mut place)).collect(),
                outputs: node.outputs.iter().map(|id| id.map(&mut place)).collect(),
                last_use: vec![false; node.inputs.len()],
                name: node.name,
                operator: node.operator,
                op: node.op,
            })
            .collect();
        let outputs: Vec<usize> = wanted.iter().map(|&id| place(id)).collect();
        let inputs = inputs.iter().map(|input| places.get(input).copied()).collect();
        let count = places.len();

        let mut released = vec![false; count];
        outputs.iter().for_each(|&place| released[place] = true);
        let mut useful = released.clone();
        for step in steps.iter_mut().rev() {
            let leads_on = step.outputs.iter().flatten().any(|&place| useful[place]);
            for (i, place) in step.inputs.iter().enumerate().rev() {
                let &Some(place) = place else { continue };
                step.last_use[i] = !std::mem::replace(&mut released[place], true);
                useful[place] |= leads_on && step.op.passes_gradient(i);
            }
        }
        Plan { steps, places: count, constants, inputs, outputs, useful, free_layout }
    }
}

fn inputs(graph: &Graph) -> Vec<ValueId> {
    graph.inputs.iter().map(|input| input.value).collect()
}

/// The nodes that `wanted` depends on, in order.
pub(crate) fn needed(graph: &Graph, nodes: &[Node], wanted: &[ValueId]) -> Vec<Node> {
    let mut needed = vec![false; graph.values.len()];
    wanted.iter().for_each(|&id| needed[id] = true);
    let mut kept = Vec::new();
    for node in nodes.iter().rev() {
        if node.outputs.iter().flatten().any(|&id| needed[id]) {
            node.inputs.iter().flatten().for_each(|&id| needed[id] = true);
            kept.push(node.clone());
        }
    }
    kept.reverse();
    kept
}
