//! Mask AP of YOLO11n-seg on the shared COCO images: clean, attacked, and defended. What docs/results.md records.
//!
//!     cargo run --release -p evenkeel-study --example instance_trials -- IMAGES [STEPS] [DEFENCE-STEPS] [DEFENCE,…] [HEADS]
//!
//! Attacks: PGD at 4/255 on the network's own loss at the true objects. Defences look at the clean and at the attacked image; their
//! radius is one and a half times the attack's. HEADS is where `evenkeel-train heads yolo11n-seg.onnx --images FOLDER` put its files,
//! `HEADS.rotation.safetensors` and `HEADS.contrastive.safetensors`. Needs the shared data folder ($EVENKEEL_DATA or beside the workspace).

use std::path::{Path, PathBuf};
use std::time::Instant;

use evenkeel::attack::{Attack, AttackSettings, Scenario};
use evenkeel::budget::Budget;
use evenkeel::defence::{Defence, DefenceSettings};
use evenkeel::detect::{Detector, Heads};
use evenkeel::image::Image;
use evenkeel::model::{Classes, Contract, InputRule, Letterbox, Model, Order, ResizeRule};
use evenkeel::objective::Bank;
use evenkeel::objective::head::Head;
use evenkeel::task::instance::{InstanceRule, panoptic_quality};
use evenkeel::task::{Prediction, Truth};
use evenkeel::view::ViewSet;
use evenkeel_study::coco_instances::{detected, true_instances};
use evenkeel_study::dataset::coco_json::{Annotation, GroundTruth, ImageEntry, read_ground_truth};
use evenkeel_study::metric::instance::{InstanceScore, Region, TrueInstance};
use evenkeel_study::metric::{Bootstrap, Ranking};

fn contract(ids: Vec<i64>) -> Contract {
    Contract {
        task: "instance".into(),
        output: "output0 + output1".into(),
        feature: ["16", "19", "22"].map(|block| format!("/model.{block}/cv2/act/Mul_output_0")).join(" + "),
        input: InputRule {
            order: Order::Rgb,
            scale: 1.0,
            mean: [0.0; 3],
            std: [1.0; 3],
            channels_last: false,
            size: Some([640, 640]),
            resize: ResizeRule::Letterbox,
            multiple: 1,
        },
        classes: Classes { ids, ..Classes::default() },
        instance: Some(InstanceRule { head: "yolo-seg".into(), confidence: 0.01, overlap: 0.7, most: 100 }),
    }
}

/// An image with its truth in both frames.
struct Case<'a> {
    entry: &'a ImageEntry,
    annotations: Vec<&'a Annotation>,
    frame: Letterbox,
    image: Image,
    truth: Truth,
}

/// The running AP of one way of looking at the images.
#[derive(Default)]
struct Column {
    name: String,
    score: InstanceScore,
    quality: f64,
    seconds: f64,
    images: usize,
}

impl Column {
    fn take(&mut self, model: &Model, case: &Case<'_>, shown: &Image) {
        let Prediction::Instances(found) = model.predict(shown).expect("an answer") else { unreachable!() };
        if let Truth::Instances(truth) = &case.truth {
            self.quality += panoptic_quality(&found, truth);
        }
        let on_image: Vec<_> = found.iter().map(|instance| case.frame.unframed(instance)).collect();
        let found = detected(&on_image, &model.class_ids).expect("masks");
        let truths: Vec<TrueInstance> =
            case.annotations.iter().map(|a| true_instance(case.entry, a)).collect();
        self.score.push(case.entry.id, &truths, &found).expect("scores that are numbers");
        self.images += 1;
    }

    fn print(&self) {
        let figures = self.score.figures().0.map(|f| 100.0 * f.unwrap_or(f64::NAN));
        let plan = Bootstrap { seed: 0, replicates: 200 };
        let [Some(interval), ..] = self.score.intervals(plan, 0.95) else { return };
        println!(
            "{:<28} mask AP {:5.2} [{:.1}, {:.1}]  AP50 {:5.2}  quality {:.3}  {:.1} s an image",
            self.name,
            figures[0],
            100.0 * interval.low,
            100.0 * interval.high,
            figures[1],
            self.quality / self.images as f64,
            self.seconds / self.images as f64
        );
    }
}

