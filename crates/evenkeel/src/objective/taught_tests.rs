//! Objectives in which views teach: values and gradients against PyTorch and central differences, and what a step costs.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value as Json;

use super::consensus::{Level, Target};
use super::*;
use crate::image::Image;
use crate::network::{Network, Tape, Traced};
use crate::toy::{Conv, picture};
use crate::view::{Stay, ViewSet};

fn consensus(signal: Signal, tensors: &str, leave_out: bool) -> Consensus {
    let views = ViewSet::named("vote").unwrap();
    Consensus { views, signal, tensors: tensors.into(), temperature: 1.0, leave_out, refresh: 1 }
}

/// `testdata/consensus/consensus.json`, made by `make.py` beside it.
#[test]
fn values_and_gradients_are_those_of_pytorch() {
    let cases: Vec<Json> =
        serde_json::from_str(include_str!("../../../../testdata/consensus/consensus.json")).unwrap();
    let floats = |value: &Json| -> Vec<f32> {
        value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
    };
    for case in cases {
        let shape: Vec<usize> =
            case["shape"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as usize).collect();
        let signal = match case["kind"].as_str().unwrap() {
            "classes" => Signal::Classes,
            "values" => Signal::Values,
            _ => Signal::Features,
        };
        let mut objective = consensus(signal, "scores", case["leave_out"].as_bool().unwrap());
        objective.temperature = case["temperature"].as_f64().unwrap() as f32;
        let tensor = |value: &Json| Tensor::new(shape.clone(), floats(value)).unwrap();
        let view = DrawnView::of(Stay).placed((12, 16));
        let seen = |value: &Json| Seen { view: view.clone(), features: vec![tensor(value)] };
        let seen: Vec<Seen> = case["seen"].as_array().unwrap().iter().map(seen).collect();
        let compared = objective.compare(&[tensor(&case["own"])], &seen).unwrap();
        let value = case["value"].as_f64().unwrap();
        assert!((compared.value - value).abs() < 1e-5 * value.abs().max(1.0), "{signal:?} {value}");
        for (ours, theirs) in compared.base[0].iter().zip(floats(&case["gradient"])) {
            assert!((ours - theirs).abs() < 1e-5, "{signal:?}: {ours} {theirs}");
        }
    }
}

/// With the target held fixed, the gradient is the derivative of the value; it is the same through the sum of terms.
#[test]
fn the_gradient_at_a_held_target_is_exact() {
    let network = Conv::random(&[6, 5], 4, true, 1);
    let image = picture((16, 20), 2);
    for (signal, tensor) in [
        (Signal::Classes, "scores"),
        (Signal::Classes, "map"),
        (Signal::Values, "map"),
        (Signal::Features, "features"),
    ] {
        for leave_out in [false, true] {
            let objective = consensus(signal, tensor, leave_out);
            let taught = objective.teach(&network, &image, None, &Random::new(4).fork(0), true).unwrap();
            let gradient = taught.gradient.unwrap();
            let feature = TensorNames::from("features");
            let views = vec![ViewTerm { weight: 1.0, objective: &objective }];
            let terms = Terms { output: None, feature: &feature, losses: vec![], views };
            let sum = terms.evaluate(&network, &image, Progress::ONCE, &Random::new(4), true).unwrap();
            assert_eq!((sum.value, sum.gradient.as_ref()), (taught.learned.value, Some(&gradient)));
            let mut random = Random::new(3);
            let (mut off, mut total) = (0.0, 0.0);
            for _ in 0..4 {
                let way: Vec<f32> = gradient.iter().map(|_| random.normal()).collect();
                let at = |step: f32| {
                    let mut moved = image.clone();
                    moved.pixels_mut().iter_mut().zip(&way).for_each(|(p, d)| *p += step * d);
                    let held = Some(taught.target.clone());
                    objective.teach(&network, &moved, held, &Random::new(9), false).unwrap().learned.value
                };
                let central = (at(1e-3) - at(-1e-3)) / 2e-3;
                let along = gradient.iter().zip(&way).map(|(g, d)| f64::from(g * d)).sum::<f64>();
                off += (central - along).powi(2);
                total += central.powi(2);
            }
            assert!(off < 2e-3 * total, "{signal:?} of {tensor}: off by {off} of {total}");
        }
    }
}

/// A network that counts its passes and pullbacks.
struct Counting {
    inner: Conv,
    runs: AtomicUsize,
    traces: AtomicUsize,
}

struct Counted<'n>(Box<dyn Tape + 'n>);

impl Tape for Counted<'_> {
    fn pullback(&self, cotangents: crate::network::Cotangents) -> crate::Result<Vec<f32>> {
        self.0.pullback(cotangents)
    }
}

