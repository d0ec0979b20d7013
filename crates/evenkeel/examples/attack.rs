//! Attacks a picture on the bare network and through a defence, and prints what is left of the answer: `cargo run --release --example attack`.

use std::sync::Arc;

use evenkeel::attack::worst_case;
use evenkeel::{Attack, DefenceSpec, Heads, Image, Pipeline, Scenario, shipped};

fn main() -> evenkeel::Result<()> {
    let model = Arc::new(shipped::named("classifier")?.model()?);
    let image = model.fit(&Image::filled(64, 64, 0.4))?.rounded_to_8_bits();
    let truth = model.predict(&image)?.as_truth();
    let defence = DefenceSpec::named("equivariance")?.with("steps", 3)?.build(&model, &Heads::default())?;
    let pipeline = Pipeline::new(model.clone()).with_defence(defence);

    let plain = Attack::named("pgd")?.with("epsilon", "4/255")?;
    let aware = Attack::named("apgd-ce")?.with("epsilon", "4/255")?.with("steps", 5)?.with("draws", 2)?;
    let scenario = Scenario::through(&pipeline, &image, &truth);
    for attempt in worst_case(&scenario, &[plain, aware], 0)?.all {
        let said = attempt.prediction.words(&model.class_info());
        println!("{}: {said}; {:.2} of the answer left", attempt.name, attempt.left);
    }
    Ok(())
}
