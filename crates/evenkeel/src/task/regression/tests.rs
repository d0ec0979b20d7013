//! Files there and back, losses against central differences, and the whole method on a small network of values.

use std::sync::Arc;

use super::*;
use crate::attack::{Attack, Scenario};
use crate::detect::{DetectorSpec, Heads};
use crate::image::{Image, LabelMap};
use crate::model::Model;
use crate::network::TensorNames;
use crate::objective::{Loss, Progress, Terms};
use crate::pipeline::Pipeline;
use crate::random::Random;
use crate::toy::{Conv, picture};
use crate::view::Letterbox;
use crate::{AnswerSpec, DefenceSpec};

fn rule() -> RegressionRule {
    RegressionRule { unit: "m".into(), range: Some([0.0, 10.0]), ..RegressionRule::default() }
}

fn map(height: usize, width: usize, value: impl Fn(usize) -> f32) -> ValueMap {
    let extents = Extents { channels: 1, height, width };
    ValueMap::new(extents, (0..height * width).map(value).collect()).unwrap()
}

#[test]
fn rules_are_refused_by_key() {
    let refused = |change: &dyn Fn(&mut RegressionRule)| {
        let mut rule = rule();
        change(&mut rule);
        Regression::new(rule).unwrap_err().to_string()
    };
    assert!(refused(&|r| (r.unit, r.range) = (String::new(), None)).contains("`unit` or `range`"));
    assert!(refused(&|r| r.range = Some([2.0, 1.0])).contains("range"));
    assert!(refused(&|r| r.step = Some(0.0)).contains("step"));
    assert!(refused(&|r| r.loss = "l7".into()).contains("log-l1"));
    let table: toml::Table = "unit = 'm'\ncolour = 1".parse().unwrap();
    let sentence = KIND.check(Some(&table)).unwrap_err().to_string();
    assert!(sentence.contains("colour"), "{sentence}");
    assert!(KIND.check(None).is_err());
}

#[test]
fn values_come_back_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let values = map(5, 7, |i| if i == 3 { f32::NAN } else { 0.25 * i as f32 });
    values.save_npy(at("a.npy")).unwrap();
    let back = ValueMap::load(at("a.npy"), &rule()).unwrap();
    assert_eq!(Truth::of_values(back), Truth::of_values(values.clone()));
    let vector = ValueMap::vector(vec![1.0, -2.0]).unwrap();
    assert!(ValueMap::from_npy(&vector.to_npy()).unwrap().is_vector());
    // sixteen bits over the range, to half a step
    let rule = RegressionRule { unknown: Some(0), ..rule() };
    std::fs::write(at("a.png"), values.to_png16(&rule).unwrap().unwrap()).unwrap();
    let back = ValueMap::load(at("a.png"), &rule).unwrap();
    for (i, (a, b)) in back.values().iter().zip(values.values()).enumerate() {
        assert!((a - b).abs() <= 10.0 / 65535.0 || (b.is_nan() || i == 0) && a.is_nan(), "{i}: {a} {b}");
    }
    // KITTI's depth: steps of 1/256, 0 unknown
    let kitti = RegressionRule { step: Some(1.0 / 256.0), range: None, ..rule.clone() };
    LabelMap::new(1, 3, vec![0, 256, 2560]).unwrap().save_png(at("k.png"), None).unwrap();
    let depth = ValueMap::load(at("k.png"), &kitti).unwrap();
    assert!(depth.values()[0].is_nan() && depth.values()[1..] == [1.0, 10.0]);
    // eight bits of a map from 0 to 1
    let saliency = RegressionRule { range: Some([0.0, 1.0]), ..RegressionRule::default() };
    LabelMap::new(1, 2, vec![0, 255]).unwrap().save_png(at("s.png"), None).unwrap();
    assert_eq!(ValueMap::load(at("s.png"), &saliency).unwrap().values(), [0.0, 1.0]);
    let bare = RegressionRule { unit: "m".into(), ..RegressionRule::default() };
    assert!(ValueMap::load(at("s.png"), &bare).unwrap_err().to_string().contains("`step` or `range`"));
    std::fs::write(at("cut.npy"), &values.to_npy()[..90]).unwrap();
    assert!(ValueMap::load(at("cut.npy"), &rule).is_err());
}

