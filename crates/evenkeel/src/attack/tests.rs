//! What every attack must hold, on a linear network whose optimum is known and on small convolutional ones; and torchattacks.

mod through;

use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::budget::Budget;
use crate::defence::{Defence, DefenceSpec, Schedule};
use crate::detect::Heads;
use crate::objective::{Equivariance, LossKind, Progress};
use crate::optimise::{Evaluation, Objective};
use crate::random::Random;
use crate::settings::Choice;
use crate::task::{Classification, Semantic};
use crate::toy::{Conv, Layer, Linear, picture};
use crate::view::{ViewRule, ViewSet};

pub(super) fn classifier(smooth: bool) -> Model {
    let network = Conv::random(&[6, 8], 5, smooth, 3);
    Model::new(Box::new(network), Box::new(Classification), "scores", "features")
}

pub(super) fn segmenter() -> Model {
    Model::new(Box::new(Conv::random(&[6, 8], 5, false, 4)), Box::new(Semantic), "map", "features")
}

fn linear(classes: usize) -> Model {
    Model::new(Box::new(Linear::random((6, 5), classes, 2)), Box::new(Classification), "scores", "features")
}

/// Two cheap views.
fn few_views(fixed: bool) -> ViewSet {
    let rotate = ViewRule::of("rotate", &[("degrees", [-15.0, 15.0].into())]).unwrap();
    ViewSet::of(vec![ViewRule::of("flip", &[]).unwrap(), rotate]).fitted(fixed, 1)
}

fn defence_of(model: &Model, budget: Budget, schedule: &str) -> Defence {
    let spec = DefenceSpec::named("equivariance")
        .unwrap()
        .with_views(few_views(model.network.fixed_size().is_some()));
    let spec = spec.with("steps", 2usize).unwrap().with("schedule", schedule).unwrap();
    let spec =
        spec.with("norm", budget.norm.name()).unwrap().with("epsilon", f64::from(budget.radius)).unwrap();
    spec.build(model, &Heads::default()).unwrap()
}

/// Two steps of a schedule over two cheap views.
pub(super) fn small_defence_of(model: &Model, schedule: &str) -> Defence {
    defence_of(model, Budget::linf(0.02), schedule)
}

/// A scenario on the network's own answer.
pub(super) struct Scene {
    pub(super) model: Arc<Model>,
    image: Image,
    pub(super) truth: Truth,
    pub(super) pipeline: Pipeline,
    objective: Equivariance,
}

impl Scene {
    pub(super) fn new(model: Model, size: (usize, usize)) -> Self {
        let image = picture(size, 1);
        let truth = model.predict(&image).unwrap().as_truth();
        let model = Arc::new(model);
        let defence = defence_of(&model, Budget::linf(0.01), "paper");
        let pipeline = Pipeline::new(model.clone()).with_defence(defence);
        let objective = Equivariance::new(few_views(model.network.fixed_size().is_some()));
        Self { model, image, truth, pipeline, objective }
    }

    pub(super) fn scenario(&self) -> Scenario<'_> {
        let objective: Option<&dyn ViewObjective> = Some(&self.objective);
        Scenario { objective, ..Scenario::through(&self.pipeline, &self.image, &self.truth) }
    }

    fn run(&self, attack: &Attack) -> Result<Outcome> {
        attack.run(&self.scenario())
    }
}

/// The attack of a name with other settings.
pub(super) fn changed(name: &str, budget: Budget, change: impl FnOnce(&mut AttackSettings)) -> Attack {
    let mut attack = Attack::named(name).unwrap();
    let settings = attack.settings_mut();
    (settings.norm, settings.epsilon_255) = (budget.norm, 255.0 * f64::from(budget.radius));
    change(settings);
    attack
}

fn quick(name: &str, budget: Budget) -> Attack {
    changed(name, budget, |s| {
        (s.steps, s.targets, s.weight) = (6, 3, 1.0);
        s.draws = s.draws.min(2);
    })
}

