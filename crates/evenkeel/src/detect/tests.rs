//! Scores, thresholds, estimates and the guard.

use super::*;
use crate::defence::DefenceSpec;
use crate::objective::tests::small_head;
use crate::pipeline::Pipeline;
use crate::task::instance::{InstanceRule, Instances};
use crate::task::{Classification, Semantic};
use crate::toy::{Conv, picture};

fn models() -> [Model; 2] {
    [
        Model::new(
            Box::new(Conv::random(&[6, 8], 5, false, 3)),
            Box::new(Classification),
            "scores",
            "features",
        ),
        Model::new(Box::new(Conv::random(&[6, 8], 5, false, 4)), Box::new(Semantic), "map", "features"),
    ]
}

fn detector(name: &str, model: &Model) -> Detector {
    let mut random = Random::new(1);
    let bank = Bank::new(4, (0..40).map(|_| random.normal()).collect()).unwrap();
    let heads = Heads { head: Some(small_head(8, 4, 1)), bank: Some(bank) };
    DetectorSpec::named(name).unwrap().with("seed", 3usize).unwrap().build(model, heads).unwrap()
}

/// Smooth, so that views agree.
fn calm(size: (usize, usize)) -> Image {
    let value = |i: usize| 0.5 + 0.3 * ((i / size.1 % size.0) as f32 * 0.1).sin();
    Image::new(size.0, size.1, (0..3 * size.0 * size.1).map(value).collect()).unwrap()
}

#[test]
fn every_score_repeats_and_differs_between_images() {
    for model in models() {
        for name in crate::settings::names::<DetectorKind>() {
            let detector = detector(name, &model);
            let score = |image: &Image| detector.score(&model, image).unwrap();
            let (a, b) = (score(&calm((24, 24))), score(&picture((24, 24), 2)));
            assert!(a.is_finite() && b.is_finite());
            assert_eq!(a, score(&calm((24, 24))), "{name}");
            if name != "variance-onehot" {
                assert_ne!(a, b, "{name}");
            }
        }
    }
    let [model, _] = models();
    let error = DetectorSpec::named("luck").unwrap_err();
    assert!(error.to_string().contains("variance"));
    assert!(DetectorSpec::named("rotation").unwrap().build(&model, Heads::default()).is_err());
}

#[test]
fn noise_is_stranger_than_calm() {
    let [_, model] = models();
    for name in ["variance", "equivariance"] {
        let detector = detector(name, &model);
        let score = |image: &Image| detector.score(&model, image).unwrap();
        assert!(score(&picture((32, 32), 2)) > score(&calm((32, 32))), "{name}");
    }
}

#[test]
fn agreeing_views_have_no_variance() {
    let [_, model] = models();
    let stay = View::of(crate::view::Stay);
    let outputs =
        ViewOutputs::at(&model, &picture((16, 16), 1), &[stay.clone(), stay], Outputs::Softmax).unwrap();
    assert_eq!(outputs.variance(), 0.0);
    assert!(outputs.cell_variances().iter().all(|v| *v < 1e-12));
}

#[test]
fn thresholds_keep_their_false_alarm_rate() {
    let scores: Vec<f64> = (0..100).map(|i| f64::from((i * 37) % 100)).collect();
    for rate in [0.0, 0.05, 0.5, 1.0] {
        let threshold = threshold_for(&scores, rate).unwrap();
        let alarms = scores.iter().filter(|s| **s > threshold).count() as f64 / 100.0;
        assert!(alarms <= rate && alarms >= rate - 0.0101, "{rate}: {alarms}");
    }
    assert!(threshold_for(&[], 0.1).is_err());
    assert!(threshold_for(&[1.0, f64::NAN], 0.1).is_err());
    assert!(threshold_for(&[1.0], 1.5).is_err());
}

