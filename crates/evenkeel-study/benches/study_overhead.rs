//! What the machinery of a study costs beside the compute of its cells, and whether memory grows with the number of images.
//!
//!     cargo bench -p evenkeel-study --bench study_overhead
//!
//! The same attack, defence and answers for the same images, once through a study (store, keys, log, tables) and once called directly, in turn;
//! the ratio is that of the processor seconds of the best rounds, since a busy machine changes the wall clock by more than the machinery does. Then ten thousand tiny images through one study, and the process's peak memory at several
//! points of it.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use evenkeel::attack::{Attack, Scenario};
use evenkeel::defence::{Defence, DefenceSpec};
use evenkeel::detect::Heads;
use evenkeel::model::Model;
use evenkeel::task::Truth;
use evenkeel_data::dataset::scenes::{Split, object};
use evenkeel_study::experiment::Experiment;
use evenkeel_study::rows;
use evenkeel_study::run::{Effort, Study, Watch};
use evenkeel_study::store::{Shard, Store};

const IMAGES: usize = 48;
const ROUNDS: usize = 5;
/// Linux counts processor time in hundredths of a second.
const TICK: f64 = 0.01;
const MANY: usize = 10_000;

fn network() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../evenkeel/models/scenes_classifier.onnx")
}

fn experiment(images: usize, rest: &str) -> Experiment {
    let text = format!(
        "name = \"bench\"\nobjective = false\n[[subject]]\nname = \"crops\"\nmodel = {:?}\ndata = \"scenes-objects\"\npath = \"{images}@32x32\"\n{rest}",
        network()
    );
    Experiment::parse(&text, Path::new("bench")).expect("an experiment")
}

const CELL: &str = "[[attack]]\nkind = \"pgd\"\n[[defence]]\nkind = \"equivariance\"\nsteps = 5\n";

/// Peak memory at some counts of images.
struct Memory {
    done: AtomicUsize,
    marks: Mutex<Vec<(usize, u64)>>,
}

fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Processor seconds of this process so far, user and system.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * TICK
}

impl Watch for Memory {
    fn done(&self, _: usize, _: Option<f64>) {
        let done = self.done.fetch_add(1, Ordering::SeqCst) + 1;
        if [MANY / 100, MANY / 10, MANY / 2, MANY].contains(&done) {
            self.marks.lock().expect("no panic").push((done, peak_kilobytes()));
        }
    }
}

fn through_a_study(study: &Study) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let start = processor_seconds();
    let store = Store::open(folder.path(), Shard::WHOLE).expect("a store");
    let stop = AtomicBool::new(false);
    let effort = Effort { threads: 1, shard: Shard::WHOLE, save_images: false, stop: &stop };
    let memory = Memory { done: AtomicUsize::new(0), marks: Mutex::default() };
    let (store, _) = study.run(store, &effort, &memory).expect("a run");
    rows::export(&study.design, &store, folder.path()).expect("tables");
    processor_seconds() - start
}

/// Clean and attacked, bare and defended: what the cells of the study compute.
fn directly(model: &Model, defence: &Defence) -> f64 {
    let start = processor_seconds();
    for number in 0..IMAGES as u64 {
        let (class, image) = object(Split::Test, number, 32, 32);
        let truth = Truth::of_class(class);
        let attack = Attack::named("pgd").expect("an attack").seed(number);
        let outcome = attack.run(&Scenario::new(model, &image, &truth)).expect("a run");
        let attacked = attack.settings().budget().rounded(&image, &outcome.image);
        for shown in [&image, &attacked] {
            let defended = defence.apply(model, shown, number).expect("a run").image;
            std::hint::black_box((model.predict(shown).ok(), model.predict(&defended).ok()));
        }
    }
    processor_seconds() - start
}

fn overhead() {
    let study = Study::load(experiment(IMAGES, CELL), &[]).expect("a study");
    let model = Model::load(network()).expect("a network");
    let spec =
        DefenceSpec::named("equivariance").and_then(|spec| spec.with("steps", 5usize)).expect("a spec");
    let defence = spec.build(&model, &Heads::default()).expect("a defence");
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let (mut with, mut without) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        with = with.min(through_a_study(&study));
        without = without.min(one.install(|| directly(&model, &defence)));
    }
    println!(
        "{IMAGES} images, PGD-20 and a defence of 5 gradients, one thread: {with:.2} processor seconds through a study, {without:.2} directly; overhead {:+.1} %",
        100.0 * (with / without - 1.0)
    );
}

fn memory() {
    let study = Study::load(experiment(MANY, "[[defence]]\nkind = \"random\"\n"), &[]).expect("a study");
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), Shard::WHOLE).expect("a store");
    let stop = AtomicBool::new(false);
    let effort = Effort { threads: 1, shard: Shard::WHOLE, save_images: false, stop: &stop };
    let watch = Memory { done: AtomicUsize::new(0), marks: Mutex::default() };
    let start = Instant::now();
    let (store, _) = study.run(store, &effort, &watch).expect("a run");
    for (done, kilobytes) in watch.marks.lock().expect("no panic").iter() {
        println!("{done:>6} images: peak {:.1} MB", *kilobytes as f64 / 1024.0);
    }
    let count = rows::export(&study.design, &store, folder.path()).expect("tables");
    println!(
        "{count:>6} rows of tables written: peak {:.1} MB; {:.0} s in all",
        peak_kilobytes() as f64 / 1024.0,
        start.elapsed().as_secs_f64()
    );
}

fn main() {
    memory();
    overhead();
}
