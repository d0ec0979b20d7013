//! `evenkeel model check`: a network's answers against stored ones, its gradients against differences.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use evenkeel_network::format::npz;
use evenkeel_network::{DType, Network, Tensor};

use super::network_args::{NetworkArgs, borrowed};

/// Values against a stored answer, input gradients against central differences in double precision
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    subject: NetworkArgs,
    /// An .npz with the input (by its name, or `input`) and outputs by their names (or `output0`, `out0_NAME`); an output may be stored subsampled, at
    /// every k-th row and column
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Check the input gradient by central differences along seeded directions
    #[arg(long)]
    gradient: bool,
    /// Largest difference allowed, relative to the largest value
    #[arg(long, default_value_t = 1e-3)]
    tolerance: f64,
}

/// A tensor and its name.
type Named = (String, Tensor);

pub(crate) fn run(args: CheckArgs) -> Result<()> {
    if args.against.is_none() && !args.gradient {
        bail!("nothing to check: give --against FILE.npz, --gradient, or both");
    }
    let network = args.subject.load()?;
    let mut inputs = args.subject.inputs(&network)?;
    let mut failed = false;
    if let Some(path) = &args.against {
        let stored = npz::load(path).with_context(|| format!("cannot read {}", path.display()))?;
        take_inputs(&mut inputs, &stored);
        failed |= !values(&network, &inputs, &stored, args.tolerance)
            .with_context(|| format!("{}", path.display()))?;
    }
    if args.gradient {
        failed |= !gradient(&network, &inputs, args.tolerance)?;
    }
    if failed {
        bail!("{}: the check failed", args.subject.name());
    }
    Ok(())
}

/// Uses stored inputs where there are any: by name, or the only one as `input`.
fn take_inputs(inputs: &mut [(String, Tensor)], stored: &[(String, Tensor)]) {
    let single = inputs.len() == 1;
    for (name, tensor) in inputs {
        let found = stored.iter().find(|(key, _)| key == name || (single && key == "input"));
        if let Some((_, given)) = found {
            *tensor = given.clone();
        }
    }
}

fn floats(tensor: &Tensor) -> Vec<f64> {
    match (tensor.values::<f32>(), tensor.values::<f64>(), tensor.integers()) {
        (Some(values), ..) => values.iter().map(|&v| v.into()).collect(),
        (_, Some(values), _) => values.to_vec(),
        (.., Some(values)) => values.iter().map(|&v| v as f64).collect(),
        _ => Vec::new(),
    }
}

/// Every k-th row and column of the last two axes, for the k that gives `shape`.
fn subsample(tensor: &Tensor, shape: &[usize]) -> Option<Vec<f64>> {
    let (full, rank) = (tensor.shape(), tensor.rank());
    let values = floats(tensor);
    if full == shape {
        return Some(values);
    }
    if rank < 2 || shape.len() != rank || full[..rank - 2] != shape[..rank - 2] {
        return None;
    }
    let (h, w) = (full[rank - 2], full[rank - 1]);
    let fits = |k: &usize| [h.div_ceil(*k), w.div_ceil(*k)] == shape[rank - 2..];
    let k = (2..=16).find(fits)?;
    let kept = (0..values.len()).filter(|i| (i / w % h).is_multiple_of(k) && (i % w).is_multiple_of(k));
    Some(kept.map(|i| values[i]).collect())
}

fn values(
    network: &Network,
    inputs: &[(String, Tensor)],
    stored: &[(String, Tensor)],
    tolerance: f64,
) -> Result<bool> {
    let names: Vec<&str> = network.outputs().collect();
    let answers = network.run(&borrowed(inputs), &names)?;
    let (mut all, mut compared) = (true, 0);
    for (i, (name, answer)) in names.iter().zip(&answers).enumerate() {
        let keys = [name.to_string(), format!("output{i}"), format!("out{i}_{name}")];
        let found = stored.iter().find(|(k, _)| keys.contains(k) || (names.len() == 1 && k == "output"));
        let Some((_, expected)) = found else { continue };
        let Some(got) = subsample(answer, expected.shape()) else {
            bail!("output {name:?} has shape {:?}, the stored one {:?}", answer.shape(), expected.shape());
        };
        let error = relative(&got, &floats(expected));
        let verdict = if error <= tolerance { "ok" } else { "FAILED" };
        println!("{verdict:6} {name}: largest difference {error:.2e} of the largest value");
        all &= error <= tolerance;
        compared += 1;
    }
    if compared == 0 {
        let keys: Vec<&str> = stored.iter().map(|(key, _)| &**key).collect();
        bail!("none of the outputs {names:?} is among the stored {keys:?}");
    }
    Ok(all)
}

