//! `evenkeel tune` as a person runs it: on the shipped classifier and small crops, with labels and without; a policy, a page, and going on after a stop.

use std::path::Path;
use std::process::{Command, Output};

use evenkeel::{Image, Policy, shipped};

fn evenkeel(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(args).current_dir(folder).output().unwrap()
}

fn works(folder: &Path, args: &[&str]) -> (String, String) {
    let output = evenkeel(folder, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {said}");
    (String::from_utf8(output.stdout).unwrap(), said)
}

#[test]
fn tuning_writes_a_policy_and_a_page_and_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let args = [
        "tune",
        "embedded:classifier",
        "--data",
        "scenes-objects",
        "8@16x16",
        "--minutes",
        "0.5",
        "--folder",
        "results",
        "-o",
        "net.policy.toml",
    ];
    let (said, stages) = works(at, &args);
    assert!(said.contains("Use ") && stages.contains("judged by the other images"), "{said}{stages}");
    let model = shipped::named("classifier").unwrap().model().unwrap();
    let policy = Policy::load(&at.join("net.policy.toml"), &model).unwrap();
    let figures = policy.figures.clone().unwrap();
    assert!(
        policy.about.contains("forward passes") || policy.about.contains("alarm alone"),
        "{}",
        policy.about
    );
    assert!(figures.cost >= 1.0 && figures.images >= 1 && figures.metric == "accuracy");
    policy.pipeline(model.into(), &Default::default()).unwrap();
    let page = std::fs::read_to_string(at.join("results/index.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<circle") && !page.contains("http"));
    // what was made is there: nothing is made again, so no dot is printed for it
    let complete = !said.contains("time ran out");
    let (again, second) = works(at, &args);
    if complete {
        assert_eq!(again, said);
        assert!(!second.contains('.') || second.matches('.').count() < stages.matches('.').count() / 2);
    }
}

#[test]
fn images_without_labels_serve_and_too_few_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::create_dir(at.join("pictures")).unwrap();
    for i in 0..3 {
        Image::filled(16, 16, 0.2 + 0.2 * i as f32).save_png(at.join(format!("pictures/{i}.png"))).unwrap();
    }
    let args = ["tune", "embedded:classifier", "--data", "folder", "pictures", "--minutes", "0.05"];
    let output = evenkeel(at, &args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("3 images are too few"), "{said}");
    let table = std::fs::read_to_string(at.join("embedded-classifier.tune/answers/answers.csv")).unwrap();
    assert_eq!((table.lines().next(), table.lines().count()), (Some("image,label"), 4));
}
