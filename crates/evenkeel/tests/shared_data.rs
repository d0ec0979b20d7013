//! Real networks on real images, when the shared data folder is there: published figures must come out again.

mod support;

use evenkeel::attack::{Attack, AttackSettings, Situation};
use evenkeel::budget::Budget;
use evenkeel::image::Image;
use evenkeel::task::{Prediction, Truth};
use rayon::prelude::*;

/// Clean and PGD-20 accuracy over 200 images, within 2 points of the figures beside the data.
#[test]
fn cifar_accuracies_are_the_published_ones() {
    let Some(folder) = support::data() else {
        println!("skipped: no shared data (set EVENKEEL_DATA)");
        return;
    };
    let images = support::cifar_images(&folder, 200);
    // resnet_4b and sri_resnet_a take several times as long; examples/trials.rs measures them
    for (net, epsilon_255, clean, attacked) in
        [(&support::CIFAR[0], 2.0, 0.70, 0.57), (&support::CIFAR[3], 2.0, 0.915, 0.02)]
    {
        let model = support::cifar_model(&folder, net);
        let settings = AttackSettings {
            stop_when_fooled: true,
            ..AttackSettings::new(Budget::linf(epsilon_255 / 255.0))
        };
        let settings = AttackSettings { step_size: 0.5 / 255.0, ..settings };
        let pgd = Attack::named("pgd").unwrap();
        let judge = |(image, label): &(Image, usize)| {
            let truth = Truth::Class(*label);
            let right = model.predict(image).unwrap() == Prediction::Class(*label);
            let situation = Situation {
                model: &model,
                image,
                truth: &truth,
                target: None,
                defence: None,
                objective: None,
            };
            (right, right && pgd.run(&situation, &settings).unwrap().score > 0.0)
        };
        let judged: Vec<(bool, bool)> = images.par_iter().map(judge).collect();
        let share = |f: &dyn Fn(&(bool, bool)) -> bool| {
            judged.iter().filter(|j| f(j)).count() as f64 / judged.len() as f64
        };
        let (right, robust) = (share(&|j| j.0), share(&|j| j.1));
        println!("{}: clean {right:.3}, PGD-20 {robust:.3}", net.file);
        assert!((right - clean).abs() <= 0.0201, "{}: clean {right}, published {clean}", net.file);
        assert!((robust - attacked).abs() <= 0.0201, "{}: PGD {robust}, published {attacked}", net.file);
    }
}
