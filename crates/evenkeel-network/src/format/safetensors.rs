//! Weights by name in safetensors files, for graphs built in code. A file of a [zoo](crate::zoo) network names its architecture.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use evenkeel_kernels::buffer::Flag;
use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use crate::error::{Error, Result};
use crate::tensor::{Data, Element, Tensor};

/// The key of the metadata under which the architecture stands.
const ARCHITECTURE: &str = "evenkeel.architecture";

fn damaged(problem: impl Into<String>) -> Error {
    Error::Format { format: "safetensors", problem: problem.into() }
}

/// The tensors of a file, by name, in the order of their names. Types are widened as for ONNX.
///
/// # Errors
/// If the file cannot be read, is damaged, or holds a type the engine does not have.
pub fn load(path: &Path) -> Result<Vec<(String, Tensor)>> {
    let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.into(), source })?;
    from_bytes(&bytes)
}

/// The tensors of a file's bytes.
///
/// # Errors
/// As for [`load`].
pub fn from_bytes(bytes: &[u8]) -> Result<Vec<(String, Tensor)>> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| damaged(error.to_string()))?;
    let mut tensors = Vec::new();
    for (name, view) in file.tensors() {
        let tensor = tensor(&view).map_err(|problem| damaged(format!("tensor {name:?} {problem}")))?;
        tensors.push((name, tensor));
    }
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(tensors)
}

/// The architecture a file's bytes name, if they do.
///
/// # Errors
/// If the bytes are damaged.
pub fn architecture(bytes: &[u8]) -> Result<Option<String>> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| damaged(error.to_string()))?;
    Ok(header.metadata().as_ref().and_then(|metadata| metadata.get(ARCHITECTURE).cloned()))
}

/// Whether a file that begins so may be a safetensors file: the length of a header, and the header's brace.
pub fn looks_like(start: &[u8]) -> bool {
    matches!(start, [_, _, _, _, _, 0, 0, 0, b'{', ..])
}

/// Where each tensor's values lie in a file's bytes.
///
/// # Errors
/// If the bytes are damaged.
pub(crate) fn places(bytes: &[u8]) -> Result<HashMap<String, Range<usize>>> {
    let (header, table) = SafeTensors::read_metadata(bytes).map_err(|error| damaged(error.to_string()))?;
    let first = header + size_of::<u64>();
    let place = |(begin, end): (usize, usize)| first + begin..first + end;
    Ok(table.tensors().into_iter().map(|(name, info)| (name, place(info.data_offsets))).collect())
}

/// The bytes of a file with these tensors, that names their architecture if they have one.
///
/// # Errors
/// If a tensor is neither of 32- nor of 64-bit numbers.
pub fn to_bytes<'t>(
    architecture: Option<&str>,
    tensors: impl IntoIterator<Item = (&'t str, &'t Tensor)>,
) -> Result<Vec<u8>> {
    let mut packed: Vec<(&str, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    for (name, tensor) in tensors {
        let (dtype, bytes) = match tensor.data() {
            Data::F32(values) => (Dtype::F32, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            Data::F64(values) => (Dtype::F64, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            Data::I64(values) => (Dtype::I64, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            Data::I32(values) => (Dtype::I32, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            _ => {
                return Err(Error::Graph(format!(
                    "tensor {name:?} of type {} cannot be kept",
                    tensor.dtype()
                )));
            }
        };
        packed.push((name, dtype, tensor.shape().to_vec(), bytes));
    }
    let mut views = Vec::new();
    for (name, dtype, shape, bytes) in &packed {
        let view = TensorView::new(*dtype, shape.clone(), bytes);
        views.push((*name, view.map_err(|error| Error::Graph(error.to_string()))?));
    }
    let metadata = architecture.map(|name| HashMap::from([(ARCHITECTURE.to_string(), name.to_string())]));
    safetensors::serialize(views, metadata).map_err(|error| Error::Graph(error.to_string()))
}

fn tensor(view: &TensorView<'_>) -> Result<Tensor, String> {
    match view.dtype() {
        Dtype::F32 => plain(view, f32::from_le_bytes),
        Dtype::F64 => plain(view, f64::from_le_bytes),
        Dtype::F16 => plain(view, |b| f16::from_le_bytes(b).to_f32()),
        Dtype::BF16 => plain(view, |b| bf16::from_le_bytes(b).to_f32()),
        Dtype::I64 => plain(view, i64::from_le_bytes),
        Dtype::I32 => plain(view, i32::from_le_bytes),
        Dtype::I16 => plain(view, |b| i32::from(i16::from_le_bytes(b))),
        Dtype::U16 => plain(view, |b| i32::from(u16::from_le_bytes(b))),
        Dtype::U32 => plain(view, |b| i64::from(u32::from_le_bytes(b))),
        Dtype::U8 => plain(view, |[b]: [u8; 1]| b),
        Dtype::I8 => plain(view, i8::from_le_bytes),
        Dtype::BOOL => plain(view, |[b]: [u8; 1]| Flag::from(b != 0)),
        other => Err(format!("has type {other:?}, which is not supported")),
    }
}

fn plain<T: Element, const N: usize>(
    view: &TensorView<'_>,
    decode: impl Fn([u8; N]) -> T,
) -> Result<Tensor, String> {
    let values: Vec<T> = view.data().as_chunks::<N>().0.iter().map(|&bytes| decode(bytes)).collect();
    if crate::tensor::checked_len(view.shape()) != Some(values.len()) {
        return Err(format!("has shape {:?} but {} values", view.shape(), values.len()));
    }
    Ok(Tensor::new(view.shape(), values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_come_back_by_name_and_damage_is_told() {
        let values: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let halves: Vec<u8> = [f16::from_f32(0.5)].iter().flat_map(|v| v.to_le_bytes()).collect();
        let views = [
            ("b", TensorView::new(Dtype::F32, vec![2, 1], &values).unwrap()),
            ("a", TensorView::new(Dtype::F16, vec![1], &halves).unwrap()),
        ];
        let bytes = safetensors::serialize(views, None).unwrap();
        let tensors = from_bytes(&bytes).unwrap();
        assert_eq!(tensors[0].0, "a");
        assert_eq!(tensors[0].1.values::<f32>(), Some(&[0.5][..]));
        assert_eq!(
            (tensors[1].1.shape(), tensors[1].1.values::<f32>()),
            (&[2, 1][..], Some(&[1.5, -2.0][..]))
        );
        for cut in 0..bytes.len() {
            assert!(from_bytes(&bytes[..cut]).is_err());
        }
    }
}
