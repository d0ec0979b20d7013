//! Attributes of a node, and the tensor a Constant node stands for.

use super::external::Folder;
use super::message::{AttributeMessage, TensorMessage};
use super::values::{self, Refusal};
use crate::op::Attribute;
use crate::tensor::Tensor;

pub(super) mod kind {
    pub(crate) const FLOAT: i32 = 1;
    pub(crate) const INT: i32 = 2;
    pub(crate) const TEXT: i32 = 3;
    pub(crate) const TENSOR: i32 = 4;
    pub(crate) const FLOATS: i32 = 6;
    pub(crate) const INTS: i32 = 7;
    pub(crate) const TEXTS: i32 = 8;
}

/// The kind of an attribute; old files leave it to the field in use.
fn kind_of(message: &AttributeMessage) -> i32 {
    match message {
        m if m.kind != 0 => m.kind,
        m if m.f.is_some() => kind::FLOAT,
        m if m.i.is_some() => kind::INT,
        m if m.s.is_some() => kind::TEXT,
        m if m.t.is_some() => kind::TENSOR,
        m if !m.floats.is_empty() => kind::FLOATS,
        m if !m.ints.is_empty() => kind::INTS,
        m if !m.strings.is_empty() => kind::TEXTS,
        _ => 0,
    }
}

fn text(bytes: &[u8]) -> Result<String, Refusal> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Refusal::Damaged("has a string that is not UTF-8".into()))
}

/// The value of an attribute other than a graph; `None` for kinds that no operator of ours reads.
pub(super) fn value(
    message: &AttributeMessage,
    folder: Option<&Folder>,
) -> Result<Option<Attribute>, Refusal> {
    Ok(Some(match kind_of(message) {
        kind::FLOAT => Attribute::Float(message.f.unwrap_or(0.0)),
        kind::INT => Attribute::Int(message.i.unwrap_or(0)),
        kind::TEXT => Attribute::Text(text(message.s.as_deref().unwrap_or(&[]))?),
        kind::TENSOR => {
            let empty = TensorMessage::default();
            Attribute::Tensor(values::tensor(message.t.as_ref().unwrap_or(&empty), folder)?)
        }
        kind::FLOATS => Attribute::Floats(message.floats.clone()),
        kind::INTS => Attribute::Ints(message.ints.clone()),
        kind::TEXTS => Attribute::Texts(message.strings.iter().map(|s| text(s)).collect::<Result<_, _>>()?),
        _ => return Ok(None),
    }))
}

/// The tensor of a Constant node, from the attribute that gives it. Sparse values become dense within `bytes`.
pub(super) fn constant(
    message: &AttributeMessage,
    folder: Option<&Folder>,
    bytes: usize,
) -> Result<Tensor, Refusal> {
    if let ("sparse_value", Some(sparse)) = (&*message.name, &message.sparse_tensor) {
        return values::sparse(sparse, folder, bytes);
    }
    match (&*message.name, value(message, folder)?) {
        ("value", Some(Attribute::Tensor(tensor))) => Ok(tensor),
        ("value_float", Some(Attribute::Float(value))) => Ok(Tensor::scalar(value)),
        ("value_int", Some(Attribute::Int(value))) => Ok(Tensor::scalar(value)),
        ("value_floats", Some(Attribute::Floats(values))) => Ok(Tensor::new(&[values.len()], values)),
        ("value_ints", Some(Attribute::Ints(values))) => Ok(Tensor::new(&[values.len()], values)),
        ("value_string" | "value_strings", _) => {
            Err(Refusal::Unsupported("constants of strings are not supported".into()))
        }
        (name, _) => Err(Refusal::Damaged(format!("has a constant in attribute {name:?}"))),
    }
}
