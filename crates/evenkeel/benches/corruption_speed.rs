//! How fast corruptions are on a 512x256 image, beside PyPI imagecorruptions on the same image in the same run.
//!
//!     EVENKEEL_PYTHON=python cargo bench -p evenkeel --bench corruption_speed
//!
//! Both at severity 3; `slowest` is ours at whichever severity takes longest. Without EVENKEEL_PYTHON (an interpreter that has
//! the package) only our own times are printed.

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
    println!("{:18} {:>9} {:>9} {:>12} {:>7}", "corruption", "ours, ms", "slowest", "package, ms", "ratio");
    for corruption in &CORRUPTIONS {
        let best = |severity: usize| {
            let once = |seed: u64| {
                let start = Instant::now();
                corruption.apply(&image, severity, seed).expect("a corrupted picture");
                1000.0 * start.elapsed().as_secs_f64()
            };
            (0..5).map(once).fold(f64::INFINITY, f64::min)
        };
        let (ours, slowest) = (best(3), (1..=5).map(best).fold(0.0, f64::max));
        let (theirs, ratio) = match theirs.get(corruption.name) {
            Some(theirs) => (format!("{theirs:.2}"), format!("{:.1}x", theirs / ours)),
            None => ("-".into(), "-".into()),
        };
        println!("{:18} {ours:9.2} {slowest:9.2} {theirs:>12} {ratio:>7}", corruption.name);
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
