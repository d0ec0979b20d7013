//! Malice: models made to break a reader.

use evenkeel_network::format::onnx::message::{
    Function, GraphMessage, NodeMessage, OperatorSet, Pair, SparseTensor, TensorMessage,
};
use evenkeel_network::{Error, Network};
use prost::Message;

use super::model::*;
use super::{LIMITS, assert_modest, survive};

fn refused(what: &str, graph: GraphMessage) -> Error {
    refused_bytes(what, bytes(graph))
}

fn refused_bytes(what: &str, bytes: Vec<u8>) -> Error {
    let outcome = survive(what, bytes);
    assert_modest();
    outcome.err().unwrap_or_else(|| panic!("{what}: was accepted"))
}

fn x() -> Vec<evenkeel_network::format::onnx::message::ValueInfo> {
    vec![value("x", FLOAT, &[1, 2, 4, 4])]
}

#[test]
fn not_a_model() {
    refused_bytes("an empty file", Vec::new());
    refused_bytes("text", b"this is not a network".to_vec());
    refused_bytes("zeros", vec![0; 1000]);
    refused_bytes("ones", vec![0xff; 1000]);
}

#[test]
fn dimensions_that_make_no_sense() {
    for dims in [&[-1][..], &[i64::MIN, 2], &[i64::MAX, i64::MAX], &[1 << 40], &[1 << 62, 4], &[3]] {
        let nodes = vec![node("Add", &["x", "w"], &["y"], vec![])];
        refused(
            &format!("weights {dims:?}"),
            graph(nodes, x(), &["y"], vec![floats("w", dims, vec![0.0; 2])]),
        );
    }
    let nodes = vec![node("Relu", &["x"], &["y"], vec![])];
    refused("an input of size -5", graph(nodes, vec![negative_input()], &["y"], vec![]));
}

fn negative_input() -> evenkeel_network::format::onnx::message::ValueInfo {
    let mut info = value("x", FLOAT, &[1]);
    if let Some(tensor) = info.r#type.as_mut().and_then(|kind| kind.tensor_type.as_mut()) {
        tensor.shape.iter_mut().flat_map(|shape| &mut shape.dim).for_each(|dim| dim.dim_value = Some(-5));
    }
    info
}

#[test]
fn a_hundred_bytes_that_ask_for_a_terabyte() {
    let size = longs("size", &[1], &[1 << 38]);
    let nodes = vec![node("ConstantOfShape", &["size"], &["y"], vec![])];
    let small = bytes(graph(nodes, vec![], &["y"], vec![size]));
    assert!(small.len() <= 100, "{} bytes", small.len());
    refused_bytes("ConstantOfShape", small);
    let huge = longs("size", &[4], &[1 << 20, 1 << 20, 1 << 20, 1 << 20]);
    for (operator, inputs) in [
        ("ConstantOfShape", &["size"][..]),
        ("Expand", &["x", "size"]),
        ("Tile", &["x", "size"]),
        ("Reshape", &["x", "size"]),
    ] {
        let nodes = vec![node(operator, inputs, &["y"], vec![])];
        refused(operator, graph(nodes, x(), &["y"], vec![huge.clone()]));
    }
    let scalars = vec![longs("a", &[], &[0]), longs("b", &[], &[i64::MAX]), longs("c", &[], &[1])];
    refused("Range", graph(vec![node("Range", &["a", "b", "c"], &["y"], vec![])], vec![], &["y"], scalars));
    let pads = longs("pads", &[8], &[0, 0, 1 << 40, 1 << 40, 0, 0, i64::MAX, 1]);
    refused("Pad", graph(vec![node("Pad", &["x", "pads"], &["y"], vec![])], x(), &["y"], vec![pads]));
    let sizes = longs("sizes", &[4], &[1, 2, 1 << 40, 1 << 40]);
    refused(
        "Resize",
        graph(vec![node("Resize", &["x", "", "", "sizes"], &["y"], vec![])], x(), &["y"], vec![sizes]),
    );
    let scales = floats("s", &[4], vec![1.0, 1.0, f32::INFINITY, f32::NAN]);
    refused(
        "Resize",
        graph(vec![node("Resize", &["x", "", "s"], &["y"], vec![])], x(), &["y"], vec![scales]),
    );
    let sparse = SparseTensor {
        values: Some(floats("w", &[1], vec![1.0])),
        indices: Some(longs("", &[1], &[5])),
        dims: vec![1 << 20, 1 << 18],
    };
    let nodes = vec![node("Relu", &["w"], &["y"], vec![])];
    let graph = GraphMessage { sparse_initializer: vec![sparse], ..graph(nodes, vec![], &["y"], vec![]) };
    refused("a sparse tensor", graph);
}

