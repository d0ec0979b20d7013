//! Trials on the shared data: what docs/results.md records. Each prints one line when it is done, so that a run that is cut off
//! loses only what it was at.
//!
//!     cargo run --release -p evenkeel --example trials -- cifar NET COUNT
//!     cargo run --release -p evenkeel --example trials -- cifar-defence NET DEFENCE STEPS ATTACK COUNT [OUTER DRAWS]
//!     cargo run --release -p evenkeel --example trials -- cityscapes NET DEFENCE STEPS clean|attacked COUNT [FEATURE]
//!     cargo run --release -p evenkeel --example trials -- detection NET WHAT COUNT
//!
//! NET is one of the CIFAR networks or, for cityscapes and detection, espnet or espnetv2; ATTACK is clean, transfer, bpda or bpda-eot; DEFENCE one of the
//! six; WHAT a list, by commas, of pgd, adaptive and names of corruptions. Heads for rotation and contrastive are fitted on the
//! spot on images that are not judged with them (see `heads`).

mod cifar;
mod cityscapes;
mod detection;
mod heads;
#[path = "../../tests/support/mod.rs"]
mod support;

use evenkeel::attack::Scenario;
use evenkeel::image::Image;
use evenkeel::model::Model;
use evenkeel::task::Truth;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let name = |i: usize| args.get(i).map(String::as_str).unwrap_or_default();
    match name(0) {
        "cifar" => cifar::bare(name(1), number(2, 200)),
        "cifar-defence" => cifar::defended(
            name(1),
            &cifar::Trial {
                defence: name(2),
                steps: number(3, 20),
                attack: name(4),
                count: number(5, 200),
                outer: number(6, 20),
                draws: number(7, 20),
            },
        ),
        "cityscapes" => cityscapes::defended(
            name(1),
            &cityscapes::Trial {
                defence: name(2),
                steps: number(3, 20),
                given: name(4),
                count: number(5, 40),
                feature: args.get(6).map(String::as_str),
            },
        ),
        "detection" => detection::areas(name(1), name(2), number(3, 40)),
        other => eprintln!("no trial {other:?}; see the top of this file"),
    }
}

fn scenario<'a>(model: &'a Model, image: &'a Image, truth: &'a Truth) -> Scenario<'a> {
    Scenario { model, image, truth, target: None, defence: None, objective: None }
}