/// On a grid of its own and on a finer one, for every loss.
#[test]
fn losses_have_the_derivative_of_their_value() {
    let mut random = Random::new(3);
    for kind in ValueLoss::ALL.iter().copied() {
        for (h, w) in [(4, 5), (9, 11)] {
            let truth = map(h, w, |i| if i == 2 { f32::NAN } else { 1.0 + 0.1 * (i % 13) as f32 });
            let loss = loss::LossAt { kind, truth };
            let scores: Vec<f32> = (0..20).map(|_| random.uniform(0.5, 3.0)).collect();
            let at =
                |values: Vec<f32>| loss.evaluate(&Tensor::new(vec![1, 1, 4, 5], values).unwrap()).unwrap();
            let (value, cotangent) = at(scores.clone());
            assert!(value > 0.0);
            for i in 0..20 {
                let moved = |step: f32| {
                    let mut values = scores.clone();
                    values[i] += step;
                    at(values).0
                };
                let central = (moved(1e-3) - moved(-1e-3)) / 2e-3;
                assert!(
                    (central - f64::from(cotangent[i])).abs() < 2e-3,
                    "{kind:?} {i}: {central} {}",
                    cotangent[i]
                );
            }
        }
    }
    let wrong = Tensor::new(vec![1, 2, 4, 5], vec![0.0; 40]).unwrap();
    assert!(loss::LossAt { kind: ValueLoss::L1, truth: map(4, 5, |_| 1.0) }.evaluate(&wrong).is_err());
}

/// Led back through a network to the image, for maps and for truths with unknown cells, at the network's grid and at a finer one.
#[test]
fn gradients_to_the_image_match_central_differences() {
    // its last map is the map of values
    let (network, image) = (Conv::random(&[6, 1], 1, true, 4), picture((14, 18), 2));
    let (output, feature) = (TensorNames::from("features"), TensorNames::from("features"));
    for kind in ValueLoss::ALL.iter().copied() {
        for (h, w) in [(14, 18), (28, 36)] {
            let truth = map(h, w, |i| if i % 11 == 3 { f32::NAN } else { 2.0 + 0.1 * (i % 13) as f32 });
            // far above what the network says, so that no cell crosses the truth
            let loss = Loss::of_task(Arc::new(loss::LossAt { kind, truth }), 1.0);
            let at = |image: &Image, gradient: bool| {
                let losses = vec![(1.0, &loss)];
                let terms = Terms { output: Some(&output), feature: &feature, losses, views: Vec::new() };
                terms.evaluate(&network, image, Progress::ONCE, &Random::new(7), gradient).unwrap()
            };
            let gradient = at(&image, true).gradient.unwrap();
            assert!(gradient.iter().any(|g| *g != 0.0), "{kind:?}");
            let mut random = Random::new(3);
            let directions: [Vec<f32>; 2] = [
                gradient.iter().map(|_| random.uniform(-1.0, 1.0)).collect(),
                gradient.iter().map(|g| g.signum()).collect(),
            ];
            for direction in directions {
                let moved = |step: f32| {
                    let mut moved = image.clone();
                    moved.pixels_mut().iter_mut().zip(&direction).for_each(|(p, d)| *p += step * d);
                    at(&moved, false).value
                };
                let central = (moved(2e-3) - moved(-2e-3)) / 4e-3;
                let exact: f64 = gradient.iter().zip(&direction).map(|(g, d)| f64::from(g * d)).sum();
                let scale: f64 = gradient.iter().map(|g| f64::from(g.abs())).sum();
                assert!((central - exact).abs() < 0.01 * scale, "{kind:?}: {central} {exact} of {scale}");
            }
        }
    }
}

