//! A network as its user sees it: named inputs, named tensors, and gradients with respect to the inputs.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_kernels::buffer::Pool;
use evenkeel_kernels::parallel;

use crate::error::{Error, Result};
use crate::file::NetworkFile;
use crate::graph::{Dim, Graph, Input, ValueId};
use crate::plan::Plan;
use crate::run::{self, Tape};
use crate::tensor::{Limits, Room, Tensor};

/// A frozen network. Cheap to share: clone it or put it behind a reference; calls may run at the same time.
#[derive(Clone, Debug)]
pub struct Network {
    graph: Arc<Graph>,
    pub(crate) plans: Arc<Mutex<HashMap<Vec<ValueId>, Plans>>>,
    pool: Pool,
    limits: Limits,
    literal: bool,
}

/// How one set of tensors is computed.
#[derive(Clone, Debug)]
pub(crate) struct Plans {
    pub(crate) taped: Arc<Plan>,
    pub(crate) bare: Arc<Plan>,
}

/// The tensors a call asked for, and the tape that leads back from them.
#[derive(Debug)]
pub struct Trace {
    names: Vec<String>,
    tensors: Vec<Tensor>,
    inputs: Vec<String>,
    tape: Option<Tape>,
    room: Room,
}

impl Network {
    /// The network of an ONNX file, or of a [zoo](crate::zoo) network's weights in a safetensors file or PyTorch checkpoint, within the
    /// default limits. Which it is, the file's first bytes tell.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or uses what the engine does not have (all of it is listed); if weights are those
    /// of no known architecture.
    pub fn load(path: impl AsRef<Path>) -> Result<Network> {
        Ok(NetworkFile::read(path)?.open(Limits::default())?.network)
    }

    /// The network of a file's bytes, as [`Network::load`] would have it. Tensors that an ONNX file keeps in others are refused.
    ///
    /// # Errors
    /// As for [`Network::load`].
    pub fn from_bytes(bytes: Vec<u8>, limits: Limits) -> Result<Network> {
        Ok(NetworkFile::from_bytes(bytes).open(limits)?.network)
    }

    /// The network of a graph built in code: sorted, checked and folded.
    ///
    /// # Errors
    /// If the graph does not hang together or a constant part of it cannot be run.
    pub fn from_graph(mut graph: Graph, limits: Limits) -> Result<Network> {
        graph.sort()?;
        graph.fold(&Room::new(Pool::new(limits.fold_bytes), limits))?;
        graph.flush();
        let pool = Pool::new(limits.run_bytes);
        Ok(Network { graph: Arc::new(graph), plans: Arc::default(), pool, limits, literal: false })
    }

    /// The same network, run node by node as the file has it, without fusion or change of layout: what the fast walk answers to.
    pub fn literal(&self) -> Network {
        Network { plans: Arc::default(), literal: true, ..self.clone() }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The bounds on its calls.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The memory its calls share.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The declared inputs that a call must give: those without a default.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &Input)> {
        self.graph
            .inputs
            .iter()
            .filter(|input| self.graph.values[input.value].constant.is_none())
            .map(|input| (&*self.graph.values[input.value].name, input))
    }

