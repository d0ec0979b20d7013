//! Small ONNX files made in code.

#![allow(dead_code, reason = "each test program uses its own part")]

use evenkeel_network::format::onnx::message::{
    AttributeMessage, Dimension, GraphMessage, Model, NodeMessage, OperatorSet, Shape, TensorMessage,
    TensorType, TypeMessage, ValueInfo,
};
use prost::Message;

/// ONNX's numbers for the types used here.
pub(crate) const FLOAT: i32 = 1;
pub(crate) const INT64: i32 = 7;
pub(crate) const BOOL: i32 = 9;

/// A dimension of this size; a negative one is free.
pub(crate) fn dimension(size: i64) -> Dimension {
    Dimension { dim_value: (size >= 0).then_some(size), dim_param: String::new() }
}

pub(crate) fn value(name: &str, element_type: i32, dims: &[i64]) -> ValueInfo {
    let shape = Some(Shape { dim: dims.iter().map(|&size| dimension(size)).collect() });
    let tensor_type = Some(TensorType { elem_type: element_type, shape });
    ValueInfo { name: name.into(), r#type: Some(TypeMessage { tensor_type }) }
}

pub(crate) fn node(
    operator: &str,
    inputs: &[&str],
    outputs: &[&str],
    attributes: Vec<AttributeMessage>,
) -> NodeMessage {
    NodeMessage {
        input: inputs.iter().map(|name| name.to_string()).collect(),
        output: outputs.iter().map(|name| name.to_string()).collect(),
        op_type: operator.into(),
        attribute: attributes,
        ..NodeMessage::default()
    }
}

pub(crate) fn int(name: &str, value: i64) -> AttributeMessage {
    AttributeMessage { name: name.into(), kind: 2, i: Some(value), ..AttributeMessage::default() }
}

pub(crate) fn float(name: &str, value: f32) -> AttributeMessage {
    AttributeMessage { name: name.into(), kind: 1, f: Some(value), ..AttributeMessage::default() }
}

pub(crate) fn ints(name: &str, values: &[i64]) -> AttributeMessage {
    AttributeMessage { name: name.into(), kind: 7, ints: values.to_vec(), ..AttributeMessage::default() }
}

pub(crate) fn text(name: &str, value: &str) -> AttributeMessage {
    let s = Some(value.as_bytes().to_vec().into());
    AttributeMessage { name: name.into(), kind: 3, s, ..AttributeMessage::default() }
}

pub(crate) fn tensor(name: &str, value: TensorMessage) -> AttributeMessage {
    AttributeMessage { name: name.into(), kind: 4, t: Some(value), ..AttributeMessage::default() }
}

pub(crate) fn body(name: &str, graph: GraphMessage) -> AttributeMessage {
    AttributeMessage { name: name.into(), kind: 5, g: Some(Box::new(graph)), ..AttributeMessage::default() }
}

pub(crate) fn floats(name: &str, dims: &[i64], values: Vec<f32>) -> TensorMessage {
    TensorMessage {
        name: name.into(),
        dims: dims.to_vec(),
        data_type: FLOAT,
        float_data: values,
        ..TensorMessage::default()
    }
}

pub(crate) fn longs(name: &str, dims: &[i64], values: &[i64]) -> TensorMessage {
    TensorMessage {
        name: name.into(),
        dims: dims.to_vec(),
        data_type: INT64,
        int64_data: values.to_vec(),
        ..TensorMessage::default()
    }
}

/// Seeded values in -1..1.
pub(crate) fn ramp(name: &str, dims: &[i64]) -> TensorMessage {
    let count = dims.iter().product::<i64>();
    floats(name, dims, (0..count).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect())
}

pub(crate) fn graph(
    nodes: Vec<NodeMessage>,
    inputs: Vec<ValueInfo>,
    outputs: &[&str],
    weights: Vec<TensorMessage>,
) -> GraphMessage {
    GraphMessage {
        node: nodes,
        input: inputs,
        output: outputs.iter().map(|name| ValueInfo { name: name.to_string(), r#type: None }).collect(),
        initializer: weights,
        ..GraphMessage::default()
    }
}

pub(crate) fn model(graph: GraphMessage) -> Model {
    let opset_import = vec![OperatorSet { domain: String::new(), version: 18 }];
    Model { ir_version: 8, opset_import, graph: Some(graph), functions: Vec::new() }
}

pub(crate) fn bytes(graph: GraphMessage) -> Vec<u8> {
    model(graph).encode_to_vec()
}

/// Convolution, normalisation, pooling, a residual, and a linear head.
pub(crate) fn small_convnet() -> Vec<u8> {
    let kernel = || ints("kernel_shape", &[3, 3]);
    let nodes = vec![
        node("Conv", &["x", "w1", "b1"], &["c1"], vec![kernel(), ints("pads", &[1, 1, 1, 1])]),
        node("BatchNormalization", &["c1", "s", "b1", "m", "v"], &["n1"], vec![]),
        node("Relu", &["n1"], &["r1"], vec![]),
        node(
            "Conv",
            &["r1", "w2"],
            &["c2"],
            vec![kernel(), ints("pads", &[2, 2, 2, 2]), ints("dilations", &[2, 2])],
        ),
        node("Add", &["c2", "r1"], &["a"], vec![]),
        node("MaxPool", &["a"], &["p"], vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])]),
        node("Resize", &["p", "", "scales"], &["z"], vec![text("mode", "linear")]),
        node("GlobalAveragePool", &["z"], &["g"], vec![]),
        node("Flatten", &["g"], &["f"], vec![]),
        node("Gemm", &["f", "w3", "b3"], &["y"], vec![int("transB", 1)]),
    ];
    let weights = vec![
        ramp("w1", &[4, 3, 3, 3]),
        ramp("b1", &[4]),
        ramp("s", &[4]),
        ramp("m", &[4]),
        floats("v", &[4], vec![1.0, 2.0, 0.5, 1.5]),
        ramp("w2", &[4, 4, 3, 3]),
        floats("scales", &[4], vec![1.0, 1.0, 2.0, 2.0]),
        ramp("w3", &[5, 4]),
        ramp("b3", &[5]),
    ];
    bytes(graph(nodes, vec![value("x", FLOAT, &[-1, 3, 8, 8])], &["y"], weights))
}

