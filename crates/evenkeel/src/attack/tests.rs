//! What every attack must hold, on a linear network whose optimum is known and on small convolutional ones; and torchattacks.

use serde_json::Value;

use super::*;
use crate::defence::{DefenceSettings, Schedule};
use crate::objective::{Equivariance, LossKind, Progress};
use crate::optimise::Objective;
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

fn small_defence(model: &Model, budget: Budget, steps: usize, noise: bool) -> Defence {
    let views = few_views(model.network.fixed_size().is_some());
    let schedule = if noise { Schedule::Paper } else { Schedule::Sgd };
    let settings = DefenceSettings { views, steps, schedule, ..DefenceSettings::standard(budget) };
    Defence::named("equivariance", model, settings).unwrap()
}

/// Two steps of a schedule over two cheap views.
pub(super) fn small_defence_of(model: &Model, schedule: &str) -> Defence {
    let (views, schedule) = (few_views(false), Schedule::named(schedule).unwrap());
    let settings =
        DefenceSettings { views, steps: 2, schedule, ..DefenceSettings::standard(Budget::linf(0.02)) };
    Defence::named("equivariance", model, settings).unwrap()
}

/// A scenario on the network's own answer.
pub(super) struct Scene {
    pub(super) model: Model,
    image: Image,
    pub(super) truth: Truth,
    pub(super) defence: Defence,
    objective: Equivariance,
}

impl Scene {
    pub(super) fn new(model: Model, size: (usize, usize)) -> Self {
        let image = picture(size, 1);
        let truth = model.task.as_truth(&model.predict(&image).unwrap());
        let defence = small_defence(&model, Budget::linf(0.01), 2, true);
        let objective = Equivariance::new(few_views(model.network.fixed_size().is_some()));
        Self { model, image, truth, defence, objective }
    }

    pub(super) fn scenario(&self) -> Scenario<'_> {
        Scenario {
            model: &self.model,
            image: &self.image,
            truth: &self.truth,
            target: None,
            defence: Some(&self.defence),
            objective: Some(&self.objective),
        }
    }
}

fn quick(budget: Budget) -> AttackSettings {
    AttackSettings { steps: 6, draws: 2, targets: 3, weight: 1.0, ..AttackSettings::new(budget) }
}

/// Which attacks cannot be made where: they must say so.
fn refuses(attack: &Attack, segments: bool, norm: Norm) -> bool {
    let for_classifiers = ["fab", "cw-l2"].contains(&attack.name);
    (for_classifiers && segments) || (attack.name == "cw-l2" && norm == Norm::Linf)
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
                let run = || attack.run(&scene.scenario(), &quick(budget));
                let first = one.install(run);
                if refuses(attack, segments, budget.norm) {
                    assert!(first.unwrap_err().to_string().contains(attack.name));
                    continue;
                }
                let first = first.unwrap_or_else(|e| panic!("{}: {e}", attack.name));
                assert!(budget.contains(&scene.image, &first.image), "{} left its budget", attack.name);
                let second = three.install(run).unwrap();
                assert!(first.image == second.image, "{} depends on threads", attack.name);
                let other = AttackSettings { seed: 9, ..quick(budget) };
                assert!(attack.run(&scene.scenario(), &other).is_ok());
            }
        }
    }
}

#[test]
fn what_is_kept_is_the_best_that_was_seen() {
    let scene = Scene::new(segmenter(), (16, 16));
    for name in ["pgd", "mim", "cw", "houdini", "segpgd", "apgd-ce", "square", "bpda"] {
        let outcome =
            Attack::named(name).unwrap().run(&scene.scenario(), &quick(Budget::linf(0.05))).unwrap();
        let lowest = outcome.trace.iter().map(|r| r.score).fold(f64::INFINITY, f64::min);
        assert_eq!(outcome.score, lowest, "{name}");
    }
    // who wants two things is not judged by one of them
    for name in ["adaptive", "adaptive-apgd"] {
        let outcome =
            Attack::named(name).unwrap().run(&scene.scenario(), &quick(Budget::linf(0.05))).unwrap();
        let highest = outcome.trace.iter().map(|r| r.value).fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(outcome.value, highest, "{name}");
    }
}

