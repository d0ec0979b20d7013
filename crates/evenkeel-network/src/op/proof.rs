//! How operators are proved in tests: the pullback in f32 (and f64) against central differences of the forward in f64.

use std::sync::Arc;

use evenkeel_kernels::buffer::Pool;

use super::{Attribute, Attributes, Back, Call, Definition, Gradient, Operator, registry};
use crate::graph::Graph;
use crate::plan::Plan;
use crate::run::walk;
use crate::tensor::{DType, Limits, Room, Tensor};

/// A seeded stream of numbers in -1..1.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// A tensor of f64 between `low` and `high`.
    pub(crate) fn tensor(&mut self, shape: &[usize], low: f64, high: f64) -> Tensor {
        let count = shape.iter().product();
        let values: Vec<f64> = (0..count).map(|_| low + (high - low) * (self.next() + 1.0) / 2.0).collect();
        Tensor::new(shape, values)
    }
}

pub(crate) fn room() -> Room {
    Room::new(Pool::new(1 << 30), Limits::default())
}

/// The operator a file with these attributes would get at this version of the operator set.
pub(crate) fn build(
    name: &str,
    opset: i64,
    attributes: &[(&str, Attribute)],
    inputs: usize,
) -> Box<dyn Operator> {
    let attributes =
        Attributes(attributes.iter().map(|(name, value)| (name.to_string(), value.clone())).collect());
    let definition = Definition { operator: name, opset, attributes: &attributes, inputs, outputs: 1 };
    let entry = registry::find("", name).unwrap_or_else(|| panic!("{name} is not in the table"));
    (entry.build)(&definition).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

fn single(op: Arc<dyn Operator>, inputs: &[Option<Tensor>], outputs: usize, free_layout: bool) -> Arc<Plan> {
    let mut graph = Graph::default();
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let given: Vec<&str> =
        names.iter().zip(inputs).map(|(n, x)| if x.is_some() { &**n } else { "" }).collect();
    for (name, tensor) in names.iter().zip(inputs) {
        graph.input(name, tensor.as_ref().map_or(DType::F32, Tensor::dtype), None);
    }
    let made: Vec<String> = (0..outputs).map(|i| format!("y{i}")).collect();
    let made: Vec<&str> = made.iter().map(|name| &**name).collect();
    graph.node("Tested", op, &given, &made);
    graph.outputs = made.iter().map(|name| graph.value(name)).collect();
    graph.sort().expect("one node");
    let wanted = graph.outputs.clone();
    Arc::new(if free_layout { Plan::fused(&graph, &wanted) } else { Plan::literal(&graph, &wanted) })
}

/// Floats as f32.
pub(crate) fn narrow(tensor: &Tensor) -> Tensor {
    match tensor.values::<f64>() {
        Some(values) => Tensor::new(tensor.shape(), values.iter().map(|&v| v as f32).collect::<Vec<_>>()),
        None => tensor.clone(),
    }
}

/// The outputs of an operator on these inputs.
pub(crate) fn outputs(op: &Arc<dyn Operator>, inputs: &[Option<Tensor>], count: usize) -> Vec<Tensor> {
    let plan = single(op.clone(), inputs, count, false);
    walk(&plan, inputs.to_vec(), &vec![false; inputs.len()], &room()).expect("runs").0
}

/// Proves the pullback with respect to every input of floats: `inputs` are f64 (or integers); all `count` outputs carry a
/// seeded cotangent. The gradient in f32, in plain and in free layout, must agree with central differences in f64 to
/// `tolerance` relative to the largest entry.
pub(crate) fn prove_gradient(op: Box<dyn Operator>, inputs: &[Option<Tensor>], count: usize, tolerance: f64) {
    let op: Arc<dyn Operator> = op.into();
    let exact = outputs(&op, inputs, count);
    let mut numbers = Numbers::new(99);
    let seeds: Vec<Tensor> = exact.iter().map(|y| numbers.tensor(y.shape(), -1.0, 1.0)).collect();
    let value = |inputs: &[Option<Tensor>]| -> f64 {
        let dot = |(y, s): (&Tensor, &Tensor)| -> f64 {
            let (Some(y), Some(s)) = (y.values::<f64>(), s.values::<f64>()) else { return 0.0 };
            y.iter().zip(s).map(|(a, b)| a * b).sum()
        };
        outputs(&op, inputs, count).iter().zip(&seeds).map(dot).sum()
    };
    for free_layout in [false, true] {
        let narrowed: Vec<Option<Tensor>> = inputs.iter().map(|x| x.as_ref().map(narrow)).collect();
        let plan = single(op.clone(), &narrowed, count, free_layout);
        let (ys, tape) = walk(&plan, narrowed.clone(), &vec![true; inputs.len()], &room()).expect("runs");
        let cotangents =
            ys.iter().zip(&seeds).map(|(y, s)| y.dtype().is_float().then(|| narrow(s))).collect();
        let gradients = tape.expect("taped").pull(cotangents, &room()).expect("pulls back");
        for (i, input) in inputs.iter().enumerate() {
            let Some(x) = input.as_ref().and_then(|x| x.values::<f64>()) else { continue };
            if !op.passes_gradient(i) {
                continue;
            }
            let shape = input.as_ref().expect("present").shape();
            let step = 1e-5;
            let differences: Vec<f64> = (0..x.len())
                .map(|j| {
                    let moved = |by: f64| {
                        let mut values = x.to_vec();
                        values[j] += by;
                        let mut all = inputs.to_vec();
                        all[i] = Some(Tensor::new(shape, values));
                        value(&all)
                    };
                    (moved(step) - moved(-step)) / (2.0 * step)
                })
                .collect();
            let zeros = vec![0.0f32; x.len()];
            let got = gradients[i].as_ref().map_or(&zeros[..], |g| g.values::<f32>().expect("f32 gradient"));
            let largest = differences.iter().fold(1e-3f64, |m, d| m.max(d.abs()));
            for (j, (&g, &d)) in got.iter().zip(&differences).enumerate() {
                let error = (f64::from(g) - d).abs() / largest;
                assert!(
                    error <= tolerance,
                    "{op:?}: input {i} element {j}: pullback {g}, differences {d} (free layout: {free_layout})"
                );
            }
        }
    }
}

/// Proves that an operator that reads any layout answers alike, forwards and back, whether each of its rank-4 inputs comes plain
/// or channels last. Inputs as for [`prove_gradient`].
pub(crate) fn prove_layouts(op: Box<dyn Operator>, inputs: &[Option<Tensor>]) {
    let room = room();
    let narrowed: Vec<Option<Tensor>> = inputs.iter().map(|x| x.as_ref().map(narrow)).collect();
    let wants: Vec<bool> = narrowed
        .iter()
        .enumerate()
        .map(|(i, x)| x.as_ref().is_some_and(|x| x.dtype().is_float()) && op.passes_gradient(i))
        .collect();
    let answer = |turned: usize| -> (Vec<Tensor>, Vec<Option<Tensor>>) {
        let turn = |(i, x): (usize, &Option<Tensor>)| {
            let x = x.as_ref()?;
            let map = turned >> i & 1 == 1 && x.rank() == 4 && x.dtype() == DType::F32;
            // A copy, so that an operator may write in place.
            Some(if map { x.to_channels_last(&room).expect("fits") } else { x.copied(&room).expect("fits") })
        };
        let inputs = narrowed.iter().enumerate().map(turn).collect();
        let answer = op.apply(Call { inputs, wants: &wants, outputs: 1, room: &room }).expect("runs");
        let mut numbers = Numbers::new(7);
        let mut seed = narrow(&numbers.tensor(answer.outputs[0].shape(), -1.0, 1.0));
        seed = seed.in_layout(answer.outputs[0].layout(), &room).expect("fits");
        if let Some(mask) = &answer.mask {
            seed = crate::run::masked(seed, mask, &room).expect("fits");
        }
        let mut gradients: Vec<Gradient> = narrowed.iter().map(|_| Gradient::default()).collect();
        let places: Vec<Option<usize>> =
            wants.iter().enumerate().map(|(i, &wanted)| wanted.then_some(i)).collect();
        if let Some(pullback) = &answer.pullback {
            let cotangents = vec![Some(seed)];
            let mut back = Back { cotangents, places: &places, gradients: &mut gradients, room: &room };
            pullback(&mut back).expect("pulls back");
        }
        let plain = |t: Tensor| t.to_plain(&room).expect("fits");
        let gradients = gradients.into_iter().map(|g| g.sum.map(plain)).collect();
        (answer.outputs.into_iter().map(plain).collect(), gradients)
    };
    let close = |a: &Tensor, b: &Tensor, what: &str| {
        assert_eq!(a.shape(), b.shape(), "{op:?}: {what}");
        let (Some(a), Some(b)) = (a.values::<f32>(), b.values::<f32>()) else { return };
        let largest = a.iter().fold(1e-3f32, |m, v| m.max(v.abs()));
        let alike = a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-5 * largest || a == b);
        assert!(alike, "{op:?}: {what}: {a:?} and {b:?}");
    };
    let (ys, gradients) = answer(0);
    for turned in 1..1 << inputs.len() {
        let (others, other_gradients) = answer(turned);
        ys.iter().zip(&others).for_each(|(a, b)| close(a, b, "outputs"));
        for (a, b) in gradients.iter().zip(&other_gradients) {
            assert_eq!(a.is_some(), b.is_some());
            if let (Some(a), Some(b)) = (a, b) {
                close(a, b, "gradients");
            }
        }
    }
}