/// Which attacks cannot be made where: they must say so.
fn refuses(attack: &AttackKind, segments: bool, norm: Norm) -> bool {
    let for_classifiers = ["fab", "cw-l2"].contains(&attack.name());
    (for_classifiers && segments) || (attack.name() == "cw-l2" && norm == Norm::Linf)
}

#[test]
fn every_attack_stays_inside_and_repeats_for_any_thread_count() {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let three = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let scenes = [
        Scene::new(classifier(false), (16, 16)),
        Scene::new(segmenter(), (12, 16)),
        Scene::new(linear(5), (6, 5)),
    ];
    for scene in &scenes {
        let segments = scene.model.task.name() == "semantic";
        for attack in &ATTACKS {
            for budget in [Budget::linf(0.05), Budget::l2(0.7)] {
                let run = || scene.run(&quick(attack.name(), budget));
                let first = one.install(run);
                if refuses(attack, segments, budget.norm) {
                    assert!(first.unwrap_err().to_string().contains(attack.name()));
                    continue;
                }
                let first = first.unwrap_or_else(|e| panic!("{}: {e}", attack.name()));
                assert!(budget.contains(&scene.image, &first.image), "{} left its budget", attack.name());
                let second = three.install(run).unwrap();
                assert!(first.image == second.image, "{} depends on threads", attack.name());
                assert!(scene.run(&quick(attack.name(), budget).seed(9)).is_ok());
            }
        }
    }
}

#[test]
fn what_is_kept_is_the_best_that_was_seen() {
    let scene = Scene::new(segmenter(), (16, 16));
    for name in ["pgd", "mim", "cw", "houdini", "segpgd", "apgd-ce", "square", "bpda"] {
        let outcome = scene.run(&quick(name, Budget::linf(0.05))).unwrap();
        let lowest = outcome.trace.iter().map(|r| r.score).fold(f64::INFINITY, f64::min);
        assert_eq!(outcome.score, lowest, "{name}");
    }
    // who wants two things is not judged by one of them
    for name in ["adaptive", "adaptive-apgd"] {
        let outcome = scene.run(&quick(name, Budget::linf(0.05))).unwrap();
        let highest = outcome.trace.iter().map(|r| r.value).fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(outcome.value, highest, "{name}");
    }
}

#[test]
fn more_steps_and_larger_budgets_are_never_weaker() {
    let scene = Scene::new(classifier(false), (16, 16));
    for name in ["pgd", "mim", "cw", "apgd-ce", "apgd-dlr", "houdini"] {
        let value = |steps, radius| {
            let attack = quick(name, Budget::linf(radius)).with("steps", steps as usize).unwrap();
            let outcome = scene.run(&attack).unwrap();
            (outcome.score, -outcome.value)
        };
        assert!(value(12, 0.02) <= value(4, 0.02), "{name}: more steps were weaker");
        assert!(value(12, 0.04) <= value(12, 0.02), "{name}: a larger budget was weaker");
        let free = changed(name, Budget::linf(1.0), |s| (s.steps, s.step_255) = (60, Some(12.75)));
        assert_eq!(scene.run(&free).unwrap().score, 0.0, "{name} unbounded");
    }
}

