//! Mask R-CNN against torchvision: detections at two sizes, and the five losses with the image gradient on the anchors and regions torchvision sampled
//! (`testdata/zoo/mask_rcnn.py` wrote its answers).

use std::collections::HashMap;

use evenkeel_network::format::npz;
use evenkeel_network::zoo::mask_rcnn::{Detections, Detector, Instance, Sampling};
use evenkeel_network::zoo::{self, Weights};
use evenkeel_network::{Limits, Network, Tensor};

use super::{asked, difference, digest, folder, rule};

type Fixture = HashMap<String, Tensor>;

fn weights(name: &str, asked: &[(String, Vec<usize>)]) -> Weights {
    let second = name.ends_with("v2");
    Weights::new(asked.iter().map(|(name, shape)| (name.clone(), rule::of_mask_rcnn(name, shape, second))))
}

fn floats<'a>(fixture: &'a Fixture, name: &str) -> &'a [f32] {
    fixture[name].values().expect("floats")
}

fn integers(fixture: &Fixture, name: &str) -> Vec<i64> {
    fixture[name].integers().expect("integers")
}

/// For each expected detection the place of the same one among those found. Scores closer than rounding may swap neighbours.
fn pairing(found: &Detections, fixture: &Fixture, i: usize) -> Vec<usize> {
    let (labels, expected) =
        (found.labels.integers().expect("integers"), integers(fixture, &format!("labels{i}")));
    let corners = found.boxes.values::<f32>().expect("floats").as_chunks::<4>().0;
    let wanted = floats(fixture, &format!("boxes{i}")).as_chunks::<4>().0;
    assert_eq!(labels.len(), expected.len());
    let near = |a: &[f32; 4], b: &[f32; 4]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 0.05);
    let place = |k: usize| {
        let mut places = k.saturating_sub(2)..(k + 3).min(labels.len());
        places.find(|&j| labels[j] == expected[k] && near(&corners[j], &wanted[k]))
    };
    (0..expected.len()).map(|k| place(k).unwrap_or_else(|| panic!("detection {k} is not found"))).collect()
}

fn detects(name: &str, detector: &Detector, fixture: &Fixture, i: usize) {
    let size = integers(fixture, &format!("size{i}"));
    let image = rule::field(&format!("image{i}"), &[1, 3, size[0] as usize, size[1] as usize]);
    let found = detector.detect(&image).expect("runs");
    let places = pairing(&found, fixture, i);
    let masks = found.masks.values::<f32>().expect("floats");
    let pixels = masks.len() / places.len();
    let at = |k: usize| masks[places[k / pixels] * pixels + k % pixels];
    let sampled: Vec<f32> = (0..4000).map(|k| at(k * masks.len() / 4000)).collect();
    let rows = |tensor: &Tensor| -> Vec<f32> {
        let values = tensor.values::<f32>().expect("floats");
        let width = values.len() / places.len();
        places.iter().flat_map(|&j| values[j * width..(j + 1) * width].to_vec()).collect()
    };
    for (part, got) in [("boxes", rows(&found.boxes)), ("scores", rows(&found.scores)), ("masks", sampled)] {
        let apart = difference(&got, floats(fixture, &format!("{part}{i}")));
        println!("{name} {size:?} {part}: {apart:.1e}");
        assert!(apart < 1e-3, "{name} at {size:?}, {part}: {apart}");
    }
}

/// The true instances: masks are the halves of the boxes below the diagonal.
fn truth(fixture: &Fixture, (height, width): (usize, usize)) -> Vec<Instance> {
    let boxes = floats(fixture, "true_boxes").as_chunks::<4>().0;
    let labels = integers(fixture, "true_labels");
    let instance = |(&corners, &label): (&[f32; 4], &i64)| {
        let [x1, y1, x2, y2] = corners;
        let pixel = |i: usize| {
            let (x, y) = ((i % width) as f32, (i / width) as f32);
            let inside = x >= x1 && x < x2 && y >= y1 && y < y2;
            f32::from(u8::from(inside && (y - y1) * (x2 - x1) >= (x - x1) * (y2 - y1)))
        };
        Instance { corners, label: label as usize, mask: (0..height * width).map(pixel).collect() }
    };
    boxes.iter().zip(&labels).map(instance).collect()
}

