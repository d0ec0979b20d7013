//! Trials on the shared data: what docs/results.md records.
//!
//!     cargo run --release -p evenkeel --example trials -- cifar NET COUNT
//!     cargo run --release -p evenkeel --example trials -- cifar-defences NET COUNT
//!     cargo run --release -p evenkeel --example trials -- cityscapes COUNT STEPS
//!     cargo run --release -p evenkeel --example trials -- detection COUNT

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;

use evenkeel::attack::{Attack, AttackSettings, Situation};
use evenkeel::budget::Budget;
use evenkeel::corrupt::CORRUPTIONS;
use evenkeel::defence::{Defence, DefenceSettings};
use evenkeel::detect::{Detector, Heads};
use evenkeel::image::{Image, LabelMap};
use evenkeel::model::Model;
use evenkeel::objective::Equivariance;
use evenkeel::task::{Prediction, Truth};
use evenkeel::view::ViewSet;
use rayon::prelude::*;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let name = |i: usize| args.get(i).map(String::as_str).unwrap_or_default();
    match name(0) {
        "cifar" => cifar(name(1), number(2, 200)),
        "cifar-defences" => cifar_defences(name(1), number(2, 50)),
        "cityscapes" => cityscapes(number(1, 40), number(2, 20)),
        "detection" => detection(number(1, 20)),
        other => eprintln!("no trial {other:?}; see the top of this file"),
    }
}

fn budget_of(net: &str) -> Budget {
    Budget::linf(if net == "sri_resnet_a" { 4.0 } else { 2.0 } / 255.0)
}

fn cifar_net(name: &str) -> (Model, Vec<(Image, usize)>) {
    let folder = support::data().expect("the shared data folder");
    let net = support::CIFAR.iter().find(|n| n.file == name).expect("one of the CIFAR networks");
    (support::cifar_model(&folder, net), support::cifar_images(&folder, 1000))
}

fn situation<'a>(model: &'a Model, image: &'a Image, truth: &'a Truth) -> Situation<'a> {
    Situation { model, image, truth, target: None, defence: None, objective: None }
}

/// Clean accuracy, then accuracy under each attack and under the worst of them.
fn cifar(name: &str, count: usize) {
    let (model, images) = cifar_net(name);
    let images = &images[..count];
    let base = AttackSettings {
        step_size: 0.5 / 255.0,
        stop_when_fooled: true,
        ..AttackSettings::new(budget_of(name))
    };
    let clean: Vec<bool> =
        images.par_iter().map(|(i, l)| model.predict(i).unwrap() == Prediction::Class(*l)).collect();
    let share = |kept: &[bool]| kept.iter().filter(|k| **k).count() as f64 / kept.len() as f64;
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
                *clean && attack.run(&situation(&model, image, &truth), &settings).unwrap().score > 0.0
            })
            .collect();
        worst.iter_mut().zip(&kept).for_each(|(w, k)| *w &= k);
        println!("{name} {} {:.3} ({:.0} s)", attack.name, share(&kept), start.elapsed().as_secs_f64());
    }
    println!("{name} worst case {:.3}", share(&worst));
}

/// Each defence under no attack, transfer, BPDA and BPDA with an average over draws.
fn cifar_defences(name: &str, count: usize) {
    let (model, images) = cifar_net(name);
    let images = &images[..count];
    let radius = budget_of(name).radius;
    let attack = AttackSettings { step_size: 0.5 / 255.0, ..AttackSettings::new(budget_of(name)) };
    let share = |kept: &[bool]| kept.iter().filter(|k| **k).count() as f64 / kept.len() as f64;
    let judge = |f: &(dyn Fn(&Image, usize, u64) -> bool + Sync)| -> f64 {
        let kept: Vec<bool> =
            images.par_iter().enumerate().map(|(i, (image, label))| f(image, *label, i as u64)).collect();
        share(&kept)
    };
    for (defence, steps) in
        [("none", 0), ("random", 0), ("invariance", 20), ("equivariance", 1), ("equivariance", 20)]
    {
        let start = Instant::now();
        let settings = DefenceSettings { steps, ..DefenceSettings::standard(Budget::linf(2.0 * radius)) };
        let defence = Defence::named(defence, &model, settings).unwrap();
        let right = |image: &Image, label: usize, seed: u64| {
            let shown = defence.apply(&model, image, seed).unwrap().image;
            model.predict(&shown).unwrap() == Prediction::Class(label)
        };
        let attacked = |name: &str, steps: usize, draws: usize, image: &Image, label: usize| {
            let truth = Truth::Class(label);
            let situation = Situation { defence: Some(&defence), ..situation(&model, image, &truth) };
            let settings = AttackSettings { steps, draws, ..attack.clone() };
            Attack::named(name).unwrap().run(&situation, &settings).unwrap().image.rounded_to_8_bits()
        };
        let clean = judge(&|i, l, s| right(i, l, 1000 + s));
        let transfer = judge(&|i, l, s| right(&attacked("transfer", 20, 1, i, l), l, 1000 + s));
        let bpda = judge(&|i, l, s| right(&attacked("bpda", 10, 1, i, l), l, 1000 + s));
        let eot = judge(&|i, l, s| right(&attacked("bpda-eot", 10, 5, i, l), l, 1000 + s));
        println!(
            "{name} {} T={steps}: clean {clean:.3}, transfer {transfer:.3}, bpda {bpda:.3}, bpda+eot(5) {eot:.3} ({:.0} s)",
            defence.name,
            start.elapsed().as_secs_f64()
        );
    }
}