#[test]
fn more_steps_and_larger_budgets_are_never_weaker() {
    let scene = Scene::new(classifier(false), (16, 16));
    for name in ["pgd", "mim", "cw", "apgd-ce", "apgd-dlr", "houdini"] {
        let attack = Attack::named(name).unwrap();
        let value = |steps, radius| {
            let settings = AttackSettings { steps, ..quick(Budget::linf(radius)) };
            let outcome = attack.run(&scene.scenario(), &settings).unwrap();
            (outcome.score, -outcome.value)
        };
        assert!(value(12, 0.02) <= value(4, 0.02), "{name}: more steps were weaker");
        assert!(value(12, 0.04) <= value(12, 0.02), "{name}: a larger budget was weaker");
        let free = AttackSettings { steps: 60, step_size: 0.05, ..quick(Budget::linf(1.0)) };
        assert_eq!(attack.run(&scene.scenario(), &free).unwrap().score, 0.0, "{name} unbounded");
    }
}

/// With two classes the margin grows by ε times the dual norm of the difference of the weights.
#[test]
fn gradient_attacks_reach_the_optimum_of_a_linear_network() {
    let network = Linear::random((6, 5), 2, 2);
    let image = picture((6, 5), 1);
    let difference: Vec<f32> = network.row(0).iter().zip(network.row(1)).map(|(a, b)| a - b).collect();
    let model = Model::new(Box::new(network), Box::new(Classification), "scores", "features");
    let truth = model.task.as_truth(&model.predict(&image).unwrap());
    let margin = |image: &Image| {
        let scores = model.scores(image).unwrap();
        let Truth::Class(y) = truth else { unreachable!() };
        f64::from(scores.data()[1 - y] - scores.data()[y])
    };
    let scenario = Scenario {
        model: &model,
        image: &image,
        truth: &truth,
        target: None,
        defence: None,
        objective: None,
    };
    let one_norm: f64 = difference.iter().map(|d| f64::from(d.abs())).sum();
    for (budget, dual) in
        [(Budget::linf(0.03), one_norm), (Budget::l2(0.3), crate::budget::length(&difference))]
    {
        let best = margin(&image) + f64::from(budget.radius) * dual;
        for name in ["pgd", "mim", "cw", "apgd-ce", "houdini"] {
            let settings = AttackSettings { steps: 40, ..AttackSettings::new(budget) };
            let outcome = Attack::named(name).unwrap().run(&scenario, &settings).unwrap();
            let reached = margin(&outcome.image);
            assert!(
                (reached - best).abs() < 1e-3 * best.abs().max(1.0),
                "{name} {budget:?}: {reached} of {best}"
            );
        }
        // without a gradient, most of the way
        let settings = AttackSettings { steps: 3000, ..AttackSettings::new(budget) };
        let outcome = Attack::named("square").unwrap().run(&scenario, &settings).unwrap();
        let gained = (margin(&outcome.image) - margin(&image)) / (best - margin(&image));
        assert!(gained > 0.6, "square {budget:?}: {gained} of what can be gained");
        // the least change that fools is the margin over the dual norm
        let least = -margin(&image) / dual;
        let names: &[&str] = if budget.norm == Norm::L2 { &["fab", "cw-l2"] } else { &["fab"] };
        for name in names {
            let wide = Budget { radius: 10.0 * least as f32, ..budget };
            let settings = AttackSettings { steps: 200, ..AttackSettings::new(wide) };
            let outcome = Attack::named(name).unwrap().run(&scenario, &settings).unwrap();
            let far = budget.distance(&image, &outcome.image);
            assert_eq!(outcome.score, 0.0, "{name}");
            assert!(far >= 0.999 * least && far < 1.1 * least, "{name} {budget:?}: {far}, least {least}");
        }
    }
}

#[test]
fn targets_are_reached() {
    let scene = Scene::new(linear(4), (6, 5));
    let Truth::Class(class) = scene.truth else { unreachable!() };
    let target = Truth::Class((class + 1) % 4);
    for name in ["pgd", "mim", "cw", "apgd-ce", "square", "cw-l2"] {
        let budget = if name == "cw-l2" { Budget::l2(6.0) } else { Budget::linf(0.45) };
        let settings = AttackSettings { steps: 150, step_size: 0.02, ..quick(budget) };
        let scenario = Scenario { target: Some(&target), ..scene.scenario() };
        let outcome = Attack::named(name).unwrap().run(&scenario, &settings).unwrap();
        assert_eq!(outcome.score, 0.0, "{name} missed its target");
        assert_eq!(
            scene.model.predict(&outcome.image).unwrap(),
            crate::task::Prediction::Class((class + 1) % 4)
        );
    }
    let permuted_truth = permuted(&scene.truth, 4, 3).unwrap();
    assert_ne!(permuted_truth, scene.truth);
    assert!(permuted(&scene.truth, 1, 3).is_err());
    let scenario = Scenario { target: Some(&target), ..scene.scenario() };
    assert!(Attack::named("fab").unwrap().run(&scenario, &quick(Budget::linf(0.1))).is_err());
}

