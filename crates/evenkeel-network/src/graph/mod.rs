//! A frozen graph: named values, and nodes in an order in which each can be run.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Fault, Result};
use crate::op::Operator;
use crate::tensor::{DType, Room, Tensor};

mod body;
mod channelwise;
mod fuse;
mod gelu;
mod linear;
mod order;
mod packed;
mod shuffle;
mod simplify;
mod sparse;
#[cfg(test)]
mod tests;
mod underflow;

pub use body::Body;
pub(crate) use fuse::fuse;
use packed::PackedWeights;
pub(crate) use simplify::simplify;
pub(crate) use underflow::flush_values;

/// The index of a value in its graph.
pub type ValueId = usize;

/// A dimension of a declared input: a number, or a name (or nothing) for one that may change from call to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// Always this.
    Fixed(usize),
    /// Free.
    Free(String),
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dim::Fixed(size) => write!(f, "{size}"),
            Dim::Free(name) => f.write_str(if name.is_empty() { "?" } else { name }),
        }
    }
}

/// A declared input.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its value.
    pub value: ValueId,
    /// Its type.
    pub dtype: DType,
    /// Its shape; `None` if the file does not say.
    pub dims: Option<Vec<Dim>>,
}

/// A named value.
#[derive(Clone, Debug)]
pub struct Value {
    /// Its name, unique in the graph.
    pub name: String,
    /// Its tensor, if it never changes.
    pub constant: Option<Tensor>,
}

/// One application of an operator.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name, or its first output's.
    pub name: String,
    /// The operator's ONNX name.
    pub operator: String,
    /// What it does.
    pub op: Arc<dyn Operator>,
    /// Its inputs; optional ones may be absent.
    pub inputs: Vec<Option<ValueId>>,
    /// Its outputs; unused ones may be absent.
    pub outputs: Vec<Option<ValueId>>,
}

impl Node {
    /// Places a fault at this node.
    pub fn error(&self, fault: Fault) -> Error {
        Error::Node { node: self.name.clone(), operator: self.operator.clone(), fault }
    }
}

/// A frozen graph. Build one with [`Graph::value`], [`Graph::constant`], [`Graph::input`] and [`Graph::node`], then
/// [`Graph::sort`] it.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The values.
    pub values: Vec<Value>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The inputs, in order.
    pub inputs: Vec<Input>,
    /// The outputs, in order.
    pub outputs: Vec<ValueId>,
    names: HashMap<String, ValueId>,
    packed: PackedWeights,
}

impl Graph {
    /// The value of this name, made if it is new.
    pub fn value(&mut self, name: &str) -> ValueId {
        if let Some(&id) = self.names.get(name) {
            return id;
        }
        let id = self.values.len();
        self.values.push(Value { name: name.into(), constant: None });
        self.names.insert(name.into(), id);
        id
    }

    /// The value of this name, if there is one.
    pub fn find(&self, name: &str) -> Option<ValueId> {
        self.names.get(name).copied()
    }

    /// A value that never changes.
    ///
    /// # Errors
    /// If the name already has a tensor.
    pub fn constant(&mut self, name: &str, tensor: Tensor) -> Result<ValueId> {
        let id = self.value(name);
        if self.values[id].constant.replace(tensor).is_some() {
            return Err(Error::Graph(format!("two initialisers are named {name:?}")));
        }
        Ok(id)
    }

    /// Declares an input.
    pub fn input(&mut self, name: &str, dtype: DType, dims: Option<Vec<Dim>>) -> ValueId {
        let value = self.value(name);
        self.inputs.push(Input { value, dtype, dims });
        value
    }

    /// Adds a node. An empty name stands for an absent input or output.
    pub fn node(
        &mut self,
        operator: &str,
        op: Arc<dyn Operator>,
        inputs: &[&str],
        outputs: &[&str],
    ) -> &mut Node {
        let mut ids = |names: &[&str]| -> Vec<Option<ValueId>> {
            names.iter().map(|name| (!name.is_empty()).then(|| self.value(name))).collect()
        };
        let (inputs, output_ids) = (ids(inputs), ids(outputs));
        let name = outputs.iter().find(|name| !name.is_empty()).unwrap_or(&operator).to_string();
        self.nodes.push(Node { name, operator: operator.into(), op, inputs, outputs: output_ids });
        let last = self.nodes.len() - 1;
        &mut self.nodes[last]
    }

    /// Checks that every value has one maker and puts the nodes in an order in which each can be run.
    ///
    /// # Errors
    /// If a value is made twice or never, or the nodes form a cycle.
    pub fn sort(&mut self) -> Result<()> {
        order::sort(self)
    }

    /// Runs every node whose inputs never change, and keeps what it gives as constants.
    ///
    /// # Errors
    /// If such a node refuses its inputs or the room is used up.
    pub fn fold(&mut self, room: &Room) -> Result<()> {
        order::fold(self, room)
    }

    /// Takes weights below the smallest normal number for zero: they change no answer and take far longer to multiply by.
    pub fn flush(&mut self) {
        underflow::flush(self);
    }

    /// Names that look like this one, for an error message.
    pub fn near(&self, name: &str) -> Vec<String> {
        let lower = name.to_lowercase();
        let alike = |v: &&Value| {
            let other = v.name.to_lowercase();
            other.contains(&lower) || (!other.is_empty() && lower.contains(&other))
        };
        self.values.iter().filter(alike).take(3).map(|v| v.name.clone()).collect()
    }
}
