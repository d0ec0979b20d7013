//! Tensors of an ONNX file, from any of the fields a writer may have used, as the engine holds them.
//!
//! Half-precision floats are widened to f32, 16-bit integers to i32, unsigned 32- and 64-bit ones to i64: every value is kept exactly
//! or the tensor is refused.

use bytes::Bytes;
use evenkeel_kernels::buffer::Flag;
use half::{bf16, f16};

use super::external::Folder;
use super::message::{SparseTensor, TensorMessage};
use crate::tensor::{DType, Element, Tensor, checked_len};

/// ONNX's numbers for element types.
pub(super) mod code {
    pub(crate) const FLOAT: i32 = 1;
    pub(crate) const UINT8: i32 = 2;
    pub(crate) const INT8: i32 = 3;
    pub(crate) const UINT16: i32 = 4;
    pub(crate) const INT16: i32 = 5;
    pub(crate) const INT32: i32 = 6;
    pub(crate) const INT64: i32 = 7;
    pub(crate) const BOOL: i32 = 9;
    pub(crate) const FLOAT16: i32 = 10;
    pub(crate) const DOUBLE: i32 = 11;
    pub(crate) const UINT32: i32 = 12;
    pub(crate) const UINT64: i32 = 13;
    pub(crate) const BFLOAT16: i32 = 16;
}

/// Why a tensor cannot be had.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The engine does not hold it.
    Unsupported(String),
    /// The file is wrong.
    Damaged(String),
}

fn damaged<T>(problem: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Damaged(problem.into()))
}

/// How the engine holds elements of an ONNX type, if it does.
pub fn dtype(element_type: i32) -> Option<DType> {
    Some(match element_type {
        code::FLOAT | code::FLOAT16 | code::BFLOAT16 => DType::F32,
        code::DOUBLE => DType::F64,
        code::INT32 | code::INT16 | code::UINT16 => DType::I32,
        code::INT64 | code::UINT32 | code::UINT64 => DType::I64,
        code::UINT8 => DType::U8,
        code::INT8 => DType::I8,
        code::BOOL => DType::Bool,
        _ => return None,
    })
}

/// The name of an ONNX element type, for messages.
pub fn type_name(element_type: i32) -> String {
    let names = [
        "undefined",
        "float",
        "uint8",
        "int8",
        "uint16",
        "int16",
        "int32",
        "int64",
        "string",
        "bool",
        "float16",
        "double",
        "uint32",
        "uint64",
        "complex64",
        "complex128",
        "bfloat16",
        "float8e4m3fn",
        "float8e4m3fnuz",
        "float8e5m2",
        "float8e5m2fnuz",
        "uint4",
        "int4",
        "float4e2m1",
        "float8e8m0",
        "uint2",
        "int2",
    ];
    let known = usize::try_from(element_type).ok().and_then(|i| names.get(i));
    known.map_or_else(|| format!("type {element_type}"), |name| name.to_string())
}

/// A shape as a file gives it, with its number of elements.
fn shape_of(dims: &[i64]) -> Result<(Vec<usize>, usize), Refusal> {
    let shape: Option<Vec<usize>> = dims.iter().map(|&dim| usize::try_from(dim).ok()).collect();
    let Some(shape) = shape else { return damaged(format!("has the shape {dims:?}")) };
    match checked_len(&shape) {
        Some(len) => Ok((shape, len)),
        None => damaged(format!("has the shape {dims:?}, more than can be counted")),
    }
}

/// A tensor of a file. `folder` is where external data may lie.
pub(super) fn tensor(message: &TensorMessage, folder: Option<&Folder>) -> Result<Tensor, Refusal> {
    let (shape, len) = shape_of(&message.dims)?;
    let raw = if message.data_location == 1 {
        let Some(width) = width(message.data_type) else { return unsupported(message.data_type) };
        let bytes = len.checked_mul(width);
        let Some(bytes) = bytes else { return damaged("has more external bytes than can be counted") };
        let Some(folder) = folder else {
            return damaged("keeps its values in another file, and there is no folder to look in");
        };
        Some(Bytes::from(folder.read(&message.external_data, bytes).map_err(Refusal::Damaged)?))
    } else {
        message.raw_data.clone()
    };
    let source = Source { message, raw, shape, len };
    match message.data_type {
        code::FLOAT => {
            source.tensor(|m| m.float_data.iter().copied().map(Some).collect(), f32::from_le_bytes)
        }
        code::DOUBLE => {
            source.tensor(|m| m.double_data.iter().copied().map(Some).collect(), f64::from_le_bytes)
        }
        code::FLOAT16 => source.tensor(
            |m| small(m, |bits: u16| f16::from_bits(bits).to_f32()),
            |b| f16::from_le_bytes(b).to_f32(),
        ),
        code::BFLOAT16 => source.tensor(
            |m| small(m, |bits: u16| bf16::from_bits(bits).to_f32()),
            |b| bf16::from_le_bytes(b).to_f32(),
        ),
        code::INT32 => {
            source.tensor(|m| m.int32_data.iter().copied().map(Some).collect(), i32::from_le_bytes)
        }
        code::INT16 => source.tensor(|m| small(m, |v: i16| i32::from(v)), |b| i16::from_le_bytes(b).into()),
        code::UINT16 => source.tensor(|m| small(m, |v: u16| i32::from(v)), |b| u16::from_le_bytes(b).into()),
        code::UINT8 => source.tensor(|m| small(m, |v: u8| v), |[b]: [u8; 1]| b),
        code::INT8 => source.tensor(|m| small(m, |v: i8| v), i8::from_le_bytes),
        code::BOOL => {
            source.tensor(|m| small(m, |v: u8| Flag::from(v != 0)), |[b]: [u8; 1]| Flag::from(b != 0))
        }
        code::INT64 => {
            source.tensor(|m| m.int64_data.iter().copied().map(Some).collect(), i64::from_le_bytes)
        }
        code::UINT32 => source.tensor(
            |m| m.uint64_data.iter().map(|&v| u32::try_from(v).ok().map(i64::from)).collect(),
            |b| u32::from_le_bytes(b).into(),
        ),
        code::UINT64 => unsigned(source),
        other => unsupported(other),
    }
}

