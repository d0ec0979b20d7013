//! A small study of the number of constraints: Fano's bound stands over the accuracy, every metric of the task is in records and report, and results of earlier
//! versions can be read.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use evenkeel_data::metric::{Confusion, Metric};
use evenkeel_study::experiment::Experiment;
use evenkeel_study::record::Tally;
use evenkeel_study::report::Report;
use evenkeel_study::rows;
use evenkeel_study::run::{Effort, Embedded, Study, Watch};
use evenkeel_study::store::{Shard, Store};

struct Quiet;

impl Watch for Quiet {
    fn done(&self, _: usize, _: Option<f64>) {}
}

#[test]
fn fanos_bound_stands_over_the_accuracy() {
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("../evenkeel/models/scenes_segmenter.onnx");
    let text = format!(
        "name = \"constraints\"\nobjective = false\n[[subject]]\nname = \"scenes\"\nmodel = {network:?}\ndata = \"scenes\"\npath = \"3@64x32\"\n\
         [[attack]]\nkind = \"pgd\"\nsteps = 2\n[[defence]]\nkind = \"equivariance\"\nsteps = 1\ncells = [0.1, 0.5, 1.0]\n"
    );
    let study = Study::load(Experiment::parse(&text, Path::new("constraints.toml")).unwrap(), &[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let effort = Effort { threads: 2, shard: Shard::WHOLE, save_images: false, stop: &stop };
    let store = Store::open(folder.path(), Shard::WHOLE).unwrap();
    let (store, _) = study.run(store, &effort, &Quiet).unwrap();
    rows::export(&study.design, &store, folder.path()).unwrap();
    let page = Report::of(&study.design, &store, None, None).unwrap();
    let text = page.markdown();
    let table = text.split("what the answers tell of the truth").nth(1).expect("a table of bounds");
    let lines: Vec<Vec<f64>> = table
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.split('|').filter_map(|cell| cell.trim().parse().ok()).collect())
        .collect();
    assert_eq!(lines.len(), 8, "clean and pgd, the bare network and three defences: {table}");
    for line in &lines {
        let [entropy, information, bound, accuracy] = line[..] else { panic!("{line:?}") };
        assert!(information <= entropy + 1e-3 && accuracy <= bound + 0.1, "{line:?}");
        assert!((0.0..=100.0).contains(&bound) && entropy > 0.5, "{line:?}");
    }
    assert!(page.html().contains("the bound by what the answers tell"));
    for metric in Metric::of_task("semantic") {
        assert!(text.contains(metric.title), "{} is in the report", metric.title);
    }
    let records =
        std::fs::read(folder.path().join(format!("records.{}", evenkeel_study::record::ENDING))).unwrap();
    let has = |name: &str| records.windows(name.len()).any(|part| part == name.as_bytes());
    assert!(has("miou") && has("pixel-accuracy") && has("rmse"));
}

/// As versions before this one wrote them: without ranks, confidences and what was taken for what.
#[test]
fn tallies_of_earlier_studies_are_read() {
    let class: Tally = serde_json::from_str(r#"{"class":{"truth":3,"said":3}}"#).unwrap();
    let tally = class.for_metrics(10).unwrap();
    let figure = |name: &str| Metric::named(name).unwrap().value(&tally);
    assert_eq!((figure("accuracy"), figure("top5"), figure("calibration-error")), (Some(1.0), None, None));
    let pixels = r#"{"pixels":{"right":[2,1],"truth":[3,1],"predicted":[2,2]}}"#;
    let pixels: Tally = serde_json::from_str(pixels).unwrap();
    assert!(!pixels.confuse(&mut Confusion::empty(2)), "what was taken for what is not known");
    let tally = pixels.for_metrics(2).unwrap();
    let miou = Metric::named("miou").unwrap().value(&tally).unwrap();
    assert!((miou - (2.0 / 3.0 + 1.0 / 2.0) / 2.0).abs() < 1e-12);
    let blank: Tally =
        serde_json::from_str(r#"{"pixels":{"right":[0,0],"truth":[0,0],"predicted":[0,0]}}"#).unwrap();
    assert!(!blank.is_labelled());
}

/// The experiment of `examples/study.rs` is one that can be run.
#[test]
fn the_examples_experiment_loads() {
    let experiment =
        Experiment::parse(include_str!("../examples/study.toml"), Path::new("study.toml")).unwrap();
    let study = Study::load(experiment, &Embedded::shipped()).unwrap();
    assert_eq!(study.counts(Shard::WHOLE).first(), Some(&8));
}
