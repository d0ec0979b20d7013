//! What every input transform must hold, and values that SciPy and Pillow gave: `testdata/transforms/transforms.json`, made by `make.py` beside it.

use serde_json::Value as Json;

use super::*;
use crate::defence::{DefenceKind, DefenceSpec};
use crate::network::{Network, Traced};
use crate::settings::names;
use crate::task::{Classification, Semantic};
use crate::toy::{Conv, picture};
use crate::{Model, Pipeline};

fn floats(value: &Json) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

fn far(ours: &Image, theirs: &[f32]) -> f32 {
    ours.pixels().iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn blurs_and_compression_are_those_of_scipy_and_pillow() {
    let text = include_str!("../../../../../testdata/transforms/transforms.json");
    let cases: Json = serde_json::from_str(text).unwrap();
    let side = |name: &str| cases[name].as_u64().unwrap() as usize;
    let pixels = floats(&cases["image"]).iter().map(|v| v / 255.0).collect();
    let image = Image::new(side("height"), side("width"), pixels).unwrap();
    for case in cases["gaussian"].as_array().unwrap() {
        let blurred = GaussianBlur { sigma: case["sigma"].as_f64().unwrap() }.apply(&image);
        assert!(far(&blurred, &floats(&case["values"])) < 2e-6);
    }
    for case in cases["median"].as_array().unwrap() {
        let blurred = MedianBlur { window: case["window"].as_u64().unwrap() as usize }.apply(&image);
        assert!(far(&blurred, &floats(&case["values"])) < 1e-6);
    }
    for case in cases["jpeg"].as_array().unwrap() {
        let grey = Image::new(image.height(), image.width(), image.plane(0).repeat(3)).unwrap();
        let ours = Jpeg { quality: case["quality"].as_u64().unwrap() as u32 }.apply(&grey);
        let theirs: Vec<f32> = floats(&case["values"]).iter().map(|v| v / 255.0).collect();
        // Pillow's cosine transform is in whole numbers, so a coefficient near a half may be rounded the other way in a block
        let off: f32 = ours.pixels().iter().zip(&theirs).map(|(a, b)| 255.0 * (a - b).abs()).sum();
        let mean = off / theirs.len() as f32;
        assert!(mean < 0.5, "quality {}: off by {mean} of 255 on average", case["quality"]);
    }
}

#[test]
fn fewer_bits_are_fewer_levels_and_nothing_changes_twice() {
    let image = picture((9, 11), 4);
    for bits in 1..=8 {
        let depth = BitDepth { bits };
        let once = depth.apply(&image);
        assert_eq!(depth.apply(&once), once);
        let steps = ((1u32 << bits) - 1) as f32;
        assert!(once.pixels().iter().all(|v| ((v * steps).round() - v * steps).abs() < 1e-4));
    }
}

/// <A x, y> = <x, A' y> for the blur; the median's derivative along a direction is its pullback.
#[test]
fn the_ways_back_of_blurs_are_exact() {
    let (image, other) = (picture((10, 13), 1), picture((10, 13), 2));
    let blur = GaussianBlur { sigma: 1.3 };
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    let there = dot(blur.apply(&image).pixels(), other.pixels());
    let back = dot(image.pixels(), &blur.pullback(&image, other.pixels().to_vec()));
    assert!((there - back).abs() < 1e-4 * there.abs(), "{there} {back}");
    let median = MedianBlur { window: 3 };
    let gradient = median.pullback(&image, other.pixels().to_vec());
    let mut random = Random::new(3);
    let way: Vec<f32> = image.pixels().iter().map(|_| random.normal()).collect();
    let at = |step: f32| {
        let mut moved = image.clone();
        moved.pixels_mut().iter_mut().zip(&way).for_each(|(p, d)| *p += step * d);
        let places = median.apply(&moved);
        dot(places.pixels(), other.pixels())
    };
    let central = (at(1e-4) - at(-1e-4)) / 2e-4;
    let along = dot(&gradient, &way);
    assert!((central - along).abs() < 0.02 * central.abs().max(1.0), "{central} {along}");
}

/// Through a pipeline, every transform with a derivative is led back exactly, and the traced tensors are those of a run.
#[test]
fn a_transformed_network_is_led_back_exactly() {
    let net = |seed| Box::new(Conv::random(&[6, 8], 5, true, seed));
    let models = [
        Model::new(net(3), Box::new(Classification), "scores", "features"),
        Model::new(net(4), Box::new(Semantic), "map", "features"),
    ];
    let image = picture((16, 20), 7);
    for model in models {
        let model = std::sync::Arc::new(model);
        for name in names::<DefenceKind>() {
            let defence = DefenceSpec::named(name).unwrap().build(&model, &Default::default());
            let Some(defence) = defence.ok().filter(|d| d.transform.is_some()) else { continue };
            let pipeline = Pipeline::new(model.clone()).with_defence(defence);
            let network = pipeline.network(3, crate::attack::Estimator::Identity);
            let names = model.output.list();
            let Traced { tensors, tape } = network.trace_one(&image, &names).unwrap();
            assert_eq!(tensors, network.run_one(&image, &names).unwrap(), "{name}");
            assert_eq!(pipeline.run_seeded(&image, 3).unwrap().prediction, {
                model.task.predict(&tensors[0], image.size()).unwrap()
            });
            if ["jpeg", "bit-depth"].contains(&name) {
                continue;
            }
            let mut random = Random::new(1);
            let cotangent: Vec<f32> = tensors[0].data().iter().map(|_| random.normal()).collect();
            let gradient = tape.pullback(vec![(0, cotangent.clone())]).unwrap();
            let value = |image: &Image| -> f64 {
                let scores = network.run_one(image, &names).unwrap();
                scores[0].data().iter().zip(&cotangent).map(|(s, c)| f64::from(*s) * f64::from(*c)).sum()
            };
            let (mut off, mut total) = (0.0, 0.0);
            for _ in 0..4 {
                let way: Vec<f32> = image.pixels().iter().map(|_| random.normal()).collect();
                let at = |step: f32| {
                    let mut moved = image.clone();
                    moved.pixels_mut().iter_mut().zip(&way).for_each(|(p, d)| *p += step * d);
                    value(&moved)
                };
                let central = (at(1e-4) - at(-1e-4)) / 2e-4;
                let along = gradient.iter().zip(&way).map(|(g, d)| f64::from(g * d)).sum::<f64>();
                off += (central - along).powi(2);
                total += central.powi(2);
            }
            assert!(off < 2e-3 * total, "{name}: off by {off} of {total}");
        }
    }
}
