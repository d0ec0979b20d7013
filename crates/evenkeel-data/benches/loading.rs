//! Decoding and resizing 1000 JPEGs (shorter side 256, centre crop 224), beside Pillow in the same run.
//!
//! `cargo bench -p evenkeel-data --bench loading -- [FOLDER]`. FOLDER holds the pictures, used in turn until there are
//! 1000; without one the peer makes some. The peer is `benches/peers/loading.py` under $EVENKEEL_PYTHON or `python3`;
//! where that or Pillow is missing, only our own time is printed. Figures are seconds, the best of three turns.

use evenkeel_data::dataset::{Dataset, Request};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const PICTURES: usize = 1000;
const TURNS: usize = 3;

fn peer() -> Command {
    let python = std::env::var("EVENKEEL_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/loading.py"));
    command
}

/// Seconds for loading and preparing the pictures on this many threads.
fn ours(dataset: &Dataset, threads: usize) -> f64 {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
    let start = Instant::now();
    let sum: f64 = pool.install(|| {
        (0..PICTURES)
            .into_par_iter()
            .map(|k| {
                let sample = dataset.sample(k % dataset.len()).expect("a sound picture");
                f64::from(sample.image.pixels()[0])
            })
            .sum()
    });
    assert!(sum.is_finite());
    start.elapsed().as_secs_f64()
}

/// Seconds the peer took on this many threads, if it could run.
fn theirs(folder: &Path, threads: usize) -> Option<f64> {
    let output = peer().arg(folder).arg(PICTURES.to_string()).arg(threads.to_string()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

fn main() {
    let made = tempfile::tempdir().expect("a temporary folder");
    // cargo bench passes --bench to every target.
    let given = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).map(PathBuf::from);
    let folder = given.unwrap_or_else(|| {
        let status = peer().arg("make").arg(made.path()).status();
        assert!(status.is_ok_and(|s| s.success()), "give a folder of JPEGs: there is no Pillow to make some");
        made.path().to_path_buf()
    });
    let kind =
        evenkeel_data::dataset::KINDS.iter().find(|k| k.name == "imagenet").expect("imagenet is a kind");
    let request = Request { preparation: Some(kind.preparation), ..Request::default() };
    let dataset = Dataset::open("folder", &folder, &request).expect("a folder of pictures");
    println!("{PICTURES} JPEGs ({} files), decoded, shorter side 256, centre crop 224", dataset.len());
    for threads in [1, 2] {
        let (mut own, mut other) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..TURNS {
            own = own.min(ours(&dataset, threads));
            other = theirs(&folder, threads).map_or(other, |seconds| other.min(seconds));
        }
        match other.is_finite() {
            true => println!(
                "{threads} thread(s): evenkeel {own:.2} s, Pillow {other:.2} s, ratio {:.2}",
                other / own
            ),
            false => println!("{threads} thread(s): evenkeel {own:.2} s; no Pillow here to compare with"),
        }
    }
}
