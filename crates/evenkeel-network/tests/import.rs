//! What an ONNX file may say in more than one way, and what the importer makes of it.

mod model;

use evenkeel_network::format::onnx::message::{
    AttributeMessage, Function, GraphMessage, Model, NodeMessage, OperatorSet, SparseTensor, TensorMessage,
};
use evenkeel_network::{DType, Error, Limits, Network, Tensor};
use model::*;
use prost::Message;

fn load(model: &Model) -> Network {
    Network::from_bytes(model.encode_to_vec(), Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The value of a tensor named `y` that depends on no input.
fn constant(graph: GraphMessage) -> Tensor {
    load(&model(graph)).run(&[], &["y"]).unwrap_or_else(|error| panic!("{error}")).remove(0)
}

fn identity(from: &str) -> Vec<NodeMessage> {
    vec![node("Identity", &[from], &["y"], vec![])]
}

#[test]
fn every_type_from_every_field() {
    let weight = |data_type: i32, edit: &dyn Fn(&mut TensorMessage)| {
        let mut message =
            TensorMessage { name: "w".into(), dims: vec![2], data_type, ..TensorMessage::default() };
        edit(&mut message);
        constant(graph(identity("w"), vec![], &["y"], vec![message]))
    };
    let raw = |bytes: &[u8]| Some(bytes.to_vec().into());
    let f32s = |tensor: Tensor| tensor.values::<f32>().map(<[f32]>::to_vec);
    assert_eq!(f32s(weight(1, &|m| m.float_data = vec![1.5, -2.0])), Some(vec![1.5, -2.0]));
    assert_eq!(
        f32s(weight(1, &|m| m.raw_data = raw(&[0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0]))),
        Some(vec![1.5, -2.0])
    );
    assert_eq!(f32s(weight(10, &|m| m.int32_data = vec![0x3e00, 0xc000])), Some(vec![1.5, -2.0]));
    assert_eq!(f32s(weight(10, &|m| m.raw_data = raw(&[0, 0x3e, 0, 0xc0]))), Some(vec![1.5, -2.0]));
    assert_eq!(f32s(weight(16, &|m| m.int32_data = vec![0x3fc0, 0xc000])), Some(vec![1.5, -2.0]));
    assert_eq!(f32s(weight(16, &|m| m.raw_data = raw(&[0xc0, 0x3f, 0, 0xc0]))), Some(vec![1.5, -2.0]));
    let f64s = weight(11, &|m| m.double_data = vec![0.1, -2.0]);
    assert_eq!(f64s.values::<f64>(), Some(&[0.1, -2.0][..]));
    for (data_type, dtype, low, high) in [
        (2, DType::U8, 0, 255),
        (3, DType::I8, -128, 127),
        (4, DType::I32, 0, 65535),
        (5, DType::I32, -32768, 32767),
        (6, DType::I32, i32::MIN, i32::MAX),
    ] {
        let tensor = weight(data_type, &|m| m.int32_data = vec![low, high]);
        assert_eq!(tensor.dtype(), dtype);
        assert_eq!(tensor.integers(), Some(vec![low.into(), high.into()]));
    }
    assert_eq!(weight(3, &|m| m.raw_data = raw(&[0x80, 0x7f])).integers(), Some(vec![-128, 127]));
    assert_eq!(
        weight(5, &|m| m.raw_data = raw(&[0, 0x80, 0xff, 0x7f])).integers(),
        Some(vec![-32768, 32767])
    );
    assert_eq!(weight(7, &|m| m.int64_data = vec![i64::MIN, 5]).integers(), Some(vec![i64::MIN, 5]));
    assert_eq!(
        weight(12, &|m| m.uint64_data = vec![u32::MAX.into(), 5]).integers(),
        Some(vec![u32::MAX.into(), 5])
    );
    assert_eq!(weight(13, &|m| m.uint64_data = vec![i64::MAX as u64, 5]).integers(), Some(vec![i64::MAX, 5]));
    let flags = weight(9, &|m| m.int32_data = vec![0, 1]);
    assert_eq!(flags.dtype(), DType::Bool);
}

#[test]
fn what_cannot_be_held_is_listed_all_at_once() {
    let beyond = TensorMessage {
        name: "beyond".into(),
        dims: vec![1],
        data_type: 13,
        uint64_data: vec![u64::MAX],
        ..TensorMessage::default()
    };
    let texts =
        TensorMessage { name: "texts".into(), dims: vec![0], data_type: 8, ..TensorMessage::default() };
    let named = NodeMessage { name: "odd".into(), ..node("NoSuchOperator", &["x"], &["a"], vec![]) };
    let other = NodeMessage { domain: "elsewhere".into(), ..node("Thing", &["a"], &["y"], vec![]) };
    let message = graph(vec![named, other], vec![value("x", 14, &[1])], &["y"], vec![beyond, texts]);
    let error = Network::from_bytes(bytes(message), Limits::default()).map(|_| ()).unwrap_err();
    let Error::Unsupported(offenders) = error else { panic!("{error}") };
    let nodes: Vec<(&str, &str)> = offenders.iter().map(|o| (&*o.node, &*o.operator)).collect();
    assert_eq!(
        nodes,
        [
            ("beyond", "initialiser"),
            ("texts", "initialiser"),
            ("x", "input"),
            ("odd", "NoSuchOperator"),
            ("y", "elsewhere.Thing")
        ]
    );
}

#[test]
fn sparse_tensors_become_dense() {
    let sparse = |indices: TensorMessage| {
        let values = Some(floats("w", &[2], vec![5.0, 7.0]));
        let sparse = SparseTensor { values, indices: Some(indices), dims: vec![2, 3] };
        let message = graph(identity("w"), vec![], &["y"], vec![]);
        constant(GraphMessage { sparse_initializer: vec![sparse], ..message })
    };
    let expected = Some(&[0.0f32, 5.0, 0.0, 0.0, 0.0, 7.0][..]);
    assert_eq!(sparse(longs("", &[2], &[1, 5])).values(), expected);
    assert_eq!(sparse(longs("", &[2, 2], &[0, 1, 1, 2])).values(), expected);
}

#[test]
fn constants_of_every_form() {
    let form = |attribute: AttributeMessage| {
        constant(graph(vec![node("Constant", &[], &["y"], vec![attribute])], vec![], &["y"], vec![]))
    };
    assert_eq!(form(tensor("value", floats("", &[1], vec![3.0]))).shape(), [1]);
    assert_eq!(form(float("value_float", 3.0)).values(), Some(&[3.0f32][..]));
    assert_eq!(form(int("value_int", 3)).values(), Some(&[3i64][..]));
    assert_eq!(form(ints("value_ints", &[3, 4])).values(), Some(&[3i64, 4][..]));
    let floats = AttributeMessage {
        name: "value_floats".into(),
        kind: 6,
        floats: vec![3.0, 4.0],
        ..AttributeMessage::default()
    };
    assert_eq!(form(floats).values(), Some(&[3.0f32, 4.0][..]));
}

#[test]
fn initialisers_listed_as_inputs_are_defaults() {
    let nodes = vec![node("Add", &["x", "w"], &["y"], vec![])];
    let inputs = vec![value("x", FLOAT, &[1]), value("w", FLOAT, &[1])];
    let mut message = model(graph(nodes, inputs, &["y"], vec![floats("w", &[1], vec![10.0])]));
    let one = || Tensor::new(&[1], vec![1.0f32]);
    let run = |network: &Network, given: &[(&str, Tensor)]| {
        network.run(given, &["y"]).map(|tensors| tensors[0].values::<f32>().map(|v| v[0]))
    };
    let network = load(&message);
    assert_eq!(run(&network, &[("x", one())]).unwrap(), Some(11.0));
    assert_eq!(run(&network, &[("x", one()), ("w", one())]).unwrap(), Some(2.0));
    // In old files the listing was obligatory, so it says nothing and the weight is a weight.
    message.ir_version = 3;
    let network = load(&message);
    assert_eq!(run(&network, &[("x", one())]).unwrap(), Some(11.0));
    assert!(run(&network, &[("x", one()), ("w", one())]).is_err());
}

#[test]
fn functions_are_inlined_with_their_attributes() {
    let own = |name: &str, inputs: &[&str], outputs: &[&str], attributes| NodeMessage {
        domain: "own".into(),
        ..node(name, inputs, outputs, attributes)
    };
    let reference = |name: &str, to: &str, kind| AttributeMessage {
        name: name.into(),
        ref_attr_name: to.into(),
        kind,
        ..AttributeMessage::default()
    };
    let sets = vec![
        OperatorSet { domain: String::new(), version: 18 },
        OperatorSet { domain: "own".into(), version: 1 },
    ];
    let leak = Function {
        name: "Leak".into(),
        domain: "own".into(),
        input: vec!["a".into(), "unused".into()],
        output: vec!["b".into(), "a".into()],
        attribute_proto: vec![float("slope", 0.5)],
        node: vec![
            node("LeakyRelu", &["a"], &["t"], vec![reference("alpha", "slope", 1)]),
            node("Constant", &[], &["bias"], vec![reference("value_float", "slope", 1)]),
            node("Add", &["t", "bias"], &["b"], vec![]),
        ],
        opset_import: sets.clone(),
        ..Function::default()
    };
    let twice = Function {
        name: "Twice".into(),
        domain: "own".into(),
        input: vec!["a".into()],
        output: vec!["b".into()],
        node: vec![
            own("Leak", &["a"], &["t"], vec![reference("slope", "outer", 1)]),
            own("Leak", &["t"], &["b", "same"], vec![]),
        ],
        opset_import: sets.clone(),
        ..Function::default()
    };
    let call = own("Twice", &["x"], &["y"], vec![float("outer", 0.25)]);
    let mut message = model(graph(vec![call], vec![value("x", FLOAT, &[1])], &["y"], vec![]));
    (message.functions, message.opset_import) = (vec![leak, twice], sets);
    let network = load(&message);
    let y = network.run(&[("x", Tensor::new(&[1], vec![-8.0f32]))], &["y"]).unwrap().remove(0);
    // leak(-8, 1/4) + 1/4 = -1.75; leak(-1.75, 1/2) + 1/2 = -0.375.
    assert_eq!(y.values(), Some(&[-0.375f32][..]));
}

#[test]
fn bodies_capture_through_two_scopes() {
    let leaf = |operator: &str, name: &str| {
        graph(vec![node(operator, &["x", "w"], &[name], vec![])], vec![], &[name], vec![])
    };
    let choose = |condition: &str, output: &str, then: GraphMessage, other: GraphMessage| {
        node("If", &[condition], &[output], vec![body("then_branch", then), body("else_branch", other)])
    };
    let inner = graph(vec![choose("q", "d", leaf("Add", "a"), leaf("Sub", "s"))], vec![], &["d"], vec![]);
    let outer = choose("p", "y", inner, leaf("Mul", "m"));
    let inputs = vec![value("p", BOOL, &[]), value("q", BOOL, &[]), value("x", FLOAT, &[1])];
    let network = load(&model(graph(vec![outer], inputs, &["y"], vec![floats("w", &[1], vec![3.0])])));
    for (p, q, expected, slope) in [(true, true, 8.0, 1.0), (true, false, 2.0, 1.0), (false, true, 15.0, 3.0)]
    {
        let flag = |truth: bool| Tensor::scalar(evenkeel_kernels::buffer::Flag::from(truth));
        let inputs = [("p", flag(p)), ("q", flag(q)), ("x", Tensor::new(&[1], vec![5.0f32]))];
        let trace = network.trace(&inputs, &["y"]).unwrap();
        assert_eq!(trace.tensors()[0].values(), Some(&[expected as f32][..]));
        let gradients = trace.pullback(&[("y", Tensor::new(&[1], vec![1.0f32]))]).unwrap();
        assert_eq!(gradients.len(), 1);
        assert_eq!(gradients[0].1.values(), Some(&[slope as f32][..]));
    }
}

#[test]
fn operator_sets_outside_the_range_are_refused() {
    for version in [5, 99] {
        let mut message = model(graph(identity("x"), vec![value("x", FLOAT, &[1])], &["y"], vec![]));
        message.opset_import[0].version = version;
        let outcome = Network::from_bytes(message.encode_to_vec(), Limits::default());
        assert!(matches!(outcome, Err(Error::Unsupported(_))), "opset {version}");
    }
}
