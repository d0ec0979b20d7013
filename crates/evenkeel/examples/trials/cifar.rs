//! The CIFAR-10 classifiers: accuracy under attacks on the bare network, and under each defence attacked in several ways.

use std::time::Instant;

use evenkeel::attack::{Attack, AttackSettings, Scenario};
use evenkeel::budget::Budget;
use evenkeel::defence::{Defence, DefenceSettings};
use evenkeel::image::Image;
use evenkeel::model::Model;
use evenkeel::task::{Prediction, Truth};
use rayon::prelude::*;

use crate::{heads, scenario, support};

/// What heads are fitted on: images after the 200 that are judged.
pub(crate) const OTHERS: std::ops::Range<usize> = 200..1000;

pub(crate) fn budget_of(net: &str) -> Budget {
    Budget::linf(if net == "sri_resnet_a" { 4.0 } else { 2.0 } / 255.0)
}

pub(crate) fn cifar_net(name: &str) -> (Model, Vec<(Image, usize)>) {
    let folder = support::data().expect("the shared data folder");
    let net = support::CIFAR.iter().find(|n| n.file == name).expect("one of the CIFAR networks");
    (support::cifar_model(&folder, net), support::cifar_images(&folder, 1000))
}

fn share(kept: &[bool]) -> f64 {
    kept.iter().filter(|k| **k).count() as f64 / kept.len() as f64
}

/// Clean accuracy, then accuracy under each attack and under the worst of them.
pub(crate) fn bare(name: &str, count: usize) {
    let (model, images) = cifar_net(name);
    let images = &images[..count];
    let base = AttackSettings {
        step_size: 0.5 / 255.0,
        stop_when_fooled: true,
        ..AttackSettings::new(budget_of(name))
    };
    let clean: Vec<bool> =
        images.par_iter().map(|(i, l)| model.predict(i).unwrap() == Prediction::Class(*l)).collect();
    println!("{name} clean {:.3}", share(&clean));
    let mut worst = clean.clone();
    for (attack, steps) in [("pgd", 20), ("apgd-ce", 50), ("apgd-t", 50), ("fab", 50), ("square", 1000)] {
        let start = Instant::now();
        let settings = AttackSettings { steps, ..base.clone() };
        let attack = Attack::named(attack).unwrap();
        let kept: Vec<bool> = images
            .par_iter()
            .zip(&clean)
            .map(|((image, label), clean)| {
                let truth = Truth::Class(*label);
                *clean && attack.run(&scenario(&model, image, &truth), &settings).unwrap().score > 0.0
            })
            .collect();
        worst.iter_mut().zip(&kept).for_each(|(w, k)| *w &= k);
        println!("{name} {} {:.3} ({:.0} s)", attack.name, share(&kept), start.elapsed().as_secs_f64());
    }
    println!("{name} worst case {:.3}", share(&worst));
}

/// A defence and how it is attacked.
pub(crate) struct Trial<'a> {
    pub(crate) defence: &'a str,
    pub(crate) steps: usize,
    pub(crate) attack: &'a str,
    pub(crate) count: usize,
    /// Steps of BPDA.
    pub(crate) outer: usize,
    /// Draws of BPDA+EOT.
    pub(crate) draws: usize,
}

/// Accuracy of a defended network; the defence that judges draws other random numbers than the attacker saw.
pub(crate) fn defended(name: &str, trial: &Trial<'_>) {
    let (model, images) = cifar_net(name);
    let others: Vec<Image> = images[OTHERS].iter().map(|(i, _)| i.clone()).collect();
    let start = Instant::now();
    let ratio = if name == "resnet20_cifar10" { 1.5 } else { 2.0 };
    let radius = ratio * budget_of(name).radius;
    let (head, bank) = heads::fitted(trial.defence, &model, &others);
    let settings = DefenceSettings {
        steps: trial.steps,
        head,
        bank,
        ..DefenceSettings::published(Budget::linf(radius))
    };
    let defence = Defence::named(trial.defence, &model, settings).unwrap();
    let attacked = |image: &Image, label: usize| {
        let truth = Truth::Class(label);
        let scenario = Scenario { defence: Some(&defence), ..scenario(&model, image, &truth) };
        let steps = if trial.attack == "transfer" { 20 } else { trial.outer };
        let base = AttackSettings::new(budget_of(name));
        // far enough to cross the budget, however few the steps
        let step_size = (2.5 * base.budget.radius / steps as f32).max(0.5 / 255.0);
        let settings = AttackSettings { steps, draws: trial.draws, step_size, ..base };
        Attack::named(trial.attack).unwrap().run(&scenario, &settings).unwrap().image.rounded_to_8_bits()
    };
    let right = |(i, (image, label)): (usize, &(Image, usize))| {
        let image = if trial.attack == "clean" { image.clone() } else { attacked(image, *label) };
        let shown = defence.apply(&model, &image, 1000 + i as u64).unwrap().image;
        model.predict(&shown).unwrap() == Prediction::Class(*label)
    };
    let kept: Vec<bool> = images[..trial.count].par_iter().enumerate().map(right).collect();
    let how = match trial.attack {
        "bpda" => format!(" ({} steps)", trial.outer),
        "bpda-eot" => format!(" ({} steps, {} draws)", trial.outer, trial.draws),
        _ => String::new(),
    };
    println!(
        "{name}, {} images, {} T={}, {}{how}: {:.3} ({:.0} s)",
        trial.count,
        trial.defence,
        defence.steps,
        trial.attack,
        share(&kept),
        start.elapsed().as_secs_f64()
    );
}
