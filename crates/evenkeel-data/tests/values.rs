//! Maps of values and a classifier's answers in files against numpy, to 1e-9.

use evenkeel::task::regression::RegressionRule;
use evenkeel_data::metric::{Bootstrap, ClassComparison, ClassLabels, Metric, ValueComparison};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/metrics/values")
}

/// PNGs hold [0, 1].
fn unit() -> RegressionRule {
    RegressionRule { range: Some([0.0, 1.0]), ..RegressionRule::default() }
}

fn expected(name: &str) -> Value {
    let text = std::fs::read_to_string(testdata().join("expected.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()[name].clone()
}

fn assert_figure(expected: &Value, metric: &Metric, got: Option<f64>) {
    match (expected[metric.name].as_f64(), got) {
        (Some(wanted), Some(got)) => {
            assert!((wanted - got).abs() < 1e-9, "{}: {got} for {wanted}", metric.name)
        }
        (None, None) => {}
        other => panic!("{}: {other:?}", metric.name),
    }
}

#[test]
fn maps_of_values_score_as_numpy_says() {
    for name in ["depth", "mattes"] {
        let (folder, expected) = (testdata().join(name), expected(name));
        let comparison = ValueComparison {
            truth: &folder.join("truth"),
            predicted: &folder.join("predicted"),
            rule: unit(),
            plan: Bootstrap { seed: 0, replicates: 50 },
            skip_bad: false,
        };
        let (score, offenders) = comparison.score().unwrap();
        assert_eq!((score.images(), score.unlabelled(), offenders.len()), (3, 0, 0));
        for metric in Metric::of_task("regression") {
            let (figure, interval) = score.figure(metric, 0.95);
            assert_figure(&expected, metric, figure);
            assert_eq!(figure.is_some(), interval.is_some(), "{}", metric.name);
        }
    }
}

#[test]
fn answers_of_a_classifier_score_as_numpy_says() {
    let expected = expected("classes");
    let comparison = ClassComparison {
        labels: ClassLabels::File(&testdata().join("labels.csv")),
        answers: &testdata().join("answers.csv"),
        classes: None,
        plan: Bootstrap::NONE,
        skip_bad: false,
    };
    let (score, _) = comparison.score().unwrap();
    for metric in Metric::of_task("classification") {
        assert_figure(&expected, metric, score.figure(metric, 0.95).0);
    }
    let rows: Vec<Vec<u64>> = score.confusion().rows().map(<[u64]>::to_vec).collect();
    assert_eq!(serde_json::to_value(rows).unwrap(), expected["confusion"]);
}

#[test]
fn broken_maps_are_named_all_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for part in ["truth", "said"] {
        std::fs::create_dir(at(part)).unwrap();
    }
    let copy = |from: &str, to: &str| std::fs::copy(testdata().join(from), at(to)).unwrap();
    for (from, to) in [
        ("depth/truth/d0.npy", "truth/a.npy"),
        ("depth/truth/d1.npy", "said/a.npy"),
        ("depth/truth/d0.npy", "truth/unanswered.npy"),
        ("depth/truth/d2.npy", "truth/good.npy"),
        ("depth/predicted/d2.values.npy", "said/good.values.npy"),
        ("depth/truth/d0.npy", "truth/cut.npy"),
    ] {
        copy(from, to);
    }
    std::fs::write(at("said/cut.npy"), b"\x93NUMPY\x01").unwrap();
    let comparison = |skip_bad| ValueComparison {
        truth: Box::leak(at("truth").into_boxed_path()),
        predicted: Box::leak(at("said").into_boxed_path()),
        rule: unit(),
        plan: Bootstrap::NONE,
        skip_bad,
    };
    let words = comparison(false).score().unwrap_err().to_string();
    assert!(
        words.starts_with("3 offenders")
            && words.contains("[7, 5]")
            && words.contains("unanswered.values.npy"),
        "{words}"
    );
    let (score, offenders) = comparison(true).score().unwrap();
    assert_eq!((score.images(), offenders.len()), (1, 3));
}
