//! Every objective's cotangents against central differences, on scores and features, and through a network to the image.

use super::*;
use crate::image::Image;
use crate::network::{Network, TensorNames};
use crate::objective::head::Head;
use crate::task::Labels;
use crate::toy::{Conv, picture};
use crate::view::ViewSet;

const KINDS: [LossKind; 8] = [
    LossKind::CrossEntropy,
    LossKind::Margin,
    LossKind::Dlr,
    LossKind::DlrTargeted,
    LossKind::Houdini,
    LossKind::SegPgd,
    LossKind::MaskedCrossEntropy,
    LossKind::JensenShannon,
];

fn scores(shape: Vec<usize>, seed: u64) -> Tensor {
    let mut random = Random::new(seed);
    let count = shape.iter().product();
    Tensor::new(shape, (0..count).map(|_| 2.0 * random.normal()).collect()).unwrap()
}

fn moved(tensor: &Tensor, i: usize, step: f32) -> Tensor {
    let mut data = tensor.data().to_vec();
    data[i] += step;
    Tensor::new(tensor.shape().to_vec(), data).unwrap()
}

#[test]
fn losses_match_central_differences() {
    let progress = Progress { step: 3, steps: 10 };
    for kind in KINDS {
        for (shape, size) in [(vec![1, 6], (1, 1)), (vec![1, 6, 3, 4], (3, 4)), (vec![1, 6, 3, 4], (7, 9))] {
            let z = scores(shape, 5);
            let mut random = Random::new(6);
            let cells = size.0 * size.1;
            let mut draw = || (0..cells).map(|_| random.below(6) as u16).collect::<Vec<_>>();
            let mut labels = draw();
            if cells > 1 {
                labels[cells / 2] = 255;
            }
            let wanted = labels.iter().map(|l| (l + 1) % 6).collect();
            let loss = Loss {
                wanted: Some(Labels { size, labels: wanted }),
                ..Loss::against(kind, Labels { size, labels })
            };
            let (_, cotangent) = loss.evaluate(&z, progress).unwrap();
            for i in 0..z.data().len() {
                let at = |step| loss.evaluate(&moved(&z, i, step), progress).unwrap().0;
                let central = (at(2e-3) - at(-2e-3)) / 4e-3;
                let far = (central - f64::from(cotangent[i])).abs();
                assert!(far < 5e-3 * central.abs().max(0.5), "{kind:?} {i}: {central} {}", cotangent[i]);
            }
        }
    }
}

#[test]
fn few_classes_work_or_are_refused_in_words() {
    let labels = Labels { size: (1, 1), labels: vec![0] };
    for classes in 1..=4 {
        for kind in KINDS {
            let loss = Loss { wanted: Some(labels.clone()), ..Loss::against(kind, labels.clone()) };
            match loss.evaluate(&scores(vec![1, classes], 1), Progress::ONCE) {
                Ok((value, cotangent)) => {
                    assert!(classes >= kind.fewest_classes());
                    assert!(
                        value.is_finite() && cotangent.iter().all(|c| c.is_finite()),
                        "{kind:?} {classes}"
                    );
                }
                Err(e) => {
                    assert!(classes < kind.fewest_classes(), "{kind:?} {classes}: {e}");
                    assert!(e.to_string().contains("classes"), "{e}");
                }
            }
        }
    }
}

#[test]
fn towards_is_minus_against_and_ignored_cells_count_for_nothing() {
    let z = scores(vec![1, 3, 2, 2], 2);
    let labels = Labels { size: (2, 2), labels: vec![0, 255, 2, 255] };
    let against = Loss::against(LossKind::CrossEntropy, labels.clone());
    let (value, cotangent) = against.evaluate(&z, Progress::ONCE).unwrap();
    let (minus, _) = Loss::towards(LossKind::CrossEntropy, labels).evaluate(&z, Progress::ONCE).unwrap();
    assert_eq!(value, -minus);
    assert!([1, 3, 5, 7, 9, 11].iter().all(|&i| cotangent[i] == 0.0), "cells 1 and 3 of each class");
    let nothing = Loss::against(LossKind::CrossEntropy, Labels { size: (2, 2), labels: vec![255; 4] });
    assert_eq!(nothing.evaluate(&z, Progress::ONCE).unwrap().0, 0.0);
}

#[test]
fn labels_that_do_not_fit_are_refused() {
    let z = scores(vec![1, 3, 2, 2], 2);
    let evaluate = |size, labels| {
        Loss::against(LossKind::CrossEntropy, Labels { size, labels }).evaluate(&z, Progress::ONCE)
    };
    assert!(evaluate((2, 2), vec![0, 1, 2, 3]).is_err(), "class 3 of 3");
    assert!(evaluate((2, 2), vec![0]).is_err());
    assert!(evaluate((1, 1), vec![0]).is_err(), "one label for four cells");
}

