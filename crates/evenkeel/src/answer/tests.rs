//! What every answer must hold.

use super::*;
use crate::budget::Budget;
use crate::error::Error;
use crate::network::{Network, Tape, Traced};
use crate::settings::names;
use crate::task::{Classification, Semantic};
use crate::toy::{Conv, picture};
use crate::{Attack, Pipeline, Scenario};

fn models(smooth: bool) -> [Model; 2] {
    let net = |seed| Box::new(Conv::random(&[6, 8], 5, smooth, seed));
    [
        Model::new(net(3), Box::new(Classification), "scores", "features"),
        Model::new(net(4), Box::new(Semantic), "map", "features"),
    ]
}

fn specs() -> Vec<AnswerSpec> {
    let vote = || AnswerSpec::named("vote").unwrap();
    let noise = AnswerSpec::named("noise-vote").unwrap().with("draws", 5).unwrap();
    let all = vec![
        vote(),
        vote().with("combine", "median").unwrap(),
        vote().with("views", "standard").unwrap(),
        noise.clone(),
        noise.with("combine", "median").unwrap(),
    ];
    assert!(names::<AnswerKind>().iter().all(|n| *n == "plain" || all.iter().any(|s| s.name() == *n)));
    all
}

/// Same seed, same bytes, whatever the threads; another seed another vote, unless it is fixed.
#[test]
fn answers_repeat_and_draw_afresh_unless_told_not_to() {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let three = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let image = picture((20, 16), 2);
    for model in models(false) {
        for spec in specs() {
            let answer = spec.build(&model).unwrap();
            let first = one.install(|| answer.read(&model, &image, 5)).unwrap();
            let second = three.install(|| answer.read(&model, &image, 5)).unwrap();
            assert_eq!(first.scores, second.scores, "{} depends on threads", spec.name());
            assert_eq!(first.prediction, second.prediction);
            // sizes of views of so small an image are few, so two seeds may draw the same
            let differs = |seed| answer.read(&model, &image, seed).unwrap().scores != first.scores;
            assert!((6..12).any(differs), "{} never draws afresh", spec.name());
            let fixed = spec.with("fixed_seed", 9).unwrap().build(&model).unwrap();
            assert!(answer.is_random() && !fixed.is_random());
            let read = |seed| fixed.read(&model, &image, seed).unwrap().scores;
            assert_eq!(read(5), read(6));
        }
        let plain = AnswerSpec::plain().build(&model).unwrap();
        assert_eq!(plain.read(&model, &image, 1).unwrap().prediction, model.predict(&image).unwrap());
    }
}

/// The softmax of a vote's scores is the mean over the voters that saw a cell, taken by hand.
#[test]
fn a_vote_is_the_mean_of_undone_probabilities() {
    let [_, model] = models(false);
    let image = picture((20, 16), 2);
    let answer = AnswerSpec::named("vote").unwrap().build(&model).unwrap();
    let voted = answer.read(&model, &image, 5).unwrap().scores;
    let extents = voted.extents("scores").unwrap();
    let (mut sum, mut seen) = (vec![0.0f32; extents.len()], vec![0.0f32; extents.cells()]);
    for view in answer.draw(5) {
        let scores = model.scores(&view.apply(&image)).unwrap();
        let form = scores.extents("scores").unwrap();
        let own = crate::objective::softmax(scores.data(), form);
        let back = view.undo(image.size(), &own, form, extents.size());
        let mask = view.mask(image.size(), form.size(), extents.size());
        seen.iter_mut().zip(&mask).for_each(|(s, m)| *s += m);
        sum.iter_mut().enumerate().for_each(|(i, s)| *s += back[i] * mask[i % mask.len()]);
    }
    for (i, score) in voted.data().iter().enumerate() {
        let by_hand = sum[i] / seen[i % seen.len()];
        assert!((score.exp() - by_hand).abs() < 1e-6, "{} {by_hand}", score.exp());
    }
}

