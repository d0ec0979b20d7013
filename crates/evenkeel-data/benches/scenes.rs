//! Times the renderer: scenes of 256x128 and object crops of 64x64, on all cores.

use evenkeel_data::dataset::scenes::{Split, object, render};
use rayon::prelude::*;
use std::time::Instant;

fn main() {
    let count = 2_000u64;
    let timed = |name: &str, task: &(dyn Fn(u64) + Sync)| {
        let start = Instant::now();
        (0..count).into_par_iter().for_each(task);
        let seconds = start.elapsed().as_secs_f64();
        let threads = rayon::current_num_threads();
        println!(
            "{name:<22} {:>7.0} a second on {threads} threads; 10,000 in {:.1} s",
            count as f64 / seconds,
            10_000.0 * seconds / count as f64
        );
    };
    timed("scenes 256x128", &|n| drop(render(Split::Train.seed(n), 128, 256)));
    timed("object crops 64x64", &|n| drop(object(Split::Train, n, 64, 64)));
}
