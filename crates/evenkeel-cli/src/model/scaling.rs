//! `evenkeel model bench --scaling`: how the time grows with pixels, batch and threads, all measured in turn in one run.

use anyhow::{Context, Result};
use rayon::ThreadPool;

use super::bench::Runner;
use super::network_args::NetworkArgs;

/// One thing to time: a runner on a pool of threads.
struct Entrant {
    title: String,
    threads: usize,
    /// Images times pixels.
    pixels: usize,
    runner: Runner,
    pool: ThreadPool,
    times: Vec<f64>,
}

fn entrant(subject: &NetworkArgs, (h, w): (usize, usize), batch: u16, threads: usize) -> Result<Entrant> {
    let subject = NetworkArgs { model: subject.model.clone(), size: Some((h, w)), batch };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let title = format!("{w}x{h}, batch {batch}, {threads} threads");
    Ok(Entrant {
        title,
        threads,
        pixels: h * w * usize::from(batch),
        runner: Runner::new(&subject)?,
        pool,
        times: Vec::new(),
    })
}

pub(crate) fn run(subject: &NetworkArgs, threads: usize, rounds: u32) -> Result<()> {
    let (h, w) = subject.size.unwrap_or((224, 224));
    let half = |size: usize, quarters: usize| (size * quarters / 4).div_ceil(8) * 8;
    let mut entrants = Vec::new();
    for quarters in [2, 3, 6] {
        entrants.push(entrant(subject, (half(h, quarters), half(w, quarters)), 1, threads)?);
    }
    for batch in [4, 2, 1] {
        entrants.push(entrant(subject, (half(h, 4), half(w, 4)), batch, threads)?);
    }
    // Beside the one it is compared with.
    entrants.push(entrant(subject, (half(h, 4), half(w, 4)), 1, 1)?);
    // Taken in turn, so that a slow moment of the machine falls on all alike; once untimed, so that nobody pays for what the one
    // before left in the caches.
    for _ in 0..rounds {
        for entrant in &mut entrants {
            entrant.pool.install(|| entrant.runner.gradient())?;
            entrant.times.push(entrant.pool.install(|| entrant.runner.gradient())?);
        }
    }
    println!("{}: forward + gradient, medians of {rounds} taken in turn", subject.name());
    for entrant in &mut entrants {
        entrant.times.sort_by(f64::total_cmp);
        let median = entrant.times[entrant.times.len() / 2];
        let per_pixel = median * 1e3 / entrant.pixels as f64;
        println!("  {:34} {median:9.2} ms  {per_pixel:7.3} ms for 1000 pixels", entrant.title);
    }
    let median = |entrant: &Entrant| entrant.times[entrant.times.len() / 2];
    let one = entrants.last().context("one thread is always among them")?;
    let many = entrants
        .iter()
        .find(|e| e.pixels == one.pixels && e.threads == threads)
        .context("so are all threads")?;
    println!("  {threads} threads are {:.2}x as fast as one", median(one) / median(many));
    Ok(())
}