/// Evaluated at the clean image, as the reference code does, the second term would have no gradient and this would fail.
#[test]
fn the_adaptive_attacks_second_term_has_a_gradient() {
    let scene = Scene::new(classifier(false), (16, 16));
    let scenario = scene.scenario();
    let look = |weight: f64| {
        let loss = scenario.loss(LossKind::CrossEntropy).unwrap();
        let objective = TaskObjective { scenario, loss, weight };
        objective
            .evaluate(&picture((16, 16), 8), Progress::ONCE, &Random::new(1), true)
            .unwrap()
            .gradient
            .unwrap()
    };
    let (without, with) = (look(0.0), look(1.0));
    let second: Vec<f32> = with.iter().zip(&without).map(|(a, b)| a - b).collect();
    let ratio = crate::budget::length(&second) / crate::budget::length(&without);
    assert!(ratio > 1e-2, "{ratio}");
}

/// L2 steps without noise are smooth, so the gradient through the defence can be checked against differences of the defence itself.
#[test]
fn the_unrolled_gradient_is_that_of_the_whole_defence() {
    [Schedule::Sgd, Schedule::Averaged].into_iter().for_each(unrolled_is_exact);
}

fn unrolled_is_exact(schedule: Schedule) {
    let model = classifier(true);
    let image = picture((8, 8), 5);
    let truth = Truth::Class(1);
    let defence = Defence { size: 0.3, schedule, ..small_defence(&model, Budget::l2(0.5), 3, false) };
    let scenario = Scenario {
        model: &model,
        image: &image,
        truth: &truth,
        target: None,
        defence: Some(&defence),
        objective: None,
    };
    let objective = UnrolledObjective::known(scenario, &defence, 4);
    let look =
        |image: &Image, want| objective.evaluate(image, Progress::ONCE, &Random::new(0), want).unwrap();
    let gradient = look(&image, true).gradient.unwrap();
    let identity = {
        let loss = scenario.loss(LossKind::CrossEntropy).unwrap();
        let bpda = DefendedObjective { scenario, defence: &defence, loss, draws: 1, known_seed: Some(4) };
        bpda.evaluate(&image, Progress::ONCE, &Random::new(0), true).unwrap().gradient.unwrap()
    };
    let mut random = Random::new(6);
    let (mut off, mut off_identity, mut total) = (0.0, 0.0, 0.0);
    for _ in 0..12 {
        let direction: Vec<f32> = gradient.iter().map(|_| random.normal()).collect();
        let at = |step: f32| {
            let mut moved = image.clone();
            moved.pixels_mut().iter_mut().zip(&direction).for_each(|(p, d)| *p += step * d);
            look(&moved, false).value
        };
        let central = (at(2e-3) - at(-2e-3)) / 4e-3;
        let along = |g: &[f32]| g.iter().zip(&direction).map(|(g, d)| f64::from(g * d)).sum::<f64>();
        off += (central - along(&gradient)).powi(2);
        off_identity += (central - along(&identity)).powi(2);
        total += central.powi(2);
    }
    assert!(off < 0.01 * total, "{schedule:?}: off by {off} of {total}");
    assert!(off < 0.2 * off_identity, "{schedule:?}: no better than the identity: {off} {off_identity}");
}

/// In L∞ the sign is replaced by a tanh; what matters is that more than the identity comes back and that it is finite.
#[test]
fn the_unrolled_sign_defence_gives_a_gradient_of_its_own() {
    let scene = Scene::new(classifier(true), (8, 8));
    let scenario = scene.scenario();
    let loss = scenario.loss(LossKind::CrossEntropy).unwrap();
    let objective = UnrolledObjective::known(scenario, &scene.defence, 4);
    let bpda = DefendedObjective { scenario, defence: &scene.defence, loss, draws: 1, known_seed: Some(4) };
    let look = |l: &dyn Objective| {
        l.evaluate(&scene.image, Progress::ONCE, &Random::new(0), true).unwrap().gradient.unwrap()
    };
    let (unrolled, identity) = (look(&objective), look(&bpda));
    assert!(unrolled.iter().all(|g| g.is_finite()));
    assert_ne!(unrolled, identity);
}

