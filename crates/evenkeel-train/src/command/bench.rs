//! Timing training steps.

use crate::batch::Pool;
use crate::error::{Error, Result};
use crate::goal::Goal;
use crate::optimiser::{Rule, Schedule};
use crate::train::Plan;
use crate::{net, networks};
use clap::Args;
use evenkeel::Random;
use evenkeel_data::dataset::scenes::Split;
use std::time::Instant;

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// Time the compact segmenter of this width on 19 classes instead of the small one
    #[arg(long)]
    width: Option<usize>,
    /// Pictures in a batch
    #[arg(long, default_value_t = 8)]
    batch: usize,
    /// Side of the square windows; by itself 192x96
    #[arg(long)]
    crop: Option<usize>,
    /// Steps to time, after two that are not
    #[arg(long, default_value_t = 12)]
    steps: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Seconds of processor time that this process has used, where the system says so (in hundredths).
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |k: usize| fields.get(k)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

pub(super) fn run(args: &BenchArgs) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("evenkeel-train-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Error::file(&folder, e))?;
    let goal = Goal::scenes();
    let pool = Pool::render(&goal, Split::Train, 16);
    let plan = Plan {
        steps: 1000,
        batch: args.batch,
        window: args.crop.map_or((96, 192), |side| (side, side)),
        rule: Rule::AdamW,
        schedule: Schedule::Cosine,
        peak: 1e-3,
        decay: 0.02,
        weights: vec![1.0; 19],
        adversary: None,
        every: 1000,
        seed: 1,
        minutes: 5.0,
        checkpoint: folder.join("bench.safetensors"),
        goal,
    };
    let mut random = Random::new(1);
    let mut net: net::Net = match args.width {
        Some(width) => networks::compact(19, width, &mut random),
        None => networks::segmenter(11, &mut random),
    };
    let held_out = Pool::render(&plan.goal, Split::Val, 1);
    plan.run_until(2, &mut net, &pool, &held_out)?;
    let (start, before) = (Instant::now(), processor_seconds());
    plan.run_until(2 + args.steps, &mut net, &pool, &held_out)?;
    let wall = 1e3 * start.elapsed().as_secs_f64() / args.steps as f64;
    let processor = processor_seconds().zip(before).map(|(now, then)| 1e3 * (now - then) / args.steps as f64);
    if args.json {
        println!(
            "{}",
            serde_json::json!({ "wall_ms": wall, "processor_ms": processor, "batch": args.batch })
        );
    } else {
        let processor = processor.map_or(String::new(), |ms| format!(", {ms:.1} ms of processor time"));
        let speed = 1e3 * args.batch as f64 / wall;
        println!("{wall:.1} ms a step of {} pictures{processor}, {speed:.1} images/s", args.batch);
    }
    std::fs::remove_dir_all(&folder).map_err(|e| Error::file(&folder, e))
}