pub(crate) fn small_head(inputs: usize, outputs: usize, seed: u64) -> Head {
    let mut random = Random::new(seed);
    let mut draw = |n: usize| (0..n).map(|_| 0.6 * random.normal()).collect::<Vec<_>>();
    Head::new(vec![(draw(7 * inputs), draw(7)), (draw(outputs * 7), draw(outputs))]).unwrap()
}

fn objectives(channels: usize) -> Vec<(&'static str, Box<dyn ViewObjective>)> {
    let equivariance = Equivariance::new(ViewSet::standard());
    let mut random = Random::new(4);
    let bank = Bank::new(5, (0..40).map(|_| random.normal()).collect()).unwrap();
    vec![
        ("all pairs", Box::new(Equivariance { pairing: Pairing::AllPairs, ..equivariance.clone() })),
        ("some cells", Box::new(Equivariance { cells: 0.5, cell_seed: 3, ..equivariance.clone() })),
        ("anchor", Box::new(equivariance)),
        ("invariance", Box::new(Invariance { views: ViewSet::standard(), pairing: Pairing::AllPairs })),
        ("rotation", Box::new(Rotation { head: small_head(channels, 4, 8), fixed_canvas: false })),
        (
            "contrastive",
            Box::new(Contrastive {
                views: ViewSet::contrastive(2),
                head: small_head(channels, 5, 9),
                bank,
                temperature: 0.5,
            }),
        ),
    ]
}

fn value_at(network: &Conv, image: &Image, objective: &dyn ViewObjective) -> TermSum {
    let (output, feature) = (TensorNames::from("scores"), TensorNames::from("features"));
    let terms = Terms {
        output: Some(&output),
        feature: &feature,
        losses: vec![],
        views: vec![ViewTerm { weight: 2.0, objective }],
    };
    terms.evaluate(network, image, Progress::ONCE, &Random::new(7), true).unwrap()
}

#[test]
fn view_objectives_match_central_differences_through_a_network() {
    let network = Conv::random(&[6, 5], 4, true, 1);
    let image = picture((14, 18), 2);
    for (name, objective) in objectives(5) {
        let gradient = value_at(&network, &image, &*objective).gradient.unwrap();
        let largest = gradient.iter().copied().map(f32::abs).fold(0.0, f32::max);
        assert!(largest > 0.0, "{name} has no gradient");
        // along a random direction, and along the gradient's own sign
        let mut random = Random::new(3);
        let directions: [Vec<f32>; 2] = [
            gradient.iter().map(|_| random.uniform(-1.0, 1.0)).collect(),
            gradient.iter().map(|g| g.signum()).collect(),
        ];
        for direction in directions {
            let at = |step: f32| {
                let mut moved = image.clone();
                moved.pixels_mut().iter_mut().zip(&direction).for_each(|(p, d)| *p += step * d);
                value_at(&network, &moved, &*objective).value
            };
            let central = (at(2e-3) - at(-2e-3)) / 4e-3;
            let exact: f64 = gradient.iter().zip(&direction).map(|(g, d)| f64::from(g * d)).sum();
            let scale: f64 = gradient.iter().map(|g| f64::from(g.abs())).sum();
            assert!((central - exact).abs() < 0.02 * scale, "{name}: {central} {exact} of {scale}");
        }
    }
}

#[test]
fn an_unchanged_view_agrees_with_itself() {
    let network = Conv::random(&[6], 4, false, 1);
    let image = picture((12, 12), 2);
    let features = network.run_one(&image, &["features"]).unwrap();
    let stay = DrawnView::of(crate::view::Stay).placed((12, 12));
    let seen = || Seen { view: stay.clone(), features: features.clone() };
    let seen = [seen(), seen()];
    let objective = Equivariance::new(ViewSet::standard());
    assert!((objective.compare(&features, &seen).unwrap().value - 2.0).abs() < 1e-6);
    let all = Equivariance { pairing: Pairing::AllPairs, ..objective };
    let compared = all.compare(&features, &seen).unwrap();
    assert!((compared.value - 3.0).abs() < 1e-6);
    assert!(compared.base[0].iter().all(|g| g.abs() < 1e-6), "at the maximum the gradient is zero");
}