#[test]
fn answers_are_told_painted_and_brought_back() {
    let task = Regression::new(rule()).unwrap();
    let scores = Tensor::new(vec![1, 1, 2, 2], vec![1.0, 3.0, 5.0, 7.0]).unwrap();
    let said = task.predict(&scores, (4, 4)).unwrap();
    assert_eq!(said.values().unwrap().size(), (4, 4));
    let classes = ClassInfo::default();
    assert_eq!(said.words(&classes), "mean 4.000 m (1.000 to 7.000 m)");
    assert_eq!(said.json(&classes)["unit"], "m");
    let painted = said.paint(&Image::filled(4, 4, 0.5), 0.5, &classes).unwrap();
    assert_eq!(painted.scale.as_ref().unwrap().ends(), ("0 m".into(), "10 m".into()));
    assert!(painted.drawn().height() > 4);
    let names: Vec<&str> = said
        .files(&classes)
        .unwrap()
        .iter()
        .map(|file| match file {
            crate::task::AnswerFile::Bytes { suffix, .. } => *suffix,
            crate::task::AnswerFile::Picture { suffix, .. } => *suffix,
        })
        .collect();
    assert_eq!(names, ["values.npy", "values.png"]);
    let back = said.unframed(&Letterbox::new((2, 4), (4, 4))).unwrap();
    assert_eq!(back.values().unwrap().size(), (2, 4));
    let truth = said.as_truth();
    assert_eq!(task.score(&said, &truth), 1.0);
    let half = task.target("times:0.5", &truth, &classes, 0).unwrap().unwrap();
    assert!((task.score(&said, &half) - 0.0).abs() < 1e-6, "twice the truth is wholly wrong");
    let ten = task.target("10", &truth, &classes, 0).unwrap().unwrap();
    assert!((task.score(&said, &ten) - 0.4).abs() < 1e-6);
    assert!(task.target("permuted", &truth, &classes, 0).is_err());
    assert!(said.class().is_none() && said.label_map().is_none() && said.instances().is_none());
    let vector = task.predict(&Tensor::new(vec![1, 2], vec![0.5, 2.0]).unwrap(), (9, 9)).unwrap();
    assert_eq!(vector.words(&classes), "0.500, 2.000 m");
    assert_eq!(vector.json(&classes)["values"][1], 2.0);
}

/// Attack, defence, vote, detector and estimate on a network of values.
#[test]
fn the_whole_method_runs_on_values() {
    let network = Conv::random(&[6, 8], 1, true, 4);
    let model = Arc::new(Model::new(
        Box::new(network),
        Box::new(Regression::new(rule()).unwrap()),
        "map",
        "features",
    ));
    let image = picture((16, 20), 1);
    let clean = model.predict(&image).unwrap();
    let truth = clean.as_truth();
    let attack = Attack::named("pgd").unwrap().epsilon(0.03).with("steps", 8).unwrap();
    let outcome = attack.run(&Scenario::new(&model, &image, &truth)).unwrap();
    assert!(outcome.score < 0.99, "{}", outcome.score);
    let error = |image: &Image| {
        relative_error(model.predict(image).unwrap().values().unwrap(), truth.values().unwrap())
    };
    assert!(error(&outcome.image) > 0.01);
    assert!(Attack::named("cw").unwrap().run(&Scenario::new(&model, &image, &truth)).is_err());
    let defence = DefenceSpec::named("equivariance").unwrap().with("steps", 1).unwrap();
    let pipeline = Pipeline::new(model.clone())
        .with_defence(defence.build(&model, &Heads::default()).unwrap())
        .with_answer(AnswerSpec::named("vote").unwrap().build(&model).unwrap());
    let verdict = pipeline.run(&image).unwrap();
    assert_eq!(verdict.prediction.values().unwrap().size(), (16, 20));
    for name in ["variance", "error-estimate", "equivariance"] {
        let detector = DetectorSpec::named(name).unwrap().build(&model, Heads::default()).unwrap();
        assert!(detector.score(&model, &outcome.image).unwrap().is_finite());
    }
}
