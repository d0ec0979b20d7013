//! From a trained network to what the engine runs: an ONNX file with the batch norms folded in, and its contract.
//!
//! `gain · (Wx − mean)/√(variance + ε) + shift` is `W'x + b'` with `W' = W · gain/√…` and `b' = shift − mean · gain/√…`.

use crate::error::{Error, Result};
use crate::goal::{Goal, Task};
use crate::instance::{self, PREDICTIONS};
use crate::layer::norm::EPSILON;
use crate::net::{Net, Place, Step};
use crate::networks::{BOXES, FEATURES, PROTOTYPES, SCORES};
use evenkeel::image::write_atomically;
use evenkeel::model::{Classes, Contract, InputRule, Model, Order, PaletteRule, ResizeRule};
use evenkeel_network::graph::Dim;
use evenkeel_network::op::Attribute;
use evenkeel_network::zoo::Blueprint;
use evenkeel_network::{DType, Tensor};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The name of the input.
const INPUT: &str = "image";

/// The network as the bytes of an ONNX file. One that places boxes takes images of this size only.
///
/// # Errors
/// If the file would pass 2 GB.
pub fn to_onnx(net: &Net, goal: &Goal) -> Result<Vec<u8>> {
    Ok(drawn(net, goal).onnx()?)
}

/// As [`to_onnx`], but the graph only, and its weights as the safetensors file of this name beside it.
///
/// # Errors
/// As [`to_onnx`].
pub fn to_graph_and_weights(net: &Net, goal: &Goal, weights: &str) -> Result<(Vec<u8>, Vec<u8>)> {
    Ok(drawn(net, goal).onnx_and_weights(weights)?)
}

/// The network as the engine's blueprint.
fn drawn(net: &Net, goal: &Goal) -> Blueprint {
    let mut graph = Blueprint::new("evenkeel");
    let name = |place: Place| {
        let named = net.named.iter().find(|(_, p)| *p == place);
        named.map_or_else(|| if place == 0 { INPUT.into() } else { format!("t{place}") }, |(n, _)| n.clone())
    };
    for (i, step) in net.steps.iter().enumerate() {
        let out = name(i + 1);
        match *step {
            Step::Conv { from, conv, weight, bias } => {
                // A norm that reads this convolution takes it in.
                let folded = net.steps.iter().any(|s| matches!(s, Step::Norm { from, .. } if *from == i + 1));
                if !folded {
                    let weights = net.parameters[weight].values.clone();
                    let bias =
                        bias.map_or_else(|| vec![0.0; conv.out_c], |b| net.parameters[b].values.clone());
                    draw_conv(&mut graph, conv, (&name(from), &out), weights, bias);
                }
            }
            Step::Norm { from, gain, shift, running, skip, relu } => {
                let Step::Conv { from: source, conv, weight, .. } = net.steps[from - 1] else {
                    unreachable!("a norm follows its convolution");
                };
                let running = &net.running[running];
                let scale: Vec<f32> = (0..conv.out_c)
                    .map(|o| net.parameters[gain].values[o] / (running.variance[o] + EPSILON).sqrt())
                    .collect();
                let per = net.parameters[weight].values.len() / conv.out_c;
                let weights: Vec<f32> = net.parameters[weight]
                    .values
                    .iter()
                    .enumerate()
                    .map(|(k, w)| w * scale[k / per])
                    .collect();
                let bias: Vec<f32> = (0..conv.out_c)
                    .map(|o| net.parameters[shift].values[o] - running.mean[o] * scale[o])
                    .collect();
                let conv_out = if skip.is_none() && !relu { out.clone() } else { format!("{out}.conv") };
                draw_conv(&mut graph, conv, (&name(source), &conv_out), weights, bias);
                let mut last = conv_out;
                if let Some(skip) = skip {
                    let sum = if relu { format!("{out}.sum") } else { out.clone() };
                    graph.step("Add", &[&last, &name(skip)], &sum, []);
                    last = sum;
                }
                if relu {
                    graph.step("Relu", &[&last], &out, []);
                }
            }
            Step::Enlarge { from, factor } => {
                let scales = format!("{out}.scales");
                let by = factor as f32;
                graph.constant(&scales, Tensor::new(&[4], vec![1.0, 1.0, by, by]));
                let text = |value: &str| Attribute::Text(value.into());
                let how = [("mode", text("linear")), ("coordinate_transformation_mode", text("half_pixel"))];
                graph.step("Resize", &[&name(from), "", &scales], &out, how);
            }
            Step::Average { from } => graph.step("GlobalAveragePool", &[&name(from)], &out, []),
            Step::Add { from, other } => graph.step("Add", &[&name(from), &name(other)], &out, []),
            Step::Relu { from } => graph.step("Relu", &[&name(from)], &out, []),
            Step::MaxPool { from, pool } => {
                let sides = |side: usize, count: usize| Attribute::Ints(vec![side as i64; count]);
                let sizes = [
                    ("kernel_shape", sides(pool.kernel, 2)),
                    ("strides", sides(pool.stride, 2)),
                    ("pads", sides(pool.pad, 4)),
                ];
                graph.step("MaxPool", &[&name(from)], &out, sizes);
            }
        }
    }
    for (name, _) in &net.named {
        graph.output(name, DType::F32, 4);
    }
    let boxes = net.named.iter().any(|(name, _)| name == BOXES);
    if boxes {
        instance::draw_predictions(&mut graph, goal.classes.len(), goal.size);
        graph.output(PREDICTIONS, DType::F32, 3);
    }
    let side = |name: &str, fixed: usize| if goal.fixed { Dim::Fixed(fixed) } else { Dim::Free(name.into()) };
    let dims = vec![Dim::Fixed(1), Dim::Fixed(3), side("height", goal.size.0), side("width", goal.size.1)];
    graph.input(INPUT, DType::F32, dims);
    graph
}