#[test]
fn graphs_that_do_not_hang_together() {
    let relu = |from: &str, to: &str| node("Relu", &[from], &[to], vec![]);
    refused("a cycle", graph(vec![relu("b", "a"), relu("a", "b")], x(), &["a"], vec![]));
    refused("a node that reads itself", graph(vec![relu("a", "a")], x(), &["a"], vec![]));
    refused("a missing input", graph(vec![relu("nowhere", "y")], x(), &["y"], vec![]));
    refused("a missing output", graph(vec![relu("x", "y")], x(), &["z"], vec![]));
    refused("an output made twice", graph(vec![relu("x", "y"), relu("x", "y")], x(), &["y"], vec![]));
    refused("an input that is an output", graph(vec![relu("x", "x")], x(), &["x"], vec![]));
    let twins = vec![ramp("w", &[2]), ramp("w", &[2])];
    refused("two weights of one name", graph(vec![relu("w", "y")], x(), &["y"], twins));
    let inputs = vec![value("x", FLOAT, &[1]), value("x", FLOAT, &[1])];
    refused("two inputs of one name", graph(vec![relu("x", "y")], inputs, &["y"], vec![]));
    refused("a node without inputs", graph(vec![node("Add", &[], &["y"], vec![])], x(), &["y"], vec![]));
    refused("absent inputs", graph(vec![node("Add", &["", "x"], &["y"], vec![])], x(), &["y"], vec![]));
    let nodes = vec![node("Shape", &["x"], &["s"], vec![]), node("Conv", &["x", "s"], &["y"], vec![])];
    refused("a convolution by integers", graph(nodes, x(), &["y"], vec![]));
}

#[test]
fn attributes_out_of_range() {
    let weights = || vec![ramp("w", &[2, 2, 3, 3])];
    let bad: [Vec<_>; 9] = [
        vec![ints("strides", &[0, 1])],
        vec![ints("strides", &[-1, i64::MIN])],
        vec![ints("dilations", &[i64::MAX, 1])],
        vec![ints("dilations", &[0, 0])],
        vec![ints("pads", &[i64::MAX, 0, 0, i64::MAX])],
        vec![ints("pads", &[-9, -9, -9, -9])],
        vec![ints("kernel_shape", &[1 << 62, 3])],
        vec![int("group", 0)],
        vec![int("group", i64::MIN)],
    ];
    for operator in ["Conv", "ConvTranspose"] {
        for attributes in &bad {
            let nodes = vec![node(operator, &["x", "w"], &["y"], attributes.clone())];
            refused(&format!("{operator} {attributes:?}"), graph(nodes, x(), &["y"], weights()));
        }
    }
    for operator in ["MaxPool", "AveragePool", "LpPool"] {
        for attributes in [
            vec![],
            vec![ints("kernel_shape", &[0, 1])],
            vec![ints("kernel_shape", &[i64::MAX, i64::MAX])],
            vec![ints("kernel_shape", &[2, 2]), ints("strides", &[0, 0])],
            vec![ints("kernel_shape", &[2, 2]), ints("pads", &[i64::MAX, 1, i64::MAX, 1])],
            vec![ints("kernel_shape", &[2, 2]), ints("dilations", &[i64::MAX, 1])],
        ] {
            let nodes = vec![node(operator, &["x"], &["y"], attributes.clone())];
            refused(&format!("{operator} {attributes:?}"), graph(nodes, x(), &["y"], vec![]));
        }
    }
    for (operator, attribute) in [
        ("Softmax", int("axis", i64::MIN)),
        ("Flatten", int("axis", i64::MAX)),
        ("Transpose", ints("perm", &[0, 0, 1, 2])),
        ("Transpose", ints("perm", &[0, 1, 2, i64::MIN])),
        ("DepthToSpace", int("blocksize", i64::MAX)),
        ("SpaceToDepth", int("blocksize", 0)),
        ("Split", int("num_outputs", i64::MAX)),
        ("LRN", int("size", i64::MIN)),
        ("ArgMax", int("axis", i64::MIN)),
        ("Cast", int("to", i64::MAX)),
    ] {
        let nodes = vec![node(operator, &["x"], &["y"], vec![attribute.clone()])];
        refused(&format!("{operator} {attribute:?}"), graph(nodes, x(), &["y"], vec![]));
    }
}

