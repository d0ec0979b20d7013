//! A network as drawn: steps with ONNX's operators and attributes, and constants. It becomes a [`Graph`] to run, or an ONNX file.

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
}

impl Blueprint {
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
