//! Training as a whole: what is exported is what was trained, runs resume exactly, and a short run learns.

use evenkeel::Random;
use evenkeel::model::Model;
use evenkeel_data::dataset::scenes::Split;
use evenkeel_train::adversary::Adversary;
use evenkeel_train::batch::Pool;
use evenkeel_train::goal::{Goal, Task};
use evenkeel_train::net::Mode;
use evenkeel_train::optimiser::{Rule, Schedule};
use evenkeel_train::train::Plan;
use evenkeel_train::{export, networks};
use std::path::Path;

fn plan(folder: &Path, steps: usize) -> Plan {
    Plan {
        goal: Goal::objects(),
        steps,
        batch: 16,
        window: (48, 48),
        rule: Rule::AdamW,
        schedule: Schedule::Cosine,
        peak: 4e-3,
        decay: 0.01,
        weights: vec![1.0; 11],
        adversary: None,
        every: 1000,
        seed: 5,
        minutes: 10.0,
        checkpoint: folder.join("run.safetensors"),
    }
}

#[test]
fn the_engine_says_what_the_trainer_says() {
    let mut random = Random::new(2);
    let nets = [
        (Goal::scenes(), networks::segmenter(11, &mut random)),
        (Goal::scenes(), networks::compact(11, 8, &mut random)),
        (Goal::scenes(), networks::drn_d_22(11, &mut random)),
        (Goal::objects(), networks::classifier(10, 24, &mut random)),
    ];
    for (goal, mut net) in nets {
        // Norms that start at zero or one would hide a mistake in the folding.
        let norms = net.parameters.iter_mut().filter(|p| !p.decays);
        norms.for_each(|p| p.values.iter_mut().for_each(|v| *v += 0.05 * random.normal()));
        let pool = Pool::render(&goal, Split::Val, 2);
        let batch = pool.plain(0, 2).unwrap();
        let images: Vec<_> = (0..2).map(|k| batch.image(k).unwrap()).collect();
        let model = export::to_model(&net, &goal).unwrap();
        let tape = net.forward(batch.input, Mode::Eval);
        let trained = tape.map(net.place("scores"));
        for (k, image) in images.iter().enumerate() {
            let scores = model.scores(image).unwrap();
            let (cells, stride) = (trained.height * trained.width, trained.stride());
            let largest = scores.data().iter().fold(0.0f32, |a, b| a.max(b.abs()));
            for (i, engine) in scores.data().iter().enumerate() {
                let ours = trained.values[(k * cells + i % cells) * stride + i / cells];
                assert!((ours - engine).abs() < 2e-4 * largest, "{:?} {i}: {ours} {engine}", goal.task);
            }
        }
    }
}

#[test]
fn weights_in_a_file_of_their_own_are_the_same_network() {
    let folder = tempfile::tempdir().unwrap();
    let net = networks::instances(2, &mut Random::new(6));
    let image = Pool::render(&Goal::instances(), Split::Val, 1).plain(0, 1).unwrap().image(0).unwrap();
    let said = |name: &str| {
        let graph = export::save(&net, &Goal::instances(), &folder.path().join(name)).unwrap();
        assert_eq!(graph.extension().unwrap(), "onnx");
        (std::fs::metadata(&graph).unwrap().len(), Model::load(&graph).unwrap().scores(&image).unwrap())
    };
    let (whole, one) = said("one.onnx");
    let (graph, two) = said("two.safetensors");
    assert_eq!(one.data(), two.data());
    assert!(graph < whole / 20, "{graph} of {whole} bytes are left without the weights");
    let refusal = Model::load(folder.path().join("two.safetensors")).map(drop).unwrap_err().to_string();
    assert!(refusal.contains("two.onnx instead"), "{refusal}");
}

