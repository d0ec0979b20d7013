//! Times the renderer: `cargo bench -p evenkeel-data --bench scene_speed -- [COUNT]` draws that many scenes of 256x128 on all threads.

use evenkeel_data::dataset::scenes::{Split, render};
use rayon::prelude::*;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // cargo adds a flag of its own
    let count = std::env::args().skip(1).find(|word| !word.starts_with("--"));
    let count: u64 = count.map_or(Ok(10_000), |text| text.parse())?;
    let start = Instant::now();
    let cars: usize = (0..count)
        .into_par_iter()
        .map(|number| render(Split::Train.seed(number), 128, 256).instance_classes.len())
        .sum();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{count} scenes of 256x128 ({cars} cars and people) in {seconds:.1} s on {} threads: {:.0} a second",
        rayon::current_num_threads(),
        count as f64 / seconds
    );
    Ok(())
}
