//! A network's file: read once, then identified by its bytes and made a network.
//!
//! The file is ONNX, or a [zoo](crate::zoo) network's weights (safetensors, or a PyTorch checkpoint); its first bytes tell. Tensors that an
//! ONNX file keeps in others beside it are read from there, one tensor at a time; [`NetworkFile::external_files`] lists those others, so
//! that whoever identifies a network by its bytes can take them in.

use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::onnx;
use crate::network::Network;
use crate::tensor::Limits;
use crate::zoo::{self, Checkpoint};

/// The bytes of a network's file, and where it lies.
#[derive(Clone, Debug)]
pub struct NetworkFile {
    bytes: Bytes,
    path: Option<PathBuf>,
}

/// The network of a file, and the weights if the file holds weights rather than a graph.
#[derive(Debug)]
pub struct Opened {
    /// The network.
    pub network: Network,
    /// The weights by their PyTorch names, with the name of the architecture they belong to.
    pub weights: Option<Checkpoint>,
}

impl NetworkFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.into(), source })?;
        Ok(Self { bytes: bytes.into(), path: Some(path.into()) })
    }

    /// A file in memory, with nothing beside it.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.into(), path: None }
    }

    /// The bytes of the file itself.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The other files that hold tensors of this one, in the order of their names.
    ///
    /// # Errors
    /// If the file is damaged, or names one that is not in its folder.
    pub fn external_files(&self) -> Result<Vec<PathBuf>> {
        match &self.path {
            Some(path) if !zoo::holds_weights(&self.bytes) => onnx::external_files(self.bytes.clone(), path),
            _ => Ok(Vec::new()),
        }
    }

    /// The network.
    ///
    /// # Errors
    /// If the file is damaged, or uses what the engine does not have (all of it is listed); if weights are those of no known
    /// architecture; if a file that holds tensors cannot be read, or there is no folder to look in.
    pub fn open(&self, limits: Limits) -> Result<Opened> {
        if !zoo::holds_weights(&self.bytes) {
            let graph = onnx::from_file(self.bytes.clone(), self.path.as_deref(), limits)?;
            return Ok(Opened { network: Network::from_graph(graph, limits)?, weights: None });
        }
        let checkpoint = zoo::from_bytes(&self.bytes)?;
        let graph = self.path.as_ref().map(|path| path.with_extension("onnx"));
        let blueprint = match (checkpoint.blueprint(None), &self.path, graph) {
            (Err(Error::Weights(_)), Some(weights), Some(graph)) if graph.is_file() => {
                return Err(Error::GraphBeside { weights: weights.clone(), graph });
            }
            (blueprint, ..) => blueprint?,
        };
        let architecture = Some(blueprint.architecture().to_owned());
        let weights = Some(Checkpoint { architecture, ..checkpoint });
        Ok(Opened { network: blueprint.network(limits)?, weights })
    }
}