fn true_instance(entry: &ImageEntry, a: &Annotation) -> TrueInstance {
    let mask = a.segmentation.mask(entry.height, entry.width).expect("a sound mask");
    let area = a.area.unwrap_or(f64::from(mask.area()));
    let region = Region::Mask(mask);
    TrueInstance { category: a.category_id, crowd: a.crowd, area, region, countable: a.id != 0 }
}

fn case<'a>(model: &Model, folder: &Path, truth: &'a GroundTruth, entry: &'a ImageEntry) -> Case<'a> {
    let annotations: Vec<&Annotation> = truth.annotations.iter().filter(|a| a.image_id == entry.id).collect();
    let frame = model.framing((entry.height as usize, entry.width as usize)).expect("a letterbox");
    let image = Image::load(folder.join("val2017").join(&entry.file_name)).expect("a picture");
    let image = model.fit(&image).expect("an image that fits");
    let objects =
        true_instances(folder, entry, &annotations, &model.class_ids, &frame).expect("sound objects");
    Case { entry, annotations, frame, image, truth: Truth::Instances(objects) }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("EVENKEEL_DATA").map_or(beside, PathBuf::from);
    let (folder, steps) = (data.join("coco"), number(1, 20));
    let truth = read_ground_truth(&folder.join("instances_val.json")).expect("the annotations");
    let mut ids: Vec<i64> = truth.categories.iter().map(|c| c.id).collect();
    ids.sort_unstable();
    let model =
        Model::with_contract(data.join("models/yolo11n-seg.onnx"), &contract(ids)).expect("the network");
    let budget = Budget::linf(4.0 / 255.0);
    let named = args.get(3).map_or("none", String::as_str);
    let defences: Vec<Defence> = named
        .split(',')
        .map(|name| {
            let file = args.get(4).map(|heads| format!("{heads}.{name}.safetensors"));
            let file = file.filter(|_| name == "rotation" || name == "contrastive");
            let settings = DefenceSettings {
                steps: number(2, 1),
                head: file.as_ref().map(|file| Head::load(file).expect("a head")),
                bank: file.filter(|_| name == "contrastive").map(|file| Bank::load(file).expect("a bank")),
                ..DefenceSettings::published(Budget::linf(6.0 / 255.0))
            };
            Defence::named(name, &model, settings).expect("a defence")
        })
        .collect();
    let detector =
        Detector::named("variance", &model, ViewSet::standard(), Heads::default(), 0).expect("a detector");
    let mut ranking = Ranking::new(Bootstrap { seed: 0, replicates: 0 });
    let column = |name: String| Column { name, ..Column::default() };
    let mut columns: Vec<[Column; 2]> = defences
        .iter()
        .map(|d| [column(format!("clean, {}", d.name)), column(format!("pgd-{steps}, {}", d.name))])
        .collect();
    for (k, entry) in truth.images.iter().take(number(0, 50)).enumerate() {
        let case = case(&model, &folder, &truth, entry);
        let start = Instant::now();
        let attacked = match steps {
            0 => case.image.clone(),
            _ => {
                attack(&model, &case, AttackSettings { steps, seed: k as u64, ..AttackSettings::new(budget) })
            }
        };
        let spent = start.elapsed().as_secs_f64();
        for (defence, columns) in defences.iter().zip(&mut columns) {
            for (column, image) in columns.iter_mut().zip([&case.image, &attacked]) {
                let start = Instant::now();
                let shown = defence.apply(&model, image, k as u64).expect("a defended image").image;
                column.take(&model, &case, &shown);
                column.seconds += start.elapsed().as_secs_f64();
            }
        }
        for (image, anomalous) in [(&case.image, false), (&attacked, true)] {
            let strangeness = detector.score(&model, image).expect("a score");
            ranking.push(k as u64 * 2 + u64::from(anomalous), strangeness, anomalous).expect("a number");
        }
        eprintln!("{} of {}: attacked in {spent:.1} s", k + 1, number(0, 50));
    }
    columns.iter().flatten().for_each(Column::print);
    if let Some(figures) = ranking.figures() {
        println!("detection by output variance: AUROC {:.3}", figures.auroc);
    }
}

/// The attacked image, rounded to eight bits as a file would be.
fn attack(model: &Model, case: &Case<'_>, settings: AttackSettings) -> Image {
    let (image, truth) = (&case.image, &case.truth);
    let scenario = Scenario { model, image, truth, target: None, defence: None, objective: None };
    let outcome = Attack::named("pgd").expect("pgd").run(&scenario, &settings).expect("an attack");
    outcome.image.rounded_to_8_bits()
}