/// Clean and attacked mIoU of ESPNet, bare and under each defence.
fn cityscapes(count: usize, steps: usize) {
    let folder = support::data().expect("the shared data folder");
    let model = support::espnet(&folder);
    let images = support::cityscapes(&folder, count);
    let miou = |shown: &[Image]| {
        let mut confusion = support::Confusion::default();
        for (image, (_, truth)) in shown.iter().zip(&images) {
            let Prediction::Map(map) = model.predict(image).unwrap() else { unreachable!() };
            confusion.add(&map, truth);
        }
        100.0 * confusion.mean_iou()
    };
    let clean: Vec<Image> = images.iter().map(|(i, _)| i.clone()).collect();
    println!("espnet clean {:.2}", miou(&clean));
    let start = Instant::now();
    let attacked: Vec<Image> = images.iter().map(|(image, truth)| pgd(&model, image, truth)).collect();
    println!(
        "espnet pgd-20 at 4/255 {:.2} ({:.1} s an image)",
        miou(&attacked),
        start.elapsed().as_secs_f64() / count as f64
    );
    for name in ["random", "invariance", "equivariance"] {
        for steps in if name == "random" { vec![0] } else { vec![1, steps] } {
            let settings = DefenceSettings { steps, ..DefenceSettings::standard(Budget::linf(6.0 / 255.0)) };
            let defence = Defence::named(name, &model, settings).unwrap();
            let start = Instant::now();
            let defend = |all: &[Image]| -> Vec<Image> {
                let one = |(i, image): (usize, &Image)| defence.apply(&model, image, i as u64).unwrap().image;
                all.iter().enumerate().map(one).collect()
            };
            let (on_clean, on_attacked) = (miou(&defend(&clean)), miou(&defend(&attacked)));
            let seconds = start.elapsed().as_secs_f64() / (2 * count) as f64;
            println!(
                "espnet {name} T={steps}: clean {on_clean:.2}, attacked {on_attacked:.2} ({seconds:.2} s an image)"
            );
        }
    }
}

fn pgd(model: &Model, image: &Image, truth: &LabelMap) -> Image {
    let truth = Truth::Map(truth.clone());
    let settings = AttackSettings::new(Budget::linf(4.0 / 255.0));
    Attack::named("pgd")
        .unwrap()
        .run(&situation(model, image, &truth), &settings)
        .unwrap()
        .image
        .rounded_to_8_bits()
}

/// AUROC of three scores: attacked from clean, an attacker who also keeps the views alike, each corruption from clean.
fn detection(count: usize) {
    let folder = support::data().expect("the shared data folder");
    let model = support::espnet(&folder);
    let images = support::cityscapes(&folder, count);
    let names = ["variance", "variance-onehot", "equivariance"];
    let detectors: Vec<Detector> = names
        .iter()
        .map(|n| Detector::named(n, &model, ViewSet::standard(), Heads::default(), 1).unwrap())
        .collect();
    let scores = |shown: &[Image]| -> Vec<Vec<f64>> {
        detectors.iter().map(|d| shown.iter().map(|i| d.score(&model, i).unwrap()).collect()).collect()
    };
    let clean: Vec<Image> = images.iter().map(|(i, _)| i.clone()).collect();
    let ordinary = scores(&clean);
    let report = |what: &str, shown: &[Image]| {
        let strange = scores(shown);
        let areas: Vec<String> = names
            .iter()
            .zip(ordinary.iter().zip(&strange))
            .map(|(n, (o, s))| format!("{n} {:.3}", area_under_curve(o, s)))
            .collect();
        println!("auroc {what}: {}", areas.join(", "));
    };
    let attacked: Vec<Image> = images.iter().map(|(i, t)| pgd(&model, i, t)).collect();
    report("pgd-20 4/255", &attacked);
    let objective = Equivariance::new(ViewSet::standard().fitted(false, model.multiple));
    let adaptive = |image: &Image, truth: &LabelMap| {
        let truth = Truth::Map(truth.clone());
        let situation = Situation { objective: Some(&objective), ..situation(&model, image, &truth) };
        let settings = AttackSettings { weight: 1.0, ..AttackSettings::new(Budget::linf(4.0 / 255.0)) };
        Attack::named("adaptive").unwrap().run(&situation, &settings).unwrap().image.rounded_to_8_bits()
    };
    for severity in [1, 3, 5] {
        for corruption in CORRUPTIONS.iter().filter(|c| c.standard) {
            let shown: Vec<Image> =
                clean.iter().map(|i| corruption.apply(i, severity, 1).unwrap().rounded_to_8_bits()).collect();
            report(&format!("{} {severity}", corruption.name), &shown);
        }
    }
    let half = count.div_ceil(4);
    let evading: Vec<Image> = images[..half].iter().map(|(i, t)| adaptive(i, t)).collect();
    report(&format!("adaptive, weight 1, first {half} images"), &evading);
}

/// The chance that a strange score exceeds an ordinary one, ties counting half.
fn area_under_curve(ordinary: &[f64], strange: &[f64]) -> f64 {
    let wins: f64 = strange
        .iter()
        .flat_map(|s| {
            ordinary.iter().map(move |o| {
                if s > o {
                    1.0
                } else if s == o {
                    0.5
                } else {
                    0.0
                }
            })
        })
        .sum();
    wins / (ordinary.len() * strange.len()) as f64
}
