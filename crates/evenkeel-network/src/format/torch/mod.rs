//! PyTorch checkpoints (`.pth`, `.pt`, `.th`, `.tar`): the tensors of a state dict by name, from zip archives and from the older format
//! of pickles in a row.
//!
//! The reader follows tensors, dicts, lists and numbers and can run nothing; a pickle that mentions anything else is refused, and
//! the refusal says what it mentions. The state dict is the file's object itself or lies under a key such as `state_dict`. Memory is
//! bounded by a small multiple of the file's length.

use std::collections::HashMap;
use std::path::Path;

use super::zip;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

mod legacy;
mod pickle;
mod storage;
#[cfg(test)]
mod tests;

use pickle::{Id, Pickle, Value};

/// Keys under which a state dict may lie, in the order they are tried.
const WRAPPERS: [&str; 7] =
    ["state_dict", "model_state_dict", "model_state", "model", "net", "network", "weights"];
/// How many wrappings are opened.
const DEEPEST: usize = 4;

fn refused(problem: impl Into<String>) -> Error {
    Error::Refused { format: "PyTorch checkpoint", problem: problem.into() }
}

/// Whether a file that begins so is a checkpoint: a zip archive or a pickle.
pub fn looks_like(start: &[u8]) -> bool {
    start.starts_with(b"PK\x03\x04") || matches!(start, [0x80, 2..=5, ..])
}

/// The tensors of a checkpoint's state dict, in its order. Types are widened as for ONNX.
///
/// # Errors
/// If the file cannot be read, is damaged, or holds anything but data.
pub fn load(path: &Path) -> Result<Vec<(String, Tensor)>> {
    let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.into(), source })?;
    from_bytes(&bytes)
}

/// The tensors of a checkpoint's bytes.
///
/// # Errors
/// As for [`load`].
pub fn from_bytes(bytes: &[u8]) -> Result<Vec<(String, Tensor)>> {
    let read = if bytes.starts_with(b"PK\x03\x04") {
        from_archive(bytes)
    } else if looks_like(bytes) {
        legacy::tensors(bytes)
    } else {
        Err("it is neither a zip archive nor a pickle".into())
    };
    read.map_err(refused)
}

fn from_archive(bytes: &[u8]) -> Result<Vec<(String, Tensor)>, String> {
    let entries = zip::entries(bytes).ok_or("its zip directory cannot be followed")?;
    let main = entries.iter().find(|entry| entry.name.ends_with("/data.pkl") || entry.name == "data.pkl");
    let main = main.ok_or("it holds no data.pkl (a file made by torch.save does)")?;
    let folder = main.name.strip_suffix("data.pkl").unwrap_or_default();
    let by_name: HashMap<&str, _> = entries.iter().map(|entry| (&*entry.name, entry)).collect();
    if by_name.contains_key(&*format!("{folder}constants.pkl")) {
        return Err("it is a TorchScript program, not a state dict".into());
    }
    let order = by_name.get(&*format!("{folder}byteorder"));
    if order.is_some_and(|entry| entry.packed != b"little") {
        return Err("its numbers are not little-endian".into());
    }
    if main.deflated {
        return Err("its pickle is compressed, which torch.save never does".into());
    }
    let pickle = pickle::read(main.packed)?;
    let mut storages = Vec::with_capacity(pickle.storages.len());
    for mention in &pickle.storages {
        let key = &mention.key;
        let entry = by_name.get(&*format!("{folder}data/{key}"));
        let entry = entry.ok_or_else(|| format!("storage {key:?} is missing from the archive"))?;
        if entry.deflated {
            return Err(format!("storage {key:?} is compressed, which torch.save never does"));
        }
        storages.push(sized(mention, entry.packed)?);
    }
    gather(&pickle, &storages, bytes.len())
}

/// The bytes of a storage, if they are as many as its pickle says.
fn sized<'a>(mention: &pickle::Mention, bytes: &'a [u8]) -> Result<&'a [u8], String> {
    let said = mention.elements.checked_mul(mention.kind.width() as u64);
    if said != Some(bytes.len() as u64) {
        let (key, elements, kind) = (&mention.key, mention.elements, mention.kind);
        return Err(format!(
            "storage {key:?} should hold {elements} {kind:?} elements but has {} bytes",
            bytes.len()
        ));
    }
    Ok(bytes)
}

/// The tensors of the state dict, from its storages.
fn gather(pickle: &Pickle<'_>, storages: &[&[u8]], file: usize) -> Result<Vec<(String, Tensor)>, String> {
    let dict = state_dict(pickle, pickle.root, 0)?;
    // Half floats double when widened, and a few tensors may share a storage.
    let mut room = (file as u64).saturating_mul(4);
    let mut tensors = Vec::new();
    for &(key, value) in dict {
        let Value::Tensor(view) = pickle.value(value) else { continue };
        let name = pickle.text(key).ok_or("its state dict has a key that is not a string")?;
        let placed = |problem: String| format!("tensor {name:?} {problem}");
        let (mention, bytes) = (&pickle.storages[view.storage as usize], storages[view.storage as usize]);
        let wanted =
            view.elements().and_then(|elements| elements.checked_mul(mention.kind.width().max(4) as u64));
        room = wanted.and_then(|wanted| room.checked_sub(wanted)).ok_or_else(|| {
            placed(format!("of shape {:?} asks for more than the file can hold", view.shape))
        })?;
        tensors.push((name.to_string(), view.tensor(mention.kind, bytes).map_err(placed)?));
    }
    let mut names: Vec<&str> = tensors.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("its state dict has two tensors {:?}", pair[0])),
        None => Ok(tensors),
    }
}

/// The dict that holds tensors: this one, or one under a known key.
fn state_dict<'p>(pickle: &'p Pickle<'_>, at: Id, depth: usize) -> Result<&'p [(Id, Id)], String> {
    let Value::Dict(pairs) = pickle.value(at) else {
        return Err("its object is not a dict of tensors (a whole module was saved?)".into());
    };
    let is_tensor = |&&(_, value): &&(Id, Id)| matches!(pickle.value(value), Value::Tensor(_));
    let wrapped = WRAPPERS.iter().filter_map(|key| pickle.entry(at, key));
    let mut dicts = wrapped.filter(|&id| matches!(pickle.value(id), Value::Dict(_)));
    match dicts.next() {
        Some(inner) if depth < DEEPEST => state_dict(pickle, inner, depth + 1),
        _ if pairs.iter().any(|pair| is_tensor(&pair)) => Ok(pairs),
        _ => Err("it holds no dict of tensors, neither itself nor under a key such as \"state_dict\"".into()),
    }
}
