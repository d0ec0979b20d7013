//! `evenkeel model bench`: milliseconds, GFLOP/s, share of the machine's peak, memory.

use std::io::{BufRead, Write};
use std::time::Instant;

use anyhow::{Result, bail};
use evenkeel_kernels::peak::fma_peak;
use evenkeel_network::{Network, Tensor};
use serde_json::json;

use super::layers::Layers;
use super::network_args::{NetworkArgs, borrowed};
use super::scaling;
use crate::units::{bytes, count};

/// Milliseconds, GFLOP/s, share of this machine's measured FMA peak, peak memory
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    subject: NetworkArgs,
    /// Threads; all cores if not given
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Timed runs of each kind
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Where the time goes: milliseconds, GFLOP/s and share of the peak of every layer and operator, forward and pullback
    #[arg(long)]
    layers: bool,
    /// How the time grows with pixels, batch and threads
    #[arg(long, conflicts_with_all = ["json", "layers", "respond"])]
    scaling: bool,
    /// For machines
    #[arg(long)]
    json: bool,
    /// Run once for each line `forward` or `gradient` on standard input and answer with the milliseconds
    #[arg(long, hide = true)]
    respond: bool,
}

/// A network with inputs to run it on.
pub(super) struct Runner {
    network: Network,
    inputs: Vec<(String, Tensor)>,
    outputs: Vec<String>,
}

impl Runner {
    pub(super) fn new(subject: &NetworkArgs) -> Result<Runner> {
        let network = subject.load()?;
        let inputs = subject.inputs(&network)?;
        let outputs = network.outputs().map(str::to_string).collect();
        Ok(Runner { network, inputs, outputs })
    }

    fn forward(&self) -> Result<f64> {
        let outputs: Vec<&str> = self.outputs.iter().map(|name| &**name).collect();
        let start = Instant::now();
        self.network.run(&borrowed(&self.inputs), &outputs)?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }

    /// Forward and the gradient of half the outputs' squared norm: the cotangent is the output itself.
    pub(super) fn gradient(&self) -> Result<f64> {
        let outputs: Vec<&str> = self.outputs.iter().map(|name| &**name).collect();
        let start = Instant::now();
        let trace = self.network.trace(&borrowed(&self.inputs), &outputs)?;
        let floats = outputs.iter().zip(trace.tensors()).filter(|(_, tensor)| tensor.dtype().is_float());
        let cotangents: Vec<(&str, Tensor)> = floats.map(|(name, tensor)| (*name, tensor.clone())).collect();
        trace.pullback(&cotangents)?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }
}

impl Runner {
    fn layers(&self, rounds: u32, peak: f64) -> Result<Layers> {
        let outputs: Vec<&str> = self.outputs.iter().map(|name| &**name).collect();
        let inputs = borrowed(&self.inputs);
        let forward = || Ok(self.network.time_steps(&inputs, &outputs)?);
        let gradient = || Ok(self.network.time_gradient_steps(&inputs, &outputs)?);
        Layers::measure(rounds, peak, &forward, &gradient)
    }
}

/// What was measured of one kind of run.
struct Measured {
    milliseconds: f64,
    pool_bytes: usize,
    resident_growth: Option<usize>,
}

fn measure(rounds: u32, network: &Network, run: &dyn Fn() -> Result<f64>) -> Result<Measured> {
    // The first runs pack the weights, some forms of them only in the second; that is not part of what a run needs.
    run()?;
    run()?;
    network.pool().reset_peak();
    let before = forget_peak_resident();
    let mut times = (0..rounds).map(|_| run()).collect::<Result<Vec<f64>>>()?;
    times.sort_by(f64::total_cmp);
    let resident_growth = before.zip(status_field("VmHWM:")).map(|(before, now)| now.saturating_sub(before));
    Ok(Measured {
        milliseconds: times[times.len() / 2],
        pool_bytes: network.pool().peak_bytes(),
        resident_growth,
    })
}

/// Makes the system forget the most memory this process has held, and returns what it holds now, where that can be done.
fn forget_peak_resident() -> Option<usize> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    status_field("VmRSS:")
}

fn status_field(field: &str) -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? * 1024)
}

pub(crate) fn run(args: BenchArgs) -> Result<()> {
    let threads =
        args.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()), usize::from);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    if args.scaling {
        return scaling::run(&args.subject, threads, args.rounds);
    }
    let runner = Runner::new(&args.subject)?;
    if args.respond {
        return respond(&runner);
    }
    let gradient = measure(args.rounds, &runner.network, &|| runner.gradient())?;
    let forward = measure(args.rounds, &runner.network, &|| runner.forward())?;
    let outputs: Vec<&str> = runner.outputs.iter().map(|name| &**name).collect();
    let flops = runner.network.flops(&borrowed(&runner.inputs), &outputs)?;
    let peak = fma_peak(threads);
    let layers = args.layers.then(|| runner.layers(args.rounds, peak)).transpose()?;
    if args.json {
        let kind = |m: &Measured, work: f64| {
            json!({
                "milliseconds": m.milliseconds,
                "gflops_per_second": work / m.milliseconds / 1e6,
                "pool_bytes": m.pool_bytes,
                "resident_growth_bytes": m.resident_growth,
            })
        };
        let mut value = json!({
            "model": args.subject.name(), "threads": threads, "kernels": evenkeel_kernels::cpu::name(), "flops": flops,
            "fma_peak_gflops_per_second": peak, "forward": kind(&forward, flops), "gradient": kind(&gradient, 2.0 * flops),
        });
        if let Some(layers) = layers {
            value["layers"] = layers.json();
        }
        println!("{}", serde_json::to_string_pretty(&value)?);
        return Ok(());
    }
    let shapes: Vec<String> =
        runner.inputs.iter().map(|(_, tensor)| format!("{:?}", tensor.shape())).collect();
    println!(
        "{} at {}, {threads} threads, {} kernels",
        args.subject.name(),
        shapes.join(", "),
        evenkeel_kernels::cpu::name()
    );
    println!("  {}FLOP forward; this machine's measured FMA peak is {peak:.0} GFLOP/s", count(flops));
    let line = |title: &str, m: &Measured, work: f64| {
        let rate = work / m.milliseconds / 1e6;
        let share = 100.0 * rate / peak;
        println!(
            "  {title:18} {:9.2} ms  {rate:7.1} GFLOP/s ({share:.0} % of peak)  {} at the peak",
            m.milliseconds,
            bytes(m.pool_bytes)
        );
    };
    line("forward", &forward, flops);
    line("forward + gradient", &gradient, 2.0 * flops);
    if let Some(growth) = gradient.resident_growth {
        println!("  resident memory grows by {} while it runs, packed weights excluded", bytes(growth));
    }
    println!(
        "  (a 3x3 convolution done by Winograd's method needs fewer operations than are counted, so its share can pass 100 %)"
    );
    if let Some(layers) = layers {
        layers.print();
    }
    Ok(())
}

fn respond(runner: &Runner) -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (kind, count) = line.trim().split_once(' ').unwrap_or((line.trim(), "1"));
        let run: &dyn Fn() -> Result<f64> = match kind {
            "forward" => &|| runner.forward(),
            "gradient" => &|| runner.gradient(),
            other => bail!("expected forward or gradient, got {other:?}"),
        };
        let times = (0..count.parse()?).map(|_| run()).collect::<Result<Vec<f64>>>()?;
        println!("{}", times.iter().map(f64::to_string).collect::<Vec<_>>().join(" "));
        std::io::stdout().flush()?;
    }
    Ok(())
}