/// With two classes the margin grows by ε times the dual norm of the difference of the weights.
#[test]
fn gradient_attacks_reach_the_optimum_of_a_linear_network() {
    let network = Linear::random((6, 5), 2, 2);
    let image = picture((6, 5), 1);
    let difference: Vec<f32> = network.row(0).iter().zip(network.row(1)).map(|(a, b)| a - b).collect();
    let model = Model::new(Box::new(network), Box::new(Classification), "scores", "features");
    let truth = model.predict(&image).unwrap().as_truth();
    let margin = |image: &Image| {
        let scores = model.scores(image).unwrap();
        let y = truth.class().unwrap();
        f64::from(scores.data()[1 - y] - scores.data()[y])
    };
    let scenario = Scenario::new(&model, &image, &truth);
    let one_norm: f64 = difference.iter().map(|d| f64::from(d.abs())).sum();
    for (budget, dual) in
        [(Budget::linf(0.03), one_norm), (Budget::l2(0.3), crate::budget::length(&difference))]
    {
        let best = margin(&image) + f64::from(budget.radius) * dual;
        for name in ["pgd", "mim", "cw", "apgd-ce", "houdini"] {
            let outcome = changed(name, budget, |s| s.steps = 40).run(&scenario).unwrap();
            let reached = margin(&outcome.image);
            assert!(
                (reached - best).abs() < 1e-3 * best.abs().max(1.0),
                "{name} {budget:?}: {reached} of {best}"
            );
        }
        // without a gradient, most of the way
        let outcome = changed("square", budget, |s| s.steps = 3000).run(&scenario).unwrap();
        let gained = (margin(&outcome.image) - margin(&image)) / (best - margin(&image));
        assert!(gained > 0.6, "square {budget:?}: {gained} of what can be gained");
        // the least change that fools is the margin over the dual norm
        let least = -margin(&image) / dual;
        let names: &[&str] = if budget.norm == Norm::L2 { &["fab", "cw-l2"] } else { &["fab"] };
        for name in names {
            let wide = Budget { radius: 10.0 * least as f32, ..budget };
            let outcome = changed(name, wide, |s| s.steps = 200).run(&scenario).unwrap();
            let far = budget.distance(&image, &outcome.image);
            assert_eq!(outcome.score, 0.0, "{name}");
            assert!(far >= 0.999 * least && far < 1.1 * least, "{name} {budget:?}: {far}, least {least}");
        }
    }
}

#[test]
fn targets_are_reached() {
    let scene = Scene::new(linear(4), (6, 5));
    let class = scene.truth.class().unwrap();
    let target = Truth::of_class((class + 1) % 4);
    for name in ["pgd", "mim", "cw", "apgd-ce", "square", "cw-l2"] {
        let budget = if name == "cw-l2" { Budget::l2(6.0) } else { Budget::linf(0.45) };
        let attack = changed(name, budget, |s| (s.steps, s.step_255) = (150, Some(5.1)));
        let scenario = Scenario { target: Some(&target), ..scene.scenario() };
        let outcome = attack.run(&scenario).unwrap();
        assert_eq!(outcome.score, 0.0, "{name} missed its target");
        assert_eq!(scene.model.predict(&outcome.image).unwrap().class(), Some((class + 1) % 4));
    }
    let permuted = |count| {
        let classes = crate::task::ClassInfo { count, ..Default::default() };
        scene.model.task.target("permuted", &scene.truth, &classes, 3)
    };
    assert_ne!(permuted(4).unwrap(), Some(scene.truth.clone()));
    assert!(permuted(1).is_err());
    let scenario = Scenario { target: Some(&target), ..scene.scenario() };
    assert!(quick("fab", Budget::linf(0.1)).run(&scenario).is_err());
}

/// Evaluated at the clean image, as the reference code does, the second term would have no gradient and this would fail.
#[test]
fn the_adaptive_attacks_second_term_has_a_gradient() {
    let scene = Scene::new(classifier(false), (16, 16));
    let scenario = scene.scenario();
    let evaluate = |weight: f64| {
        let loss = scenario.loss(LossKind::CrossEntropy).unwrap();
        let aim = Aim::new(&scenario, &AttackSettings::default());
        let objective = TaskObjective { aim, loss, weight };
        objective
            .evaluate(&picture((16, 16), 8), Progress::ONCE, &Random::new(1), true)
            .unwrap()
            .gradient
            .unwrap()
    };
    let (without, with) = (evaluate(0.0), evaluate(1.0));
    let second: Vec<f32> = with.iter().zip(&without).map(|(a, b)| a - b).collect();
    let ratio = crate::budget::length(&second) / crate::budget::length(&without);
    assert!(ratio > 1e-2, "{ratio}");
}