#[test]
fn every_network_can_be_trained_on_attacked_windows() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new(7);
    let nets = [
        networks::segmenter(11, &mut random),
        networks::classifier(10, 24, &mut random),
        networks::instances(2, &mut random),
    ];
    for (task, mut net) in [Task::Semantic, Task::Classification, Task::Instances].into_iter().zip(nets) {
        let goal = Goal::rendered(task);
        let pool = Pool::render(&goal, Split::Train, 2);
        let plan = Plan {
            goal,
            batch: 2,
            window: (32, 64),
            adversary: Some(Adversary { epsilon: 4.0 / 255.0, steps: 2, weight: 0.5 }),
            checkpoint: folder.path().join(format!("{task:?}.safetensors")),
            ..plan(folder.path(), 2)
        };
        let (_, done) = plan.run(&mut net, &pool, &pool).unwrap();
        assert!(done, "{task:?}");
    }
}

#[test]
fn a_resumed_run_goes_on_bit_for_bit_and_a_short_run_learns() {
    let pool = Pool::render(&Goal::objects(), Split::Train, 40);
    let folder = tempfile::tempdir().unwrap();
    let fresh = || networks::classifier(10, 24, &mut Random::new(1));
    let mut whole = fresh();
    let plan = plan(folder.path(), 30);
    let before = plan.score(&whole, &pool).unwrap();
    plan.run(&mut whole, &pool, &pool).unwrap();
    assert!(plan.score(&whole, &pool).unwrap() > before + 0.2, "nothing was learnt");

    let other = tempfile::tempdir().unwrap();
    let checkpoint = other.path().join("run.safetensors");
    let parts = Plan { checkpoint, ..plan.clone() };
    // Stopped before the first step, stopped in the middle, then let run.
    let stopped = Plan { minutes: 0.0, ..parts.clone() };
    assert!(!stopped.run(&mut fresh(), &pool, &pool).unwrap().1);
    assert!(!parts.run_until(11, &mut fresh(), &pool, &pool).unwrap().1);
    let mut resumed = fresh();
    assert!(parts.run(&mut resumed, &pool, &pool).unwrap().1);
    let goal = Goal::objects();
    assert_eq!(export::to_onnx(&whole, &goal).unwrap(), export::to_onnx(&resumed, &goal).unwrap());
}

#[test]
fn the_same_plan_gives_the_same_bytes_on_any_number_of_threads() {
    let train = |threads: usize| {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        threads.install(|| {
            let folder = tempfile::tempdir().unwrap();
            let pool = Pool::render(&Goal::scenes(), Split::Train, 3);
            let mut net = networks::compact(11, 8, &mut Random::new(1));
            let scenes = Plan { goal: Goal::scenes(), batch: 2, window: (32, 64), ..plan(folder.path(), 3) };
            scenes.run(&mut net, &pool, &pool).unwrap();
            export::to_onnx(&net, &Goal::scenes()).unwrap()
        })
    };
    let once = train(1);
    assert_eq!(once, train(1));
    assert_eq!(once, train(3));
}

#[test]
fn an_adversarial_step_raises_the_loss() {
    let folder = tempfile::tempdir().unwrap();
    let goal = Goal::scenes();
    let pool = Pool::render(&goal, Split::Train, 4);
    let plan = Plan { goal: goal.clone(), batch: 4, window: (64, 64), ..plan(folder.path(), 20) };
    let mut net = networks::compact(11, 8, &mut Random::new(3));
    plan.run(&mut net, &pool, &pool).unwrap();
    let mut batch = pool.draw(4, (64, 64), &mut Random::new(9)).unwrap();
    let loss = |batch: &evenkeel_train::batch::Batch| {
        let tape = net.forward(batch.input.clone(), Mode::Eval);
        plan.loss(&net, &tape, batch).unwrap().0
    };
    let clean = loss(&batch);
    for (steps, least) in [(1, 1.02), (5, 1.05)] {
        let before = batch.input.clone();
        let adversary = Adversary { epsilon: 8.0 / 255.0, steps, weight: 1.0 };
        adversary.strike(&net, &goal, &mut batch, 1).unwrap();
        let attacked = loss(&batch);
        assert!(attacked > least * clean, "{steps} steps: {clean} to {attacked}");
        // within the radius, in the network's units
        let furthest = before.values.iter().zip(&*batch.input.values).map(|(a, b)| (a - b).abs());
        let furthest = furthest.fold(0.0, f32::max);
        assert!(furthest <= 8.0 / 255.0 / 0.25 + 1e-4, "{furthest}");
        batch.input = before;
    }
}