/// What is averaged over draws is what each draw shows by itself.
#[test]
fn the_expectation_of_the_unrolled_gradient_is_the_mean_of_its_draws() {
    let scene = Scene::new(classifier(true), (8, 8));
    let scenario = scene.scenario();
    let loss = scenario.loss(LossKind::CrossEntropy).unwrap();
    let random = Random::new(3);
    let look = |draws, known_seed| {
        let (defence, loss) = (&scene.defence, loss.clone());
        let objective = UnrolledObjective { scenario, defence, loss, sharpness: 1.0, draws, known_seed };
        objective.evaluate(&scene.image, Progress::ONCE, &random, true).unwrap()
    };
    let alone: Vec<_> = (0..3).map(|draw| look(1, Some(random.fork(draw).seed()))).collect();
    let together = look(3, None);
    let mean = alone.iter().map(|evaluation| evaluation.value).sum::<f64>() / 3.0;
    assert!((together.value - mean).abs() < 1e-12, "{} {mean}", together.value);
    let gradients: Vec<_> = alone.iter().map(|evaluation| evaluation.gradient.as_ref().unwrap()).collect();
    assert_ne!(gradients[0], gradients[1], "draws differ");
    for (i, got) in together.gradient.unwrap().iter().enumerate() {
        let want = gradients.iter().map(|g| g[i]).sum::<f32>() / 3.0;
        assert!((got - want).abs() <= 1e-6 * want.abs().max(1e-3), "{got} {want}");
    }
}

/// An attacker who begins where APGD on the bare network ended has that image in hand, and gives it up only for one that is worse defended.
#[test]
fn a_warm_start_is_where_the_bare_attack_ended() {
    let scene = Scene::new(classifier(true), (8, 8));
    let scenario = scene.scenario();
    let budget = Budget::l2(0.7);
    let bare = AttackSettings { steps: 8, ..quick(budget) };
    let bare = Attack::named("apgd-ce").unwrap().run(&scenario, &bare).unwrap().image;
    let (loss, defence) = (scenario.loss(LossKind::CrossEntropy).unwrap(), &scene.defence);
    let warm = AttackSettings { warm_steps: 8, seed: 0, ..quick(budget) };
    let defended = DefendedObjective { scenario, defence, loss, draws: 1, known_seed: Some(warm.seed) };
    let seen = defended.evaluate(&bare, Progress::ONCE, &Random::new(0), false).unwrap();
    let outcome = Attack::named("fixed-seed").unwrap().run(&scenario, &warm).unwrap();
    assert_eq!((outcome.trace[0].value, outcome.trace[0].score), (seen.value, seen.score));
    assert!(outcome.score <= seen.score && outcome.value >= seen.value);
    assert!(budget.distance(&scene.image, &outcome.image) <= 0.7 + 1e-6);
    for name in ["bpda", "bpda-eot", "unrolled", "unrolled-eot"] {
        let attack = Attack::named(name).unwrap();
        let first = |settings| attack.run(&scenario, settings).unwrap().trace[0].distance;
        let distance = budget.distance(&scene.image, &bare);
        assert!((first(&warm) - distance).abs() < 1e-6, "{name} does not start there");
        assert!((first(&quick(budget)) - distance).abs() > 1e-6, "{name} starts there anyway");
    }
}

#[test]
fn the_worst_case_is_the_lowest_of_the_list_after_rounding() {
    let scene = Scene::new(classifier(false), (16, 16));
    let attacks: Vec<_> = ["fgsm", "pgd", "square"].iter().map(|n| Attack::named(n).unwrap()).collect();
    let verdicts = worst_case(&scene.scenario(), &attacks, &quick(Budget::linf(0.03)), 1).unwrap();
    let lowest = verdicts.all.iter().map(|(_, _, score)| *score).fold(f64::INFINITY, f64::min);
    assert_eq!(verdicts.all[verdicts.worst].2, lowest);
    assert!(verdicts.all.iter().all(|(_, image, _)| *image == image.rounded_to_8_bits()));
    assert!(worst_case(&scene.scenario(), &[], &quick(Budget::linf(0.03)), 1).is_err());
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
    let fifty = AttackSettings { steps: 50, stop_when_fooled: true, ..AttackSettings::new(linf) };
    let twenty = AttackSettings { steps: 20, momentum: 1.0, ..fifty.clone() };
    let cw = AttackSettings { steps: 200, ..AttackSettings::new(Budget::l2(20.0)) };
    let queries = AttackSettings { steps: 1000, ..fifty.clone() };
    for (name, settings) in [
        ("pgd", &twenty),
        ("mim", &twenty),
        ("apgd-ce", &fifty),
        ("apgd-dlr", &fifty),
        ("apgd-t", &fifty),
        ("fab", &fifty),
        ("square", &queries),
        ("cw-l2", &cw),
    ] {
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
            let truth = Truth::Class(labels[i]);
            let scenario = Scenario {
                model: &model,
                image,
                truth: &truth,
                target: None,
                defence: None,
                objective: None,
            };
            let outcome = Attack::named(name).unwrap().run(&scenario, settings).unwrap();
            if outcome.score == 0.0 {
                ours.push(i);
                distance += settings.budget.distance(image, &outcome.image);
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