fn relative(got: &[f64], expected: &[f64]) -> f64 {
    let largest = expected.iter().fold(1e-12f64, |largest, v| largest.max(v.abs()));
    got.iter().zip(expected).map(|(a, b)| if a == b { 0.0 } else { (a - b).abs() }).fold(0.0, f64::max)
        / largest
}

/// The gradient of a seeded sum of the outputs along seeded directions, against differences of the network run node by node
/// in double precision.
fn gradient(network: &Network, inputs: &[(String, Tensor)], tolerance: f64) -> Result<bool> {
    let names: Vec<&str> = network.outputs().collect();
    let trace = network.trace(&borrowed(inputs), &names)?;
    let mut noise = Noise(7);
    let cotangents: Vec<(&str, Tensor)> = names
        .iter()
        .zip(trace.tensors())
        .filter(|(_, tensor)| tensor.dtype() == DType::F32)
        .map(|(name, tensor)| {
            let values: Vec<f32> = (0..tensor.len()).map(|_| noise.next() as f32).collect();
            (*name, Tensor::new(tensor.shape(), values))
        })
        .collect();
    if cotangents.is_empty() {
        bail!("no output is of floats, so there is nothing to differentiate");
    }
    let gradients = trace.pullback(&cotangents)?;
    let exact = network.widened()?;
    let weights: Vec<(&str, Vec<f64>)> =
        cotangents.iter().map(|(name, tensor)| (*name, floats(tensor))).collect();
    let value = |inputs: &[(String, Tensor)]| -> Result<f64> {
        let names: Vec<&str> = weights.iter().map(|(name, _)| *name).collect();
        let outputs = exact.run(&borrowed(inputs), &names)?;
        let dot = |(y, (_, c)): (&Tensor, &(&str, Vec<f64>))| {
            floats(y).iter().zip(c).map(|(a, b)| a * b).sum::<f64>()
        };
        Ok(outputs.iter().zip(&weights).map(dot).sum())
    };
    let mut all = true;
    for (name, gradient) in &gradients {
        let error = along_directions(name, gradient, inputs, &value, &mut noise)?;
        let verdict = if error <= tolerance { "ok" } else { "FAILED" };
        println!(
            "{verdict:6} gradient with respect to {name}: {error:.2e} relative to the largest of 4 directions"
        );
        all &= error <= tolerance;
    }
    Ok(all)
}

fn along_directions(
    name: &str,
    gradient: &Tensor,
    inputs: &[(String, Tensor)],
    value: &dyn Fn(&[Named]) -> Result<f64>,
    noise: &mut Noise,
) -> Result<f64> {
    let gradient = floats(gradient);
    let (mut pulled, mut differences) = (Vec::new(), Vec::new());
    for round in 0..4 {
        // The gradient's own direction first: along it the derivative cannot vanish by chance.
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt().max(1e-30);
        let direction: Vec<f64> = gradient
            .iter()
            .map(|g| {
                if round == 0 {
                    g / norm
                } else {
                    g / norm + 0.5 * noise.next() / (gradient.len() as f64).sqrt()
                }
            })
            .collect();
        let step = 1e-6;
        let moved = |by: f64| -> Result<f64> {
            let shifted: Vec<(String, Tensor)> = inputs
                .iter()
                .map(|(key, tensor)| {
                    let mut values = floats(tensor);
                    if tensor.dtype() != DType::F32 {
                        return (key.clone(), tensor.clone());
                    }
                    if key == name {
                        values.iter_mut().zip(&direction).for_each(|(v, d)| *v += by * d);
                    }
                    (key.clone(), Tensor::new(tensor.shape(), values))
                })
                .collect();
            value(&shifted)
        };
        differences.push((moved(step)? - moved(-step)?) / (2.0 * step));
        pulled.push(gradient.iter().zip(&direction).map(|(g, d)| g * d).sum::<f64>());
    }
    Ok(relative(&pulled, &differences))
}

/// Seeded numbers in -1..1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
