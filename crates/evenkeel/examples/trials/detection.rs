//! AUROC of every score: attacked images from clean ones, those of an attacker who keeps the views alike, corrupted ones.

use evenkeel::Random;
use evenkeel::attack::{Attack, AttackSettings, Scenario};
use evenkeel::budget::Budget;
use evenkeel::corrupt::CORRUPTIONS;
use evenkeel::detect::{Detector, Heads, Outputs, SCORES, ViewOutputs};
use evenkeel::image::Image;
use evenkeel::model::Model;
use evenkeel::network::Tensor;
use evenkeel::objective::{Equivariance, Invariance, Pairing, ViewObjective};
use evenkeel::task::Truth;
use evenkeel::view::{DrawnView, ViewSet};
use rayon::prelude::*;

use crate::cifar::{OTHERS, budget_of, cifar_net};
use crate::cityscapes::halves;
use crate::{cityscapes, heads, scenario, support};

/// What scores images: the views, drawn once, and the objectives with their divisors, by name.
struct Scorer {
    views: Vec<DrawnView>,
    objectives: Vec<(Box<dyn ViewObjective>, f64)>,
    learned: Vec<Detector>,
}

impl Scorer {
    /// `others` are the images that heads may be fitted on.
    fn new(model: &Model, others: &[Image]) -> Self {
        let set = ViewSet::standard().fitted(model.network.fixed_size().is_some(), model.multiple);
        let count = set.rules.len() as f64;
        let detector = |name: &&str| {
            let (head, bank) = heads::fitted(name, model, others);
            Detector::named(name, model, set.clone(), Heads { head, bank }, 1).unwrap()
        };
        let learned = SCORES[4..].iter().map(detector).collect();
        let invariance = Invariance { views: set.clone(), pairing: Pairing::Anchor };
        Self {
            views: set.draw(&Random::new(1)),
            objectives: vec![(Box::new(Equivariance::new(set)), count), (Box::new(invariance), count)],
            learned,
        }
    }

    /// All scores of an image in the order of [`SCORES`]; one pass per view serves the first four.
    fn scores(&self, model: &Model, image: &Image) -> Vec<f64> {
        let names = [model.output.as_str(), model.feature.as_str()];
        let look = |image: &Image| {
            let [scores, features]: [Tensor; 2] =
                model.network.run(image, &names).unwrap().try_into().expect("two tensors");
            (scores, features)
        };
        let (base, features) = look(image);
        let (seen, seen_features): (Vec<_>, Vec<_>) = self
            .views
            .par_iter()
            .map(|view| {
                let (scores, features) = look(&view.apply(image));
                ((view.clone(), scores), (view.clone(), features))
            })
            .unzip();
        let variance =
            |outputs| ViewOutputs::of(model, image.size(), &base, &seen, outputs).unwrap().variance();
        let mut all = vec![variance(Outputs::Softmax), variance(Outputs::OneHot)];
        all.extend(self.objectives.iter().map(|(objective, share)| {
            -objective.compare(image.size(), &features, &seen_features).unwrap().value / share
        }));
        all.extend(self.learned.iter().map(|detector| detector.score(model, image).unwrap()));
        all
    }
}

/// What is scored: a model, its clean images, and the scorer of each half of them.
struct Subject {
    model: Model,
    clean: Vec<Image>,
    truths: Vec<Truth>,
    scorers: [Scorer; 2],
    /// Step of the attacks and their radius, in 1/255.
    attack_255: (f32, f32),
}

impl Subject {
    fn cityscapes(net: &str, count: usize) -> Self {
        let folder = support::data().expect("the shared data folder");
        let model = support::cityscapes_model(&folder, net, None);
        let images = support::cityscapes(&folder, count);
        let [first, second] = halves(&images);
        let scorers = [&second, &first].map(|others| Scorer::new(&model, others));
        let (clean, truths) = images.into_iter().map(|(i, t)| (i, Truth::Map(t))).unzip();
        Self { model, clean, truths, scorers, attack_255: (1.0, 4.0) }
    }