#[test]
fn indices_out_of_range() {
    for index in [2, -3, i64::MAX, i64::MIN] {
        let nodes = vec![node("Gather", &["x", "i"], &["y"], vec![int("axis", 1)])];
        refused("Gather", graph(nodes, x(), &["y"], vec![longs("i", &[1], &[index])]));
        let nodes = vec![node("GatherND", &["x", "i"], &["y"], vec![])];
        refused("GatherND", graph(nodes, x(), &["y"], vec![longs("i", &[1, 2], &[0, index])]));
        let nodes = vec![node("GatherElements", &["x", "i"], &["y"], vec![int("axis", 1)])];
        refused("GatherElements", graph(nodes, x(), &["y"], vec![longs("i", &[1, 1, 1, 1], &[index])]));
    }
    for axis in [4, -5, i64::MAX, i64::MIN] {
        for operator in ["Unsqueeze", "Squeeze", "ReduceSum"] {
            let axes =
                longs("axes", &[1], &[if operator == "Unsqueeze" { axis.saturating_mul(2) } else { axis }]);
            let nodes = vec![node(operator, &["x", "axes"], &["y"], vec![])];
            refused(&format!("{operator} {axis}"), graph(nodes, x(), &["y"], vec![axes]));
        }
    }
    for k in [-1, 5, i64::MAX, i64::MIN] {
        let nodes = vec![node("TopK", &["x", "k"], &["y", "i"], vec![])];
        refused("TopK", graph(nodes, x(), &["y"], vec![longs("k", &[1], &[k])]));
    }
    let weights =
        vec![longs("starts", &[1], &[i64::MIN]), longs("ends", &[1], &[i64::MAX]), longs("axes", &[1], &[3])];
    for by in [i64::MIN, 0] {
        let mut weights = weights.clone();
        weights.push(longs("steps", &[1], &[by]));
        let nodes = vec![node("Slice", &["x", "starts", "ends", "axes", "steps"], &["y"], vec![])];
        let outcome = survive("Slice", bytes(graph(nodes, x(), &["y"], weights)));
        assert!(by != 0 || outcome.is_err());
    }
}

/// A Loop whose body changes nothing.
fn idle_loop(inner: Option<NodeMessage>) -> NodeMessage {
    let mut nodes = vec![node("Identity", &["going"], &["go_on"], vec![])];
    nodes.extend(inner);
    let inputs = vec![value("trip", INT64, &[]), value("going", BOOL, &[])];
    node("Loop", &["trips", ""], &[], vec![body("body", graph(nodes, inputs, &["go_on"], vec![]))])
}

#[test]
fn loops_without_end() {
    let trips = || vec![longs("trips", &[], &[1_000_000_000])];
    let counting = graph(
        vec![
            node("Identity", &["going"], &["go_on"], vec![]),
            node("Add", &["carried", "carried"], &["next"], vec![]),
        ],
        vec![value("trip", INT64, &[]), value("going", BOOL, &[]), value("carried", FLOAT, &[-1])],
        &["go_on", "next"],
        vec![],
    );
    let nodes = vec![node("Loop", &["trips", "", "x"], &["y"], vec![body("body", counting)])];
    refused("a billion trips", graph(nodes, x(), &["y"], trips()));

    let growing = graph(
        vec![
            node("Identity", &["going"], &["go_on"], vec![]),
            node("Concat", &["carried", "carried"], &["next"], vec![int("axis", 0)]),
        ],
        vec![value("trip", INT64, &[]), value("going", BOOL, &[]), value("carried", FLOAT, &[-1])],
        &["go_on", "next"],
        vec![],
    );
    let nodes = vec![node("Loop", &["", "", "x"], &["y"], vec![body("body", growing)])];
    refused("a value that doubles for ever", graph(nodes, x(), &["y"], vec![]));

    let nested = idle_loop(Some(idle_loop(None)));
    let mut trips = trips();
    trips.push(ramp("w", &[1]));
    let nodes = vec![nested, node("Relu", &["w"], &["y"], vec![])];
    let _ = survive("loops in loops", bytes(graph(nodes, vec![], &["y"], trips)));
    assert_modest();
}

#[test]
fn long_work_on_constants_is_left_to_the_walk() {
    let load = |nodes, trips| {
        let model = bytes(graph(nodes, vec![], &["y"], vec![longs("size", &[2], &[1500, 1500]), trips]));
        Network::from_bytes(model, LIMITS).expect("a well-formed model")
    };
    let trips = || longs("trips", &[], &[1_000_000_000]);
    let ones = node("ConstantOfShape", &["size"], &["a"], vec![]);
    let product = load(vec![ones, node("MatMul", &["a", "a"], &["y"], vec![])], trips());
    assert_eq!(product.graph().nodes.len(), 1, "the product, but not the matrix, waits for a call");
    let y = product.run(&[], &["y"]).expect("it runs");
    assert_eq!(y[0].shape(), [1500, 1500]);

    let ones = node("ConstantOfShape", &["size"], &["y"], vec![]);
    let looped = load(vec![idle_loop(None), ones], trips());
    assert!(looped.graph().nodes.len() <= 1, "a loop is not run at load");
}

