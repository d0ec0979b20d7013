//! `evenkeel model inspect`: inputs, outputs, operators, parameters, work and memory of a network.

use std::collections::BTreeMap;

use anyhow::Result;
use evenkeel_network::Network;
use evenkeel_network::graph::{Dim, Input};
use serde_json::json;

use super::network_args::{NetworkArgs, borrowed};
use super::tensors;
use crate::units::{bytes, count};

/// Inputs, outputs, operators, parameters, FLOPs and memory; what cannot be run is listed
#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    subject: NetworkArgs,
    /// List every tensor that can be asked for by name, with its shape; those that `model init` proposes are marked
    #[arg(long)]
    tensors: bool,
    /// For machines
    #[arg(long)]
    json: bool,
}

/// What running the network once at this size takes.
struct Cost {
    flops: f64,
    forward_bytes: usize,
    tape_bytes: usize,
    gradient_bytes: usize,
}

fn cost(network: &Network, subject: &NetworkArgs) -> Result<Cost> {
    let inputs = subject.inputs(network)?;
    let (inputs, outputs) = (borrowed(&inputs), network.outputs().collect::<Vec<_>>());
    let pool = network.pool();
    pool.reset_peak();
    let flops = network.flops(&inputs, &outputs)?;
    pool.reset_peak();
    drop(network.run(&inputs, &outputs)?);
    let forward_bytes = pool.peak_bytes();
    pool.reset_peak();
    let trace = network.trace(&inputs, &outputs)?;
    let held: usize = trace.tensors().iter().map(|tensor| tensor.stored_bytes()).sum();
    let tape_bytes = pool.live_bytes().saturating_sub(held);
    let cotangents: Vec<_> = outputs
        .iter()
        .zip(trace.tensors())
        .filter(|(_, tensor)| tensor.dtype().is_float())
        .map(|(name, tensor)| (*name, tensor.clone()))
        .collect();
    trace.pullback(&cotangents)?;
    Ok(Cost { flops, forward_bytes, tape_bytes, gradient_bytes: pool.peak_bytes() })
}

fn shape(input: &Input) -> String {
    match &input.dims {
        None => "of any shape".into(),
        Some(dims) => format!("[{}]", dims.iter().map(Dim::to_string).collect::<Vec<_>>().join(", ")),
    }
}

pub(crate) fn run(args: InspectArgs) -> Result<()> {
    let network = args.subject.load()?;
    let graph = network.graph();
    let mut operators: BTreeMap<&str, usize> = BTreeMap::new();
    graph.nodes.iter().for_each(|node| *operators.entry(&*node.operator).or_default() += 1);
    let (parameters, parameter_bytes) = network.parameters();
    let cost = cost(&network, &args.subject)?;
    let inputs: Vec<(&str, &Input)> = network.inputs().collect();
    let given = args.subject.inputs(&network)?;
    let at: Vec<String> = given.iter().map(|(_, tensor)| format!("{:?}", tensor.shape())).collect();
    let tensors = args.tensors.then(|| tensors::rows(&network, &args.subject)).transpose()?;
    if args.json {
        let value = json!({
            "model": args.subject.name(),
            "inputs": inputs.iter().map(|(name, input)| json!({"name": name, "type": input.dtype.to_string(), "shape": shape(input)})).collect::<Vec<_>>(),
            "outputs": network.outputs().collect::<Vec<_>>(),
            "operators": operators,
            "parameters": parameters,
            "parameter_bytes": parameter_bytes,
            "at": at,
            "flops": cost.flops,
            "forward_bytes": cost.forward_bytes,
            "tape_bytes": cost.tape_bytes,
            "gradient_bytes": cost.gradient_bytes,
            "tensors": tensors.as_deref().map(tensors::value),
        });
        println!("{}", serde_json::to_string_pretty(&value)?);
        return Ok(());
    }
    println!("{}", args.subject.name());
    for (name, input) in &inputs {
        println!("  input       {name}  {} {}", input.dtype, shape(input));
    }
    for name in network.outputs() {
        println!("  output      {name}");
    }
    let listed: Vec<String> = operators.iter().map(|(name, count)| format!("{name} {count}")).collect();
    println!("  operators   {} nodes: {}", graph.nodes.len(), listed.join(", "));
    println!("  parameters  {} ({})", count(parameters as f64), bytes(parameter_bytes));
    println!("  at {}", at.join(", "));
    println!("    work      {}FLOP forward", count(cost.flops));
    println!("    memory    {} forward", bytes(cost.forward_bytes));
    println!(
        "              {} forward + gradient, {} of it the tape",
        bytes(cost.gradient_bytes),
        bytes(cost.tape_bytes)
    );
    if let Some(rows) = &tensors {
        tensors::print(rows);
    }
    Ok(())
}