/// The pullback of every vote is its derivative: central differences in f64 along random directions.
#[test]
fn the_gradient_of_a_vote_is_exact() {
    let image = picture((12, 16), 7);
    for model in models(true) {
        for spec in specs() {
            let answer = spec.build(&model).unwrap();
            let network = answer.network(&model, 3);
            let names = model.output.list();
            let Traced { tensors, tape } = network.trace_one(&image, &names).unwrap();
            assert_eq!(tensors, network.run_one(&image, &names).unwrap());
            let mut random = Random::new(1);
            let cotangent: Vec<f32> = tensors[0].data().iter().map(|_| random.normal()).collect();
            let gradient = tape.pullback(vec![(0, cotangent.clone())]).unwrap();
            let value = |image: &Image| -> f64 {
                let scores = network.run_one(image, &names).unwrap();
                scores[0].data().iter().zip(&cotangent).map(|(s, c)| f64::from(*s) * f64::from(*c)).sum()
            };
            // a median has kinks, and so have colours at the ends of their range; a longer step crosses them
            let smooth = answer.combine == Combine::Mean && spec.settings().views.name != "standard";
            let (size, tolerance) = if smooth { (1e-3f32, 1e-4) } else { (1e-4, 2e-3) };
            let (mut off, mut total) = (0.0, 0.0);
            for _ in 0..6 {
                let way: Vec<f32> = image.pixels().iter().map(|_| random.normal()).collect();
                let at = |step: f32| {
                    let mut moved = image.clone();
                    moved.pixels_mut().iter_mut().zip(&way).for_each(|(p, d)| *p += step * d);
                    value(&moved)
                };
                let central = (at(size) - at(-size)) / f64::from(2.0 * size);
                let along = gradient.iter().zip(&way).map(|(g, d)| f64::from(g * d)).sum::<f64>();
                off += (central - along).powi(2);
                total += central.powi(2);
            }
            assert!(off < tolerance * total, "{} {:?}: off by {off} of {total}", spec.name(), answer.combine);
        }
    }
}

/// Other tensors asked for beside the scores are the image's own, and lead back as well.
#[test]
fn features_are_those_of_the_image_shown() {
    let [model, _] = models(true);
    let image = picture((12, 16), 7);
    let answer = AnswerSpec::named("vote").unwrap().build(&model).unwrap();
    let network = answer.network(&model, 3);
    let Traced { tensors, tape } = network.trace_one(&image, &["features", "scores"]).unwrap();
    let Traced { tensors: plain, tape: plain_tape } = model.network.trace_one(&image, &["features"]).unwrap();
    assert_eq!(tensors[0], plain[0]);
    let ones = vec![1.0; plain[0].len()];
    let back = |tape: &dyn Tape| tape.pullback(vec![(0, ones.clone())]).unwrap();
    assert_eq!(back(&*tape), back(&*plain_tape));
}

/// An attack aimed through a vote hurts the vote more than one that knows nothing of it.
#[test]
fn attacks_are_aimed_through_votes() {
    let image = picture((20, 16), 2);
    for model in models(true) {
        let model = Arc::new(model);
        let answer = AnswerSpec::named("vote").unwrap().with("fixed_seed", 1).unwrap().build(&model).unwrap();
        let pipeline = Pipeline::new(model.clone()).with_answer(answer.clone());
        let truth = answer.read(&model, &image, 0).unwrap().prediction.as_truth();
        let attack = Attack::named("pgd").unwrap().epsilon(0.02).with("steps", 8).unwrap();
        let through = attack.clone().with("estimator", "exact").unwrap();
        let loss = |image: &Image| {
            let scenario = Scenario::new(&model, image, &truth);
            let loss = scenario.loss(crate::objective::LossKind::CrossEntropy).unwrap();
            let scores = answer.read(&model, image, 0).unwrap().scores;
            loss.evaluate(&scores, crate::objective::Progress::ONCE).unwrap().0
        };
        let unaware = attack.run(&Scenario::new(&model, &image, &truth)).unwrap().image;
        let aware = through.run(&Scenario::through(&pipeline, &image, &truth)).unwrap().image;
        assert!(Budget::linf(0.02).contains(&image, &aware));
        assert!(loss(&aware) > loss(&unaware), "{} {}", loss(&aware), loss(&unaware));
        assert!(loss(&aware) > loss(&image));
    }
}

