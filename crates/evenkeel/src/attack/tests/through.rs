//! Attacks through a defence: the gradient that comes back, its mean over draws, and where a warm start begins.

use super::*;

/// L2 steps without noise are smooth, so the gradient through the defence can be checked against differences of the defence itself.
#[test]
fn the_unrolled_gradient_is_that_of_the_whole_defence() {
    [Schedule::Sgd, Schedule::Averaged].into_iter().for_each(unrolled_is_exact);
}

/// The loss through a scenario's pipeline, as an attack sees it.
fn seen_through(
    scenario: &Scenario<'_>,
    image: &Image,
    random: &Random,
    settings: AttackSettings,
) -> Evaluation {
    let loss = scenario.loss(LossKind::CrossEntropy).unwrap();
    let objective = TaskObjective { aim: Aim::new(scenario, &settings), loss, weight: 0.0 };
    objective.evaluate(image, Progress::ONCE, random, true).unwrap()
}

/// Settings of an attacker who knows the seed.
fn knowing(estimator: Estimator, seed: u64) -> AttackSettings {
    AttackSettings { estimator: Some(estimator), known_draw: true, seed, ..AttackSettings::default() }
}

fn unrolled_is_exact(schedule: Schedule) {
    let model = Arc::new(classifier(true));
    let image = picture((8, 8), 5);
    let truth = Truth::of_class(1);
    let defence = Defence { size: 0.3, steps: 3, schedule, ..defence_of(&model, Budget::l2(0.5), "sgd") };
    let pipeline = Pipeline::new(model.clone()).with_defence(defence);
    let scenario = Scenario::through(&pipeline, &image, &truth);
    let evaluate =
        |image: &Image, _| seen_through(&scenario, image, &Random::new(0), knowing(Estimator::Exact, 4));
    let gradient = evaluate(&image, true).gradient.unwrap();
    let identity =
        seen_through(&scenario, &image, &Random::new(0), knowing(Estimator::Identity, 4)).gradient.unwrap();
    let mut random = Random::new(6);
    let (mut off, mut off_identity, mut total) = (0.0, 0.0, 0.0);
    for _ in 0..12 {
        let direction: Vec<f32> = gradient.iter().map(|_| random.normal()).collect();
        let at = |step: f32| {
            let mut moved = image.clone();
            moved.pixels_mut().iter_mut().zip(&direction).for_each(|(p, d)| *p += step * d);
            evaluate(&moved, false).value
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
    let evaluate = |estimator| {
        let settings = knowing(estimator, 4);
        seen_through(&scene.scenario(), &scene.image, &Random::new(0), settings).gradient.unwrap()
    };
    let (unrolled, identity) = (evaluate(Estimator::Exact), evaluate(Estimator::Identity));
    assert!(unrolled.iter().all(|g| g.is_finite()));
    assert_ne!(unrolled, identity);
}

/// What is averaged over draws is what each draw shows by itself.
#[test]
fn the_expectation_of_the_unrolled_gradient_is_the_mean_of_its_draws() {
    let scene = Scene::new(classifier(true), (8, 8));
    let random = Random::new(3);
    let evaluate = |settings| seen_through(&scene.scenario(), &scene.image, &random, settings);
    let alone: Vec<_> =
        (0..3).map(|draw| evaluate(knowing(Estimator::Exact, random.fork(draw).seed()))).collect();
    let together =
        evaluate(AttackSettings { estimator: Some(Estimator::Exact), draws: 3, ..AttackSettings::default() });
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
    let bare = quick("apgd-ce", budget).with("steps", 8usize).unwrap();
    let bare = bare.run(&scenario).unwrap().image;
    let warm = |name: &str| quick(name, budget).with("warm_steps", 8usize).unwrap();
    let settings = knowing(Estimator::Identity, 0);
    let seen = seen_through(&scenario, &bare, &Random::new(0), settings);
    let outcome = warm("fixed-seed").run(&scenario).unwrap();
    assert_eq!((outcome.trace[0].value, outcome.trace[0].score), (seen.value, seen.score));
    assert!(outcome.score <= seen.score && outcome.value >= seen.value);
    assert!(budget.distance(&scene.image, &outcome.image) <= 0.7 + 1e-6);
    let distance = budget.distance(&scene.image, &bare);
    let first = |attack: Attack| attack.run(&scenario).unwrap().trace[0].clone();
    for kind in ATTACKS.iter().filter(|kind| kind.reads().contains(&"warm_steps")) {
        let through = |attack: Attack| match kind.reads().contains(&"estimator") {
            true => attack.with("estimator", "identity").unwrap(),
            false => attack,
        };
        let name = kind.name();
        let (warm, cold) = (first(through(warm(name))), first(through(quick(name, budget))));
        assert!((warm.distance - distance).abs() < 1e-5, "{name} does not start there");
        // Square's own start lies as far from the image
        let elsewhere = (cold.distance - distance).abs() > 1e-5 || cold.value != warm.value;
        assert!(elsewhere, "{name} starts there anyway");
    }
}
