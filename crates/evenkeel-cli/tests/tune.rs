//! `evenkeel tune` as a person runs it: on the shipped classifier and small crops, with labels and without; a policy, a page, and going on after a stop.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

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

/// The dots that stand for what was made; figures have dots too, but never a line of them.
fn made(said: &str) -> usize {
    said.lines().filter(|line| line.chars().all(|c| c == '.')).map(str::len).sum()
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
        assert_eq!(made(&second), 0, "{second}");
    }
}

#[test]
fn tuning_that_is_killed_goes_on_and_says_what_it_would_have_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let args = |results: &'static str, policy: &'static str| {
        let data = ["--data", "scenes-objects", "4@16x16", "--minutes", "15", "--threads", "1"];
        [&["tune", "embedded:classifier"][..], &data, &["--folder", results, "-o", policy]].concat()
    };
    let (whole, stages) = works(at, &args("whole", "whole.toml"));
    assert!(!whole.contains("time ran out"), "{stages}");
    for size in [2_000, 60_000] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(args("cut", "cut.toml"))
            .current_dir(at)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let log = at.join("cut/shard-1-of-2.log");
        while std::fs::metadata(&log).map_or(0, |m| m.len()) < size {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!at.join("cut.toml").exists());
    }
    let (again, rest) = works(at, &args("cut", "cut.toml"));
    assert!(made(&rest) < made(&stages), "what was made before it was killed was made again");
    let figures = |said: &str| said.lines().filter(|l| l.contains("clean")).collect::<Vec<_>>().join("\n");
    assert_eq!(figures(&again), figures(&whole));
    let policy = |name: &str| std::fs::read_to_string(at.join(name)).unwrap();
    assert_eq!(policy("cut.toml"), policy("whole.toml"));
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
