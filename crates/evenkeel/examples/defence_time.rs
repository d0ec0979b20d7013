//! The default defence of a picture by a shipped network, timed: what a program in Rust waits for, for `bench/python.py` to hold the Python package against.
//!
//!     cargo run --release -p evenkeel --example defence_time -- NAME PICTURE
//!
//! Answers every line of standard input with the seconds that one run took, from the picture in memory to the verdict.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Instant;

use evenkeel::{DefenceSpec, Heads, Image, Pipeline, shipped};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, picture] = words.as_slice() else { return Err("usage: defence_time NAME PICTURE".into()) };
    let model = Arc::new(shipped::named(name)?.model()?);
    let defence = DefenceSpec::named("equivariance")?.build(&model, &Heads::default())?;
    let image = Image::load(picture)?;
    let pipeline = Pipeline::new(model.clone()).with_defence(defence);
    for line in std::io::stdin().lock().lines() {
        line?;
        let started = Instant::now();
        let verdict = pipeline.run(&model.fit(&image)?)?;
        println!("{}", started.elapsed().as_secs_f64());
        std::io::stdout().flush()?;
        drop(verdict);
    }
    Ok(())
}