#[test]
fn a_threshold_that_no_score_exceeds_is_told() {
    let rule =
        InstanceRule { head: "yolo-seg".into(), confidence: 0.1, overlap: 0.5, most: 10, classes: None };
    let objects = Box::new(Instances::new(rule, None).unwrap());
    let network = Box::new(Conv::random(&[6, 8], 5, false, 3));
    let finder = Model::new(network, objects, "scores", "features");
    let [_, segmenter] = models();
    let most = ViewSet::standard().rules.len() as f64;
    let told = |name: &str, model: &Model, scores: &[f64]| {
        let detector = detector(name, model);
        let calibration = Calibration::new(model, &detector, scores, 0.25).unwrap();
        calibration.out_of_reach(model, &detector, scores)
    };
    let why = told("variance", &finder, &[0.5, most, most, 0.0]).unwrap();
    assert!(why.contains("2 of the 4 clean images"), "{why}");
    assert_eq!(told("variance", &finder, &[0.5, most, 1.0, 0.0, 0.1, 0.2, 0.3, 0.4]), None);
    assert_eq!(told("equivariance", &finder, &[most; 4]), None);
    assert_eq!(told("variance", &segmenter, &[most; 4]), None);
}

#[test]
fn calibrations_belong_to_their_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calibration.toml");
    let [mut model, _] = models();
    model.hash = "abc".into();
    let detector = detector("variance", &model);
    let calibration = Calibration::new(&model, &detector, &[0.1, 0.2, 0.3, 0.4], 0.4).unwrap();
    assert_eq!(calibration.threshold, 0.3);
    let sentence = Calibration::new(&model, &detector, &[0.1; 15], 0.05).unwrap_err().to_string();
    assert!(sentence.contains("it takes 19"), "{sentence}");
    calibration.save(&path).unwrap();
    assert_eq!(Calibration::load(&path, &model).unwrap(), calibration);
    model.hash = "def".into();
    let sentence = Calibration::load(&path, &model).unwrap_err().to_string();
    assert!(sentence.contains("another model"), "{sentence}");
}

#[test]
fn the_error_estimate_follows_its_formula() {
    let [_, model] = models();
    let image = picture((16, 24), 1);
    let views = ViewSet::standard();
    let rule = |bias: f64, delta: f64| EstimateRule { bias: Some(bias), delta, residuals: Vec::new() };
    let estimate = ErrorEstimate::of(&model, &image, &views, 1, &rule(0.1, 0.05)).unwrap();
    let n = estimate.variances.len() as f64;
    let by_hand: f64 = estimate.variances.iter().map(|v| (f64::from(*v) + 0.01).sqrt()).sum::<f64>() / n;
    assert!((estimate.error - (2.0 / std::f64::consts::PI).sqrt() * by_hand).abs() < 1e-12);
    assert!((estimate.theorem_half_width.unwrap() - (20.0f64.ln() / n).sqrt()).abs() < 1e-12);
    assert_eq!(estimate.interval, Interval::NotCalibrated);
    assert!(estimate.note(&model).contains("no interval") && !estimate.words().contains('±'));
    let with = EstimateRule { residuals: (1..20).map(|i| 0.01 * f64::from(i)).collect(), ..rule(0.1, 0.05) };
    let with = ErrorEstimate::of(&model, &image, &views, 1, &with).unwrap();
    let Interval::Within { low, high, images: 19 } = with.interval else { panic!("{:?}", with.interval) };
    assert!((high - with.error - 0.19).abs() < 1e-12 && low == (with.error - 0.19).max(0.0));
    assert_eq!(with.json(&model)["interval"]["coverage"], 0.95);
    let alarmed = with.alarmed();
    assert!(alarmed.json(&model)["interval"].is_null() && alarmed.words().contains("raises the alarm"));
    let more = ErrorEstimate::of(&model, &image, &views, 1, &rule(0.5, 0.05)).unwrap();
    assert!(more.error > estimate.error);
    assert!(ErrorEstimate::of(&model, &image, &views, 1, &rule(0.1, 1.0)).is_err());
    // fitted on images whose error is known, the estimate agrees with them on average
    let images = vec![(estimate.variances.clone(), 0.3), (vec![0.0; 10], 0.2)];
    let bias = fit_bias(&images).unwrap();
    let mean = |v: &[f32]| {
        v.iter().map(|x| (f64::from(*x) + bias * bias).sqrt()).sum::<f64>() / v.len() as f64
            * (2.0 / std::f64::consts::PI).sqrt()
    };
    assert!(((mean(&images[0].0) + mean(&images[1].0)) / 2.0 - 0.25).abs() < 1e-6);
    assert!(fit_bias(&[]).is_err());
}

