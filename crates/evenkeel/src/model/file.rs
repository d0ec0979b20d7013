//! A model's file: read once, identified by a fingerprint, and made a model under a contract.
//!
//! The fingerprint is the BLAKE3 hash of the file's bytes. If tensors lie in other files beside it, those are hashed too: then it is the hash of
//! the file's hash followed by theirs, in the order of their names.

use std::fs::File;
use std::path::{Path, PathBuf};

use evenkeel_network as engine;

use super::{Contract, Engine, Model};
use crate::error::{Error, Result};

/// The bytes of a network's file (ONNX, or a zoo network's weights), and what identifies it.
pub struct ModelFile {
    path: PathBuf,
    file: engine::NetworkFile,
    /// The hashes of the files beside it that hold tensors of it.
    external: Vec<blake3::Hash>,
}

impl ModelFile {
    /// Reads a network's file.
    ///
    /// # Errors
    /// If it, or a file beside it that holds its tensors, cannot be read.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        std::fs::metadata(path).map_err(Error::io(path))?;
        let fail = |e| Error::in_model(path, e);
        let file = engine::NetworkFile::read(path).map_err(fail)?;
        let external = file.external_files().map_err(fail)?;
        let external = external.iter().map(|path| hash_of(path)).collect::<Result<_>>()?;
        Ok(Self { path: path.to_owned(), file, external })
    }

    /// A network's file in memory, with nothing beside it; `path` is used in messages.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Self {
        let file = engine::NetworkFile::from_bytes(bytes.to_vec());
        Self { path: path.to_owned(), file, external: Vec::new() }
    }

    /// What tells it from other networks: the file's bytes, and the hash of each file beside it that holds tensors.
    pub fn identity(&self) -> Vec<&[u8]> {
        let external = self.external.iter().map(|hash| hash.as_bytes().as_slice());
        std::iter::once(self.file.bytes()).chain(external).collect()
    }

    /// The fingerprint, in hexadecimal.
    pub fn hash(&self) -> String {
        let own = blake3::hash(self.file.bytes());
        if self.external.is_empty() {
            return own.to_hex().to_string();
        }
        let mut all = blake3::Hasher::new();
        std::iter::once(&own).chain(&self.external).for_each(|hash| {
            all.update(hash.as_bytes());
        });
        all.finalize().to_hex().to_string()
    }

    /// The model under a contract, tried once.
    ///
    /// # Errors
    /// If the network is damaged or cannot be run, it and the contract do not fit each other, or its answer is not finite.
    pub fn model(&self, contract: &Contract) -> Result<Model> {
        let limits = engine::Limits::default();
        let opened = self.file.open(limits).map_err(|e| Error::in_model(&self.path, e))?;
        let made = Engine::new(opened.network)
            .and_then(|engine| Model::assemble(engine, opened.weights.as_ref(), contract));
        let model = made.map_err(|e| Error::in_model(&self.path, e))?;
        Ok(Model { hash: self.hash(), ..model })
    }
}

fn hash_of(path: &Path) -> Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    let hashed = File::open(path).and_then(|file| hasher.update_reader(file).map(|_| ()));
    hashed.map_err(Error::io(path))?;
    Ok(hasher.finalize())
}
