//! Weights from files: safetensors that may name their architecture, and PyTorch checkpoints that never do.

use std::io::Read;
use std::path::Path;

use super::{Blueprint, Weights, find, recognise};
use crate::error::{Error, Result};
use crate::format::{safetensors, torch};

/// Weights as a file gives them.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The weights.
    pub weights: Weights,
    /// The architecture the file names.
    pub architecture: Option<String>,
}

/// Whether a file holds weights, by its first bytes.
///
/// # Errors
/// If it cannot be read.
pub fn is_checkpoint(path: &Path) -> Result<bool> {
    let unreadable = |source| Error::Read { path: path.into(), source };
    let mut start = Vec::with_capacity(16);
    std::fs::File::open(path).and_then(|file| file.take(16).read_to_end(&mut start)).map_err(unreadable)?;
    Ok(holds_weights(&start))
}

/// Whether these are the first bytes of a file of weights.
pub fn holds_weights(start: &[u8]) -> bool {
    torch::looks_like(start) || safetensors::looks_like(start)
}

/// The weights of a file.
///
/// # Errors
/// If it cannot be read, is damaged, or holds anything but data.
pub fn load(path: &Path) -> Result<Checkpoint> {
    let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.into(), source })?;
    from_bytes(&bytes)
}

/// The weights of a file's bytes.
///
/// # Errors
/// As for [`load`].
pub fn from_bytes(bytes: &[u8]) -> Result<Checkpoint> {
    if safetensors::looks_like(bytes) {
        let architecture = safetensors::architecture(bytes)?;
        return Ok(Checkpoint { weights: Weights::new(safetensors::from_bytes(bytes)?), architecture });
    }
    Ok(Checkpoint { weights: Weights::new(torch::from_bytes(bytes)?), architecture: None })
}

impl Checkpoint {
    /// The network: of the architecture asked for, or the one the file names, or the one recognised.
    ///
    /// # Errors
    /// If the zoo has no such architecture or the weights are not its own.
    pub fn blueprint(&self, architecture: Option<&str>) -> Result<Blueprint> {
        match architecture.or(self.architecture.as_deref()) {
            Some(name) => find(name)?.blueprint(&self.weights),
            None => recognise(&self.weights),
        }
    }
}

impl Blueprint {
    /// A safetensors file of these weights that names the blueprint's architecture, for [`Network::load`](crate::Network::load).
    ///
    /// # Errors
    /// If a tensor is neither of 32- nor of 64-bit numbers.
    pub fn safetensors(&self, weights: &Weights) -> Result<Vec<u8>> {
        safetensors::to_bytes(Some(self.architecture()), weights.iter())
    }
}
