//! What a network costs: parameters, operations, and the time of every step; and its double-precision twin.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use evenkeel_kernels::parallel;

use crate::error::Result;
use crate::graph::Graph;
use crate::network::Network;
use crate::plan::Step;
use crate::run::{self, Watch};
use crate::tensor::{DType, Room, Tensor};

/// One step of a pass.
#[derive(Clone, Debug)]
pub struct StepCost {
    /// The node's name.
    pub name: String,
    /// The operators it was fused from.
    pub operator: String,
    /// What it is, in a word or two: the operator, or for a convolution its kernel, stride and grouping.
    pub kind: String,
    /// The shape of its first output.
    pub shape: Vec<usize>,
    /// Multiplications and additions forwards.
    pub flops: f64,
    /// Wall-clock time forwards, changes of layout included.
    pub seconds: f64,
    /// Multiplications and additions of the pullback; zero where no gradient passes.
    pub pullback_flops: f64,
    /// Wall-clock time of the pullback, sums and masks of gradients included; zero where no gradient passes.
    pub pullback_seconds: f64,
}

/// The costs seen so far, and the moment the last ended.
struct Costs {
    steps: Vec<StepCost>,
    last: Instant,
}

impl Watch for Costs {
    fn starts(&mut self, step: &Step, inputs: &[Option<Tensor>], wants: &[bool]) {
        let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
        let kind = step.op.kind(&inputs);
        let flops = step.op.flops(&inputs);
        let factors = wants.iter().take(step.op.factors()).filter(|&&wanted| wanted).count();
        self.steps.push(StepCost {
            name: step.name.clone(),
            operator: step.operator.clone(),
            kind: if kind.is_empty() { step.operator.clone() } else { kind },
            shape: Vec::new(),
            flops,
            seconds: 0.0,
            pullback_flops: flops * factors as f64,
            pullback_seconds: 0.0,
        });
    }

    fn ends(&mut self, outputs: &[Tensor]) {
        if let Some(step) = self.steps.last_mut() {
            step.seconds = self.last.elapsed().as_secs_f64();
            step.shape = outputs.first().map_or_else(Vec::new, |tensor| tensor.shape().to_vec());
        }
        self.last = Instant::now();
    }

    fn pulled(&mut self, index: usize) {
        self.steps[index].pullback_seconds = self.last.elapsed().as_secs_f64();
        self.last = Instant::now();
    }
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
        let mut costs = Costs { steps: Vec::with_capacity(plan.steps.len()), last: Instant::now() };
        parallel::together(|| run::observe(&plan, given, &wants, &room, Some(&mut costs)))?;
        Ok(costs.steps)
    }

    /// Runs the network once with a tape, pulls these tensors themselves back as their cotangents (the gradient of half their squared
    /// norm), and tells what each step cost in both directions.
    ///
    /// # Errors
    /// As for [`Network::run`].
    pub fn time_gradient_steps(&self, inputs: &[(&str, Tensor)], names: &[&str]) -> Result<Vec<StepCost>> {
        let (plan, given) = (self.plan(names, true)?, self.bind(inputs)?);
        let wants: Vec<bool> =
            given.iter().map(|g| g.as_ref().is_some_and(|t| t.dtype().is_float())).collect();
        let room = Room::new(self.pool().clone(), *self.limits());
        let mut costs = Costs { steps: Vec::with_capacity(plan.steps.len()), last: Instant::now() };
        parallel::together(|| {
            let (outputs, tape) = run::observe(&plan, given, &wants, &room, Some(&mut costs))?;
            let cotangents = outputs.into_iter().map(|y| y.dtype().is_float().then_some(y)).collect();
            costs.last = Instant::now();
            tape.map_or(Ok(Vec::new()), |tape| tape.pull_observed(cotangents, &room, Some(&mut costs)))
        })?;
        Ok(costs.steps)
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
