//! Every rewrite of a graph gives what the nodes it replaces give, forwards and backwards, and takes place where it should.

use std::sync::Arc;

use super::Graph;
use crate::network::Network;
use crate::op::Attribute;
use crate::op::proof::build;
use crate::tensor::{DType, Limits, Tensor};

/// Numbers in -1..1 that follow from their place.
fn numbers(shape: &[usize], seed: usize) -> Tensor {
    let value = |i: usize| (((i + 7 * seed + 3) * 2_654_435_761) % 1009) as f32 / 504.5 - 1.0;
    Tensor::new(shape, (0..shape.iter().product()).map(value).collect::<Vec<f32>>())
}

fn integers(values: &[i64]) -> Tensor {
    Tensor::new(&[values.len()], values.to_vec())
}

struct Draft(Graph);

impl Draft {
    fn new() -> Draft {
        let mut graph = Graph::default();
        graph.input("x", DType::F32, None);
        Draft(graph)
    }

    fn constant(mut self, name: &str, tensor: Tensor) -> Draft {
        self.0.constant(name, tensor).unwrap();
        self
    }

    fn node(
        mut self,
        operator: &str,
        attributes: &[(&str, Attribute)],
        inputs: &[&str],
        output: &str,
    ) -> Draft {
        let op = Arc::from(build(operator, 17, attributes, inputs.len()));
        self.0.node(operator, op, inputs, &[output]);
        self
    }

    /// Checks that the fused plan to `y` has a step called `expected` and answers like the literal one on `x`.
    fn prove(mut self, x: Tensor, expected: &str) {
        let y = self.0.value("y");
        self.0.outputs.push(y);
        let network = Network::from_graph(self.0, Limits::default()).unwrap();
        let plan = network.plan(&["y"], true).unwrap();
        let operators: Vec<&str> = plan.steps.iter().map(|step| &*step.operator).collect();
        assert!(operators.contains(&expected), "{operators:?}");
        let answer = |network: &Network| {
            let trace = network.trace(&[("x", x.clone())], &["y"]).unwrap();
            let bare = network.run(&[("x", x.clone())], &["y"]).unwrap().remove(0);
            let y = trace.tensors()[0].clone();
            assert_eq!(bare.values::<f32>(), y.values::<f32>(), "with and without a tape, {expected}");
            let g = trace.pullback(&[("y", numbers(y.shape(), 5))]).unwrap().remove(0).1;
            (y, g)
        };
        let (fast, exact) = (answer(&network), answer(&network.literal()));
        for (a, b) in [(fast.0, exact.0), (fast.1, exact.1)] {
            assert_eq!(a.shape(), b.shape(), "{expected}");
            for (a, b) in a.values::<f32>().unwrap().iter().zip(b.values::<f32>().unwrap()) {
                assert!((a - b).abs() <= 2e-5 * b.abs().max(1.0), "{expected}: {a} instead of {b}");
            }
        }
    }
}

