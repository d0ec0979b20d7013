//! Defends the answer for pictures: `cargo run --release --example defend -- net.onnx photo.jpg …`; without arguments, a shipped network and a grey
//! picture.

use std::sync::Arc;

use evenkeel::{DefenceSpec, Heads, Image, Model, Pipeline, shipped};

fn main() -> evenkeel::Result<()> {
    let mut files = std::env::args().skip(1);
    let model = match files.next() {
        Some(network) => Model::load(network)?,
        None => shipped::named("segmenter")?.model()?,
    };
    let mut pictures = files.map(Image::load).collect::<evenkeel::Result<Vec<_>>>()?;
    if pictures.is_empty() {
        pictures.push(Image::filled(64, 128, 0.5));
    }
    let model = Arc::new(model);
    let defence = DefenceSpec::named("equivariance")?.with("steps", 5)?.build(&model, &Heads::default())?;
    let pipeline = Pipeline::new(model.clone()).with_defence(defence);
    for picture in &pictures {
        let verdict = pipeline.run(&model.fit(picture)?)?;
        println!("{}", verdict.prediction.words(&model.class_info()));
        if let (Some(first), Some(last)) = (verdict.trace.first(), verdict.trace.last()) {
            println!("objective from {:.3} to {:.3}", first.value, last.value);
        }
    }
    Ok(())
}