fn loses(name: &str, detector: &Detector, fixture: &Fixture) {
    let size = integers(fixture, "size0");
    let (height, width) = (size[0] as usize, size[1] as usize);
    let image = rule::field("image0", &[1, 3, height, width]);
    let truth = truth(fixture, (height, width));
    let anchors: Vec<usize> = integers(fixture, "anchors").iter().map(|&i| i as usize).collect();
    let regions = floats(fixture, "regions").as_chunks::<4>().0;
    let sampling = Sampling::Given { anchors: &anchors, regions };
    let (losses, gradient) = detector.losses(&image, &truth, sampling).expect("runs");
    let got = [losses.objectness, losses.anchor_boxes, losses.classes, losses.boxes, losses.masks];
    for (got, expected) in got.iter().zip(floats(fixture, "losses")) {
        println!("{name} loss {got} {expected}");
        assert!((got - expected).abs() < 1e-3 * expected.abs(), "{name}: {got} instead of {expected}");
    }
    let apart = difference(&super::sample(&gradient), floats(fixture, "gradient"));
    println!("{name} gradient: {apart:.1e}");
    assert!(apart < super::ACROSS_A_KINK, "{name}, gradient: {apart}");
    let exact = detector.widened().expect("widens");
    let (_, gradient) = exact.losses(&super::wide(&image), &truth, sampling).expect("runs");
    let apart = difference(&super::sample(&super::narrow(&gradient)), floats(fixture, "gradient"));
    println!("{name} gradient: {apart:.1e} in double precision");
    assert!(apart < super::TOLERANCE, "{name}, gradient in double precision: {apart}");
    let seeded = |seed| detector.losses(&image, &truth, Sampling::Seeded(seed)).expect("runs").0;
    assert_eq!(seeded(1), seeded(1));
    assert_ne!(seeded(1), seeded(2));
    let (empty, _) = detector.losses(&image, &[], Sampling::Seeded(1)).expect("runs");
    assert_eq!((empty.boxes, empty.masks, empty.anchor_boxes), (0.0, 0.0, 0.0));
}

fn check(name: &str) {
    let fixture: Fixture =
        npz::load(&folder().join(format!("{name}.npz"))).expect("fixture").into_iter().collect();
    let asked = asked(zoo::find(name).expect("known"));
    assert_eq!(integers(&fixture, "digest"), digest(&asked), "{name}: other names or shapes than PyTorch's");
    let weights = weights(name, &asked);
    assert_eq!(zoo::recognise(&weights).expect("recognised").architecture(), name);
    let detector = Detector::new(name, &weights, Limits::default()).expect("builds");
    (0..2).for_each(|i| detects(name, &detector, &fixture, i));
    loses(name, &detector, &fixture);
}

#[test]
fn mask_rcnn_finds_and_loses_as_in_torchvision() {
    check("maskrcnn_resnet50_fpn");
}

#[test]
fn mask_rcnn_v2_finds_and_loses_as_in_torchvision() {
    check("maskrcnn_resnet50_fpn_v2");
}

#[test]
fn an_image_without_instances_gives_empty_outputs() {
    let name = "maskrcnn_resnet50_fpn";
    let asked = asked(zoo::find(name).expect("known"));
    let zero = |shape: &[usize]| Tensor::new(shape, vec![0f32; shape.iter().product()]);
    let mut tensors: Vec<(String, Tensor)> =
        asked.iter().map(|(n, shape)| (n.clone(), zero(shape))).collect();
    for (tensor, value) in &mut tensors {
        if tensor.ends_with("running_var") {
            *value = Tensor::new(value.shape(), vec![1f32; value.len()]);
        }
    }
    // With all classes alike none reaches the least score.
    let blueprint = zoo::find(name).expect("known").blueprint(&Weights::new(tensors)).expect("fits");
    let network: Network = blueprint.network(Limits::default()).expect("builds");
    let image = rule::field("image0", &[1, 3, 64, 96]);
    let found = network.run(&[(zoo::IMAGE, image)], &["boxes", "labels", "scores", "masks"]).expect("runs");
    assert_eq!(found[0].shape(), [0, 4]);
    assert_eq!(found[1].shape(), [0]);
    assert_eq!(found[3].shape(), [0, 1, 64, 96]);
}
