//! Rankings, label maps, means and bootstrap intervals against scikit-learn and numpy, to 1e-9.

mod fixture;

use evenkeel_data::metric::{
    Bootstrap, ClassOverlap, IGNORE, Mean, Ranking, RankingFigures, Resampled, SegmentationScore, key_of,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    rankings: Vec<RankingCase>,
    segmentations: Vec<SegmentationCase>,
    means: Vec<MeanCase>,
}

#[derive(Deserialize)]
struct RankingCase {
    labels: Vec<u8>,
    scores: Vec<f64>,
    expected: [f64; 3],
    bootstrap: Option<RankingBootstrap>,
}

#[derive(Deserialize)]
struct RankingBootstrap {
    seed: u64,
    keys: Vec<u64>,
    replicates: u32,
    intervals: [[f64; 2]; 3],
}

#[derive(Deserialize)]
struct SegmentationCase {
    classes: usize,
    truth: Vec<Vec<u16>>,
    guess: Vec<Vec<u16>>,
    matrix: Vec<u64>,
    miou: f64,
    accuracy: f64,
    iou: Vec<Option<f64>>,
    seed: u64,
    keys: Vec<u64>,
    replicates: u32,
    intervals: [[f64; 2]; 2],
}

#[derive(Deserialize)]
struct MeanCase {
    values: Vec<f64>,
    mean: f64,
    seed: u64,
    keys: Vec<u64>,
    replicates: u32,
    interval: [f64; 2],
}

