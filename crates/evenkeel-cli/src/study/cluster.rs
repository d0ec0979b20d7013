//! The cluster part of `evenkeel study plan`: hours, core-hours, bytes and the slowest cell, from the probe and a schedule that is played through.

use anyhow::Result;
use evenkeel_study::experiment::Design;
use evenkeel_study::run::{
    CPUS_PER_TASK, Cluster, Forecast, ITEM_MINUTES, Item, RETRIES, Schedule, parse_cluster,
};

use super::progress::duration;
use crate::units;

/// Schedules that are played through.
const DRAWS: u64 = 20;

/// Machines for a study
#[derive(Debug, clap::Args)]
pub(super) struct ClusterArgs {
    /// Also estimate a run on a cluster of MACHINES with PROCESSORS each, failures included; such as 100x8
    #[arg(long, value_name = "MACHINESxPROCESSORS", conflicts_with = "no_probe")]
    pub(super) cluster: Option<String>,
    /// Mean time to the failure of one machine, in hours
    #[arg(long, value_name = "HOURS", default_value_t = 1000.0, requires = "cluster")]
    mtbf: f64,
    /// Processors of one task
    #[arg(long, value_name = "COUNT", default_value_t = CPUS_PER_TASK)]
    cpus_per_task: usize,
    /// Minutes of one work item, on all processors of its task
    #[arg(long, value_name = "MINUTES", default_value_t = ITEM_MINUTES)]
    item_minutes: f64,
    /// How often a work item is begun again when its machine failed
    #[arg(long, value_name = "COUNT", default_value_t = RETRIES, requires = "cluster")]
    retries: usize,
}

impl ClusterArgs {
    /// The length of an item in seconds of one thread.
    pub(super) fn item_seconds(&self) -> f64 {
        self.item_minutes.max(0.0) * 60.0 * self.cpus_per_task.max(1) as f64
    }
}

/// From the smallest to the largest of a figure.
fn range(all: &[Schedule], figure: fn(&Schedule) -> f64) -> (f64, f64, f64) {
    let mut values: Vec<f64> = all.iter().map(figure).collect();
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

/// Prints what the items take on a cluster.
pub(super) fn tell(
    args: &ClusterArgs,
    items: &[Item],
    design: &Design,
    forecast: &Forecast,
    bytes: u64,
) -> Result<()> {
    let Some(text) = &args.cluster else { return Ok(()) };
    let (machines, cpus) = parse_cluster(text)?;
    let threads = args.cpus_per_task.clamp(1, cpus);
    let cluster = Cluster {
        machines,
        places: cpus / threads,
        mean_seconds_to_failure: if args.mtbf > 0.0 { 3600.0 * args.mtbf } else { f64::INFINITY },
        repair_seconds: 300.0,
        start_seconds: 5.0,
        tries: args.retries.saturating_add(1),
    };
    let lengths: Vec<f64> = items.iter().map(|item| item.seconds / threads as f64).collect();
    let calm = Cluster { mean_seconds_to_failure: f64::INFINITY, ..cluster }.schedule(&lengths, 0)?;
    let draws = (0..DRAWS).map(|seed| cluster.schedule(&lengths, seed)).collect::<Result<Vec<_>, _>>()?;
    let (least, middle, most) = range(&draws, |s| s.seconds);
    let (_, failures, _) = range(&draws, |s| s.failures as f64);
    let (_, lost, _) = range(&draws, |s| s.lost_seconds);
    let (_, busy, _) = range(&draws, |s| s.busy_seconds);
    let longest = lengths.iter().copied().fold(0.0, f64::max);
    println!(
        "on {machines} machines of {cpus} processors: {} work items on {threads} processors each, the longest {}",
        items.len(),
        duration(longest)
    );
    println!(
        "  {} without failures; {} ({} to {} in {DRAWS} schedules played through) if a machine fails every {:.0} h and is back in 5 min: {failures:.0} failures",
        duration(calm.seconds),
        duration(middle),
        duration(least),
        duration(most),
        args.mtbf
    );
    println!(
        "  {:.1} core-hours, of which {:.2} are lost to failures; {} stored",
        busy * threads as f64 / 3600.0,
        lost * threads as f64 / 3600.0,
        units::bytes(bytes as usize)
    );
    let cost = |cell: &&evenkeel_study::experiment::Cell| {
        forecast.cell(cell).seconds * design.subjects[cell.subject].images.len() as f64
    };
    if let Some(cell) = design.cells.iter().max_by(|a, b| cost(a).total_cmp(&cost(b))) {
        println!(
            "  the slowest cell: {} {} {}, {:.1} core-hours",
            design.subjects[cell.subject].rule.name,
            design.column(cell).label,
            design.row(cell).label,
            cost(&cell) / 3600.0
        );
    }
    let given_up = draws.iter().map(|s| s.given_up).max().unwrap_or(0);
    if given_up > 0 {
        println!(
            "  {given_up} items did not end in {} tries: they are too long for machines that fail so often",
            cluster.tries
        );
    }
    Ok(())
}
