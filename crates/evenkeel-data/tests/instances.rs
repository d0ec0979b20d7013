//! The twelve COCO numbers against pycocotools, on a thousand small random pairs and on a real network's results.

mod fixture;

use evenkeel_data::dataset::coco_json::{Detection, GroundTruth, read_ground_truth, read_results};
use evenkeel_data::metric::Bootstrap;
use evenkeel_data::metric::instance::{FileComparison, InstanceFigures, InstanceScore, NAMES, Regions};
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Case {
    truth: GroundTruth,
    results: Vec<Detection>,
    segm: [f64; 12],
    bbox: [f64; 12],
}

fn score(truth: &GroundTruth, results: &[Detection], regions: Regions) -> InstanceScore {
    let comparison = FileComparison {
        truth: (Path::new("truth"), truth),
        results: (Path::new("results"), results),
        regions,
        skip_bad: false,
    };
    comparison.score().unwrap().0
}

fn assert_equal(got: &InstanceFigures, expected: &[f64; 12], case: usize, kind: &str) {
    for k in 0..12 {
        let got = got.0[k].unwrap_or(-1.0);
        assert!(
            (got - expected[k]).abs() < 1e-6,
            "case {case} {kind} {}: {got} for {}",
            NAMES[k],
            expected[k]
        );
    }
}

#[test]
fn a_thousand_random_pairs_score_as_the_official_tool_does() {
    let cases: Vec<Case> = fixture::read("instances.json.gz");
    assert_eq!(cases.len(), 1000);
    for (n, case) in cases.iter().enumerate() {
        assert_equal(&score(&case.truth, &case.results, Regions::Masks).figures(), &case.segm, n, "segm");
        assert_equal(&score(&case.truth, &case.results, Regions::Boxes).figures(), &case.bbox, n, "bbox");
    }
}

/// What pycocotools 2.0.11 says of a real network's results on fifty real images.
const REAL_MASKS: [f64; 12] = [
    0.400157375,
    0.621526285,
    0.407195540,
    0.165849437,
    0.430044788,
    0.666015829,
    0.321009942,
    0.464035518,
    0.475708290,
    0.213370941,
    0.502415647,
    0.725882353,
];
const REAL_BOXES: [f64; 12] = [
    0.459778208,
    0.637174668,
    0.494492616,
    0.232751242,
    0.493490719,
    0.718509737,
    0.345610392,
    0.546625458,
    0.563739316,
    0.303555607,
    0.593029292,
    0.796666667,
];

#[test]
fn real_results_score_as_the_official_tool_does() {
    let shared = std::env::var_os("EVENKEEL_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let folder = shared.join("coco");
    if !folder.is_dir() {
        println!("skipped: {} is not there", folder.display());
        return;
    }
    let truth = read_ground_truth(&folder.join("instances_val.json")).unwrap();
    let results = read_results(&folder.join("yolo11n_seg_results.json")).unwrap();
    assert_equal(&score(&truth, &results, Regions::Masks).figures(), &REAL_MASKS, 0, "segm");
    assert_equal(&score(&truth, &results, Regions::Boxes).figures(), &REAL_BOXES, 0, "bbox");
}

#[test]
fn halves_in_any_order_give_the_whole_bit_for_bit() {
    let cases: Vec<Case> = fixture::read("instances.json.gz");
    let plan = Bootstrap { seed: 3, replicates: 20 };
    for case in cases.iter().take(60) {
        let whole = score(&case.truth, &case.results, Regions::Masks);
        let (mut odd, mut even) = (case.truth.clone(), case.truth.clone());
        odd.images.retain(|image| image.id % 2 == 1);
        even.images.retain(|image| image.id % 2 == 0);
        even.images.reverse();
        let part = |truth: &GroundTruth| {
            let results: Vec<Detection> = case
                .results
                .iter()
                .filter(|d| truth.images.iter().any(|image| image.id == d.image_id))
                .cloned()
                .collect();
            score(truth, &results, Regions::Masks)
        };
        let mut merged = part(&even);
        merged.merge(part(&odd));
        assert_eq!(merged.figures(), whole.figures());
        assert_eq!(merged.intervals(plan, 0.95), whole.intervals(plan, 0.95));
    }
}
