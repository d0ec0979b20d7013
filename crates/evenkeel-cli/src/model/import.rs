//! `evenkeel model import`: a PyTorch checkpoint of a known network as a file every command takes.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use evenkeel_network::{Limits, zoo};

use crate::units::count;

/// Turn a PyTorch checkpoint of a known architecture into a model file
///
/// The architecture is recognised from the names and shapes of the tensors. Nothing in the checkpoint is executed.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// The checkpoint (.pth, .pt, .th, .tar) or safetensors file
    checkpoint: PathBuf,
    /// The architecture, such as drnseg_d_22, where the tensors fit more than one
    #[arg(long, value_name = "NAME")]
    arch: Option<String>,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write ONNX, which other programs run too, instead of safetensors
    #[arg(long)]
    onnx: bool,
}

pub(crate) fn run(args: ImportArgs) -> Result<()> {
    let path = args.checkpoint.display();
    if !zoo::is_checkpoint(&args.checkpoint)? {
        bail!("{path} is neither a PyTorch checkpoint nor a safetensors file");
    }
    let checkpoint = zoo::load(&args.checkpoint).with_context(|| format!("cannot import {path}"))?;
    let arch = args.arch.as_deref();
    let blueprint = checkpoint.blueprint(arch).with_context(|| format!("cannot import {path}"))?;
    let network = blueprint.network(Limits::default())?;
    let bytes = if args.onnx { blueprint.onnx()? } else { blueprint.safetensors(&checkpoint.weights)? };
    std::fs::write(&args.output, bytes).with_context(|| format!("cannot write {}", args.output.display()))?;
    let (parameters, _) = network.parameters();
    let (name, to) = (blueprint.architecture(), args.output.display());
    println!("{name}, {} parameters, written to {to}", count(parameters as f64));
    Ok(())
}
