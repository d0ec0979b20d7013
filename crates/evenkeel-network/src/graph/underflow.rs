//! Weights too small for a normal number are taken for zero.
//!
//! Weight decay drives the weights of dead channels below 1.2e-38, where a processor's products take far longer. Such a weight
//! changes no answer: what it adds vanishes in the rounding of any sum that matters. Numbers that are divided by or compared with are left
//! alone.

use super::{Graph, Node, ValueId};
use crate::tensor::Tensor;

/// Takes what is below the smallest normal number for zero, in every constant that is read as a weight and as nothing else.
pub(super) fn flush(graph: &mut Graph) {
    let mut only_weight = vec![true; graph.values.len()];
    graph.inputs.iter().for_each(|input| only_weight[input.value] = false);
    graph.outputs.iter().for_each(|&id| only_weight[id] = false);
    let mut weights: Vec<ValueId> = Vec::new();
    for node in &graph.nodes {
        for (i, id) in node.inputs.iter().enumerate() {
            match *id {
                Some(id) if is_weight(node, i) => weights.push(id),
                Some(id) => only_weight[id] = false,
                None => {}
            }
        }
    }
    for id in weights.into_iter().filter(|&id| only_weight[id]) {
        let Some(constant) = &mut graph.values[id].constant else { continue };
        let Some(values) = constant.values::<f32>().filter(|values| values.iter().any(|v| v.is_subnormal()))
        else {
            continue;
        };
        let mut values = values.to_vec();
        flush_values(&mut values);
        *constant = Tensor::new(constant.shape(), values);
    }
}

/// The same for numbers made from weights.
pub(crate) fn flush_values(values: &mut [f32]) {
    values.iter_mut().filter(|value| value.is_subnormal()).for_each(|value| *value = 0.0);
}

/// Whether the node does nothing with this input but multiply and add.
fn is_weight(node: &Node, input: usize) -> bool {
    match &*node.operator {
        "Conv" | "ConvTranspose" | "Gemm" | "BatchNormalization" => matches!(input, 1 | 2),
        "PRelu" => input == 1,
        "MatMul" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Graph;
    use crate::network::Network;
    use crate::op::proof::build;
    use crate::tensor::{DType, Limits, Tensor};

    const TINY: f32 = 1e-40;

    /// A convolution, a batch norm and a PReLU, with `small` where weight decay leaves next to nothing; beside them a map divided by the very
    /// tensor that is the slope of another.
    fn network(small: f32) -> Network {
        let mut graph = Graph::default();
        graph.input("x", DType::F32, None);
        let mut constant = |name: &str, shape: &[usize], values: Vec<f32>| {
            graph.constant(name, Tensor::new(shape, values)).unwrap();
        };
        constant("w", &[2, 1, 1, 1], vec![0.5, small]);
        constant("b", &[2], vec![small, -1.0]);
        constant("scale", &[2], vec![2.0, small]);
        constant("shift", &[2], vec![-small, 0.25]);
        constant("mean", &[2], vec![0.0, 0.0]);
        constant("var", &[2], vec![1.0, 1.0]);
        constant("slope", &[2, 1, 1], vec![small, 0.1]);
        constant("divisor", &[1], vec![TINY]);
        let mut node = |name: &str, inputs: &[&str], output: &str| {
            graph.node(name, Arc::from(build(name, 16, &[], inputs.len())), inputs, &[output]);
        };
        node("Conv", &["x", "w", "b"], "convolved");
        node("BatchNormalization", &["convolved", "scale", "shift", "mean", "var"], "normal");
        node("PRelu", &["normal", "slope"], "y");
        node("PRelu", &["x", "divisor"], "leaky");
        node("Div", &["x", "divisor"], "large");
        graph.outputs = ["y", "leaky", "large"].iter().map(|name| graph.value(name)).collect();
        Network::from_graph(graph, Limits::default()).unwrap()
    }

    fn answers(network: &Network, x: &[f32]) -> Vec<Vec<u32>> {
        let x = Tensor::new(&[1, 1, 1, x.len()], x.to_vec());
        let given = network.run(&[("x", x)], &["y", "leaky", "large"]).unwrap();
        given.iter().map(|t| t.values::<f32>().unwrap().iter().map(|v| v.to_bits()).collect()).collect()
    }

    #[test]
    fn a_weight_below_the_normal_numbers_is_a_zero_and_a_divisor_is_not() {
        let (tiny, zero, small) = (network(TINY), network(0.0), network(f32::MIN_POSITIVE));
        let x = [-3.0, -0.5, 0.0, 2.0];
        for (tiny, zero) in [(tiny.clone(), zero.clone()), (tiny.literal(), zero.literal())] {
            assert_eq!(answers(&tiny, &x), answers(&zero, &x));
        }
        let of = |name: &str| tiny.graph().values[tiny.graph().find(name).unwrap()].constant.clone().unwrap();
        assert_eq!(of("w").values::<f32>(), Some(&[0.5, 0.0][..]));
        assert_eq!(of("slope").values::<f32>(), Some(&[0.0, 0.1][..]));
        assert_eq!(of("divisor").values::<f32>(), Some(&[TINY][..]), "it is divided by as well");
        let large = f32::from_bits(answers(&tiny, &[1e-3])[2][0]);
        assert!((large / (1e-3 / TINY) - 1.0).abs() < 1e-3, "{large}");
        // The smallest normal number stays.
        let id = small.graph().find("w").unwrap();
        let kept = small.graph().values[id].constant.clone().unwrap();
        assert_eq!(kept.values::<f32>(), Some(&[0.5, f32::MIN_POSITIVE][..]));
    }
}