fn unsupported(element_type: i32) -> Result<Tensor, Refusal> {
    Err(Refusal::Unsupported(format!("element type {} is not supported", type_name(element_type))))
}

/// Bytes of one element in raw data.
fn width(element_type: i32) -> Option<usize> {
    Some(match element_type {
        code::UINT8 | code::INT8 | code::BOOL => 1,
        code::FLOAT16 | code::BFLOAT16 | code::INT16 | code::UINT16 => 2,
        code::FLOAT | code::INT32 | code::UINT32 => 4,
        code::DOUBLE | code::INT64 | code::UINT64 => 8,
        _ => return None,
    })
}

/// Values that `int32_data` holds one by one; `None` where one is out of its type's range.
fn small<V: TryFrom<i32>, T>(message: &TensorMessage, widen: impl Fn(V) -> T) -> Vec<Option<T>> {
    message.int32_data.iter().map(|&v| V::try_from(v).ok().map(&widen)).collect()
}

/// u64 values, refused where i64 cannot hold them.
fn unsigned(source: Source<'_>) -> Result<Tensor, Refusal> {
    let wide = source.tensor(
        |m| m.uint64_data.iter().map(|&v| Some(v as i64)).collect(),
        |b| u64::from_le_bytes(b) as i64,
    )?;
    if wide.values::<i64>().is_some_and(|values| values.iter().any(|&v| v < 0)) {
        return Err(Refusal::Unsupported("uint64 values of 2^63 or more are not supported".into()));
    }
    Ok(wide)
}

/// Where a tensor's values are.
struct Source<'a> {
    message: &'a TensorMessage,
    raw: Option<Bytes>,
    shape: Vec<usize>,
    len: usize,
}

impl Source<'_> {
    fn tensor<T: Element, const N: usize>(
        self,
        typed: impl FnOnce(&TensorMessage) -> Vec<Option<T>>,
        decode: impl Fn([u8; N]) -> T,
    ) -> Result<Tensor, Refusal> {
        let (shape, len) = (self.shape, self.len);
        let values: Vec<T> = match &self.raw {
            Some(raw) if !raw.is_empty() || len == 0 => {
                if Some(raw.len()) != len.checked_mul(N) {
                    return damaged(format!("has shape {shape:?} but {} bytes of values", raw.len()));
                }
                raw.as_chunks::<N>().0.iter().map(|&bytes| decode(bytes)).collect()
            }
            _ => {
                let values: Option<Vec<T>> = typed(self.message).into_iter().collect();
                let Some(values) = values else { return damaged("has a value outside its type's range") };
                values
            }
        };
        if values.len() != len {
            return damaged(format!("has shape {shape:?} but {} values", values.len()));
        }
        Ok(Tensor::new(&shape, values))
    }
}

/// A sparse tensor of a file, made dense, within `bytes`.
pub(super) fn sparse(
    message: &SparseTensor,
    folder: Option<&Folder>,
    bytes: usize,
) -> Result<Tensor, Refusal> {
    let (Some(values), Some(indices)) = (&message.values, &message.indices) else {
        return damaged("is sparse but lacks values or indices");
    };
    let (values, indices) = (tensor(values, folder)?, tensor(indices, folder)?);
    let (shape, len) = shape_of(&message.dims)?;
    if len.checked_mul(8).is_none_or(|wanted| wanted > bytes) {
        return damaged(format!(
            "is sparse and asks for {len} elements, more than the limit of {bytes} bytes"
        ));
    }
    let (count, Some(at)) = (values.len(), indices.values::<i64>()) else {
        return damaged("is sparse with indices that are not int64");
    };
    let flat: Option<Vec<usize>> = match *indices.shape() {
        [n] if n == count => at.iter().map(|&i| usize::try_from(i).ok()).collect(),
        [n, rank] if n == count && rank == shape.len() && rank > 0 => at
            .chunks_exact(rank)
            .map(|index| {
                index.iter().zip(&shape).try_fold(0usize, |flat, (&i, &dim)| {
                    let i = usize::try_from(i).ok().filter(|&i| i < dim)?;
                    flat.checked_mul(dim)?.checked_add(i)
                })
            })
            .collect(),
        _ => None,
    };
    match flat {
        Some(flat) if flat.iter().all(|&i| i < len) => Ok(crate::for_type!(values.data(), values => {
            let mut dense = vec![Default::default(); len];
            flat.iter().zip(values.iter()).for_each(|(&i, &value)| dense[i] = value);
            Tensor::new(&shape, dense)
        })),
        _ => damaged("is sparse with indices outside its shape"),
    }
}
