//! What a probe says of the whole, from few units.

use std::path::Path;

use super::super::Embedded;
use super::*;
use crate::experiment::Experiment;

#[test]
fn the_corners_of_a_cube_tell_what_lies_beyond_it() {
    // in each step two passes of its own, and in each draw one and three for every gradient; a last evaluation through the defence; and the
    // best iterates again
    let passes = |e: Extent| {
        let once = 1 + 3 * e.gradients;
        let start = e.steps * (2 + e.draws * once) + 3 * e.gradients;
        let compared = FINALISTS.min(e.restarts * (e.steps + 1));
        (e.restarts * start + 5 + e.warm_steps + compared * e.rounds * e.draws * once) as f64
    };
    let measure = |e: Extent| {
        assert!(e.steps < FINALISTS && e.restarts <= FINALISTS && e.rounds <= 1, "{e:?}");
        assert!(e.draws <= 2 && e.gradients <= 2 && e.warm_steps <= 2, "{e:?}");
        let n = passes(e);
        Ok(Cost { seconds: n / 4.0, forwards: n, backwards: 2.0 * n, pixels: 100.0 * n })
    };
    for (steps, draws, gradients) in
        [(1, 1, 1), (20, 1, 1), (1, 20, 1), (1, 1, 20), (10, 20, 1), (10, 1, 20), (7, 3, 5)]
    {
        for (restarts, rounds) in [(1, 0), (3, 0), (1, 2), (3, 4)] {
            let whole = Extent { restarts, steps, draws, gradients, warm_steps: 9 * (steps % 2), rounds };
            let cost = extended(whole, measure).unwrap();
            let n = passes(whole);
            assert_eq!((cost.forwards, cost.backwards), (n, 2.0 * n), "{whole:?}");
            assert!((cost.seconds - n / 4.0).abs() < 1e-9 * n, "{}", cost.seconds);
        }
    }
}

const SMALL: &str = r#"
    name = "small"
    epsilon_255 = 4
    seeds = [0]

    [[subject]]
    name = "crops"
    model = "embedded:classifier"
    data = "scenes-objects"
    path = "1@24x24"

    [[attack]]
    kind = "pgd"
    steps = 5

    [[attack]]
    kind = "apgd-ce"
    steps = 6

    [[attack]]
    kind = "square"
    steps = 12

    [[attack]]
    kind = "bpda"
    steps = 3
    warm_steps = 4

    [[attack]]
    kind = "bpda-eot"
    steps = 3
    draws = 3

    [[attack]]
    name = "apgd-ce through the defence"
    kind = "apgd-ce"
    steps = 5
    draws = 5

    [[attack]]
    name = "apgd-ce through the steps of the defence"
    kind = "apgd-ce"
    estimator = "exact"
    steps = 2
    draws = 2
    warm_steps = 3
    restarts = 2
    final_draws = 5

    [[attack]]
    name = "ifgsm through the defence"
    kind = "ifgsm"
    estimator = "identity"
    restarts = 3
    final_draws = 3

    [[attack]]
    kind = "unrolled"
    steps = 3

    [[attack]]
    kind = "adaptive"
    steps = 3
    weight = 1

    [[defence]]
    kind = "random"

    [[defence]]
    kind = "equivariance"
    steps = 3

    [[detector]]
    kind = "variance"
"#;

#[test]
fn a_few_steps_tell_the_passes_of_many() {
    let shelf = [Embedded {
        name: "classifier",
        network: include_bytes!("../../../../evenkeel/models/scenes_classifier.onnx"),
        contract: include_str!("../../../../evenkeel/models/scenes_classifier.evenkeel.toml"),
        rotation: include_bytes!("../../../../evenkeel/models/scenes_classifier.rotation.safetensors"),
        contrastive: include_bytes!("../../../../evenkeel/models/scenes_classifier.contrastive.safetensors"),
    }];
    let experiment = Experiment::parse(SMALL, Path::new("small.toml")).unwrap();
    let study = Study::load(experiment, &shelf).unwrap();
    let passes = |cost: Cost| (cost.forwards, cost.backwards);
    for work in &study.design.works {
        let card = &study.design.subjects[work.subject];
        let (told, taken) = (study.making(work).unwrap(), study.made(work, None).unwrap());
        let label = &card.columns[work.column].label;
        assert_eq!(passes(told), passes(taken), "{label} through {:?}", work.lens);
        assert!(told.seconds > 0.0, "{label}");
    }
    for row in 1..3 {
        let work = &study.design.works[0];
        let told = study.answering(work, row).unwrap();
        let taken = study.answered(work, row, Extent { gradients: 3, ..ONE }).unwrap();
        assert_eq!(passes(told), passes(taken), "defence {row}");
    }
}
