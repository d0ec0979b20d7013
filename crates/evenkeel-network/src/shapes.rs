//! The shapes of all tensors of a network on given inputs, seen by one plain walk that keeps nothing.

use evenkeel_kernels::parallel;

use crate::error::Result;
use crate::graph::ValueId;
use crate::network::Network;
use crate::plan::{Plan, Step, needed};
use crate::run::{self, Watch};
use crate::tensor::{DType, Room, Tensor};

/// A tensor that a node makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its value in the graph.
    pub value: ValueId,
    /// The node that makes it, as an index into the graph's nodes.
    pub node: usize,
    /// Its type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<usize>,
}

/// The outputs of every step so far.
#[derive(Default)]
struct Shapes(Vec<Vec<(DType, Vec<usize>)>>);

impl Watch for Shapes {
    fn starts(&mut self, _: &Step, _: &[Option<Tensor>], _: &[bool]) {}

    fn ends(&mut self, outputs: &[Tensor]) {
        self.0.push(outputs.iter().map(|tensor| (tensor.dtype(), tensor.shape().to_vec())).collect());
    }

    fn pulled(&mut self, _: usize) {}
}

impl Network {
    /// The tensors that lead to the network's outputs, in the order in which nodes make them, with their shapes on these inputs. Constants are
    /// not among them.
    ///
    /// # Errors
    /// As for [`Network::run`].
    pub fn shapes(&self, inputs: &[(&str, Tensor)]) -> Result<Vec<Made>> {
        let graph = self.graph();
        let plan = std::sync::Arc::new(Plan::literal(graph, &graph.outputs));
        let given = self.bind(inputs)?;
        let wants = vec![false; given.len()];
        let room = Room::new(self.pool().clone(), *self.limits());
        let mut shapes = Shapes::default();
        parallel::together(|| run::observe(&plan, given, &wants, &room, Some(&mut shapes)))?;
        let places: Vec<usize> = {
            let kept = needed(graph, &graph.nodes, &graph.outputs);
            let mut next = 0;
            let place = |outputs: &[Option<ValueId>]| {
                let found = (next..graph.nodes.len()).find(|&i| graph.nodes[i].outputs == outputs);
                next = found.map_or(next, |i| i + 1);
                found.unwrap_or_default()
            };
            let outputs: Vec<_> = kept.into_iter().map(|node| node.outputs).collect();
            outputs.iter().map(|outputs| outputs.as_slice()).map(place).collect()
        };
        let mut made = Vec::new();
        for (node, outputs) in places.into_iter().zip(shapes.0) {
            for (value, (dtype, shape)) in graph.nodes[node].outputs.iter().zip(outputs) {
                made.extend(value.map(|value| Made { value, node, dtype, shape }));
            }
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tensor_has_the_shape_that_a_run_gives_it() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/networks/unet.onnx");
        let network = Network::load(path).unwrap();
        let (name, _) = network.inputs().next().unwrap();
        let input = Tensor::new(&[1, 3, 32, 48], vec![0.5f32; 3 * 32 * 48]);
        let made = network.shapes(&[(name, input.clone())]).unwrap();
        assert!(made.len() > 10);
        for tensor in made.iter().filter(|tensor| tensor.dtype == DType::F32) {
            let asked = &network.graph().values[tensor.value].name;
            let got = network.run(&[(name, input.clone())], &[asked]).unwrap();
            assert_eq!(got[0].shape(), tensor.shape, "{asked}");
            assert!(network.graph().nodes[tensor.node].outputs.contains(&Some(tensor.value)));
        }
    }
}