impl Network for Counting {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        self.inner.fixed_size()
    }

    fn run(&self, images: &[&Image], tensors: &[&str]) -> crate::Result<Vec<Vec<Tensor>>> {
        self.runs.fetch_add(images.len(), Ordering::Relaxed);
        self.inner.run(images, tensors)
    }

    fn trace(&self, images: &[&Image], tensors: &[&str]) -> crate::Result<Vec<Traced<'_>>> {
        self.traces.fetch_add(images.len(), Ordering::Relaxed);
        let traced = self.inner.trace(images, tensors)?;
        Ok(traced.into_iter().map(|t| Traced { tape: Box::new(Counted(t.tape)), ..t }).collect())
    }
}

/// K passes without a tape for each target and one traced pass for each step; agreement ends the steps before any is taken.
#[test]
fn a_step_costs_a_pass_for_each_view_and_one_tape() {
    use crate::defence::DefenceSpec;
    use crate::{Model, task::Semantic};
    let image = picture((16, 20), 2);
    let counts = |spec: &DefenceSpec| {
        let network = std::sync::Arc::new(Counting {
            inner: Conv::random(&[6, 5], 4, true, 1),
            runs: AtomicUsize::new(0),
            traces: AtomicUsize::new(0),
        });
        let model = Model {
            network: network.clone(),
            ..Model::new(Box::new(Conv::random(&[6], 4, true, 1)), Box::new(Semantic), "map", "features")
        };
        let defended =
            spec.build(&model, &Default::default()).unwrap().apply(&model, &image, 1).unwrap().image;
        (network.runs.load(Ordering::Relaxed), network.traces.load(Ordering::Relaxed), defended == image)
    };
    let spec = || DefenceSpec::named("consensus").unwrap().with("steps", 6).unwrap();
    let spec = |agree: Option<f64>| match agree {
        Some(agree) => spec().with("agree", agree).unwrap(),
        None => spec(),
    };
    let never = spec(None);
    let views = never.settings().views.set.rules.len();
    let steps = never.clone().with("refresh", 1).unwrap().with("start", "random").unwrap();
    assert!(!counts(&steps.with("agree", 1.0).unwrap()).2, "nothing was learnt");
    let held = spec(Some(1.0)).with("refresh", 3).unwrap().with("start", "random").unwrap();
    let (runs, traces, _) = counts(&held);
    assert!(traces <= 6 && runs <= 2 * views && runs.is_multiple_of(views), "{runs} {traces}");
    let agreed = spec(Some(1e-9)).with("start", "image").unwrap().with("refresh", 1).unwrap();
    assert_eq!(counts(&agreed), (views, 1, true));
}

/// An image that its views agree with is left alone unless every step is asked for; agreement has degrees also where there is a single cell.
#[test]
fn agreement_has_degrees_and_ends_the_steps() {
    use crate::defence::DefenceSpec;
    let level = |values: Vec<f32>| Target { levels: vec![Level { values, mask: vec![1.0] }] };
    let agreement = |signal, scores: Vec<f32>, target: Vec<f32>| {
        let one = Tensor::new(vec![1, scores.len()], scores).unwrap();
        consensus(signal, "scores", false).learn(&[one], &level(target)).unwrap().agreement
    };
    // softmax(ln 3, 0) = (3/4, 1/4)
    let classes = |target| agreement(Signal::Classes, vec![3f32.ln(), 0.0], target);
    assert!((classes(vec![0.75, 0.25]) - 1.0).abs() < 1e-6);
    assert!((classes(vec![0.5, 0.5]) - 0.75).abs() < 1e-6);
    assert!((classes(vec![0.0, 1.0]) - 0.25).abs() < 1e-6);
    let spec = DefenceSpec::named("consensus").unwrap();
    assert_eq!(spec.settings().agree, Some(0.85));
}

/// The cosine of features is close to one on clean images, so agreement falls fifteen times as fast.
#[test]
fn agreement_of_features_is_strict() {
    let cosine = |angle: f32| {
        let one = Tensor::new(vec![1, 2, 1, 1], vec![angle.cos(), angle.sin()]).unwrap();
        let target = Target { levels: vec![Level { values: vec![1.0, 0.0], mask: vec![1.0] }] };
        consensus(Signal::Features, "features", false).learn(&[one], &target).unwrap().agreement
    };
    assert!((cosine(0.0) - 1.0).abs() < 1e-5);
    assert!((cosine(0.99f32.acos()) - 0.85).abs() < 1e-3);
    assert_eq!(cosine(1.0), 0.0);
}
