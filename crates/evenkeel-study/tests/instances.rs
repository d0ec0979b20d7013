//! The twelve COCO numbers against pycocotools, on a thousand small random pairs.

mod fixture;

use evenkeel_study::dataset::coco_json::{Detection, GroundTruth};
use evenkeel_study::metric::Bootstrap;
use evenkeel_study::metric::instance::{FileComparison, InstanceFigures, InstanceScore, NAMES, Regions};
use serde::Deserialize;
use std::path::Path;

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
