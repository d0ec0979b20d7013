//! What a file says of a node: operator, version, attributes. Builders in the registry turn it into an
//! [`Operator`](super::Operator) or say why they cannot.

use std::collections::BTreeMap;

use crate::error::Fault;
use crate::graph::Body;
use crate::tensor::Tensor;

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum Attribute {
    /// A float.
    Float(f32),
    /// An integer.
    Int(i64),
    /// A string.
    Text(String),
    /// A tensor.
    Tensor(Tensor),
    /// A branch or loop body.
    Graph(Box<Body>),
    /// Floats.
    Floats(Vec<f32>),
    /// Integers.
    Ints(Vec<i64>),
    /// Strings.
    Texts(Vec<String>),
}

/// The attributes of a node, by name.
#[derive(Clone, Debug, Default)]
pub struct Attributes(pub BTreeMap<String, Attribute>);

fn wrong(name: &str, expected: &str) -> Fault {
    Fault::Attribute { name: name.into(), problem: format!("is not {expected}") }
}

macro_rules! getter {
    ($(#[$doc:meta])* $get:ident, $variant:ident, $type:ty, $expected:literal) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// If it has another type.
        pub fn $get(&self, name: &str) -> Result<Option<$type>, Fault> {
            match self.0.get(name) {
                None => Ok(None),
                Some(Attribute::$variant(value)) => Ok(Some(value.clone())),
                Some(_) => Err(wrong(name, $expected)),
            }
        }
    };
}

impl Attributes {
    getter!(/// A float, if present.
        float, Float, f32, "a float");
    getter!(/// An integer, if present.
        int, Int, i64, "an integer");
    getter!(/// A string, if present.
        text, Text, String, "a string");
    getter!(/// A tensor, if present.
        tensor, Tensor, Tensor, "a tensor");
    getter!(/// A body, if present.
        body, Graph, Box<Body>, "a graph");
    getter!(/// Floats, if present.
        floats, Floats, Vec<f32>, "floats");
    getter!(/// Integers, if present.
        ints, Ints, Vec<i64>, "integers");
    getter!(/// Strings, if present.
        texts, Texts, Vec<String>, "strings");

    /// An integer used as a truth value.
    ///
    /// # Errors
    /// If it has another type.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Fault> {
        Ok(self.int(name)?.map_or(default, |value| value != 0))
    }
}

/// A node as a file gives it.
#[derive(Clone, Copy, Debug)]
pub struct Definition<'a> {
    /// The operator's ONNX name.
    pub operator: &'a str,
    /// The version of the operator set the file uses for the node's domain.
    pub opset: i64,
    /// The attributes.
    pub attributes: &'a Attributes,
    /// How many inputs the node has, absent ones in the middle included. What its bodies capture comes after them, body by
    /// body in the order of the attributes' names, and is not counted.
    pub inputs: usize,
    /// How many outputs.
    pub outputs: usize,
}