#[test]
fn a_sum_is_the_sum_of_its_terms_for_any_thread_count() {
    let network = Conv::random(&[6, 5], 4, false, 1);
    let image = picture((16, 16), 2);
    let loss = Loss::against(LossKind::CrossEntropy, Labels { size: (1, 1), labels: vec![1] });
    let objective = Equivariance::new(ViewSet::standard());
    let evaluate = |loss_weight: f64, view_weight: f64| {
        let (output, feature) = (TensorNames::from("scores"), TensorNames::from("features"));
        let terms = Terms {
            output: Some(&output),
            feature: &feature,
            losses: vec![(loss_weight, &loss)],
            views: vec![ViewTerm { weight: view_weight, objective: &objective }],
        };
        terms.evaluate(&network, &image, Progress::ONCE, &Random::new(1), true).unwrap()
    };
    let (loss_only, views_only, both) = (evaluate(1.0, 0.0), evaluate(0.0, 1.0), evaluate(1.0, 3.0));
    assert!((both.value - loss_only.value - 3.0 * views_only.value).abs() < 1e-6);
    let gradients = [loss_only, views_only, both.clone()].map(|e| e.gradient.unwrap());
    for i in 0..gradients[0].len() {
        assert!((gradients[2][i] - gradients[0][i] - 3.0 * gradients[1][i]).abs() < 1e-5);
    }
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let alone = one.install(|| evaluate(1.0, 3.0));
    assert_eq!(alone.gradient, both.gradient);
}

#[test]
fn heads_are_read_from_files_with_batch_norm_folded() {
    use safetensors::tensor::{Dtype, TensorView};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("head.safetensors");
    let bytes = |v: &[f32]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let parts: Vec<(&str, Vec<usize>, Vec<f32>)> = vec![
        ("linear0.weight", vec![2, 1], vec![1.0, -1.0]),
        ("linear0.bias", vec![2], vec![0.5, 0.0]),
        ("norm0.weight", vec![2], vec![2.0, 1.0]),
        ("norm0.bias", vec![2], vec![0.0, 1.0]),
        ("norm0.running_mean", vec![2], vec![0.5, 0.0]),
        ("norm0.running_var", vec![2], vec![1.0 - 1e-5, 1.0 - 1e-5]),
        ("linear1.weight", vec![1, 2], vec![3.0, 5.0]),
    ];
    let raw: Vec<Vec<u8>> = parts.iter().map(|(_, _, v)| bytes(v)).collect();
    let views: Vec<_> = parts
        .iter()
        .zip(&raw)
        .map(|((name, shape, _), raw)| (*name, TensorView::new(Dtype::F32, shape.clone(), raw).unwrap()))
        .collect();
    std::fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
    let head = Head::load(&path).unwrap();
    let (out, inputs) = head.forward(&[2.0]).unwrap();
    // 2·((2 + 0.5) − 0.5) = 4 and −2 + 1 = −1, cut to 0: 3·4
    assert!((out[0] - 12.0).abs() < 1e-4, "{out:?}");
    assert!((head.pullback(&inputs, &[1.0])[0] - 6.0).abs() < 1e-4);
    std::fs::write(&path, b"nonsense").unwrap();
    assert!(Head::load(&path).unwrap_err().to_string().contains("head.safetensors"));
}

/// A network that wants several images in a call.
struct Batching(Conv);

impl Network for Batching {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        self.0.fixed_size()
    }

    fn run(&self, images: &[&Image], tensors: &[&str]) -> crate::Result<Vec<Vec<Tensor>>> {
        self.0.run(images, tensors)
    }

    fn trace(&self, images: &[&Image], tensors: &[&str]) -> crate::Result<Vec<crate::network::Traced<'_>>> {
        self.0.trace(images, tensors)
    }

    fn prefers_batches(&self) -> bool {
        true
    }
}

#[test]
fn views_in_one_call_give_the_same_bytes_as_one_by_one() {
    let (image, names) = (picture((16, 20), 3), TensorNames::from("features"));
    let network = || Conv::random(&[6, 8], 5, true, 4);
    for pairing in [Pairing::Anchor, Pairing::AllPairs] {
        let objective = Equivariance { pairing, ..Equivariance::new(ViewSet::standard()) };
        for want_gradient in [false, true] {
            let at = |network: &dyn Network| {
                let views = vec![ViewTerm { weight: 0.7, objective: &objective }];
                let terms = Terms { output: None, feature: &names, losses: vec![], views };
                let seen = terms.evaluate(network, &image, Progress::ONCE, &Random::new(2), want_gradient);
                seen.map(|seen| (seen.value, seen.gradient)).unwrap()
            };
            assert_eq!(at(&network()), at(&Batching(network())), "{pairing:?} {want_gradient}");
        }
    }
}