fn close(got: f64, expected: f64) -> bool {
    (got - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

fn fixture() -> Fixture {
    fixture::read("figures.json.gz")
}

const FIGURES: [fn(&RankingFigures) -> f64; 3] = [|f| f.auroc, |f| f.average_precision, |f| f.fpr95];

#[test]
fn rankings_equal_scikit_learn() {
    for (n, case) in fixture().rankings.iter().enumerate() {
        let plan = case
            .bootstrap
            .as_ref()
            .map_or(Bootstrap::NONE, |b| Bootstrap { seed: b.seed, replicates: b.replicates });
        let mut ranking = Ranking::new(plan);
        for (k, (&label, &score)) in case.labels.iter().zip(&case.scores).enumerate() {
            let key = case.bootstrap.as_ref().map_or(0, |b| b.keys[k]);
            ranking.push(key, score, label == 1).unwrap();
        }
        let got = ranking.figures().unwrap();
        for k in 0..3 {
            assert!(close(FIGURES[k](&got), case.expected[k]), "case {n}: {got:?} for {:?}", case.expected);
            if let Some(b) = &case.bootstrap {
                let interval = ranking.interval(0.95, FIGURES[k]).unwrap();
                assert!(close(interval.low, b.intervals[k][0]), "case {n} figure {k}: {interval:?}");
                assert!(close(interval.high, b.intervals[k][1]), "case {n} figure {k}: {interval:?}");
            }
        }
    }
}

#[test]
fn label_maps_equal_a_plain_confusion_matrix() {
    for case in fixture().segmentations {
        let plan = Bootstrap { seed: case.seed, replicates: case.replicates };
        let mut score = SegmentationScore::new(case.classes, IGNORE, plan);
        for k in 0..case.keys.len() {
            score.push(case.keys[k], &case.truth[k], &case.guess[k]).unwrap();
        }
        let matrix: Vec<u64> = (0..case.classes * case.classes)
            .map(|cell| score.confusion(cell / case.classes, cell % case.classes))
            .collect();
        assert_eq!(matrix, case.matrix);
        assert!(close(score.figures().mean_iou().unwrap(), case.miou));
        assert!(close(score.figures().pixel_accuracy().unwrap(), case.accuracy));
        for (got, expected) in score.figures().iou().into_iter().zip(case.iou) {
            assert_eq!(got.is_some(), expected.is_some());
            assert!(close(got.unwrap_or(0.0), expected.unwrap_or(0.0)));
        }
        let figures = [ClassOverlap::mean_iou, ClassOverlap::pixel_accuracy];
        for (figure, [low, high]) in figures.into_iter().zip(case.intervals) {
            let got = score.interval(0.95, figure).unwrap();
            assert!(close(got.low, low) && close(got.high, high), "{got:?} for {low} {high}");
        }
    }
}

#[test]
fn means_equal_numpy() {
    for case in fixture().means {
        let plan = Bootstrap { seed: case.seed, replicates: case.replicates };
        let mut mean = Resampled::new(Mean::default(), plan);
        for (&key, &value) in case.keys.iter().zip(&case.values) {
            mean.push(key, &Mean::of(value).unwrap());
        }
        assert!(close(mean.whole().value().unwrap(), case.mean));
        let got = mean.interval(0.95, Mean::value).unwrap();
        assert!(
            close(got.low, case.interval[0]) && close(got.high, case.interval[1]),
            "{got:?} for {:?}",
            case.interval
        );
    }
}

#[test]
fn halves_in_any_order_give_the_whole_bit_for_bit() {
    let fixture = fixture();
    let plan = Bootstrap { seed: 11, replicates: 30 };
    let values: Vec<(u64, f64)> = fixture
        .means
        .iter()
        .flat_map(|case| &case.values)
        .enumerate()
        .map(|(k, &value)| (key_of(&format!("image {k}")), value))
        .collect();
    let mean = |part: &mut dyn Iterator<Item = &(u64, f64)>| {
        part.fold(Resampled::new(Mean::default(), plan), |mut mean, &(key, value)| {
            mean.push(key, &Mean::of(value).unwrap());
            mean
        })
    };
    let ranking = |part: &mut dyn Iterator<Item = &(u64, f64)>| {
        part.fold(Ranking::new(plan), |mut ranking, &(key, value)| {
            ranking.push(key, (value * 4.0).round(), key % 3 == 0).unwrap();
            ranking
        })
    };
    let (whole, whole_ranking) = (mean(&mut values.iter()), ranking(&mut values.iter()));
    let mut merged = mean(&mut values.iter().rev().step_by(2));
    merged.merge(&mean(&mut values.iter().rev().skip(1).step_by(2)));
    assert_eq!(merged.whole().value().unwrap().to_bits(), whole.whole().value().unwrap().to_bits());
    assert_eq!(merged.interval(0.9, Mean::value), whole.interval(0.9, Mean::value));
    let mut merged = ranking(&mut values.iter().rev().step_by(2));
    merged.merge(&ranking(&mut values.iter().rev().skip(1).step_by(2)));
    assert_eq!(merged.figures(), whole_ranking.figures());
    assert_eq!(merged.interval(0.9, |f| f.auroc), whole_ranking.interval(0.9, |f| f.auroc));

    for case in fixture.segmentations {
        let part = |indices: &mut dyn Iterator<Item = usize>| {
            indices.fold(SegmentationScore::new(case.classes, IGNORE, plan), |mut score, k| {
                score.push(case.keys[k], &case.truth[k], &case.guess[k]).unwrap();
                score
            })
        };
        let n = case.keys.len();
        let whole = part(&mut (0..n));
        let mut merged = part(&mut (0..n / 2).rev());
        merged.merge(&part(&mut (n / 2..n)));
        assert_eq!(merged.figures(), whole.figures());
        assert_eq!(merged.interval(0.9, ClassOverlap::mean_iou), whole.interval(0.9, ClassOverlap::mean_iou));
    }
}

#[test]
fn weights_are_poisson_with_mean_one() {
    let plan = Bootstrap { seed: 1, replicates: 1000 };
    let mut counts = [0u32; 8];
    for key in 0..200 {
        for replicate in 0..1000 {
            counts[plan.weight(key, replicate).min(7) as usize] += 1;
        }
    }
    let mut chance = (-1f64).exp();
    for (k, &count) in counts.iter().enumerate().take(5) {
        // Five standard deviations of a binomial count.
        let slack = 5.0 * (200_000.0 * chance * (1.0 - chance)).sqrt();
        assert!((f64::from(count) - 200_000.0 * chance).abs() < slack, "{k}: {count}");
        chance /= (k + 1) as f64;
    }
}

#[test]
fn nothing_to_rank_has_no_figure_and_what_has_no_rank_is_refused() {
    let mut ranking = Ranking::new(Bootstrap::NONE);
    assert!(ranking.figures().is_none());
    ranking.push(0, 1.0, true).unwrap();
    assert!(ranking.figures().is_none());
    assert!(ranking.push(0, f64::NAN, false).is_err());
    assert!(Mean::of(f64::INFINITY).is_none());
    let mut score = SegmentationScore::new(2, IGNORE, Bootstrap::NONE);
    assert!(score.push(0, &[0, 1], &[0]).is_err());
    assert!(score.push(0, &[0, 2], &[0, 1]).is_err());
    score.push(0, &[0, 1, 255], &[0, 9, 0]).unwrap();
    assert_eq!((score.outside(), score.figures().mean_iou()), (1, Some(0.5)));
}
