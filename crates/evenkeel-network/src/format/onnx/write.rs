//! A [`Blueprint`] as the bytes of an ONNX file, its weights inside or in a safetensors file beside it. Reading them back gives the same graph.

use std::ops::Range;

use bytes::Bytes;
use evenkeel_kernels::buffer::Flag;
use prost::Message;

use super::attribute::kind;
use super::message::{
    AttributeMessage, Dimension, GraphMessage, Model, NodeMessage, OperatorSet, Pair, Shape, TensorMessage,
    TensorType, TypeMessage, ValueInfo,
};
use super::values::code;
use crate::error::{Error, Result};
use crate::format::safetensors;
use crate::graph::Dim;
use crate::op::Attribute;
use crate::tensor::{DType, Data, Tensor};
use crate::zoo::blueprint::{Blueprint, OPSET, Step};

/// The version of the container format: the one that goes with [`OPSET`].
const IR_VERSION: i64 = 8;

/// The location of a tensor whose values are in another file.
const EXTERNAL: i32 = 1;

/// The file's bytes.
///
/// # Errors
/// If the file would pass the 2 GB a protobuf message may have.
pub(crate) fn bytes(blueprint: &Blueprint) -> Result<Vec<u8>> {
    encoded(blueprint, tensor)
}

/// The bytes of a file whose learnt constants are in another, called `weights`, and that other file's.
///
/// # Errors
/// As [`bytes`], or if a weight's type has no place in a safetensors file.
pub(crate) fn split(blueprint: &Blueprint, weights: &str) -> Result<(Vec<u8>, Vec<u8>)> {
    let learnt = blueprint.constants.iter().filter(|(name, _)| blueprint.learnt.contains(name));
    let packed = safetensors::to_bytes(None, learnt.map(|(name, tensor)| (name.as_str(), tensor)))?;
    let places = safetensors::places(&packed)?;
    let graph = encoded(blueprint, |name, constant| match places.get(name) {
        Some(place) => elsewhere(name, constant, weights, place),
        None => tensor(name, constant),
    })?;
    Ok((graph, packed))
}

fn encoded(blueprint: &Blueprint, constant: impl Fn(&str, &Tensor) -> TensorMessage) -> Result<Vec<u8>> {
    let free = |axis: usize| Dim::Free(format!("d{axis}"));
    let outputs = blueprint.outputs.iter().map(|output| {
        let dims: Vec<Dim> = (0..output.rank).map(free).collect();
        value(&output.name, output.dtype, &dims)
    });
    let graph = GraphMessage {
        node: blueprint.steps.iter().map(node).collect(),
        name: blueprint.architecture.into(),
        initializer: blueprint.constants.iter().map(|(name, value)| constant(name, value)).collect(),
        sparse_initializer: Vec::new(),
        input: blueprint.inputs.iter().map(|input| value(&input.name, input.dtype, &input.dims)).collect(),
        output: outputs.collect(),
    };
    let model = Model {
        ir_version: IR_VERSION,
        opset_import: vec![OperatorSet { domain: String::new(), version: OPSET }],
        graph: Some(graph),
        functions: Vec::new(),
    };
    if model.encoded_len() > i32::MAX as usize {
        return Err(Error::Graph("an ONNX file of it would pass 2 GB".into()));
    }
    Ok(model.encode_to_vec())
}

fn element_type(dtype: DType) -> i32 {
    match dtype {
        DType::F32 => code::FLOAT,
        DType::F64 => code::DOUBLE,
        DType::I32 => code::INT32,
        DType::I64 => code::INT64,
        DType::U8 => code::UINT8,
        DType::I8 => code::INT8,
        DType::Bool => code::BOOL,
    }
}

fn value(name: &str, dtype: DType, dims: &[Dim]) -> ValueInfo {
    let dim = |dim: &Dim| match dim {
        Dim::Fixed(size) => Dimension { dim_value: Some(*size as i64), dim_param: String::new() },
        Dim::Free(name) => Dimension { dim_value: None, dim_param: name.clone() },
    };
    let shape = Some(Shape { dim: dims.iter().map(dim).collect() });
    let tensor_type = Some(TensorType { elem_type: element_type(dtype), shape });
    ValueInfo { name: name.into(), r#type: Some(TypeMessage { tensor_type }) }
}

fn tensor(name: &str, tensor: &Tensor) -> TensorMessage {
    let raw: Vec<u8> = match tensor.data() {
        Data::F32(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Data::F64(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Data::I32(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Data::I64(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Data::U8(values) => values.to_vec(),
        Data::I8(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Data::Bool(values) => values.iter().map(|&v| u8::from(v != Flag::from(false))).collect(),
    };
    TensorMessage { raw_data: Some(Bytes::from(raw)), ..heading(name, tensor) }
}

/// A tensor's name, type and shape.
fn heading(name: &str, tensor: &Tensor) -> TensorMessage {
    TensorMessage {
        dims: tensor.shape().iter().map(|&extent| extent as i64).collect(),
        data_type: element_type(tensor.dtype()),
        name: name.into(),
        ..TensorMessage::default()
    }
}

/// A tensor as a pointer to these bytes of another file.
fn elsewhere(name: &str, tensor: &Tensor, file: &str, bytes: &Range<usize>) -> TensorMessage {
    let entry = |key: &str, value: String| Pair { key: key.into(), value };
    let external_data = vec![
        entry("location", file.into()),
        entry("offset", bytes.start.to_string()),
        entry("length", bytes.len().to_string()),
    ];
    TensorMessage { external_data, data_location: EXTERNAL, ..heading(name, tensor) }
}

fn node(step: &Step) -> NodeMessage {
    NodeMessage {
        input: step.inputs.clone(),
        output: step.outputs.clone(),
        name: step.outputs.first().cloned().unwrap_or_default(),
        op_type: step.operator.into(),
        attribute: step.attributes.0.iter().filter_map(|(name, value)| attribute(name, value)).collect(),
        ..NodeMessage::default()
    }
}

/// An attribute; `None` for a graph, which no blueprint has.
fn attribute(name: &str, value: &Attribute) -> Option<AttributeMessage> {
    let mut message = AttributeMessage { name: name.into(), ..AttributeMessage::default() };
    let text = |text: &String| Bytes::from(text.clone().into_bytes());
    message.kind = match value {
        Attribute::Float(value) => {
            message.f = Some(*value);
            kind::FLOAT
        }
        Attribute::Int(value) => {
            message.i = Some(*value);
            kind::INT
        }
        Attribute::Text(value) => {
            message.s = Some(text(value));
            kind::TEXT
        }
        Attribute::Tensor(value) => {
            message.t = Some(tensor("", value));
            kind::TENSOR
        }
        Attribute::Floats(values) => {
            message.floats = values.clone();
            kind::FLOATS
        }
        Attribute::Ints(values) => {
            message.ints = values.clone();
            kind::INTS
        }
        Attribute::Texts(values) => {
            message.strings = values.iter().map(text).collect();
            kind::TEXTS
        }
        Attribute::Graph(_) => return None,
    };
    Some(message)
}
