//! Writing ONNX: just enough of the format for a chain of convolutions, additions, ReLUs, enlargements and means.
//!
//! Messages are protocol buffers: a field is its number and kind in one varint, then a varint, four bytes, or a length and bytes.

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

/// A graph being written.
#[derive(Debug, Default)]
pub struct Writer {
    nodes: Vec<Message>,
    constants: Vec<Message>,
}

impl Writer {
    /// A constant.
    pub fn constant(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let tensor = shape.iter().fold(Message::default(), |tensor, &dim| tensor.int(1, dim as i64));
        self.constants.push(tensor.int(2, FLOAT).bytes(8, name).bytes(9, raw));
    }

    /// A constant of whole numbers.
    pub fn whole_numbers(&mut self, name: &str, values: &[i64]) {
        let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let tensor = Message::default().int(1, values.len() as i64);
        self.constants.push(tensor.int(2, INT64).bytes(8, name).bytes(9, raw));
    }

    /// A node with one output and attributes made by [`ints`] and [`text`].
    pub fn node(&mut self, operator: &str, inputs: &[&str], output: &str, attributes: &[Message]) {
        let node = inputs.iter().fold(Message::default(), |node, input| node.bytes(1, input));
        let node = node.bytes(2, output).bytes(3, output).bytes(4, operator);
        self.nodes.push(attributes.iter().fold(node, |node, attribute| node.bytes(5, attribute)));
    }

    /// The file: one input `[1, 3, height, width]`, its sides free unless a size is given, and these outputs.
    pub fn file(self, input: &str, size: Option<(usize, usize)>, outputs: &[&str]) -> Vec<u8> {
        let dim = |size: Option<i64>, name: &str| match size {
            Some(size) => Message::default().int(1, size),
            None => Message::default().bytes(2, name),
        };
        let (height, width) = (size.map(|s| s.0 as i64), size.map(|s| s.1 as i64));
        let shape = [dim(Some(1), ""), dim(Some(3), ""), dim(height, "height"), dim(width, "width")];
        let shape = shape.iter().fold(Message::default(), |shape, dim| shape.bytes(1, dim));
        let value = |name: &str, shape: Option<&Message>| {
            let tensor = Message::default().int(1, FLOAT);
            let tensor = shape.into_iter().fold(tensor, |tensor, shape| tensor.bytes(2, shape));
            Message::default().bytes(1, name).bytes(2, Message::default().bytes(1, tensor))
        };
        let mut graph = self.nodes.iter().fold(Message::default(), |graph, node| graph.bytes(1, node));
        graph = graph.bytes(2, "evenkeel");
        graph = self.constants.iter().fold(graph, |graph, constant| graph.bytes(5, constant));
        graph = graph.bytes(11, value(input, Some(&shape)));
        graph = outputs.iter().fold(graph, |graph, output| graph.bytes(12, value(output, None)));
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
