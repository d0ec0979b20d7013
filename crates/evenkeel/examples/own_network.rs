//! A network of one's own behind the same method: implement [`Network`] (images in, named tensors out, and the way back), and everything else works.
//! `cargo run --release --example own_network`.

use std::sync::Arc;

use evenkeel::network::{Tape, Tensor, Traced};
use evenkeel::task::Classification;
use evenkeel::{Attack, DefenceSpec, Heads, Image, Model, Network, Pipeline, Result, Scenario};

/// Two classes: is the picture's left half brighter, or its right half? Features are the picture itself.
struct Halves;

/// +1 for the left half of a row, −1 for the right.
fn side(i: usize, width: usize) -> f32 {
    if i % width < width / 2 { 1.0 } else { -1.0 }
}

struct HalvesTape {
    size: (usize, usize),
    names: Vec<String>,
}

impl Tape for HalvesTape {
    fn pullback(&self, cotangents: Vec<(usize, Vec<f32>)>) -> Result<Vec<f32>> {
        let (height, width) = self.size;
        let mut gradient = vec![0.0; 3 * height * width];
        for (place, cotangent) in cotangents {
            let scale = 10.0 / (height * width) as f32;
            for (i, g) in gradient.iter_mut().enumerate() {
                *g += match self.names[place].as_str() {
                    "scores" => scale * side(i, width) * (cotangent[0] - cotangent[1]),
                    _ => cotangent[i],
                };
            }
        }
        Ok(gradient)
    }
}

impl Network for Halves {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        None
    }

    fn run(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Vec<Tensor>>> {
        let one = |image: &Image, name: &str| {
            let (height, width) = image.size();
            if name == "features" {
                return Tensor::new(vec![1, 3, height, width], image.pixels().to_vec());
            }
            let lead: f32 = image.pixels().iter().enumerate().map(|(i, v)| side(i, width) * v).sum();
            let lead = 10.0 * lead / (height * width) as f32;
            Tensor::new(vec![1, 2], vec![lead, -lead])
        };
        images.iter().map(|image| tensors.iter().map(|name| one(image, name)).collect()).collect()
    }

    fn trace(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Traced<'_>>> {
        let names: Vec<String> = tensors.iter().map(ToString::to_string).collect();
        let traced = |(image, tensors): (&&Image, Vec<Tensor>)| {
            let tape = HalvesTape { size: image.size(), names: names.clone() };
            Traced { tensors, tape: Box::new(tape) }
        };
        Ok(images.iter().zip(self.run(images, tensors)?).map(traced).collect())
    }
}

fn main() -> Result<()> {
    let model = Arc::new(Model::new(Box::new(Halves), Box::new(Classification), "scores", "features"));
    let image = Image::new(32, 32, (0..3 * 32 * 32).map(|i| 0.5 + 0.005 * side(i, 32)).collect())?;
    let truth = model.predict(&image)?.as_truth();
    let attack = Attack::named("pgd")?.with("epsilon", "4/255")?;
    let outcome = attack.run(&Scenario::new(&model, &image, &truth))?;
    let said = |image: &Image| -> Result<String> { Ok(model.predict(image)?.words(&model.class_info())) };
    println!("clean: {}; attacked: {}", said(&image)?, said(&outcome.image)?);
    let defence = DefenceSpec::named("equivariance")?.with("steps", 3)?.build(&model, &Heads::default())?;
    let verdict = Pipeline::new(model.clone()).with_defence(defence).run(&outcome.image)?;
    println!("defended: {}", verdict.prediction.words(&model.class_info()));
    Ok(())
}
