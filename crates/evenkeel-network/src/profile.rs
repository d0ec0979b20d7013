//! What a network costs: parameters, operations, and the time of every step; and its double-precision twin.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use evenkeel_kernels::parallel;

use crate::error::Result;
use crate::graph::Graph;
use crate::network::Network;
use crate::plan::Step;
use crate::run;
use crate::tensor::{DType, Room, Tensor};

/// One step of a forward pass.
#[derive(Clone, Debug)]
pub struct StepCost {
    /// The node's name.
    pub name: String,
    /// The operators it was fused from.
    pub operator: String,
    /// The shape of its first output.
    pub shape: Vec<usize>,
    /// Multiplications and additions.
    pub flops: f64,
    /// Wall-clock time.
    pub seconds: f64,
}

impl Network {
    /// How many numbers the network's constants hold, and in how many bytes.
    pub fn parameters(&self) -> (usize, usize) {
        let constants = self.graph().values.iter().filter_map(|value| value.constant.as_ref());
        constants.fold((0, 0), |(count, bytes), tensor| (count + tensor.len(), bytes + tensor.stored_bytes()))
    }

    /// Multiplications and additions of one forward pass on these inputs.
    ///
    /// # Errors
    /// As for [`Network::run`].
    pub fn flops(&self, inputs: &[(&str, Tensor)], names: &[&str]) -> Result<f64> {
        Ok(self.time_steps(inputs, names)?.iter().map(|step| step.flops).sum())
    }

    /// Runs the network once and tells what each step cost.
    ///
    /// # Errors
    /// As for [`Network::run`].
    pub fn time_steps(&self, inputs: &[(&str, Tensor)], names: &[&str]) -> Result<Vec<StepCost>> {
        let (plan, given) = (self.plan(names, false)?, self.bind(inputs)?);
        let wants = vec![false; given.len()];
        let room = Room::new(self.pool().clone(), *self.limits());
        let mut costs = Vec::with_capacity(plan.steps.len());
        let mut last = Instant::now();
        let mut watch = |step: &Step, inputs: &[Option<Tensor>], outputs: &[Tensor]| {
            let seconds = last.elapsed().as_secs_f64();
            let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
            costs.push(StepCost {
                name: step.name.clone(),
                operator: step.operator.clone(),
                shape: outputs.first().map_or_else(Vec::new, |tensor| tensor.shape().to_vec()),
                flops: step.op.flops(&inputs, outputs),
                seconds,
            });
            last = Instant::now();
        };
        parallel::together(|| run::observe(&plan, given, &wants, &room, Some(&mut watch)))?;
        Ok(costs)
    }

    /// Bytes of weights packed for the kernels so far, beyond the network's constants.
    pub fn packed_bytes(&self) -> usize {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.values().flat_map(|plans| &plans.taped.steps).map(|step| step.op.packed_bytes()).sum()
    }

    /// The same network in double precision, run node by node: slow, and exact enough to take differences of.
    ///
    /// # Errors
    /// If a constant part of it cannot be run.
    pub fn widened(&self) -> Result<Network> {
        Network::from_graph(widen(self.graph()), *self.limits()).map(|network| network.literal())
    }
}

/// The graph with every f32 made f64.
pub(crate) fn widen(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    for value in &mut graph.values {
        value.constant = value.constant.take().map(|tensor| match tensor.values::<f32>() {
            Some(values) => {
                Tensor::new(tensor.shape(), values.iter().map(|&v| f64::from(v)).collect::<Vec<_>>())
            }
            None => tensor,
        });
    }
    for input in graph.inputs.iter_mut().filter(|input| input.dtype == DType::F32) {
        input.dtype = DType::F64;
    }
    for node in &mut graph.nodes {
        if let Some(op) = node.op.widened() {
            node.op = Arc::from(op);
        }
    }
    graph
}