#[test]
fn a_pipeline_votes_on_alarm_only() {
    let [_, model] = models(false);
    let model = Arc::new(model);
    let image = picture((20, 16), 2);
    let answer = Arc::new(AnswerSpec::named("vote").unwrap().build(&model).unwrap());
    let detector =
        crate::DetectorSpec::named("variance").unwrap().build(&model, crate::Heads::default()).unwrap();
    let score = detector.score(&model, &image).unwrap();
    let pipeline =
        Pipeline::new(model.clone()).with_answer(answer.clone()).with_detector(detector).with_seed(4);
    let voted = pipeline.clone().with_threshold(score - 0.01).run(&image).unwrap();
    assert!(voted.voted && !voted.defended);
    assert_eq!(voted.prediction, answer.read(&model, &image, 4).unwrap().prediction);
    let quiet = pipeline.with_threshold(score + 0.01).run(&image).unwrap();
    assert!(!quiet.voted);
    assert_eq!(quiet.prediction, model.predict(&image).unwrap());
}

/// The stored certificates were computed with numpy from their definition.
#[test]
fn certificates_are_those_of_a_plain_computation() {
    let text = include_str!("../../../../testdata/answers/certificates.csv");
    let mut rows = 0;
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |i: usize| fields[i].parse::<f64>().unwrap();
        let own = Certificate::new(0, number(0) as usize, number(1) as usize, number(2), number(3));
        assert!((own.probability - number(4)).abs() < 1e-9, "{line} {own:?}");
        match own.radius {
            Some(radius) => assert!((radius - number(5)).abs() < 1e-8, "{line} {own:?}"),
            None => assert!(fields[5].is_empty() && own.abstains(), "{line}"),
        }
        rows += 1;
    }
    assert!(rows > 20);
}

/// scores = a function of the image's pixels that a test chooses.
struct Rule(fn(&Image) -> Vec<f32>);

impl Network for Rule {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        None
    }

    fn run(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Vec<Tensor>>> {
        let one = |image: &&Image| {
            let scores = (self.0)(image);
            tensors.iter().map(|_| Tensor::new(vec![1, scores.len()], scores.clone())).collect()
        };
        images.iter().map(one).collect()
    }

    fn trace(&self, _: &[&Image], _: &[&str]) -> Result<Vec<Traced<'_>>> {
        Err(Error::network("no gradient"))
    }
}

/// A constant classifier is certified as far as the draws reach; one that tosses a coin abstains.
#[test]
fn a_constant_is_certified_and_a_coin_is_not() {
    let image = picture((8, 8), 1);
    let spec =
        AnswerSpec::named("noise-vote").unwrap().with("draws", 100).unwrap().with("sigma", 0.25).unwrap();
    let read = |rule: fn(&Image) -> Vec<f32>| {
        let model = Model::new(Box::new(Rule(rule)), Box::new(Classification), "scores", "scores");
        spec.build(&model).unwrap().read(&model, &image, 3).unwrap()
    };
    let constant = read(|_| vec![0.0, 3.0, 1.0]);
    assert_eq!(constant.prediction.class(), Some(1));
    let probabilities = constant.prediction.probabilities().unwrap();
    assert!((probabilities[1] - 0.844).abs() < 1e-3, "the vote's own, not those of a sure answer");
    let certificate = constant.certificate.unwrap();
    assert_eq!((certificate.class, certificate.count, certificate.draws), (1, 100, 100));
    // all of n draws: p = α^(1/n)
    assert!((certificate.probability - 0.001f64.powf(0.01)).abs() < 1e-9);
    let expected = 0.25 * normal_quantile(0.001f64.powf(0.01));
    assert!((certificate.radius.unwrap() - expected).abs() < 1e-9);
    // the sign of the noise on one pixel is a coin
    let coin = read(|image| {
        let heads = image.pixels()[0] > picture((8, 8), 1).pixels()[0];
        vec![f32::from(u8::from(heads)), f32::from(u8::from(!heads))]
    });
    assert!(coin.certificate.unwrap().abstains(), "{:?}", coin.certificate);
}

/// A truth can be read off a vote, so attacks without labels can start from it.
#[test]
fn the_vote_is_a_truth_too() {
    let [model, _] = models(false);
    let answered = AnswerSpec::named("vote").unwrap().build(&model).unwrap();
    let prediction = answered.read(&model, &picture((20, 16), 2), 0).unwrap().prediction;
    assert!(prediction.as_truth().class().is_some());
}
