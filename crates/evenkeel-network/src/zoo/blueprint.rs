//! A network as drawn: steps with ONNX's operators and attributes, and constants. It becomes a [`Graph`] to run, or an ONNX file.
//!
//! The zoo draws blueprints from checkpoints; a trainer draws its own, names as it likes.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::{Error, Offender, Result};
use crate::graph::{Dim, Graph};
use crate::network::Network;
use crate::op::{Attribute, Attributes, Definition, registry};
use crate::tensor::{DType, Limits, Tensor};

/// The version of ONNX's operators that blueprints are drawn with.
pub(crate) const OPSET: i64 = 17;

/// One application of an operator.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) operator: &'static str,
    /// Names; empty for absent inputs.
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) attributes: Attributes,
}

/// An input: its name, type and shape.
#[derive(Clone, Debug)]
pub(crate) struct Entrance {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) dims: Vec<Dim>,
}

/// An output: its name, type and rank.
#[derive(Clone, Debug)]
pub(crate) struct Exit {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) rank: usize,
}

/// A network as drawn.
#[derive(Clone, Debug, Default)]
pub struct Blueprint {
    pub(crate) architecture: &'static str,
    pub(crate) inputs: Vec<Entrance>,
    pub(crate) outputs: Vec<Exit>,
    pub(crate) steps: Vec<Step>,
    pub(crate) constants: Vec<(String, Tensor)>,
    /// Names of the constants that were learnt, which may lie in a file of their own.
    pub(crate) learnt: BTreeSet<String>,
}

impl Blueprint {
    /// An empty one.
    pub fn new(architecture: &'static str) -> Blueprint {
        Blueprint { architecture, ..Blueprint::default() }
    }

    /// Declares an input.
    pub fn input(&mut self, name: &str, dtype: DType, dims: Vec<Dim>) {
        self.inputs.push(Entrance { name: name.into(), dtype, dims });
    }

    /// Declares an output of this rank.
    pub fn output(&mut self, name: &str, dtype: DType, rank: usize) {
        self.outputs.push(Exit { name: name.into(), dtype, rank });
    }

    /// Adds a constant.
    pub fn constant(&mut self, name: &str, tensor: Tensor) {
        self.constants.push((name.into(), tensor));
    }

    /// Adds a constant that was learnt.
    pub fn weight(&mut self, name: &str, tensor: Tensor) {
        self.learnt.insert(name.into());
        self.constant(name, tensor);
    }

    /// Adds a step with one output. An input without a name is absent.
    pub fn step<const N: usize>(
        &mut self,
        operator: &'static str,
        inputs: &[&str],
        output: &str,
        with: [(&str, Attribute); N],
    ) {
        let inputs = inputs.iter().map(|&input| input.into()).collect();
        self.steps.push(Step {
            operator,
            inputs,
            outputs: vec![output.into()],
            attributes: attributes(with),
        });
    }

    /// The name of the architecture.
    pub fn architecture(&self) -> &'static str {
        self.architecture
    }

    /// The graph, with operators from the registry.
    ///
    /// # Errors
    /// If a constant has two tensors or an operator refuses its attributes.
    pub fn graph(&self) -> Result<Graph> {
        let mut graph = Graph::default();
        for (name, tensor) in &self.constants {
            graph.constant(name, tensor.clone())?;
        }
        for input in &self.inputs {
            graph.input(&input.name, input.dtype, Some(input.dims.clone()));
        }
        for step in &self.steps {
            let refused = |problem: String| {
                let node = step.outputs.first().cloned().unwrap_or_default();
                Error::Unsupported(vec![Offender { node, operator: step.operator.into(), problem }])
            };
            let entry = registry::find("", step.operator)
                .ok_or_else(|| refused("is not an operator of this engine".into()))?;
            let definition = Definition {
                operator: step.operator,
                opset: OPSET,
                attributes: &step.attributes,
                inputs: step.inputs.len(),
                outputs: step.outputs.len(),
            };
            let op = (entry.build)(&definition).map_err(|fault| refused(fault.to_string()))?;
            let inputs: Vec<&str> = step.inputs.iter().map(String::as_str).collect();
            let outputs: Vec<&str> = step.outputs.iter().map(String::as_str).collect();
            graph.node(step.operator, Arc::from(op), &inputs, &outputs);
        }
        for output in &self.outputs {
            let id = graph.value(&output.name);
            graph.outputs.push(id);
        }
        Ok(graph)
    }

    /// An ONNX file of the network, weights inside.
    ///
    /// # Errors
    /// If it would pass 2 GB.
    pub fn onnx(&self) -> Result<Vec<u8>> {
        crate::format::onnx::write::bytes(self)
    }

    /// An ONNX file of the graph, and a safetensors file of what was learnt, which the graph finds beside it under the name `weights`.
    ///
    /// # Errors
    /// If the graph would pass 2 GB, or a weight is neither of 32- nor of 64-bit numbers.
    pub fn onnx_and_weights(&self, weights: &str) -> Result<(Vec<u8>, Vec<u8>)> {
        crate::format::onnx::write::split(self, weights)
    }

    /// The network, ready to run.
    ///
    /// # Errors
    /// As for [`Blueprint::graph`].
    pub fn network(&self, limits: Limits) -> Result<Network> {
        Network::from_graph(self.graph()?, limits)
    }
}

/// Attributes from pairs.
pub(crate) fn attributes<const N: usize>(pairs: [(&str, Attribute); N]) -> Attributes {
    Attributes(pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}
