//! The conformal interval of the error estimate on rendered scenes: 200 to calibrate, 200 to judge, δ = 0.1. What was promised is measured.

use evenkeel::detect::{
    DetectorSpec, EstimateRule, Heads, Interval, LabelledCells, Outputs, ViewOutputs, expected_error,
};
use evenkeel::task::Truth;
use evenkeel::{Attack, Image, Random, Scenario, shipped};
use evenkeel_data::dataset::scenes::{Split, render};
use rayon::prelude::*;

/// Small, so that the test is quick; the network sees the same kind of scene.
const SIZE: (usize, usize) = (48, 96);
const DELTA: f64 = 0.1;

#[test]
fn the_interval_covers_what_it_promises() {
    let model = shipped::named("segmenter").unwrap().model().unwrap();
    let detector = DetectorSpec::named("error-estimate").unwrap().build(&model, Heads::default()).unwrap();
    let views = detector.views.draw(&Random::new(detector.seed));
    let known = |image: &Image, truth: &Truth| -> LabelledCells {
        let outputs = ViewOutputs::at(&model, image, &views, Outputs::Softmax).unwrap();
        outputs.labelled(&model, truth).unwrap().unwrap()
    };
    let scene = |number: u64| {
        let scene = render(Split::Test.seed(number), SIZE.0, SIZE.1);
        (model.fit(&scene.image).unwrap(), Truth::of_labels(scene.labels))
    };
    let clean: Vec<LabelledCells> = (0..400u64)
        .into_par_iter()
        .map(|number| {
            let (image, truth) = scene(number);
            known(&image, &truth)
        })
        .collect();
    let rule = EstimateRule::fitted(&clean[..200], DELTA).unwrap();
    let covered = |images: &[LabelledCells]| {
        let holds = |one: &&LabelledCells| {
            let estimate = expected_error(&one.variances, rule.bias.unwrap());
            matches!(rule.interval(estimate).unwrap(), Interval::Within { low, high, .. } if (low..=high).contains(&one.error))
        };
        images.iter().filter(holds).count() as f64 / images.len() as f64
    };
    let coverage = covered(&clean[200..]);
    let attack = Attack::named("pgd").unwrap().epsilon(4.0 / 255.0).with("steps", 5).unwrap();
    let attacked: Vec<LabelledCells> = (200..220u64)
        .into_par_iter()
        .map(|number| {
            let (image, truth) = scene(number);
            let outcome = attack.run(&Scenario::new(&model, &image, &truth)).unwrap();
            known(&outcome.image, &truth)
        })
        .collect();
    println!(
        "coverage {coverage:.3} of clean scenes (promised {}), {:.3} of attacked ones (nothing promised)",
        1.0 - DELTA,
        covered(&attacked)
    );
    assert!((0.84..=0.96).contains(&coverage), "{coverage}");
    assert!(covered(&attacked) < coverage, "attacked scenes are not like those of the calibration");
}
