//! Makes the pairs that the page offers to try, and prints what the server will say of them: `cargo run --release -p evenkeel-serve --example pairs`.
//!
//! Each is a rendered scene or crop that no calibration was made on, and the same after PGD on the bare network, which knows of no defence.
//! `-- --look N` writes nothing and prints the same for the N pictures from each number on, to choose from.

use std::path::Path;
use std::sync::Arc;

use evenkeel::attack::worst_case;
use evenkeel::image::write_atomically;
use evenkeel::task::Prediction;
use evenkeel::{Attack, DefenceSpec, Heads, Image, Pipeline, Scenario, shipped};
use evenkeel_data::dataset::scenes::{Split, object, render};

/// A shipped network and the number of the picture in the split `test`, whose first 400 calibrations are made on: of four that were looked at, one that
/// the defence brings back well.
const PAIRS: [(&str, u64); 3] = [("segmenter", 1003), ("classifier", 1002), ("instances", 1000)];

fn picture(name: &str, number: u64) -> Image {
    match name {
        "classifier" => object(Split::Test, number, 64, 64).1,
        _ => render(Split::Test.seed(number), 128, 256).image,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let look =
        arguments.iter().position(|a| a == "--look").and_then(|at| arguments.get(at + 1)?.parse().ok());
    for (name, first) in PAIRS {
        for number in first..first + look.unwrap_or(1) {
            let (clean, attacked) = pair(name, number)?;
            if look.is_none() {
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/examples");
                write_atomically(folder.join(format!("{name}.clean.png")), &clean.encode_png()?)?;
                write_atomically(folder.join(format!("{name}.attacked.png")), &attacked.encode_png()?)?;
            }
        }
    }
    Ok(())
}

/// The picture and its attacked twin, after printing what becomes of them.
fn pair(name: &str, number: u64) -> evenkeel::Result<(Image, Image)> {
    let shipped = shipped::named(name)?;
    let model = Arc::new(shipped.model()?);
    let clean = picture(name, number).rounded_to_8_bits();
    let truth = model.predict(&clean)?.as_truth();
    let attack = Attack::named("pgd")?.with("epsilon", "4/255")?.with("steps", 20)?;
    let attacked = worst_case(&Scenario::new(&model, &clean, &truth), &[attack], 0)?.into_worst().image;
    let calibration = shipped.calibration(&model)?;
    let defence = DefenceSpec::named("equivariance")?.build(&model, &Heads::default())?;
    let pipeline = Pipeline::new(model.clone())
        .with_detector(calibration.detector(&model, Heads::default())?)
        .with_threshold(calibration.threshold)
        .with_defence(defence);
    let left = |prediction: &Prediction| model.task.score(prediction, &truth);
    for (which, image) in [("clean", &clean), ("attacked", &attacked)] {
        let verdict = pipeline.run(image)?;
        let alarm = if verdict.alarm == Some(true) { "alarm" } else { "no alarm" };
        let score = verdict.score.unwrap_or(f64::NAN);
        println!(
            "{name} {number} {which}: {alarm}, score {score:.3}, threshold {:.3}; of the clean answer {:.3} is left plain, {:.3} in the end",
            calibration.threshold,
            left(&model.predict(image)?),
            left(&verdict.prediction)
        );
    }
    Ok((clean, attacked))
}
