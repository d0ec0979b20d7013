//! The messages of an ONNX file, trimmed to the fields that say what to compute. Tags are those of the standard's `onnx.proto`.

use bytes::Bytes;
use prost::Message;

/// A whole file.
#[derive(Clone, PartialEq, Message)]
pub struct Model {
    /// The version of the container format.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The operator sets the graph uses.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSet>,
    /// The graph.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphMessage>,
    /// Operators the file defines itself.
    #[prost(message, repeated, tag = "25")]
    pub functions: Vec<Function>,
}

/// A version of a domain's operators.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSet {
    /// The domain.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// The version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A graph or subgraph.
#[derive(Clone, PartialEq, Message)]
pub struct GraphMessage {
    /// The nodes.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeMessage>,
    /// Its name, which the standard wants and nothing reads.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Tensors that never change, or defaults of inputs.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorMessage>,
    /// The same, given by their nonzero values.
    #[prost(message, repeated, tag = "15")]
    pub sparse_initializer: Vec<SparseTensor>,
    /// The inputs.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfo>,
    /// The outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfo>,
}

/// A node.
#[derive(Clone, PartialEq, Message)]
pub struct NodeMessage {
    /// Names of its inputs; empty for absent ones.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of its outputs; empty for unused ones.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Its name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// The operator's domain.
    #[prost(string, tag = "7")]
    pub domain: String,
    /// Which of several functions of one name.
    #[prost(string, tag = "8")]
    pub overload: String,
    /// The attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeMessage>,
}

/// An attribute.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeMessage {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// In a function: the attribute of the call that gives the value.
    #[prost(string, tag = "21")]
    pub ref_attr_name: String,
    /// Which of the fields below is in use.
    #[prost(int32, tag = "20")]
    pub kind: i32,
    /// A float.
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    /// An integer.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// A string.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub s: Option<Bytes>,
    /// A tensor.
    #[prost(message, optional, tag = "5")]
    pub t: Option<TensorMessage>,
    /// A graph.
    #[prost(message, optional, boxed, tag = "6")]
    pub g: Option<Box<GraphMessage>>,
    /// A sparse tensor.
    #[prost(message, optional, tag = "22")]
    pub sparse_tensor: Option<SparseTensor>,
    /// Floats.
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub floats: Vec<f32>,
    /// Integers.
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    /// Strings.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
}

/// A tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorMessage {
    /// Its shape.
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    /// Its type.
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Values of type float.
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    /// Values of types up to 32 bits, and the bits of half-precision floats.
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    /// Values of type int64.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// Its name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Values of any type, little-endian.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub raw_data: Option<Bytes>,
    /// Values of type double.
    #[prost(double, repeated, tag = "10")]
    pub double_data: Vec<f64>,
    /// Values of types uint32 and uint64.
    #[prost(uint64, repeated, tag = "11")]
    pub uint64_data: Vec<u64>,
    /// Where the values are, if not here.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<Pair>,
    /// 1 if the values are elsewhere.
    #[prost(int32, tag = "14")]
    pub data_location: i32,
}

/// A key and its value.
#[derive(Clone, PartialEq, Message)]
pub struct Pair {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A tensor given by its nonzero values.
#[derive(Clone, PartialEq, Message)]
pub struct SparseTensor {
    /// The values; the name is the tensor's.
    #[prost(message, optional, tag = "1")]
    pub values: Option<TensorMessage>,
    /// Where they are: `[count]` flat or `[count, rank]`.
    #[prost(message, optional, tag = "2")]
    pub indices: Option<TensorMessage>,
    /// The shape.
    #[prost(int64, repeated, packed = "false", tag = "3")]
    pub dims: Vec<i64>,
}

/// A named value and its type.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfo {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeMessage>,
}

/// A type. Only tensors are of interest.
#[derive(Clone, PartialEq, Message)]
pub struct TypeMessage {
    /// A tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorType>,
}

/// The type of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorType {
    /// The type of its elements.
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// Its shape, if known.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<Shape>,
}

/// A declared shape.
#[derive(Clone, PartialEq, Message)]
pub struct Shape {
    /// The dimensions.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<Dimension>,
}

/// A declared dimension.
#[derive(Clone, PartialEq, Message)]
pub struct Dimension {
    /// A number.
    #[prost(int64, optional, tag = "1")]
    pub dim_value: Option<i64>,
    /// A name.
    #[prost(string, tag = "2")]
    pub dim_param: String,
}

/// An operator that the file defines by nodes.
#[derive(Clone, PartialEq, Message)]
pub struct Function {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Names of its inputs.
    #[prost(string, repeated, tag = "4")]
    pub input: Vec<String>,
    /// Names of its outputs.
    #[prost(string, repeated, tag = "5")]
    pub output: Vec<String>,
    /// Attributes with defaults.
    #[prost(message, repeated, tag = "11")]
    pub attribute_proto: Vec<AttributeMessage>,
    /// Its nodes.
    #[prost(message, repeated, tag = "7")]
    pub node: Vec<NodeMessage>,
    /// The operator sets its nodes use.
    #[prost(message, repeated, tag = "9")]
    pub opset_import: Vec<OperatorSet>,
    /// Its domain.
    #[prost(string, tag = "10")]
    pub domain: String,
    /// Which of several of one name.
    #[prost(string, tag = "13")]
    pub overload: String,
}
