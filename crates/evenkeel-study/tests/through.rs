//! An attack of the table through a defence, averaged over draws, in a small study: it depends on the defence, and shards joined are the study.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use evenkeel_study::experiment::{Experiment, Threat};
use evenkeel_study::rows;
use evenkeel_study::run::{Effort, Study, Watch};
use evenkeel_study::store::{Shard, Store};

struct Quiet;

impl Watch for Quiet {
    fn done(&self, _: usize, _: Option<f64>) {}
}

fn study() -> Study {
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("../evenkeel/models/scenes_classifier.onnx");
    let text = format!(
        "name = \"through\"\nobjective = false\n[[subject]]\nname = \"crops\"\nmodel = {network:?}\ndata = \"scenes-objects\"\npath = \"3@24x24\"\n\
         [[attack]]\nkind = \"apgd-ce\"\nsteps = 2\ndraws = 5\n[[attack]]\nkind = \"adaptive\"\nsteps = 1\nestimator = \"identity\"\n\
         [[attack]]\nkind = \"fixed-seed\"\nsteps = 1\n\
         [[defence]]\nkind = \"random\"\n[[defence]]\nkind = \"equivariance\"\nsteps = 1\n[[detector]]\nkind = \"error-estimate\"\n"
    );
    Study::load(Experiment::parse(&text, Path::new("through.toml")).unwrap(), &[]).unwrap()
}

fn run(study: &Study, folder: &Path, shard: Shard, threads: usize) -> Store {
    let stop = AtomicBool::new(false);
    let effort = Effort { threads, shard, save_images: false, stop: &stop };
    let (store, outcome) = study.run(Store::open(folder, shard).unwrap(), &effort, &Quiet).unwrap();
    assert!(outcome.made > 0 && !outcome.stopped);
    store
}

fn tables(study: &Study, store: &Store, folder: &Path) -> Vec<Vec<u8>> {
    assert!(rows::missing(&study.design, store).is_empty());
    rows::export(&study.design, store, folder).unwrap();
    ["records.parquet", "detections.parquet"].map(|name| std::fs::read(folder.join(name)).unwrap()).to_vec()
}

#[test]
fn apgd_through_a_defence_runs_and_shards_join_to_the_same_bytes() {
    let study = study();
    let design = &study.design;
    let through: Vec<_> = design.works.iter().filter(|w| w.column == 1).map(|w| w.lens).collect();
    assert_eq!(through, [None, Some(1), Some(2)], "an image of its own for each defence");
    let Threat::Attack(apgd) = &design.subjects[0].columns[1].threat else { panic!("an attack") };
    assert_eq!(apgd.attack.settings().draws, 5);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let whole = run(&study, &at("whole"), Shard::WHOLE, 2);
    let expected = tables(&study, &whole, &at("whole"));
    let mut joined = Store::open(&at("joined"), Shard::WHOLE).unwrap();
    for index in 1..=2 {
        let name = format!("{index}/2");
        let shard = Shard::parse(&name).unwrap();
        let part = run(&study, &at(&name.replace('/', "-")), shard, 1);
        joined.take_from(&part, design).unwrap();
    }
    joined.keep_design(design).unwrap();
    assert_eq!(tables(&study, &joined, &at("joined")), expected);
}

/// What the rows of a study with these defences say, without clocks and keys: label, tally and passes of every answer.
fn answered(defences: &str) -> Vec<(String, String)> {
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("../evenkeel/models/scenes_classifier.onnx");
    let text = format!(
        "name = \"shared\"\nobjective = false\n[[subject]]\nname = \"crops\"\nmodel = {network:?}\ndata = \"scenes-objects\"\npath = \"2@24x24\"\n\
         [[attack]]\nkind = \"pgd\"\nsteps = 2\n{defences}"
    );
    let study = Study::load(Experiment::parse(&text, Path::new("shared.toml")).unwrap(), &[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = run(&study, folder.path(), Shard::WHOLE, 1);
    let mut all = Vec::new();
    for cell in study.design.cells.iter().filter(|cell| cell.answer.is_some()) {
        let answer = &study.design.works[cell.work].answers[cell.answer.unwrap()];
        for id in &study.design.subjects[0].images {
            let (entry, _) = store.get(&answer.key, id).unwrap().unwrap();
            let label = study.design.subjects[0].rows[cell.row].label.clone();
            all.push((
                format!("{label} {} {id}", cell.column),
                format!("{:?} {:?}", entry.body, entry.passes),
            ));
        }
    }
    all
}

#[test]
fn answers_that_share_a_defended_image_are_what_they_are_alone() {
    let defence = |name: &str, answer: &str| {
        format!("[[defence]]\nkind = \"{name}\"\nsteps = 2\nschedule = \"paper\"\n{answer}\n")
    };
    let plain = ["equivariance", "consensus"].map(|name| defence(name, "")).concat();
    let vote = ["equivariance", "consensus"].map(|name| defence(name, "answer = \"vote\"")).concat();
    let both =
        ["equivariance", "consensus"].map(|name| defence(name, "answer = [\"plain\", \"vote\"]")).concat();
    let mut alone = [answered(&plain), answered(&vote)].concat();
    let mut together = answered(&both);
    alone.sort();
    together.sort();
    assert_eq!(together.len(), 2 * 2 * 4);
    assert_eq!(together, alone);
}