fn draw_conv(
    graph: &mut Blueprint,
    conv: crate::layer::conv::Conv,
    (from, out): (&str, &str),
    weights: Vec<f32>,
    bias: Vec<f32>,
) {
    let (weight_name, bias_name) = (format!("{out}.weight"), format!("{out}.bias"));
    graph.weight(&weight_name, Tensor::new(&[conv.out_c, conv.in_c, conv.kernel, conv.kernel], weights));
    graph.weight(&bias_name, Tensor::new(&[conv.out_c], bias));
    let attributes = [
        ("kernel_shape", Attribute::Ints(vec![conv.kernel as i64; 2])),
        ("strides", Attribute::Ints(vec![conv.stride as i64; 2])),
        ("dilations", Attribute::Ints(vec![conv.dilation as i64; 2])),
        ("pads", Attribute::Ints(vec![conv.pad() as i64; 4])),
    ];
    graph.step("Conv", &[from, &weight_name, &bias_name], out, attributes);
}

/// How pixels become the network's input, and what comes out.
pub fn contract(goal: &Goal) -> Contract {
    let feature = if goal.task == Task::Semantic { SCORES } else { FEATURES };
    let instances = goal.task == Task::Instances;
    let contract = Contract {
        task: goal.task.name().into(),
        output: if instances {
            vec![PREDICTIONS.to_string(), PROTOTYPES.to_string()].into()
        } else {
            SCORES.into()
        },
        feature: feature.into(),
        input: InputRule {
            order: Order::Rgb,
            scale: 1.0,
            mean: goal.pixels.mean,
            std: goal.pixels.deviation,
            channels_last: false,
            size: goal.fixed.then_some([goal.size.0, goal.size.1]),
            resize: ResizeRule::Stretch,
            multiple: goal.multiple,
        },
        classes: Classes {
            names: goal.classes.clone().into(),
            palette: goal.colours.clone().map(PaletteRule::Colours),
            ids: goal.ids.clone(),
        },
        tables: BTreeMap::new(),
    };
    match instances {
        true => contract.with_table(&instance::rule()).expect("a rule of numbers and words is a table"),
        false => contract,
    }
}

/// The network as the method sees it, without a file.
///
/// # Errors
/// If the engine refuses it.
pub fn to_model(net: &Net, goal: &Goal) -> Result<Model> {
    let path = Path::new("network in training");
    Ok(Model::from_bytes(&to_onnx(net, goal)?, path, &contract(goal))?)
}

/// Writes the network and the contract beside it. `path` is an ONNX file with everything, or a safetensors file of the weights, which then
/// has the graph beside it as ONNX. Says where the graph is.
///
/// # Errors
/// If a file cannot be written.
pub fn save(net: &Net, goal: &Goal, path: &Path) -> Result<PathBuf> {
    let put = |path: &Path, bytes: &[u8]| write_atomically(path, bytes).map_err(|e| Error::file(path, e));
    let graph = path.with_extension("onnx");
    if path.extension().is_some_and(|kind| kind == "safetensors") {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (nodes, weights) = to_graph_and_weights(net, goal, &name)?;
        put(path, &weights)?;
        put(&graph, &nodes)?;
    } else {
        put(&graph, &to_onnx(net, goal)?)?;
    }
    let beside = Contract::path_beside(&graph);
    contract(goal).save(&beside).map_err(|e| Error::file(beside, e))?;
    Ok(graph)
}