#[test]
fn the_alarm_leaves_ordinary_images_alone() {
    let [_, model] = models();
    let model = std::sync::Arc::new(model);
    let detector = std::sync::Arc::new(detector("variance", &model));
    let spec = DefenceSpec::named("equivariance").unwrap().with("steps", 1usize).unwrap();
    let defence = spec.build(&model, &Heads::default()).unwrap();
    let pipeline =
        Pipeline::new(model.clone()).with_defence(defence).with_detector(detector.clone()).with_seed(2);
    let image = picture((16, 16), 1);
    let score = detector.score(&model, &image).unwrap();
    for (threshold, defended) in [(score + 1.0, false), (score - 1e-9, true)] {
        let verdict = pipeline.clone().with_threshold(threshold).run(&image).unwrap();
        assert_eq!((verdict.score, verdict.alarm, verdict.defended), (Some(score), Some(defended), defended));
        assert_eq!(verdict.shown != image, defended);
    }
}

/// By central differences, for every score that has a gradient.
#[test]
fn the_gradient_of_a_score_is_its_derivative() {
    let network = Box::new(crate::toy::Conv::random(&[6, 8], 5, true, 4));
    let model = Model::new(network, Box::new(crate::task::Semantic), "map", "features");
    let image = picture((16, 12), 1);
    for name in ["variance", "equivariance", "invariance"] {
        let detector = detector(name, &model);
        let (score, gradient) = detector.score_with_gradient(&model, &image, true).unwrap();
        assert!((score - detector.score(&model, &image).unwrap()).abs() < 1e-9, "{name}");
        let gradient = gradient.unwrap();
        let mut random = Random::new(6);
        let (mut off, mut total) = (0.0, 0.0);
        for _ in 0..8 {
            let direction: Vec<f32> = gradient.iter().map(|_| random.normal()).collect();
            let at = |step: f32| {
                let mut moved = image.clone();
                moved.pixels_mut().iter_mut().zip(&direction).for_each(|(p, d)| *p += step * d);
                detector.score(&model, &moved).unwrap()
            };
            let central = (at(2e-3) - at(-2e-3)) / 4e-3;
            let along: f64 = gradient.iter().zip(&direction).map(|(g, d)| f64::from(g * d)).sum();
            off += (central - along).powi(2);
            total += central.powi(2);
        }
        assert!(off < 0.01 * total, "{name}: off by {off} of {total}");
    }
}

/// Counts the images that go through a network.
struct Counted(Conv, std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl crate::network::Network for Counted {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        self.0.fixed_size()
    }

    fn run(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Vec<Tensor>>> {
        self.1.fetch_add(images.len(), std::sync::atomic::Ordering::Relaxed);
        self.0.run(images, tensors)
    }

    fn trace(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<crate::network::Traced<'_>>> {
        self.1.fetch_add(images.len(), std::sync::atomic::Ordering::Relaxed);
        self.0.trace(images, tensors)
    }
}

#[test]
fn score_estimate_and_answer_share_their_passes() {
    let passes = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let network = Counted(Conv::random(&[6, 8], 5, false, 4), passes.clone());
    let model = std::sync::Arc::new(Model::new(Box::new(network), Box::new(Semantic), "map", "features"));
    let image = picture((24, 24), 2);
    let views = ViewSet::standard().rules.len();
    let count = |work: &mut dyn FnMut()| {
        let before = passes.load(std::sync::atomic::Ordering::Relaxed);
        work();
        passes.load(std::sync::atomic::Ordering::Relaxed) - before
    };
    for name in crate::settings::names::<DetectorKind>() {
        let detector = detector(name, &model);
        let score = detector.score(&model, &image).unwrap();
        let own_views = !DetectorSpec::named(name).unwrap().needs_head();
        let pipeline = Pipeline::new(model.clone())
            .with_detector(detector)
            .with_threshold(score + 1.0)
            .with_estimate(EstimateRule { bias: Some(0.1), ..EstimateRule::plain(0.05) });
        let mut verdict = None;
        let passes = count(&mut || verdict = Some(pipeline.run(&image).unwrap()));
        let verdict = verdict.unwrap();
        assert_eq!(verdict.score, Some(score), "{name}: the same score from shared passes");
        assert!(verdict.estimate.is_some_and(|estimate| estimate.error > 0.0), "{name}");
        assert_eq!(verdict.prediction, model.predict(&image).unwrap(), "{name}");
        assert!(!own_views || passes == 1 + views, "{name}: {passes} passes");
    }
}
