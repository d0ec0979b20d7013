//! The library's own rate at what the server does for a plain request, for `bench/serve.py`: `library_rate THREADS SECONDS` prints images a second.
//!
//! Each thread has the shipped classifier answer one 64x64 image after the other on a pool of its own, as a worker does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use evenkeel::{Image, shipped};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let number = |n: usize, usual: u64| std::env::args().nth(n).map_or(Ok(usual), |text| text.parse());
    let (threads, seconds) = (number(1, 2)?, number(2, 5)?);
    let model = shipped::named("classifier")?.model()?;
    let (image, done) = (Image::filled(64, 64, 0.5), AtomicU64::new(0));
    model.scores(&image)?;
    let start = Instant::now();
    let work = || -> Result<(), String> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
        let pool = pool.map_err(|e| e.to_string())?;
        while start.elapsed() < Duration::from_secs(seconds) {
            pool.install(|| model.scores(&image)).map_err(|e| e.to_string())?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or(Err("a thread panicked".into())))
    })?;
    println!("{:.1}", done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64());
    Ok(())
}
