//! Real networks on real images, when the shared data folder is there: published figures and those of docs/results.md must come
//! out again, the costly ones on a part of the images.

mod support;

use evenkeel::attack::{Attack, Scenario};
use evenkeel::corrupt::Corruption;
use evenkeel::defence::{Defence, DefenceSpec};
use evenkeel::detect::{DetectorSpec, Heads};
use evenkeel::image::{Image, LabelMap};
use evenkeel::model::Model;
use evenkeel::task::Truth;
use rayon::prelude::*;

fn pgd(model: &Model, image: &Image, truth: &Truth, attack: &Attack) -> Image {
    let outcome = attack.run(&Scenario::new(model, image, truth)).unwrap();
    outcome.image.rounded_to_8_bits()
}

/// One step of the published loop.
fn published(model: &Model, epsilon_255: f64) -> Defence {
    let spec = DefenceSpec::named("equivariance").unwrap().with("schedule", "paper").unwrap();
    let spec = spec.with("steps", 1usize).unwrap().with("epsilon_255", epsilon_255).unwrap();
    spec.build(model, &Heads::default()).unwrap()
}

fn share(kept: &[bool]) -> f64 {
    kept.iter().filter(|k| **k).count() as f64 / kept.len() as f64
}

/// Clean and PGD-20 accuracy over 200 images, within 2 points of the figures beside the data; and, for the first network, what
/// one step of the equivariance defence keeps of it.
#[test]
fn cifar_accuracies_are_the_published_ones() {
    let Some(folder) = support::data() else {
        println!("skipped: no shared data (set EVENKEEL_DATA)");
        return;
    };
    let images = support::cifar_images(&folder, 200);
    let figures = [(2.0, 0.70, 0.57), (2.0, 0.80, 0.65), (4.0, 0.805, 0.325), (2.0, 0.915, 0.02)];
    for (net, (epsilon_255, clean, attacked)) in support::CIFAR.iter().zip(figures) {
        let model = support::cifar_model(&folder, net);
        let attack = Attack::named("pgd").unwrap().with("epsilon_255", epsilon_255).unwrap();
        let attack = attack.with("step_size", "0.5/255").unwrap();
        let right = |image: &Image, label: usize| model.predict(image).unwrap().class() == Some(label);
        let bare: Vec<bool> = images.par_iter().map(|(image, label)| right(image, *label)).collect();
        let shown: Vec<Image> = images
            .par_iter()
            .map(|(image, label)| pgd(&model, image, &Truth::of_class(*label), &attack))
            .collect();
        let held: Vec<bool> = shown.iter().zip(&images).map(|(i, (_, label))| right(i, *label)).collect();
        let (bare, held) = (share(&bare), share(&held));
        println!("{}: clean {bare:.3}, PGD-20 {held:.3}", net.file);
        assert!((bare - clean).abs() <= 0.0201, "{}: clean {bare}, published {clean}", net.file);
        assert!((held - attacked).abs() <= 0.0201, "{}: PGD {held}, published {attacked}", net.file);
        if net.file == "resnet_2b" {
            let defence = published(&model, 2.0 * epsilon_255);
            let judge = |(i, (image, (_, label))): (usize, (&Image, &(Image, usize)))| {
                right(&defence.apply(&model, image, 1000 + i as u64).unwrap().image, *label)
            };
            let kept: Vec<bool> = shown.iter().zip(&images).enumerate().map(judge).collect();
            println!("{}: defended {:.3}", net.file, share(&kept));
            assert!((share(&kept) - DEFENDED_RESNET_2B).abs() <= 0.0201);
        }
    }
}

/// Accuracy of resnet_2b under PGD-20 on the bare network, after one step of the equivariance defence.
const DEFENDED_RESNET_2B: f64 = 0.575;
/// Clean mIoU of ESPNet on the 40 images.
const ESPNET_CLEAN: f64 = 40.85;

fn miou(model: &Model, shown: &[Image], images: &[(Image, LabelMap)]) -> f64 {
    let mut confusion = support::Confusion::default();
    for (image, (_, truth)) in shown.iter().zip(images) {
        let said = model.predict(image).unwrap();
        let map = said.label_map().expect("a map");
        confusion.add(map, truth);
    }
    100.0 * confusion.mean_iou()
}

/// Clean mIoU of all 40 images; two of them attacked, defended and told from clean and corrupted ones.
#[test]
fn espnet_does_what_was_recorded() {
    let Some(folder) = support::data() else {
        println!("skipped: no shared data (set EVENKEEL_DATA)");
        return;
    };
    let model = support::cityscapes_model(&folder, "espnet", None);
    let images = support::cityscapes(&folder, 40);
    let clean: Vec<Image> = images.iter().map(|(image, _)| image.clone()).collect();
    let all = miou(&model, &clean, &images);
    println!("ESPNet: clean mIoU {all:.2}");
    assert!((all - ESPNET_CLEAN).abs() < 0.05, "{all}");
    let few = &images[..2];
    let attack = Attack::named("pgd").unwrap();
    let attacked: Vec<Image> =
        few.iter().map(|(i, t)| pgd(&model, i, &Truth::of_labels(t.clone()), &attack)).collect();
    let fallen = miou(&model, &attacked, few);
    let defence = published(&model, 6.0);
    let restored: Vec<Image> = attacked.iter().map(|i| defence.apply(&model, i, 1).unwrap().image).collect();
    let risen = miou(&model, &restored, few);
    println!("ESPNet, 2 images: PGD-20 {fallen:.2}, defended {risen:.2}");
    assert!(fallen < 0.5 && risen > fallen, "{fallen} {risen}");
    let spec = DetectorSpec::named("equivariance").unwrap().with("seed", 1usize).unwrap();
    let detector = spec.build(&model, Heads::default()).unwrap();
    let noise = Corruption::named("gaussian_noise").unwrap();
    for (shown, i) in attacked.iter().zip(0..) {
        let score = |image: &Image| detector.score(&model, image).unwrap();
        let ordinary = score(&clean[i]);
        assert!(score(shown) > ordinary, "an attacked image looks ordinary");
        assert!(score(&noise.apply(&clean[i], 5, 1).unwrap()) > ordinary, "a noisy image looks ordinary");
    }
}