#[test]
fn the_worst_case_is_the_lowest_of_the_list_after_rounding() {
    let scene = Scene::new(classifier(false), (16, 16));
    let attacks: Vec<_> = ["fgsm", "pgd", "square"].iter().map(|n| quick(n, Budget::linf(0.03))).collect();
    let verdicts = worst_case(&scene.scenario(), &attacks, 1).unwrap();
    let lowest = verdicts.all.iter().map(|attempt| attempt.left).fold(f64::INFINITY, f64::min);
    assert_eq!(verdicts.all[verdicts.worst].left, lowest);
    assert!(verdicts.all.iter().all(|attempt| attempt.image == attempt.image.rounded_to_8_bits()));
    assert!(worst_case(&scene.scenario(), &[], 1).is_err());
}

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

/// The net of testdata/attacks/make.py.
fn trained() -> Model {
    let net: Value = serde_json::from_str(include_str!("../../../../testdata/attacks/net.json")).unwrap();
    let layer = |name: &str, inputs: usize| Layer {
        inputs,
        weight: floats(&net[format!("{name}.weight")]),
        bias: floats(&net[format!("{name}.bias")]),
    };
    let network = Conv {
        layers: vec![layer("a", 3), layer("b", 8)],
        last_weight: floats(&net["c.weight"]),
        last_bias: floats(&net["c.bias"]),
        smooth: false,
    };
    Model::new(Box::new(network), Box::new(Classification), "scores", "features")
}

/// The same images broken, up to one in a hundred, or more of them.
#[test]
fn attacks_break_what_torchattacks_breaks() {
    let model = trained();
    let results: Value =
        serde_json::from_str(include_str!("../../../../testdata/attacks/results.json")).unwrap();
    let bytes = include_bytes!("../../../../testdata/attacks/images.bin");
    let images: Vec<Image> = bytes
        .chunks(3 * 16 * 16)
        .map(|b| Image::new(16, 16, b.iter().map(|v| f32::from(*v) / 255.0).collect()).unwrap())
        .collect();
    let labels: Vec<usize> =
        results["labels"].as_array().unwrap().iter().map(|l| l.as_u64().unwrap() as usize).collect();
    let linf = Budget::linf(4.0 / 255.0);
    let fifty = |name| changed(name, linf, |s| (s.steps, s.stop_when_fooled) = (50, true));
    let twenty = |name| changed(name, linf, |s| (s.steps, s.momentum, s.stop_when_fooled) = (20, 1.0, true));
    for attack in [
        twenty("pgd"),
        twenty("mim"),
        fifty("apgd-ce"),
        fifty("apgd-dlr"),
        fifty("apgd-t"),
        fifty("fab"),
        changed("square", linf, |s| (s.steps, s.stop_when_fooled) = (1000, true)),
        changed("cw-l2", Budget::l2(20.0), |s| s.steps = 200),
    ] {
        let name = attack.name();
        let theirs: Vec<usize> = results["broken"][name]
            .as_array()
            .unwrap()
            .iter()
            .map(|i| i.as_u64().unwrap() as usize)
            .collect();
        let some = match name {
            "cw-l2" => 20,
            "square" => 40,
            _ => images.len(),
        };
        let images = &images[..some];
        let theirs: Vec<usize> = theirs.into_iter().filter(|i| *i < images.len()).collect();
        let mut distance = 0.0;
        let mut ours = Vec::new();
        for (i, image) in images.iter().enumerate() {
            let truth = Truth::of_class(labels[i]);
            let scenario = Scenario::new(&model, image, &truth);
            let outcome = attack.run(&scenario).unwrap();
            if outcome.score == 0.0 {
                ours.push(i);
                distance += attack.settings().budget().distance(image, &outcome.image);
            }
        }
        let missed = theirs.iter().filter(|i| !ours.contains(i)).count();
        println!("{name}: ours {}, theirs {}, missed {missed}", ours.len(), theirs.len());
        assert!(missed * 100 <= images.len(), "{name} missed {missed} that torchattacks broke");
        if name == "cw-l2" {
            let theirs = results["cw_l2_distance"].as_f64().unwrap();
            let mean = distance / ours.len() as f64;
            println!("cw-l2: mean distance ours {mean:.4}, theirs {theirs:.4}");
            assert!(mean <= 1.05 * theirs, "{mean} against {theirs}");
        }
    }
}
