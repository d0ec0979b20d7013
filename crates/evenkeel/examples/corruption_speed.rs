//! How fast corruptions are on a 512x256 image, beside PyPI imagecorruptions on the same image in the same run.
//!
//!     EVENKEEL_PYTHON=python cargo run --release -p evenkeel --example corruption_speed
//!
//! Without EVENKEEL_PYTHON (an interpreter that has the package) only our own times are printed.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use evenkeel::corrupt::CORRUPTIONS;
use evenkeel::image::Image;

fn main() {
    let value = |i: usize| {
        let (c, y, x) = (i / (512 * 256), i / 512 % 256, i % 512);
        0.5 + 0.3 * (0.05 * x as f32 + c as f32).sin() * (0.07 * y as f32).cos()
            + 0.1 * ((i * 7919 % 101) as f32 / 101.0)
    };
    let image = Image::new(256, 512, (0..3 * 512 * 256).map(value).collect()).expect("a picture");
    let image = image.rounded_to_8_bits();
    let theirs = package_times(&image);
    println!("{:18} {:>9} {:>12} {:>7}", "corruption", "ours, ms", "package, ms", "ratio");
    for corruption in &CORRUPTIONS {
        let mut best = f64::INFINITY;
        for seed in 0..5 {
            let start = Instant::now();
            corruption.apply(&image, 3, seed).expect("a corrupted picture");
            best = best.min(1000.0 * start.elapsed().as_secs_f64());
        }
        match theirs.get(corruption.name) {
            Some(theirs) => {
                println!("{:18} {best:9.2} {theirs:12.2} {:6.1}x", corruption.name, theirs / best)
            }
            None => println!("{:18} {best:9.2} {:>12}", corruption.name, "-"),
        }
    }
}

fn package_times(image: &Image) -> HashMap<String, f64> {
    let Some(python) = std::env::var_os("EVENKEEL_PYTHON") else { return HashMap::new() };
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/corruptions");
    let file = std::env::temp_dir().join(format!("evenkeel-corruption-speed-{}.png", std::process::id()));
    image.save_png(&file).expect("a temporary picture");
    let output = Command::new(python).arg(scripts.join("time_package.py")).arg(&file).output();
    let _ = std::fs::remove_file(&file);
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let row = |line: &str| {
        let (name, time) = line.split_once(',')?;
        Some((name.to_owned(), time.parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}
