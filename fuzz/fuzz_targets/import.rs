//! Any bytes as an ONNX file: loaded, and if that succeeds run on small inputs within small limits. Errors are fine; panics,
//! aborts, long waits and much memory are findings.

#![no_main]

use evenkeel_network::graph::{Dim, Input};
use evenkeel_network::tensor::checked_len;
use evenkeel_network::{DType, Limits, Network, Tensor};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { fold_bytes: 16 << 20, run_bytes: 64 << 20, loop_trips: 1_000 };

fuzz_target!(|bytes: &[u8]| {
    let Ok(network) = Network::from_bytes(bytes.to_vec(), LIMITS) else { return };
    let inputs: Option<Vec<(&str, Tensor)>> =
        network.inputs().map(|(name, input)| Some((name, small(input)?))).collect();
    let Some(inputs) = inputs else { return };
    let outputs: Vec<&str> = network.outputs().collect();
    let Ok(trace) = network.trace(&inputs, &outputs) else { return };
    let cotangents: Vec<(&str, Tensor)> = outputs
        .iter()
        .zip(trace.tensors())
        .filter(|(_, tensor)| tensor.dtype() == DType::F32)
        .map(|(&name, tensor)| (name, Tensor::new(tensor.shape(), vec![1.0f32; tensor.len()])))
        .collect();
    let _ = trace.pullback(&cotangents);
});

/// A tensor of the declared type and shape; `None` if that is large or of a type no image has.
fn small(input: &Input) -> Option<Tensor> {
    let size = |dim: &Dim| match dim {
        Dim::Fixed(size) => *size,
        Dim::Free(_) => 2,
    };
    let shape: Vec<usize> = input.dims.as_deref().unwrap_or(&[]).iter().map(size).collect();
    let len = checked_len(&shape).filter(|&len| len <= 4096)?;
    let ramp = |i: usize| (i * 37 % 101) as f32 / 50.0 - 1.0;
    match input.dtype {
        DType::F32 => Some(Tensor::new(&shape, (0..len).map(ramp).collect::<Vec<f32>>())),
        DType::F64 => Some(Tensor::new(&shape, (0..len).map(|i| ramp(i).into()).collect::<Vec<f64>>())),
        DType::I64 => Some(Tensor::new(&shape, (0..len).map(|i| i as i64 % 3).collect::<Vec<i64>>())),
        DType::I32 => Some(Tensor::new(&shape, (0..len).map(|i| i as i32 % 3).collect::<Vec<i32>>())),
        DType::U8 => Some(Tensor::new(&shape, (0..len).map(|i| i as u8).collect::<Vec<u8>>())),
        _ => None,
    }
}
