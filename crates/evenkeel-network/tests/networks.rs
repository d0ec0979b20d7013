//! Whole networks against PyTorch: values and input gradients of the fixtures in testdata/networks (made by make.py there), for
//! the fast walk, the literal one, and any number of threads.

use std::path::PathBuf;

use evenkeel_network::format::npz;
use evenkeel_network::{Network, Tensor};

const NAMES: [&str; 6] = ["resnet", "dilated", "depthwise", "unet", "transformer", "swish"];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/networks")
}

/// The stored arrays of one input size: input, output, cotangent, gradient.
struct Case {
    x: Tensor,
    y: Tensor,
    c: Tensor,
    g: Tensor,
}

fn cases(name: &str) -> Vec<Case> {
    let stored = npz::load(&folder().join(format!("{name}.npz"))).expect("fixture");
    let array =
        |key: String| stored.iter().find(|(k, _)| *k == key).map(|(_, t)| t.clone()).expect("stored array");
    let case = |i: usize| Case {
        x: array(format!("x{i}")),
        y: array(format!("y{i}")),
        c: array(format!("c{i}")),
        g: array(format!("g{i}")),
    };
    vec![case(0), case(1)]
}

fn load(name: &str) -> Network {
    Network::load(folder().join(format!("{name}.onnx"))).expect("loads")
}

fn assert_close(got: &Tensor, expected: &Tensor, tolerance: f32, what: &str) {
    assert_eq!(got.shape(), expected.shape(), "{what}");
    let (got, expected) = (got.values::<f32>().expect("f32"), expected.values::<f32>().expect("f32"));
    let largest = expected.iter().fold(0f32, |m, v| m.max(v.abs()));
    let worst = got.iter().zip(expected).fold(0f32, |m, (a, b)| m.max((a - b).abs()));
    assert!(worst <= tolerance * largest, "{what}: off by {worst} with values up to {largest}");
}

fn answer(network: &Network, case: &Case) -> (Tensor, Tensor) {
    let trace = network.trace(&[("x", case.x.clone())], &["y"]).expect("runs");
    let gradients = trace.pullback(&[("y", case.c.clone())]).expect("pulls back");
    (trace.tensors()[0].clone(), gradients[0].1.clone())
}

#[test]
fn values_and_gradients_equal_pytorch() {
    for name in NAMES {
        let network = load(name);
        for (i, case) in cases(name).iter().enumerate() {
            for (walk, network) in [("fast", &network), ("literal", &network.literal())] {
                let (y, g) = answer(network, case);
                assert_close(&y, &case.y, 1e-4, &format!("{name} {i} {walk} values"));
                assert_close(&g, &case.g, 1e-4, &format!("{name} {i} {walk} gradient"));
            }
        }
    }
}

#[test]
fn bytes_do_not_depend_on_threads_or_batch() {
    for name in NAMES {
        let network = load(name);
        let case = &cases(name)[1];
        let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("pool");
        let bits = |tensor: &Tensor| {
            tensor.values::<f32>().expect("f32").iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        };
        let (y, g) = pool(1).install(|| answer(&network, case));
        for threads in [2, 3] {
            let (other_y, other_g) = pool(threads).install(|| answer(&network, case));
            assert_eq!(bits(&y), bits(&other_y), "{name}, {threads} threads");
            assert_eq!(bits(&g), bits(&other_g), "{name}, {threads} threads");
        }
        let first = |tensor: &Tensor| {
            let values = tensor.values::<f32>().expect("f32");
            let mut shape = tensor.shape().to_vec();
            shape[0] = 1;
            Tensor::new(&shape, values[..values.len() / tensor.shape()[0]].to_vec())
        };
        let alone = Case { x: first(&case.x), y: first(&case.y), c: first(&case.c), g: first(&case.g) };
        let (lone_y, lone_g) = answer(&network, &alone);
        assert_eq!(bits(&first(&y)), bits(&lone_y), "{name}, batch");
        assert_eq!(bits(&first(&g)), bits(&lone_g), "{name}, batch");
    }
}

#[test]
fn a_walk_without_a_tape_takes_fewer_steps_to_the_same_bytes() {
    for name in NAMES {
        let network = load(name);
        for case in cases(name) {
            let inputs = [("x", case.x)];
            let bare = network.run(&inputs, &["y"]).expect("runs");
            let taped = network.trace(&inputs, &["y"]).expect("runs");
            let bits = |tensor: &Tensor| {
                tensor.values::<f32>().expect("f32").iter().map(|v| v.to_bits()).collect::<Vec<_>>()
            };
            assert_eq!(bits(&bare[0]), bits(&taped.tensors()[0]), "{name}");
        }
        let steps = |taped| network.plan(&["y"], taped).expect("a plan").steps.len();
        // Pairs of convolutions, and smooth activations that end a pass.
        let fewer = match name {
            "depthwise" => 3 + 2,
            "unet" => 1,
            "transformer" => 2,
            "swish" => 2 + 7,
            _ => 0,
        };
        assert_eq!(steps(true) - steps(false), fewer, "{name}");
    }
}

#[test]
fn a_tensor_in_the_middle_can_be_asked_for_and_carry_a_cotangent() {
    let network = load("resnet");
    let case = &cases("resnet")[0];
    let graph = network.graph();
    let middle: Vec<&str> = graph
        .nodes
        .iter()
        .filter(|node| ["Add", "BatchNormalization", "Conv", "Relu", "MaxPool"].contains(&&*node.operator))
        .filter_map(|node| node.outputs[0].map(|id| &*graph.values[id].name))
        .collect();
    assert!(middle.len() > 8);
    for name in middle {
        let pull = |network: &Network| {
            let trace = network.trace(&[("x", case.x.clone())], &[name, "y"]).expect("runs");
            let middle = trace.tensors()[0].clone();
            let cotangents = [(name, middle.clone()), ("y", case.c.clone())];
            (middle, trace.pullback(&cotangents).expect("pulls back")[0].1.clone())
        };
        let (fast, literal) = (pull(&network), pull(&network.literal()));
        assert_close(&fast.0, &literal.0, 1e-4, name);
        assert_close(&fast.1, &literal.1, 1e-4, name);
    }
}