/// Attention, with shapes computed in the graph.
pub(crate) fn small_transformer() -> Vec<u8> {
    let nodes = vec![
        node("MatMul", &["x", "wq"], &["q"], vec![]),
        node("Shape", &["q"], &["shape"], vec![]),
        node("Slice", &["shape", "zero", "two"], &["lead"], vec![]),
        node("Concat", &["lead", "heads"], &["split"], vec![int("axis", 0)]),
        node("Reshape", &["q", "split"], &["h"], vec![]),
        node("Transpose", &["h"], &["qt"], vec![ints("perm", &[0, 2, 1, 3])]),
        node("Transpose", &["h"], &["kt"], vec![ints("perm", &[0, 2, 3, 1])]),
        node("MatMul", &["qt", "kt"], &["scores"], vec![]),
        node("Softmax", &["scores"], &["p"], vec![int("axis", -1)]),
        node("MatMul", &["p", "qt"], &["o"], vec![]),
        node("ReduceMean", &["o", "axes"], &["m"], vec![int("keepdims", 0)]),
        node("Pad", &["m", "pads"], &["padded"], vec![text("mode", "reflect")]),
        node("Gather", &["padded", "pick"], &["picked"], vec![int("axis", 1)]),
        node("TopK", &["picked", "k"], &["y", "i"], vec![int("axis", -1)]),
    ];
    let weights = vec![
        ramp("wq", &[6, 6]),
        longs("zero", &[1], &[0]),
        longs("two", &[1], &[2]),
        longs("heads", &[2], &[2, 3]),
        longs("axes", &[1], &[1]),
        longs("pads", &[6], &[0, 1, 1, 0, 1, 1]),
        longs("pick", &[2], &[0, 2]),
        longs("k", &[1], &[2]),
    ];
    bytes(graph(nodes, vec![value("x", FLOAT, &[-1, 4, 6])], &["y", "i"], weights))
}

/// A Loop that doubles and an If that reads outer values.
pub(crate) fn small_program() -> Vec<u8> {
    let step = graph(
        vec![
            node("Add", &["carried", "bias"], &["next"], vec![]),
            node("Identity", &["going"], &["go_on"], vec![]),
            node("Mul", &["next", "next"], &["seen"], vec![]),
        ],
        vec![value("trip", INT64, &[]), value("going", BOOL, &[]), value("carried", FLOAT, &[-1])],
        &["go_on", "next", "seen"],
        vec![],
    );
    let then = graph(vec![node("Relu", &["last"], &["t"], vec![])], vec![], &["t"], vec![]);
    let other = graph(vec![node("Neg", &["last"], &["e"], vec![])], vec![], &["e"], vec![]);
    let nodes = vec![
        node("Loop", &["trips", "", "x"], &["last", "scan"], vec![body("body", step)]),
        node("ReduceSum", &["last"], &["sum"], vec![int("keepdims", 0)]),
        node("Greater", &["sum", "limit"], &["large"], vec![]),
        node("If", &["large"], &["y"], vec![body("then_branch", then), body("else_branch", other)]),
        node("ConstantOfShape", &["size"], &["zeros"], vec![]),
        node("Range", &["from", "to", "by"], &["range"], vec![]),
        node("Expand", &["zeros", "wide"], &["wider"], vec![]),
        node("Where", &["large", "wider", "scan"], &["z"], vec![]),
    ];
    let weights = vec![
        longs("trips", &[], &[3]),
        ramp("bias", &[4]),
        floats("limit", &[], vec![0.5]),
        longs("size", &[2], &[1, 4]),
        longs("wide", &[2], &[3, 4]),
        longs("from", &[], &[0]),
        longs("to", &[], &[9]),
        longs("by", &[], &[2]),
    ];
    bytes(graph(nodes, vec![value("x", FLOAT, &[4])], &["y", "z", "range"], weights))
}