    /// The names of the declared outputs.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        self.graph.outputs.iter().map(|&id| &*self.graph.values[id].name)
    }

    /// Runs the network and returns the tensors of these names, in order. No tape is kept.
    ///
    /// # Errors
    /// If a name or an input is wrong, or a node refuses its inputs.
    pub fn run(&self, inputs: &[(&str, Tensor)], names: &[&str]) -> Result<Vec<Tensor>> {
        Ok(self.call(inputs, names, false)?.tensors)
    }

    /// Runs the network and keeps what [`Trace::pullback`] needs.
    ///
    /// # Errors
    /// As for [`Network::run`].
    pub fn trace(&self, inputs: &[(&str, Tensor)], names: &[&str]) -> Result<Trace> {
        self.call(inputs, names, true)
    }

    fn call(&self, inputs: &[(&str, Tensor)], names: &[&str], taped: bool) -> Result<Trace> {
        let plan = self.plan(names, taped)?;
        let given = self.bind(inputs)?;
        let wants: Vec<bool> =
            given.iter().map(|g| taped && g.as_ref().is_some_and(|t| t.dtype().is_float())).collect();
        let room = Room::new(self.pool.clone(), self.limits);
        let (tensors, tape) = parallel::together(|| run::walk(&plan, given, &wants, &room))?;
        let inputs =
            self.graph.inputs.iter().map(|input| self.graph.values[input.value].name.clone()).collect();
        Ok(Trace { names: names.iter().map(|name| name.to_string()).collect(), tensors, inputs, tape, room })
    }

    /// The plan for these tensors, made at their first call: one that can keep a tape, or one that need not.
    ///
    /// # Errors
    /// If the graph has no tensor of such a name.
    pub fn plan(&self, names: &[&str], taped: bool) -> Result<Arc<Plan>> {
        let wanted = names.iter().map(|name| self.find(name)).collect::<Result<Vec<_>>>()?;
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let both = plans.entry(wanted).or_insert_with_key(|wanted| {
            if self.literal {
                let plan = Arc::new(Plan::literal(&self.graph, wanted));
                return Plans { taped: plan.clone(), bare: plan };
            }
            let taped = Arc::new(Plan::fused(&self.graph, wanted));
            Plans { bare: Arc::new(taped.without_tape()), taped }
        });
        Ok(if taped { &both.taped } else { &both.bare }.clone())
    }

    fn find(&self, name: &str) -> Result<ValueId> {
        let missing = || Error::NoTensor { name: name.into(), near: self.graph.near(name) };
        self.graph.find(name).ok_or_else(missing)
    }

    /// Puts the given tensors in the order of the graph's inputs and checks them against what it declares.
    pub(crate) fn bind(&self, given: &[(&str, Tensor)]) -> Result<Vec<Option<Tensor>>> {
        let mut bound: Vec<Option<Tensor>> = vec![None; self.graph.inputs.len()];
        for (name, tensor) in given {
            let place =
                self.graph.inputs.iter().position(|input| self.graph.values[input.value].name == **name);
            let Some(place) = place else {
                let known: Vec<&str> = self.inputs().map(|(name, _)| name).collect();
                let expected = format!("one of {}", known.join(", "));
                return Err(Error::Input { name: name.to_string(), expected, got: "an unknown name".into() });
            };
            check(name, &self.graph.inputs[place], tensor)?;
            bound[place] = Some(tensor.clone());
        }
        for (input, tensor) in self.graph.inputs.iter().zip(&mut bound) {
            let value = &self.graph.values[input.value];
            if tensor.is_none() {
                *tensor = value.constant.clone();
            }
            if tensor.is_none() {
                let (name, expected) = (value.name.clone(), describe(input));
                return Err(Error::Input { name, expected, got: "nothing".into() });
            }
        }
        Ok(bound)
    }
}

fn describe(input: &Input) -> String {
    match &input.dims {
        None => input.dtype.to_string(),
        Some(dims) => {
            let dims: Vec<String> = dims.iter().map(Dim::to_string).collect();
            format!("{} [{}]", input.dtype, dims.join(", "))
        }
    }
}

fn check(name: &str, input: &Input, tensor: &Tensor) -> Result<()> {
    let fits = input.dims.as_ref().is_none_or(|dims| {
        let dim_fits = |(dim, &size): (&Dim, &usize)| match dim {
            Dim::Fixed(fixed) => *fixed == size,
            Dim::Free(_) => true,
        };
        dims.len() == tensor.rank() && dims.iter().zip(tensor.shape()).all(dim_fits)
    });
    if tensor.dtype() != input.dtype || !fits {
        return Err(Error::Input { name: name.into(), expected: describe(input), got: tensor.describe() });
    }
    Ok(())
}

impl Trace {
    /// The tensors asked for, in order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The tensor of this name, if it was asked for.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.names.iter().position(|n| n == name).map(|i| &self.tensors[i])
    }

    /// Pulls cotangents of tensors asked for back to the inputs: for each input of floats, the gradient of the sum of the
    /// products of these tensors with their cotangents. An input nothing depends on has none.
    ///
    /// # Errors
    /// If a name was not asked for, or a cotangent has another type or shape than its tensor.
    pub fn pullback(&self, cotangents: &[(&str, Tensor)]) -> Result<Vec<(String, Tensor)>> {
        let mut seeds: Vec<Option<Tensor>> = vec![None; self.names.len()];
        for (name, cotangent) in cotangents {
            let Some(i) = self.names.iter().position(|n| n == name) else {
                return Err(Error::NoTensor { name: name.to_string(), near: self.names.clone() });
            };
            let tensor = &self.tensors[i];
            if tensor.dtype() != cotangent.dtype() || tensor.shape() != cotangent.shape() {
                let (expected, got) = (tensor.describe(), cotangent.describe());
                return Err(Error::Cotangent { name: name.to_string(), expected, got });
            }
            seeds[i] = Some(match seeds[i].take() {
                Some(earlier) => run::sum(earlier, cotangent.clone(), &self.room)
                    .map_err(|fault| Error::Graph(fault.to_string()))?,
                None => cotangent.clone(),
            });
        }
        let Some(tape) = &self.tape else { return Ok(Vec::new()) };
        let gradients = parallel::together(|| tape.pull(seeds, &self.room))?;
        let named = self.inputs.iter().cloned().zip(gradients);
        Ok(named.filter_map(|(name, gradient)| Some((name, gradient?))).collect())
    }
}
