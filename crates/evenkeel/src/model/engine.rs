//! The engine behind the seam: an executor that shares its tensors instead of copying them.
//!
//! Several inputs run side by side, each in a pass of its own, so that an answer never depends on the others of its call.

use std::sync::Arc;

use evenkeel_network as engine;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::network::{Cotangents, Executor, Tape, Tensor, Traced};

/// A network of the engine's with one input.
pub struct Engine {
    network: engine::Network,
    input: String,
}

impl Engine {
    /// The executor of a network.
    ///
    /// # Errors
    /// If it has another number of inputs than one.
    pub fn new(network: engine::Network) -> Result<Self> {
        let input = {
            let mut inputs = network.inputs();
            match (inputs.next(), inputs.next()) {
                (Some((name, _)), None) => name.to_owned(),
                (first, _) => {
                    let count = if first.is_none() { "none" } else { "more than one" };
                    return Err(Error::mismatch("inputs of the network", "one image", count));
                }
            }
        };
        Ok(Self { network, input })
    }

    /// The network.
    pub fn network(&self) -> &engine::Network {
        &self.network
    }
}

/// A plain tensor of f32.
struct Floats(engine::Tensor);

impl AsRef<[f32]> for Floats {
    fn as_ref(&self) -> &[f32] {
        self.0.values::<f32>().unwrap_or_default()
    }
}

/// The tensor, its floats shared with the engine; whole numbers become floats.
fn from_engine(tensor: &engine::Tensor, name: &str) -> Result<Tensor> {
    let shape = tensor.shape().to_vec();
    if tensor.values::<f32>().is_some_and(|v| v.len() == tensor.len()) {
        return Tensor::shared(shape, Arc::new(Floats(tensor.clone())));
    }
    let whole = tensor.integers().map(|values| values.into_iter().map(|v| v as f32).collect());
    let refused = || Error::mismatch(format!("tensor {name}"), "plain f32 values", tensor.describe());
    Tensor::new(shape, whole.ok_or_else(refused)?)
}

fn all_from_engine(tensors: &[engine::Tensor], names: &[&str]) -> Result<Vec<Tensor>> {
    tensors.iter().zip(names).map(|(tensor, name)| from_engine(tensor, name)).collect()
}

fn to_engine(tensor: Tensor) -> engine::Tensor {
    let shape = tensor.shape().to_vec();
    engine::Tensor::new::<f32>(&shape, tensor.into_data())
}

struct EngineTape<'n> {
    engine: &'n Engine,
    trace: engine::Trace,
    names: Vec<String>,
    /// Values of the input.
    inputs: usize,
}

impl Tape for EngineTape<'_> {
    fn pullback(&self, cotangents: Cotangents) -> Result<Vec<f32>> {
        let mut named = Vec::new();
        for (place, values) in cotangents {
            let (Some(name), Some(tensor)) = (self.names.get(place), self.trace.tensors().get(place)) else {
                return Err(Error::mismatch("place of a cotangent", self.names.len(), place));
            };
            if values.len() != tensor.len() {
                let what = format!("values of the cotangent of {name}");
                return Err(Error::mismatch(what, tensor.len(), values.len()));
            }
            // Tensors that no loss looks at, among them some that no gradient passes.
            if values.iter().all(|value| *value == 0.0) {
                continue;
            }
            named.push((name.as_str(), engine::Tensor::new::<f32>(tensor.shape(), values)));
        }
        if named.is_empty() {
            return Ok(vec![0.0; self.inputs]);
        }
        let gradients = self.trace.pullback(&named).map_err(Error::network)?;
        match gradients.iter().find(|(name, _)| *name == self.engine.input) {
            Some((name, gradient)) => Ok(from_engine(gradient, name)?.into_data()),
            None => Ok(vec![0.0; self.inputs]),
        }
    }
}

impl Executor for Engine {
    fn input_dims(&self) -> Option<Vec<Option<usize>>> {
        use engine::graph::Dim;
        let (_, input) = self.network.inputs().next()?;
        let size = |dim: &Dim| match dim {
            Dim::Fixed(n) => Some(*n),
            Dim::Free(_) => None,
        };
        Some(input.dims.as_ref()?.iter().map(size).collect())
    }

    fn check_tensors(&self, names: &[&str]) -> Result<()> {
        names.iter().try_for_each(|name| self.network.plan(&[name], false).map(drop).map_err(Error::network))
    }

    fn run(&self, inputs: Vec<Tensor>, tensors: &[&str]) -> Result<Vec<Vec<Tensor>>> {
        let run = |input: Tensor| {
            let answers = self.network.run(&[(&self.input, to_engine(input))], tensors);
            all_from_engine(&answers.map_err(Error::network)?, tensors)
        };
        inputs.into_par_iter().map(run).collect()
    }

    fn trace(&self, inputs: Vec<Tensor>, tensors: &[&str]) -> Result<Vec<Traced<'_>>> {
        let trace = |input: Tensor| {
            let inputs = input.len();
            let trace =
                self.network.trace(&[(&self.input, to_engine(input))], tensors).map_err(Error::network)?;
            let answers = all_from_engine(trace.tensors(), tensors)?;
            let names = tensors.iter().map(|name| name.to_string()).collect();
            let tape: Box<dyn Tape> = Box::new(EngineTape { engine: self, trace, names, inputs });
            Ok(Traced { tensors: answers, tape })
        };
        inputs.into_par_iter().map(trace).collect()
    }
}
