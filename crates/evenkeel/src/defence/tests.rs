//! What every defence must hold.

use super::*;
use crate::detect::Heads;
use crate::objective::tests::small_head;
use crate::objective::{Bank, Progress};
use crate::settings::{Choice, names};
use crate::task::{Classification, Semantic};
use crate::toy::{Conv, picture};

fn models() -> [Model; 2] {
    [
        Model::new(
            Box::new(Conv::random(&[6, 8], 5, false, 3)),
            Box::new(Classification),
            "scores",
            "features",
        ),
        Model::new(Box::new(Conv::random(&[6, 8], 5, false, 4)), Box::new(Semantic), "map", "features"),
    ]
}

fn heads(name: &str) -> Heads {
    let mut random = Random::new(1);
    let bank = Bank::new(4, (0..40).map(|_| random.normal()).collect()).unwrap();
    let head = ["rotation", "contrastive"].contains(&name).then(|| small_head(8, 4, 1));
    Heads { head, bank: Some(bank) }
}

/// The defence of a name with other settings.
fn changed(name: &str, model: &Model, change: impl FnOnce(&mut DefenceSettings)) -> Defence {
    let mut spec = DefenceSpec::named(name).unwrap();
    change(spec.settings_mut());
    spec.build(model, &heads(name)).unwrap()
}

#[test]
fn every_defence_stays_inside_and_repeats_for_any_thread_count() {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let three = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let image = picture((20, 16), 2);
    for model in models() {
        for name in names::<DefenceKind>() {
            for budget in [Budget::linf(8.0 / 255.0), Budget::l2(0.5)] {
                for &schedule in Schedule::ALL {
                    let defence = changed(name, &model, |s| {
                        (s.norm, s.epsilon_255) = (budget.norm, 255.0 * f64::from(budget.radius));
                        (s.steps, s.schedule, s.agree) = (3, schedule, None);
                    });
                    let first = one.install(|| defence.apply(&model, &image, 5)).unwrap();
                    let second = three.install(|| defence.apply(&model, &image, 5)).unwrap();
                    let budget = if defence.transform.is_some() { defence.budget } else { budget };
                    assert!(budget.contains(&image, &first.image), "{name} left its budget");
                    assert!(first.image == second.image, "{name} depends on threads");
                    // these show the network a view of the image as it is
                    let framed = defence.frame(image.size(), 5).is_some();
                    assert_eq!(first.image == image, framed || name == "none", "{name}");
                    let again = defence.apply(&model, &image, 6).unwrap().image;
                    assert_eq!(again == first.image, framed || !defence.is_random(), "{name}");
                }
            }
        }
    }
}

#[test]
fn a_defence_raises_its_objective() {
    for model in models() {
        let image = picture((20, 16), 2);
        for name in ["equivariance", "invariance", "rotation", "contrastive", "consensus", "leave-out"] {
            let defence = changed(name, &model, |s| {
                (s.steps, s.schedule, s.step_255, s.epsilon_255) = (8, Schedule::Sgd, Some(1.0), 8.0);
                s.agree = None;
            });
            let objective = DefenceObjective::new(&model, defence.objective.as_deref());
            let value_of = |image: &Image| -> f64 {
                let evaluate =
                    |s| objective.evaluate(image, Progress::ONCE, &Random::new(s), false).unwrap().value;
                (0..6).map(evaluate).sum()
            };
            let defended = defence.apply(&model, &image, 1).unwrap();
            assert_eq!(defended.trace.len(), 8);
            assert!(value_of(&defended.image) > value_of(&image), "{name} on {}", model.task.name());
        }
    }
}

#[test]
fn what_is_missing_is_asked_for() {
    let [model, _] = models();
    for name in ["rotation", "contrastive"] {
        let spec = DefenceSpec::named(name).unwrap();
        let sentence = spec.build(&model, &Heads::default()).err().unwrap().to_string();
        assert!(sentence.contains("head"), "{sentence}");
    }
    let sentence = DefenceSpec::named("prayer").unwrap_err().to_string();
    assert!(sentence.contains("equivariance"), "{sentence}");
}

/// The paper's loop saturates: with a step of twice the radius every value ends at the edge of the budget or the box.
#[test]
fn the_published_step_saturates() {
    let [model, _] = models();
    let image = picture((12, 12), 3);
    let budget = Budget::linf(8.0 / 255.0);
    let defence = changed("equivariance", &model, |s| {
        (s.steps, s.epsilon_255, s.schedule) = (3, 8.0, Schedule::Paper);
    });
    let out = defence.apply(&model, &image, 1).unwrap().image;
    let at_edge =
        |(a, b): (&f32, &f32)| ((a - b).abs() - budget.radius).abs() < 1e-6 || *a == 0.0 || *a == 1.0;
    assert!(out.pixels().iter().zip(image.pixels()).all(at_edge));
}
