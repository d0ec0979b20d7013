//! ESPNet on Cityscapes: clean and attacked mIoU, bare and under each defence. The attack is made on the bare network (transfer).

use std::path::{Path, PathBuf};
use std::time::Instant;

use evenkeel::attack::{Attack, AttackSettings};
use evenkeel::budget::Budget;
use evenkeel::defence::{Defence, DefenceSettings};
use evenkeel::image::{Image, LabelMap};
use evenkeel::model::Model;
use evenkeel::task::{Prediction, Truth};
use rayon::prelude::*;

use crate::{heads, scenario, support};

/// PGD-20 at 4/255, steps of 1/255, on each image, rounded to 8 bits; kept in the temporary folder for the next trial.
pub(crate) fn attacked(net: &str, model: &Model, images: &[Image], truths: &[Truth]) -> Vec<Image> {
    let folder = std::env::temp_dir().join("evenkeel-trials");
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let one = |(i, (image, truth)): (usize, (&Image, &Truth))| {
        let file = folder.join(format!("{net}-pgd-{i}.png"));
        if let Ok(kept) = Image::load(&file) {
            return kept;
        }
        let settings = AttackSettings::new(Budget::linf(4.0 / 255.0));
        let outcome = Attack::named("pgd").unwrap().run(&scenario(model, image, truth), &settings).unwrap();
        outcome.image.save_png(&file).expect("room for a picture");
        outcome.image.rounded_to_8_bits()
    };
    images.par_iter().zip(truths).enumerate().map(one).collect()
}

/// The images in two halves: what is fitted for one half sees only the other.
pub(crate) fn halves(images: &[(Image, LabelMap)]) -> [Vec<Image>; 2] {
    let (first, second) = images.split_at(images.len() / 2);
    [first, second].map(|half| half.iter().map(|(image, _)| image.clone()).collect())
}

/// One defence on the clean or the attacked images, features as named or the network's class scores.
pub(crate) struct Trial<'a> {
    pub(crate) defence: &'a str,
    pub(crate) steps: usize,
    pub(crate) given: &'a str,
    pub(crate) count: usize,
    pub(crate) feature: Option<&'a str>,
}

pub(crate) fn defended(net: &str, trial: &Trial<'_>) {
    let &Trial { defence: name, steps, given: what, count, feature } = trial;
    let folder = support::data().expect("the shared data folder");
    let model = support::cityscapes_model(&folder, net, feature);
    let images = support::cityscapes(&folder, count);
    let clean: Vec<Image> = images.iter().map(|(i, _)| i.clone()).collect();
    let truths: Vec<Truth> = images.iter().map(|(_, t)| Truth::Map(t.clone())).collect();
    let given = if what == "clean" { clean } else { attacked(net, &model, &clean, &truths) };
    let start = Instant::now();
    let [first, second] = halves(&images);
    let defences = [&second, &first].map(|others| {
        let (head, bank) = heads::fitted(name, &model, others);
        let settings =
            DefenceSettings { steps, head, bank, ..DefenceSettings::published(Budget::linf(6.0 / 255.0)) };
        Defence::named(name, &model, settings).unwrap()
    });
    let mut confusion = support::Confusion::default();
    for (i, (image, (_, truth))) in given.iter().zip(&images).enumerate() {
        let defence = &defences[usize::from(i >= first.len())];
        let file = folder_of(net, trial).join(format!("{i}.png"));
        confusion.add(&kept(&file, || answer(&model, defence, image, i as u64)), truth);
    }
    println!(
        "{net}, {count} images, {name} T={}, {what}: {:.2} ({:.0} s)",
        defences[0].steps,
        100.0 * confusion.mean_iou(),
        start.elapsed().as_secs_f64()
    );
}

/// Where the answers of a trial are kept, so that one that is cut off goes on from there.
fn folder_of(net: &str, trial: &Trial<'_>) -> PathBuf {
    let feature = trial.feature.unwrap_or("scores").replace('/', "_");
    let name = format!("{net}-{}-{}-{}-{feature}", trial.defence, trial.steps, trial.given);
    std::env::temp_dir().join("evenkeel-trials").join(name)
}

fn answer(model: &Model, defence: &Defence, image: &Image, seed: u64) -> LabelMap {
    let shown = defence.apply(model, image, seed).unwrap().image;
    let Prediction::Map(map) = model.predict(&shown).unwrap() else { unreachable!() };
    map
}

fn kept(file: &Path, make: impl FnOnce() -> LabelMap) -> LabelMap {
    if let Ok(map) = LabelMap::load(file) {
        return map;
    }
    let map = make();
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a temporary folder");
    map.save_png(file, None).expect("room for a picture");
    map
}
