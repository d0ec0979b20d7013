//! ONNX files: decoded, checked, and turned into a [`Graph`] with operators from the [registry](crate::op::registry).
//!
//! Functions that the file defines are inlined, Constant nodes become constants, subgraphs become
//! [bodies](crate::graph::Body). A node with subgraphs reads, after its own inputs, what each subgraph captures, the subgraphs
//! in the order of their attributes' names. What cannot be run exactly is listed all at once.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use prost::Message;

use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::tensor::{Limits, Tensor};

mod attribute;
mod external;
mod function;
mod import;
mod legacy;
pub mod message;
mod node;
mod values;
pub(crate) mod write;

pub use values::{dtype, type_name};

/// The oldest version of ONNX's own operators that is understood. The standard's tests still use it; it differs from
/// its successor in how it broadcasts, which is accepted where the two agree.
pub const OLDEST_OPSET: i64 = 6;
/// The newest.
pub const NEWEST_OPSET: i64 = 28;

fn damaged(problem: impl Into<String>) -> Error {
    Error::Format { format: "ONNX", problem: problem.into() }
}

/// The graph of a file. External data is looked for in the file's folder.
///
/// # Errors
/// If the file cannot be read, is damaged, or uses what the engine does not have.
pub fn load(path: &Path, limits: Limits) -> Result<Graph> {
    let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.into(), source })?;
    from_file(bytes.into(), Some(path), limits)
}

/// The graph of a file's bytes. External data is refused.
///
/// # Errors
/// As for [`load`].
pub fn from_bytes(bytes: Vec<u8>, limits: Limits) -> Result<Graph> {
    from_file(bytes.into(), None, limits)
}

/// The graph of a file's bytes; external data is looked for in the folder of `path`, and refused without one.
pub(crate) fn from_file(bytes: Bytes, path: Option<&Path>, limits: Limits) -> Result<Graph> {
    import::graph(&decode(bytes)?, path.map(folder).transpose()?, limits)
}

/// The files in the folder of `path` that hold external data, in the order of their names.
pub(crate) fn external_files(bytes: Bytes, path: &Path) -> Result<Vec<PathBuf>> {
    let model = decode(bytes)?;
    let locations = external::locations(&model);
    if locations.is_empty() {
        return Ok(Vec::new());
    }
    let folder = folder(path)?;
    let inside =
        |location: &&str| folder.inside(location).map_err(|problem| damaged(format!("a tensor {problem}")));
    locations.iter().map(inside).collect()
}

fn folder(path: &Path) -> Result<external::Folder> {
    external::Folder::of(path).map_err(|source| Error::Read { path: path.into(), source })
}

fn decode(bytes: Bytes) -> Result<message::Model> {
    message::Model::decode(bytes).map_err(|error| damaged(error.to_string()))
}

/// A tensor stored on its own, as the standard's tests keep theirs, with its name and ONNX element type.
///
/// # Errors
/// If the bytes are not such a tensor, or it has a type the engine does not hold.
pub fn tensor(bytes: Vec<u8>) -> Result<(String, i32, Tensor)> {
    let message =
        message::TensorMessage::decode(Bytes::from(bytes)).map_err(|error| damaged(error.to_string()))?;
    match values::tensor(&message, None) {
        Ok(tensor) => Ok((message.name, message.data_type, tensor)),
        Err(values::Refusal::Unsupported(problem) | values::Refusal::Damaged(problem)) => {
            Err(damaged(format!("tensor {:?} {problem}", message.name)))
        }
    }
}
