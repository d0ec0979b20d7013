//! Writing ONNX: just enough of the format for a chain of convolutions, additions, ReLUs, enlargements and means.
//!
//! Messages are protocol buffers: a field is its number and kind in one varint, then a varint, four bytes, or a length and bytes.

use crate::error::Result;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::collections::BTreeMap;
use std::ops::Range;

/// A message being written.
#[derive(Clone, Debug, Default)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A whole number.
    pub fn int(mut self, field: u64, value: i64) -> Self {
        self.varint(field << 3);
        self.varint(value as u64);
        self
    }

    /// Bytes, text or an inner message.
    pub fn bytes(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// What was written.
    pub fn done(self) -> Vec<u8> {
        self.bytes
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

const FLOAT: i64 = 1;
const INT64: i64 = 7;
const OPSET: i64 = 17;
/// Where a tensor's bytes are, if not in the file.
const EXTERNAL: i64 = 1;

/// A tensor that the graph holds.
#[derive(Debug)]
struct Constant {
    name: String,
    shape: Vec<usize>,
    kind: i64,
    raw: Vec<u8>,
    /// Whether it was learnt, and may lie in a file of weights.
    learnt: bool,
}

impl Constant {
    fn head(&self) -> Message {
        let tensor = self.shape.iter().fold(Message::default(), |tensor, &dim| tensor.int(1, dim as i64));
        tensor.int(2, self.kind).bytes(8, &self.name)
    }

    fn inline(&self) -> Message {
        self.head().bytes(9, &self.raw)
    }

    /// The tensor as a pointer to `bytes` of another file.
    fn elsewhere(&self, file: &str, bytes: &Range<usize>) -> Message {
        let entry = |key: &str, value: String| Message::default().bytes(1, key).bytes(2, value);
        self.head()
            .bytes(13, entry("location", file.into()))
            .bytes(13, entry("offset", bytes.start.to_string()))
            .bytes(13, entry("length", bytes.len().to_string()))
            .int(14, EXTERNAL)
    }
}

/// A graph being written.
#[derive(Debug, Default)]
pub struct Writer {
    nodes: Vec<Message>,
    constants: Vec<Constant>,
}

/// What goes into and comes out of a graph.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    /// The input's name; its shape is `[1, 3, height, width]`.
    pub input: &'a str,
    /// (height, width) of the input; free if there is none.
    pub size: Option<(usize, usize)>,
    /// The names of the outputs.
    pub outputs: &'a [&'a str],
}

impl Writer {
    /// A constant.
    pub fn constant(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        let raw = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let (name, shape) = (name.into(), shape.to_vec());
        self.constants.push(Constant { name, shape, kind: FLOAT, raw, learnt: false });
    }

    /// A constant that was learnt.
    pub fn weights(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        self.constant(name, shape, values);
        self.constants.iter_mut().last().expect("just written").learnt = true;
    }

    /// A constant of whole numbers.
    pub fn whole_numbers(&mut self, name: &str, values: &[i64]) {
        let raw = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let (name, shape) = (name.into(), vec![values.len()]);
        self.constants.push(Constant { name, shape, kind: INT64, raw, learnt: false });
    }

    /// A node with one output and attributes made by [`ints`] and [`text`].
    pub fn node(&mut self, operator: &str, inputs: &[&str], output: &str, attributes: &[Message]) {
        let node = inputs.iter().fold(Message::default(), |node, input| node.bytes(1, input));
        let node = node.bytes(2, output).bytes(3, output).bytes(4, operator);
        self.nodes.push(attributes.iter().fold(node, |node, attribute| node.bytes(5, attribute)));
    }

    /// The file, its tensors inside.
    pub fn file(&self, ends: Ends<'_>) -> Vec<u8> {
        self.model(ends, self.constants.iter().map(Constant::inline))
    }

    /// The graph, and what was learnt as a safetensors file that the graph finds beside it under the name `weights`.
    ///
    /// # Errors
    /// If two tensors have one name.
    pub fn split(&self, ends: Ends<'_>, weights: &str) -> Result<(Vec<u8>, Vec<u8>)> {
        let mut views = BTreeMap::new();
        for constant in self.constants.iter().filter(|constant| constant.learnt) {
            let view = TensorView::new(Dtype::F32, constant.shape.clone(), &constant.raw)?;
            views.insert(constant.name.as_str(), view);
        }
        let bytes = safetensors::serialize(views, None)?;
        let (header, table) = SafeTensors::read_metadata(&bytes)?;
        let first = header + size_of::<u64>();
        let constants = self.constants.iter().map(|constant| match table.info(&constant.name) {
            Some(info) => {
                constant.elsewhere(weights, &(first + info.data_offsets.0..first + info.data_offsets.1))
            }
            None => constant.inline(),
        });
        Ok((self.model(ends, constants), bytes))
    }

    fn model(&self, ends: Ends<'_>, constants: impl Iterator<Item = Message>) -> Vec<u8> {
        let dim = |size: Option<i64>, name: &str| match size {
            Some(size) => Message::default().int(1, size),
            None => Message::default().bytes(2, name),
        };
        let (height, width) = (ends.size.map(|s| s.0 as i64), ends.size.map(|s| s.1 as i64));
        let shape = [dim(Some(1), ""), dim(Some(3), ""), dim(height, "height"), dim(width, "width")];
        let shape = shape.iter().fold(Message::default(), |shape, dim| shape.bytes(1, dim));
        let value = |name: &str, shape: Option<&Message>| {
            let tensor = Message::default().int(1, FLOAT);
            let tensor = shape.into_iter().fold(tensor, |tensor, shape| tensor.bytes(2, shape));
            Message::default().bytes(1, name).bytes(2, Message::default().bytes(1, tensor))
        };
        let mut graph = self.nodes.iter().fold(Message::default(), |graph, node| graph.bytes(1, node));
        graph = graph.bytes(2, "evenkeel");
        graph = constants.fold(graph, |graph, constant| graph.bytes(5, constant));
        graph = graph.bytes(11, value(ends.input, Some(&shape)));
        graph = ends.outputs.iter().fold(graph, |graph, output| graph.bytes(12, value(output, None)));
        let opset = Message::default().bytes(1, "").int(2, OPSET);
        Message::default().int(1, 8).bytes(2, "evenkeel-train").bytes(7, graph).bytes(8, opset).done()
    }
}

/// An attribute of whole numbers.
pub fn ints(name: &str, values: &[usize]) -> Message {
    let attribute = Message::default().bytes(1, name);
    values.iter().fold(attribute, |attribute, &v| attribute.int(8, v as i64)).int(20, 7)
}

/// An attribute of one whole number.
pub fn int(name: &str, value: i64) -> Message {
    Message::default().bytes(1, name).int(3, value).int(20, 2)
}

/// An attribute of text.
pub fn text(name: &str, value: &str) -> Message {
    Message::default().bytes(1, name).bytes(4, value).int(20, 3)
}