    fn cifar(name: &str, count: usize) -> Self {
        let (model, images) = cifar_net(name);
        let others: Vec<Image> = images[OTHERS].iter().map(|(i, _)| i.clone()).collect();
        let scorers = [(); 2].map(|()| Scorer::new(&model, &others));
        let (clean, truths) = images.into_iter().take(count).map(|(i, l)| (i, Truth::Class(l))).unzip();
        Self { model, clean, truths, scorers, attack_255: (0.5, 255.0 * budget_of(name).radius) }
    }

    fn scores(&self, shown: &[Image]) -> Vec<Vec<f64>> {
        let half = self.clean.len() / 2;
        let one = |(i, image)| self.scorers[usize::from(i >= half)].scores(&self.model, image);
        shown.par_iter().enumerate().map(one).collect()
    }

    /// PGD-20, or with an objective the adaptive attack that also keeps it high; rounded to 8 bits.
    fn attacked(&self, objective: Option<&dyn ViewObjective>) -> Vec<Image> {
        let (step, radius) = self.attack_255;
        let base = AttackSettings::new(Budget::linf(radius / 255.0));
        let settings = AttackSettings { step_size: step / 255.0, weight: 1.0, ..base };
        let name = if objective.is_some() { "adaptive" } else { "pgd" };
        let one = |(image, truth): (&Image, &Truth)| {
            let scenario = Scenario { objective, ..scenario(&self.model, image, truth) };
            let outcome = Attack::named(name).unwrap().run(&scenario, &settings).unwrap();
            outcome.image.rounded_to_8_bits()
        };
        self.clean.par_iter().zip(&self.truths).map(one).collect()
    }
}

pub(crate) fn areas(net: &str, what: &str, count: usize) {
    let segments = support::CITYSCAPES.contains(&net);
    let subject = if segments { Subject::cityscapes(net, count) } else { Subject::cifar(net, count) };
    let ordinary = subject.scores(&subject.clean);
    let report = |what: &str, shown: &[Image]| {
        let strange = subject.scores(shown);
        let column = |rows: &[Vec<f64>], k: usize| rows.iter().map(|r| r[k]).collect::<Vec<_>>();
        let area = |k: usize| area_under_curve(&column(&ordinary, k), &column(&strange, k));
        let areas: Vec<String> =
            SCORES.iter().enumerate().map(|(k, n)| format!("{n} {:.3}", area(k))).collect();
        println!("auroc, {net}, {count} images, {what}: {}", areas.join(", "));
    };
    for name in what.split(',') {
        match name {
            "pgd" if segments => {
                report("pgd-20", &cityscapes::attacked(net, &subject.model, &subject.clean, &subject.truths));
            }
            "pgd" => report("pgd-20", &subject.attacked(None)),
            "adaptive" => {
                let fixed = subject.model.network.fixed_size().is_some();
                let views = ViewSet::standard().fitted(fixed, subject.model.multiple);
                report("adaptive-20, weight 1", &subject.attacked(Some(&Equivariance::new(views))));
            }
            name => {
                let corruption = CORRUPTIONS.iter().find(|c| c.name == name).expect("a corruption");
                for severity in [1, 3, 5] {
                    let corrupt = |(seed, image): (usize, &Image)| {
                        corruption.apply(image, severity, seed as u64).unwrap().rounded_to_8_bits()
                    };
                    let shown: Vec<Image> = subject.clean.iter().enumerate().map(corrupt).collect();
                    report(&format!("{name} {severity}"), &shown);
                }
            }
        }
    }
}

/// The chance that a strange score exceeds an ordinary one, ties counting half.
fn area_under_curve(ordinary: &[f64], strange: &[f64]) -> f64 {
    let wins = strange.iter().flat_map(|s| ordinary.iter().map(move |o| (s, o))).map(|(s, o)| {
        if s > o {
            1.0
        } else if s == o {
            0.5
        } else {
            0.0
        }
    });
    wins.sum::<f64>() / (ordinary.len() * strange.len()) as f64
}
