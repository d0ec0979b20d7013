//! Mean IoU of a segmenter on held-out scenes: clean, attacked, and defended. What docs/results.md records under "Scenes".
//!
//!     cargo run --release -p evenkeel-study --example scene_trials -- NETWORK SCENES [BPDA-SCENES] [DEFENCE,…] [STEPS]
//!
//! NETWORK is an ONNX file with its contract and heads beside it. PGD has 4/255 and twenty steps and knows of no defence; BPDA runs the
//! same twenty steps through each defence taken for the identity; the worst case takes, scene by scene, the lower of the two. Attacked
//! images are rounded to eight bits. Defences have 6/255 and twenty steps (STEPS). Scenes are the first of the split `test`.

use evenkeel::attack::{Attack, AttackSettings, Situation};
use evenkeel::budget::Budget;
use evenkeel::defence::{Defence, DefenceSettings};
use evenkeel::detect::{Detector, Heads};
use evenkeel::model::Model;
use evenkeel::objective::{Bank, head::Head};
use evenkeel::task::{Prediction, Truth, mean_iou};
use evenkeel::view::ViewSet;
use evenkeel::{Image, Random};
use evenkeel_study::dataset::scenes::{SCENE_CLASSES, Split, render};
use evenkeel_study::metric::{Bootstrap, IGNORE, Ranking, SegmentationScore};
use rayon::prelude::*;
use std::path::Path;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const RADIUS: f32 = 4.0 / 255.0;
const COLUMNS: [&str; 4] = ["clean", "PGD", "BPDA", "worst"];

struct Trial {
    model: Model,
    defences: Vec<Defence>,
    detector: Detector,
    bpda_scenes: u64,
}

/// What was said of one scene: by defence and column, where the column was tried.
struct Answers {
    truth: Vec<u16>,
    said: Vec<[Option<Vec<u16>>; 4]>,
    scores: [f64; 2],
}

fn defence(model: &Model, network: &Path, name: &str, steps: usize) -> Outcome<Defence> {
    let mut settings = DefenceSettings { steps, ..DefenceSettings::standard(Budget::linf(1.5 * RADIUS)) };
    if matches!(name, "rotation" | "contrastive") {
        let path = network.with_extension(format!("{name}.safetensors"));
        settings.head = Some(Head::load(&path)?);
        settings.bank = (name == "contrastive").then(|| Bank::load(&path)).transpose()?;
    }
    Ok(Defence::named(name, model, settings)?)
}

impl Trial {
    fn attack(&self, name: &str, situation: &Situation<'_>, seed: u64) -> Outcome<Image> {
        let settings = AttackSettings { steps: 20, seed, ..AttackSettings::new(Budget::linf(RADIUS)) };
        Ok(Attack::named(name)?.run(situation, &settings)?.image.rounded_to_8_bits())
    }

    fn said(&self, defence: &Defence, image: &Image, seed: u64) -> Outcome<Vec<u16>> {
        let shown = defence.apply(&self.model, image, seed)?.image;
        match self.model.predict(&shown)? {
            Prediction::Map(map) => Ok(map.labels().to_vec()),
            _ => Err("the network is no segmenter".into()),
        }
    }

    fn answers(&self, number: u64) -> Outcome<Answers> {
        let scene = render(Split::Test.seed(number), 128, 256);
        let truth = Truth::Map(scene.labels.clone());
        let is = scene.labels.labels().to_vec();
        let seed = Random::new(0).fork(number).seed();
        let mut situation = Situation {
            model: &self.model,
            image: &scene.image,
            truth: &truth,
            target: None,
            defence: None,
            objective: None,
        };
        let plain = self.attack("pgd", &situation, seed)?;
        let mut said = Vec::new();
        for defence in &self.defences {
            let clean = self.said(defence, &scene.image, seed)?;
            let pgd = self.said(defence, &plain, seed)?;
            let mut row = [Some(clean), Some(pgd.clone()), None, None];
            if number < self.bpda_scenes {
                situation.defence = Some(defence);
                // Without a defence BPDA is PGD.
                let image = if defence.name == "none" {
                    plain.clone()
                } else {
                    self.attack("bpda", &situation, seed ^ 1)?
                };
                let bpda = self.said(defence, &image, seed)?;
                let worse = if mean_iou(&bpda, &is) < mean_iou(&pgd, &is) { bpda.clone() } else { pgd };
                (row[2], row[3]) = (Some(bpda), Some(worse));
            }
            said.push(row);
        }
        let scores =
            [self.detector.score(&self.model, &scene.image)?, self.detector.score(&self.model, &plain)?];
        Ok(Answers { truth: is, said, scores })
    }

    fn report(&self, all: &[Answers]) -> Outcome<()> {
        let mut ranking = Ranking::new(Bootstrap::NONE);
        for (k, answers) in all.iter().enumerate() {
            ranking.push(k as u64, answers.scores[0], false)?;
            ranking.push(k as u64, answers.scores[1], true)?;
        }
        println!("{:<14}{}", "defence", COLUMNS.map(|c| format!("{c:>16}")).concat());
        for (d, defence) in self.defences.iter().enumerate() {
            print!("{:<14}", defence.name);
            for column in 0..COLUMNS.len() {
                let mut score = SegmentationScore::new(SCENE_CLASSES.len(), IGNORE, Bootstrap::NONE);
                let mut count = 0;
                for (k, answers) in all.iter().enumerate() {
                    if let Some(said) = &answers.said[d][column] {
                        score.push(k as u64, &answers.truth, said)?;
                        count += 1;
                    }
                }
                let figure = score.figures().mean_iou().map_or(f64::NAN, |v| 100.0 * v);
                print!("{:>16}", if count == 0 { "-".into() } else { format!("{figure:.1} ({count})") });
            }
            println!();
        }
        println!("AUROC of the variance over views: {:?}", ranking.figures().map(|f| f.auroc));
        Ok(())
    }
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, other: u64| args.get(i).map_or(Ok(other), |text| text.parse());
    let network = Path::new(args.first().ok_or("which network?")?);
    let (scenes, bpda_scenes, steps) = (number(1, 100)?, number(2, 0)?, number(4, 20)? as usize);
    let names = args.get(3).map_or("none,random,rotation,contrastive,invariance,equivariance", |a| a);
    let model = Model::load(network)?;
    let defences =
        names.split(',').map(|name| defence(&model, network, name, steps)).collect::<Outcome<Vec<_>>>()?;
    let detector = Detector::named("variance", &model, ViewSet::standard(), Heads::default(), 0)?;
    let trial = Trial { model, defences, detector, bpda_scenes };
    let start = Instant::now();
    let mut all = Vec::new();
    // A few scenes at a time, so that what is known can be told.
    let numbers: Vec<u64> = (0..scenes).collect();
    for some in numbers.chunks(4) {
        all.extend(some.par_iter().map(|&n| trial.answers(n)).collect::<Outcome<Vec<_>>>()?);
        eprintln!("{} of {scenes} scenes, {:.0} s", all.len(), start.elapsed().as_secs_f64());
        if all.len() % 20 == 0 || all.len() as u64 == scenes {
            trial.report(&all)?;
        }
    }
    Ok(())
}
