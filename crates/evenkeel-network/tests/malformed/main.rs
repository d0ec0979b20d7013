//! Malformed and hostile models: always an error value or an answer, never a panic, an abort, a long wait or much memory.

#[path = "../model/mod.rs"]
mod model;

mod damage;
mod hostile;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use evenkeel_kernels::buffer::Flag;
use evenkeel_network::graph::{Dim, Input};
use evenkeel_network::{DType, Limits, Network, Result, Tensor};

/// What one model may take.
const PATIENCE: Duration = Duration::from_secs(2);
const LIMITS: Limits = Limits { fold_bytes: 32 << 20, run_bytes: 64 << 20, loop_trips: 10_000 };
/// Peak resident memory of the whole test program.
const MEMORY: usize = 512 << 20;

/// Loads a model and runs it forwards and back on small inputs; says what went wrong beyond an error value.
fn attempt(bytes: Vec<u8>) -> Result<Result<()>, String> {
    let once = || {
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| exercise(bytes.clone())));
        outcome.map(|outcome| (outcome, start.elapsed())).map_err(|_| "panicked".to_string())
    };
    let (mut outcome, mut took) = once()?;
    if took >= PATIENCE {
        // Perhaps the machine had other things to do.
        (outcome, took) = once()?;
    }
    if took < PATIENCE { Ok(outcome) } else { Err(format!("took {took:?}: {outcome:?}")) }
}

fn survive(what: &str, bytes: Vec<u8>) -> Result<()> {
    attempt(bytes).unwrap_or_else(|harm| panic!("{what}: {harm}"))
}

fn exercise(bytes: Vec<u8>) -> Result<()> {
    let network = Network::from_bytes(bytes, LIMITS)?;
    let inputs: Option<Vec<(&str, Tensor)>> =
        network.inputs().map(|(name, input)| Some((name, small(input)?))).collect();
    let Some(inputs) = inputs else { return Ok(()) };
    let outputs: Vec<&str> = network.outputs().collect();
    let trace = network.trace(&inputs, &outputs)?;
    let cotangents: Vec<(&str, Tensor)> = outputs
        .iter()
        .zip(trace.tensors())
        .filter(|(_, tensor)| tensor.dtype() == DType::F32)
        .map(|(&name, tensor)| (name, Tensor::new(tensor.shape(), vec![1.0f32; tensor.len()])))
        .collect();
    trace.pullback(&cotangents)?;
    network.literal().run(&inputs, &outputs)?;
    Ok(())
}

/// A tensor of the declared type and shape; `None` if that is large.
fn small(input: &Input) -> Option<Tensor> {
    let size = |dim: &Dim| match dim {
        Dim::Fixed(size) => *size,
        Dim::Free(_) => 2,
    };
    let shape: Vec<usize> = input.dims.as_deref().unwrap_or(&[]).iter().map(size).collect();
    let len = evenkeel_network::tensor::checked_len(&shape).filter(|&len| len <= 1 << 16)?;
    let ramp = |i: usize| (i * 37 % 101) as f32 / 50.0 - 1.0;
    Some(match input.dtype {
        DType::F32 => Tensor::new(&shape, (0..len).map(ramp).collect::<Vec<f32>>()),
        DType::F64 => Tensor::new(&shape, (0..len).map(|i| ramp(i).into()).collect::<Vec<f64>>()),
        DType::I32 => Tensor::new(&shape, (0..len).map(|i| i as i32 % 3).collect::<Vec<i32>>()),
        DType::I64 => Tensor::new(&shape, (0..len).map(|i| i as i64 % 3).collect::<Vec<i64>>()),
        DType::U8 => Tensor::new(&shape, (0..len).map(|i| i as u8).collect::<Vec<u8>>()),
        DType::I8 => Tensor::new(&shape, (0..len).map(|i| i as i8).collect::<Vec<i8>>()),
        DType::Bool => Tensor::new(&shape, (0..len).map(|i| Flag::from(i % 2 == 0)).collect::<Vec<Flag>>()),
    })
}

/// The most memory this process has had resident, where the system says.
fn peak_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<usize>().ok()? << 10)
}

fn assert_modest() {
    if let Some(peak) = peak_memory() {
        assert!(peak < MEMORY, "peak memory {} MB", peak >> 20);
    }
}