fn pads() -> [(&'static str, Attribute); 1] {
    [("pads", Attribute::Ints(vec![1, 1, 1, 1]))]
}

/// A convolution from `x` to `m`, so that what follows meets a channels-last map.
fn from_map(channels: usize) -> Draft {
    Draft::new().constant("cw", numbers(&[channels, 3, 3, 3], 1)).node("Conv", &pads(), &["x", "cw"], "m")
}

#[test]
fn products_with_constants_take_in_what_follows() {
    let draft = || {
        Draft::new()
            .constant("w", numbers(&[16, 24], 1))
            .constant("b", numbers(&[24], 2))
            .constant("v", numbers(&[24, 16], 3))
            .node("MatMul", &[], &["x", "w"], "p")
            .node("Add", &[], &["b", "p"], "q")
    };
    draft().node("Relu", &[], &["q"], "y").prove(numbers(&[2, 5, 16], 4), "MatMul+Add+Relu");
    let residual = draft().node("Relu", &[], &["q"], "r").node("MatMul", &[], &["r", "v"], "s");
    residual.node("Add", &[], &["s", "x"], "y").prove(numbers(&[3, 16], 4), "MatMul+Add");
    // A residual that is broadcast is left to the nodes themselves.
    let wide = draft().node("ReduceMean", &[("axes", Attribute::Ints(vec![1]))], &["q"], "r");
    wide.node("MatMul", &[], &["x", "w"], "s")
        .node("Add", &[], &["s", "r"], "y")
        .prove(numbers(&[2, 5, 16], 4), "MatMul+Add");
    let turned =
        [("transB", Attribute::Int(1)), ("alpha", Attribute::Float(0.5)), ("beta", Attribute::Float(2.0))];
    let gemm = Draft::new().constant("w", numbers(&[24, 16], 1)).constant("b", numbers(&[24], 2));
    gemm.node("Gemm", &turned, &["x", "w", "b"], "p")
        .node("Relu", &[], &["p"], "y")
        .prove(numbers(&[7, 16], 4), "Gemm+Relu");
}

#[test]
fn gelu_written_out_is_one_activation() {
    let parts = || {
        from_map(8)
            .constant("root", Tensor::scalar(std::f32::consts::SQRT_2))
            .constant("one", Tensor::scalar(1.0f32))
            .constant("half", Tensor::scalar(0.5f32))
            .node("Div", &[], &["m", "root"], "d")
            .node("Erf", &[], &["d"], "e")
            .node("Add", &[], &["e", "one"], "a")
    };
    let x = || numbers(&[1, 3, 6, 5], 9);
    parts().node("Mul", &[], &["m", "a"], "p").node("Mul", &[], &["p", "half"], "y").prove(x(), "Gelu");
    parts().node("Mul", &[], &["m", "half"], "h").node("Mul", &[], &["h", "a"], "y").prove(x(), "Gelu");
}

#[test]
fn gates_are_one_activation() {
    let gated = from_map(11).node("Sigmoid", &[], &["m"], "s").node("Mul", &[], &["s", "m"], "y");
    gated.prove(numbers(&[2, 3, 7, 5], 9), "Sigmoid+Mul");
}

#[test]
fn a_shuffle_of_channels_is_one_copy() {
    let order = [("perm", Attribute::Ints(vec![0, 2, 1, 3, 4]))];
    for (channels, apart, together) in [
        (12, [1, 3, 4, 6, 5], [1, 12, 6, 5]),
        (12, [-1, 2, 6, 6, 5], [1, -1, 6, 5]),
        (10, [1, -1, 2, 6, 5], [-1, 10, 6, 5]),
    ] {
        let draft = from_map(channels).constant("s", integers(&apart)).constant("t", integers(&together));
        let draft = draft.node("Reshape", &[], &["m", "s"], "a").node("Transpose", &order, &["a"], "b");
        draft.node("Reshape", &[], &["b", "t"], "y").prove(numbers(&[1, 3, 6, 5], 2), "ChannelShuffle");
    }
    // The same nodes where the shapes mean something else.
    let draft =
        from_map(12).constant("s", integers(&[1, 3, 8, 5, 3])).constant("t", integers(&[1, 12, 6, 5]));
    let draft = draft.node("Reshape", &[], &["m", "s"], "a").node("Transpose", &order, &["a"], "b");
    draft.node("Reshape", &[], &["b", "t"], "y").prove(numbers(&[1, 3, 6, 5], 2), "ChannelShuffle");
}

#[test]
fn a_product_with_mostly_zeros_is_a_map_along_its_axis() {
    // Linear interpolation from 6 to 12 and from 5 to 10 places; one row of zeros.
    let matrix = |input: usize, output: usize, turned: bool| {
        let mut values = vec![0.0f32; input * output];
        for o in 1..output {
            for (i, w) in [(o / 2, 0.75), ((o / 2 + 1).min(input - 1), 0.25)] {
                values[if turned { i * output + o } else { o * input + i }] += w;
            }
        }
        Tensor::new(&if turned { [input, output] } else { [output, input] }, values)
    };
    let both = |draft: Draft| {
        draft.constant("l", matrix(16, 32, false)).constant("r", matrix(15, 30, true)).node(
            "MatMul",
            &[],
            &["l", "m"],
            "a",
        )
    };
    let x = || numbers(&[2, 3, 16, 15], 3);
    both(from_map(5)).node("MatMul", &[], &["a", "r"], "y").prove(x(), "MatMul sparse");
    let plain = Draft::new().node("Neg", &[], &["x"], "m");
    both(plain).node("MatMul", &[], &["a", "r"], "y").prove(x(), "MatMul sparse");
}

#[test]
fn batch_norm_and_prelu_after_a_join_are_one_pass() {
    let joined = || {
        let list = |seed| numbers(&[10], seed);
        let variance = Tensor::new(&[10], (1..11).map(|i| i as f32 / 5.0).collect::<Vec<_>>());
        from_map(5)
            .node("Concat", &[("axis", Attribute::Int(1))], &["m", "m"], "c")
            .constant("scale", list(1))
            .constant("bias", list(2))
            .constant("mean", list(3))
            .constant("var", variance)
            .constant("slope", numbers(&[10, 1, 1], 4))
    };
    let norm = ["c", "scale", "bias", "mean", "var"];
    let x = || numbers(&[2, 3, 4, 5], 8);
    let draft = joined().node("BatchNormalization", &[], &norm, "b");
    draft.node("PRelu", &[], &["b", "slope"], "y").prove(x(), "BatchNormalization+PRelu");
    joined().node("PRelu", &[], &["c", "slope"], "y").prove(x(), "PRelu");
    joined().node("BatchNormalization", &[], &norm, "y").prove(x(), "BatchNormalization");
}

#[test]
fn channels_last_and_back_are_views() {
    let out = [("perm", Attribute::Ints(vec![0, 2, 3, 1]))];
    let back = [("perm", Attribute::Ints(vec![0, 3, 1, 2]))];
    for channels in [8, 12] {
        let draft = from_map(channels).node("Transpose", &out, &["m"], "t").node("Tanh", &[], &["t"], "u");
        let draft = draft.node("Transpose", &back, &["u"], "v");
        draft.node("Add", &[], &["v", "m"], "y").prove(numbers(&[2, 3, 4, 5], 8), "Transpose");
    }
}
