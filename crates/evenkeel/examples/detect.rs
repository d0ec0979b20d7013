//! Calibrates an alarm on clean pictures and tries it on a corrupted one: `cargo run --release --example detect`.

use evenkeel::detect::Calibration;
use evenkeel::{Corruption, DetectorSpec, Heads, Image, Random, shipped};

/// A smooth seeded picture.
fn picture(seed: u64) -> evenkeel::Result<Image> {
    let mut random = Random::new(seed);
    let (a, b) = (random.uniform(0.5, 3.0), random.uniform(0.5, 3.0));
    let value = |i: usize| {
        let (y, x) = ((i % 4096 / 64) as f32 / 64.0, (i % 64) as f32 / 64.0);
        0.5 + 0.4 * (a * x + b * y + (i / 4096) as f32).sin()
    };
    Image::new(64, 64, (0..3 * 64 * 64).map(value).collect())
}

fn main() -> evenkeel::Result<()> {
    let model = shipped::named("classifier")?.model()?;
    let detector = DetectorSpec::named("variance")?.build(&model, Heads::default())?;
    let clean =
        (0..20).map(|seed| detector.score(&model, &picture(seed)?)).collect::<evenkeel::Result<Vec<_>>>()?;
    let calibration = Calibration::new(&model, &detector, &clean, 0.05)?;
    let noisy = Corruption::named("gaussian_noise")?.apply(&picture(99)?, 5, 0)?;
    let score = detector.score(&model, &noisy)?;
    println!(
        "threshold {:.4}, score {score:.4}, alarm {}",
        calibration.threshold,
        score > calibration.threshold
    );
    Ok(())
}
