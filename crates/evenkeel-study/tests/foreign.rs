//! Foreign data sets in a small study: scored by every detector, kept once, the same bytes for any threads and shards, and shown with the paper's figures.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use evenkeel_study::experiment::Experiment;
use evenkeel_study::report::Report;
use evenkeel_study::rows;
use evenkeel_study::run::{Effort, Outcome, Study, Watch};
use evenkeel_study::store::{Shard, Store};

struct Quiet;

impl Watch for Quiet {
    fn done(&self, _: usize, _: Option<f64>) {}
}

fn study() -> Study {
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("../evenkeel/models/scenes_segmenter.onnx");
    let text = format!(
        "name = \"foreign\"\n[[subject]]\nname = \"scenes\"\nmodel = {network:?}\ndata = \"scenes\"\npath = \"4@64x32\"\n\
         [[foreign]]\nname = \"crops\"\ndata = \"scenes-objects\"\npath = \"5@48x48\"\nlimit = 3\npaper = \"cityscapes/coco\"\n\
         [[foreign]]\nname = \"other\"\ndata = \"scenes-objects\"\npath = \"2@20x20\"\nsubjects = [\"scenes\"]\n\
         [[detector]]\nkind = \"invariance\"\n[[detector]]\nkind = \"variance\"\nviews = \"only-flip\"\n[[detector]]\nkind = \"error-estimate\"\n"
    );
    Study::load(Experiment::parse(&text, Path::new("foreign.toml")).unwrap(), &[]).unwrap()
}

fn run(study: &Study, folder: &Path, shard: Shard, threads: usize) -> (Store, Outcome) {
    let stop = AtomicBool::new(false);
    let effort = Effort { threads, shard, save_images: false, stop: &stop };
    study.run(Store::open(folder, shard).unwrap(), &effort, &Quiet).unwrap()
}

fn tables(study: &Study, store: &Store, folder: &Path) -> Vec<Vec<u8>> {
    assert!(rows::missing(&study.design, store).is_empty());
    rows::export(&study.design, store, folder).unwrap();
    let ending = evenkeel_study::record::ENDING;
    ["records", "detections"]
        .map(|name| std::fs::read(folder.join(format!("{name}.{ending}"))).unwrap())
        .to_vec()
}

#[test]
fn foreign_images_are_scored_kept_and_shown() {
    let study = study();
    let design = &study.design;
    let foreign: Vec<_> = design.subjects.iter().filter(|card| card.foreign.is_some()).collect();
    assert_eq!(foreign.iter().map(|card| card.images.len()).collect::<Vec<_>>(), [3, 2]);
    assert!(design.cells.iter().all(|cell| cell.subject == 0), "no cell is about foreign images");
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (whole, outcome) = run(&study, &at("whole"), Shard::WHOLE, 2);
    // 4 images shown and 3 detectors on each; 5 foreign images, whose error nobody can estimate
    assert_eq!((outcome.made, outcome.kept), (4 + 3 * 4 + 2 * 5, 0));
    let expected = tables(&study, &whole, &at("whole"));
    let mut joined = Store::open(&at("joined"), Shard::WHOLE).unwrap();
    for index in 1..=2 {
        let shard = Shard::parse(&format!("{index}/2")).unwrap();
        let (part, _) = run(&study, &at(&format!("part-{index}")), shard, 1);
        joined.take_from(&part, design).unwrap();
    }
    joined.keep_design(design).unwrap();
    assert_eq!(tables(&study, &joined, &at("joined")), expected);
    drop(whole);
    let (again, outcome) = run(&study, &at("whole"), Shard::WHOLE, 1);
    assert_eq!((outcome.made, outcome.kept), (0, 26));
    let page = Report::of(design, &again, None, None).unwrap().markdown();
    let row = |detector: &str| {
        let line = page.lines().find(|l| l.contains("crops") && l.contains(detector));
        line.unwrap_or_else(|| panic!("no row of {detector} in {page}")).to_string()
    };
    assert!(row("invariance").contains("| 91 |") && row("variance").contains("4 own, 3 foreign"), "{page}");
    assert!(page.contains("FPR95") && !page.contains("error-estimate | crops"));
    let kept = evenkeel_study::store::read_design(&at("whole")).unwrap();
    assert_eq!(kept.as_ref(), Some(design));
}
