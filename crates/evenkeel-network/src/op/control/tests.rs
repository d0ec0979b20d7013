use std::sync::Arc;

use evenkeel_kernels::buffer::{Flag, Pool};

use super::super::proof::{Numbers, build, outputs, prove_gradient};
use super::super::{Attribute, Call, Operator};
use crate::graph::{Body, Graph};
use crate::tensor::{DType, Limits, Room, Tensor};

fn op(name: &str, attributes: &[(&str, Attribute)], inputs: usize) -> Arc<dyn Operator> {
    build(name, 13, attributes, inputs).into()
}

fn concat() -> Arc<dyn Operator> {
    op("Concat", &[("axis", Attribute::Int(0))], 2)
}

fn finished(mut graph: Graph, outputs: &[&str], declared: usize, captures: &[&str]) -> Attribute {
    graph.outputs = outputs.iter().map(|name| graph.value(name)).collect();
    graph.sort().expect("sorts");
    let captures = captures.iter().map(|name| name.to_string()).collect();
    Attribute::Graph(Box::new(Body::new(graph, declared, captures)))
}

/// Carries `v` to the norms of pairs of `(v, outer)`; what lies between is there to be collected.
fn step(declared: &[(&str, DType)]) -> Graph {
    let mut graph = Graph::default();
    for &(name, dtype) in declared {
        graph.input(name, dtype, None);
    }
    graph.input("outer", DType::F32, None);
    graph.node("Concat", concat(), &["v", "outer"], &["joined"]);
    let axes = Tensor::new(&[2], vec![0i64, 1]);
    graph.constant("axes", axes).expect("new");
    graph.node("Unsqueeze", op("Unsqueeze", &[], 2), &["joined", "axes"], &["deep"]);
    let two = Attribute::Ints(vec![2]);
    let pool = op("LpPool", &[("kernel_shape", two.clone()), ("strides", two)], 1);
    graph.node("LpPool", pool, &["deep"], &["pooled"]);
    graph.node("Squeeze", op("Squeeze", &[], 2), &["pooled", "axes"], &["next"]);
    graph
}

fn looped() -> Box<dyn Operator> {
    let mut graph = step(&[("trip", DType::I64), ("going", DType::Bool), ("v", DType::F32)]);
    graph.node("Identity", op("Identity", &[], 1), &["going"], &["go_on"]);
    let body = finished(graph, &["go_on", "next", "joined"], 3, &["outer"]);
    build("Loop", 13, &[("body", body)], 4)
}

#[test]
fn loops_carry_collect_and_pull_back() {
    let mut numbers = Numbers::new(41);
    let x = Some(numbers.tensor(&[4], 0.5, 1.0));
    let outer = Some(numbers.tensor(&[4], 0.5, 1.0));
    let trips = Some(Tensor::scalar(3i64));
    let inputs = [trips, None, x, outer];
    let ys = outputs(&looped().into(), &inputs, 2);
    assert_eq!((ys[0].shape(), ys[1].shape()), (&[4][..], &[3, 8][..]));
    prove_gradient(looped(), &inputs, 2, 1e-4);
}

#[test]
fn endless_loops_end() {
    let limits = Limits { loop_trips: 1000, ..Limits::default() };
    let room = Room::new(Pool::new(1 << 24), limits);
    let x = Some(Tensor::new(&[4], vec![1.0f32; 4]));
    let call = Call { inputs: vec![None, None, x.clone(), x], wants: &[false; 4], outputs: 2, room: &room };
    assert!(looped().apply(call).is_err());
}

#[test]
fn scans_slice_stack_and_pull_back() {
    let mut graph = step(&[("v", DType::F32), ("slice", DType::F32)]);
    graph.node("Concat", concat(), &["slice", "joined"], &["both"]);
    let body = finished(graph, &["next", "both"], 2, &["outer"]);
    let attributes = [
        ("body", body),
        ("num_scan_inputs", Attribute::Int(1)),
        ("scan_input_axes", Attribute::Ints(vec![1])),
        ("scan_input_directions", Attribute::Ints(vec![1])),
        ("scan_output_axes", Attribute::Ints(vec![-1])),
    ];
    let mut numbers = Numbers::new(42);
    let [state, scanned, outer] =
        [&[4][..], &[2, 3], &[4]].map(|shape| Some(numbers.tensor(shape, 0.5, 1.0)));
    let inputs = [state, scanned, outer];
    let ys = outputs(&build("Scan", 11, &attributes, 3).into(), &inputs, 2);
    assert_eq!((ys[0].shape(), ys[1].shape()), (&[4][..], &[10, 3][..]));
    prove_gradient(build("Scan", 11, &attributes, 3), &inputs, 2, 1e-4);
}

#[test]
fn the_branch_taken_answers_and_pulls_back() {
    let branch = |captures: &[&str], given: [&str; 2]| {
        let mut graph = Graph::default();
        captures.iter().for_each(|name| {
            graph.input(name, DType::F32, None);
        });
        graph.node("Concat", concat(), &given, &["y"]);
        finished(graph, &["y"], 0, captures)
    };
    let attributes =
        [("else_branch", branch(&["b", "c"], ["b", "c"])), ("then_branch", branch(&["a"], ["a", "a"]))];
    let mut numbers = Numbers::new(43);
    let [a, b, c] = [2, 3, 1].map(|size| Some(numbers.tensor(&[size], -1.0, 1.0)));
    for (taken, size) in [(true, 4), (false, 4)] {
        let condition = Some(Tensor::scalar(Flag::from(taken)));
        let inputs = [condition, b.clone(), c.clone(), a.clone()];
        let ys = outputs(&build("If", 13, &attributes, 4).into(), &inputs, 1);
        assert_eq!(ys[0].shape(), &[size]);
        prove_gradient(build("If", 13, &attributes, 4), &inputs, 1, 1e-6);
    }
}