#[test]
fn nesting_without_end() {
    let leaf = || graph(vec![node("Identity", &["x"], &["y"], vec![])], vec![], &["y"], vec![]);
    let deeper = |inner: GraphMessage| {
        let both = vec![body("then_branch", inner), body("else_branch", leaf())];
        graph(vec![node("If", &["c"], &["y"], both)], vec![], &["y"], vec![])
    };
    let nest = |depth: usize| {
        let mut graph = (0..depth).fold(leaf(), |inner, _| deeper(inner));
        graph.input = vec![value("x", FLOAT, &[1]), value("c", BOOL, &[])];
        bytes(graph)
    };
    survive("eight branches", nest(8)).unwrap_or_else(|error| panic!("{error}"));
    for depth in [30, 60, 500] {
        let _ = survive(&format!("{depth} branches"), nest(depth));
    }
    refused_bytes("a thousand branches", nest(1000));
}

/// A model whose functions `f0`, `f1`, .. each call the next one twice.
fn doubling(depth: usize) -> Vec<u8> {
    let call = |i: usize, from: &str, to: &str| NodeMessage {
        domain: "own".into(),
        ..node(&format!("f{i}"), &[from], &[to], vec![])
    };
    let opset_import = || {
        let set = |domain: &str| OperatorSet {
            domain: domain.into(),
            version: if domain.is_empty() { 18 } else { 1 },
        };
        vec![set(""), set("own")]
    };
    let functions = (0..depth).map(|i| Function {
        name: format!("f{i}"),
        domain: "own".into(),
        input: vec!["a".into()],
        output: vec!["c".into()],
        node: vec![call((i + 1) % depth, "a", "b"), call((i + 1) % depth, "b", "c")],
        opset_import: opset_import(),
        ..Function::default()
    });
    let functions = functions.collect();
    let mut model = model(graph(vec![call(0, "x", "y")], x(), &["y"], vec![]));
    (model.functions, model.opset_import) = (functions, opset_import());
    model.encode_to_vec()
}

#[test]
fn functions_without_end() {
    refused_bytes("a function that calls itself", doubling(1));
    refused_bytes("two functions that call each other", doubling(2));
    refused_bytes("a billion calls", doubling(30));
}

#[test]
fn files_outside_the_folder() {
    let folder = std::env::temp_dir().join(format!("evenkeel-external-{}", std::process::id()));
    let inside = folder.join("model");
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::write(folder.join("secret.bin"), [0u8; 64]).unwrap();
    std::fs::write(inside.join("weights.bin"), [0u8; 64]).unwrap();
    #[cfg(unix)]
    let _ = std::os::unix::fs::symlink("../secret.bin", inside.join("link.bin"));
    let attempt = |location: &str, offset: &str, length: &str| {
        let pair = |key: &str, value: &str| Pair { key: key.into(), value: value.into() };
        let weights = TensorMessage {
            data_location: 1,
            external_data: vec![pair("location", location), pair("offset", offset), pair("length", length)],
            ..floats("w", &[4], vec![])
        };
        let nodes = vec![node("Relu", &["w"], &["y"], vec![])];
        let path = inside.join("model.onnx");
        std::fs::write(&path, bytes(graph(nodes, vec![], &["y"], vec![weights]))).unwrap();
        Network::load(&path)
    };
    attempt("weights.bin", "0", "16").unwrap();
    attempt("./weights.bin", "48", "16").unwrap();
    let absolute = folder.join("secret.bin").to_string_lossy().into_owned();
    for (location, offset, length) in [
        ("../secret.bin", "0", "16"),
        ("./../secret.bin", "0", "16"),
        (&absolute, "0", "16"),
        ("link.bin", "0", "16"),
        ("weights.bin", "49", "16"),
        ("weights.bin", "18446744073709551615", "16"),
        ("weights.bin", "-1", "16"),
        ("weights.bin", "0", "64"),
        ("missing.bin", "0", "16"),
        (".", "0", "16"),
        ("", "0", "16"),
    ] {
        let outcome = attempt(location, offset, length);
        assert!(outcome.is_err(), "{location} {offset} {length} was read");
    }
    let from_memory = std::fs::read(inside.join("model.onnx")).unwrap();
    assert!(Network::from_bytes(from_memory, LIMITS).is_err());
    std::fs::remove_dir_all(&folder).unwrap();
}
