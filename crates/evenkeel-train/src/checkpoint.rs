//! Checkpoints: parameters, running statistics, the optimiser's memory and the history, in one safetensors file.
//!
//! A resumed run goes on bit for bit as if it had not stopped.

use crate::error::{Error, Result};
use crate::net::Net;
use crate::optimiser::{Optimiser, Rule};
use crate::train::History;
use evenkeel::image::write_atomically;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use std::collections::HashMap;
use std::path::Path;

/// Every list of numbers that makes up the state, with its name.
fn parts<'a>(net: &'a mut Net, optimiser: &'a mut Optimiser) -> Vec<(String, &'a mut Vec<f32>)> {
    let mut parts = Vec::new();
    let moments = optimiser.first.iter_mut().zip(&mut optimiser.second);
    for (parameter, (first, second)) in net.parameters.iter_mut().zip(moments) {
        let name = &parameter.name;
        parts.push((format!("{name}.first"), first));
        if !second.is_empty() {
            parts.push((format!("{name}.second"), second));
        }
        parts.push((name.clone(), &mut parameter.values));
    }
    for running in &mut net.running {
        parts.push((format!("{}.running_mean", running.name), &mut running.mean));
        parts.push((format!("{}.running_var", running.name), &mut running.variance));
    }
    parts
}

/// Writes the state.
///
/// # Errors
/// If the file cannot be written.
pub fn save(path: &Path, net: &mut Net, optimiser: &mut Optimiser, history: &History) -> Result<()> {
    let bytes: Vec<(String, Vec<u8>)> = parts(net, optimiser)
        .into_iter()
        .map(|(name, values)| (name, values.iter().flat_map(|v| v.to_le_bytes()).collect()))
        .collect();
    let views = bytes
        .iter()
        .map(|(name, bytes)| Ok((name, TensorView::new(Dtype::F32, vec![bytes.len() / 4], bytes)?)))
        .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(|e| Error::file(path, e))?;
    let story = serde_json::to_string(history).map_err(|e| Error::file(path, e))?;
    let metadata = HashMap::from([("history".to_string(), story)]);
    let file = safetensors::serialize(views, Some(metadata)).map_err(|e| Error::file(path, e))?;
    write_atomically(path, &file).map_err(|e| Error::file(path, e))
}

/// Takes over the parameters and running statistics that a checkpoint and a network have in common, by name and size; gives how many.
///
/// # Errors
/// If the file cannot be read.
pub fn adopt(path: &Path, net: &mut Net) -> Result<usize> {
    let bytes = std::fs::read(path).map_err(|e| Error::file(path, e))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|e| Error::file(path, e))?;
    let mut taken = 0;
    for (name, values) in parts(net, &mut Optimiser::new(Rule::Sgd, &net.clone(), 0.0)) {
        let known = file.tensor(&name).ok().filter(|view| {
            let moment = name.ends_with(".first") || name.ends_with(".second");
            !moment && view.dtype() == Dtype::F32 && view.data().len() == 4 * values.len()
        });
        if let Some(view) = known {
            fill(values, view.data());
            taken += 1;
        }
    }
    Ok(taken)
}

fn fill(values: &mut [f32], bytes: &[u8]) {
    for (v, b) in values.iter_mut().zip(bytes.chunks_exact(4)) {
        *v = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    }
}

/// Reads a state into a network and optimiser of the same make.
///
/// # Errors
/// If the file cannot be read or belongs to another network.
pub fn load(path: &Path, net: &mut Net, optimiser: &mut Optimiser) -> Result<History> {
    let fail = |reason: &str| Error::file(path, reason);
    let bytes = std::fs::read(path).map_err(|e| Error::file(path, e))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|e| Error::file(path, e))?;
    for (name, values) in parts(net, optimiser) {
        let view = file.tensor(&name).map_err(|_| fail(&format!("has no tensor {name}")))?;
        if view.dtype() != Dtype::F32 || view.data().len() != 4 * values.len() {
            return Err(fail(&format!("tensor {name} is of another network")));
        }
        fill(values, view.data());
    }
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(|e| Error::file(path, e))?;
    let story = metadata.metadata().as_ref().and_then(|m| m.get("history"));
    let story = story.ok_or_else(|| fail("has no history"))?;
    serde_json::from_str(story).map_err(|e| Error::file(path, e))
}
