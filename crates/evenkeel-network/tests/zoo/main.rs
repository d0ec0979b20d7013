//! The zoo against PyTorch: logits and input gradients of every family at two sizes, with weights made by a rule that both follow
//! (`testdata/zoo/make.py` wrote what PyTorch answers).

mod mask_rcnn;
mod rule;

use std::collections::HashMap;
use std::path::PathBuf;

use evenkeel_network::format::npz;
use evenkeel_network::zoo::{self, Weights};
use evenkeel_network::{Error, Limits, Network, Tensor};

/// Largest difference over largest value. PyTorch computed in double precision.
const TOLERANCE: f32 = 1e-3;
/// Where an activation lies within rounding of a kink, single precision may take the other slope there. A gradient that differs by more than the tolerance
/// but by less than this is judged in double precision.
const ACROSS_A_KINK: f32 = 5e-2;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/zoo")
}

/// The names and shapes an architecture asks for: all that no weights at all leave missing.
fn asked(architecture: &zoo::Architecture) -> Vec<(String, Vec<usize>)> {
    match architecture.blueprint(&Weights::default()) {
        Err(Error::Weights(misfit)) => misfit.missing,
        other => panic!("{}: {other:?}", architecture.name),
    }
}

fn weights(asked: &[(String, Vec<usize>)]) -> Weights {
    Weights::new(asked.iter().map(|(name, shape)| (name.clone(), rule::tensor(name, shape))))
}

fn digest(asked: &[(String, Vec<usize>)]) -> [i64; 2] {
    let names = asked.iter().map(|(name, shape)| rule::fnv(&format!("{name}{shape:?}")));
    let sum = names.fold(0u64, u64::wrapping_add);
    [(sum & 0xFFFF_FFFF) as i64, (sum >> 32) as i64]
}

/// Up to 400 values, evenly spaced.
fn sample(tensor: &Tensor) -> Vec<f32> {
    let values = tensor.values::<f32>().expect("floats");
    let count = values.len().min(400);
    (0..count).map(|i| values[i * values.len() / count]).collect()
}

fn difference(got: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(got.len(), expected.len());
    let largest = |values: &mut dyn Iterator<Item = f32>| values.fold(0f32, f32::max);
    let apart = largest(&mut got.iter().zip(expected).map(|(a, b)| (a - b).abs()));
    apart / largest(&mut expected.iter().map(|v| v.abs()))
}

fn answer(network: &Network, image: Tensor, i: usize) -> (Tensor, Tensor) {
    let trace = network.trace(&[(zoo::IMAGE, image)], &[zoo::LOGITS]).expect("runs");
    let logits = trace.tensors()[0].clone();
    let cotangent = rule::field(&format!("cotangent{i}"), logits.shape());
    let mut gradients = trace.pullback(&[(zoo::LOGITS, cotangent)]).expect("pulls back");
    (logits, gradients.swap_remove(0).1)
}

/// Compares networks with their fixtures; all that differ are named.
fn check(names: &[&str]) {
    let failures: Vec<String> = names.iter().flat_map(|name| differences(name)).collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

fn differences(name: &str) -> Vec<String> {
    let mut failures = Vec::new();
    let fixture: HashMap<String, Tensor> =
        npz::load(&folder().join(format!("{name}.npz"))).expect("fixture").into_iter().collect();
    let architecture = zoo::find(name).expect("known");
    let asked = asked(architecture);
    let same = fixture["digest"].integers().expect("integers") == digest(&asked);
    assert!(same, "{name}: other names or shapes than PyTorch's");
    let weights = weights(&asked);
    let blueprint = architecture.blueprint(&weights).expect("fits");
    let recognised = zoo::recognise(&weights).expect("recognised").architecture();
    assert_eq!(recognised, name.trim_end_matches("_os8"));
    let network = blueprint.network(Limits::default()).expect("builds");
    for i in 0..2 {
        let size = fixture[&format!("size{i}")].integers().expect("integers");
        let image = rule::field(&format!("image{i}"), &[1, 3, size[0] as usize, size[1] as usize]);
        let (logits, gradient) = answer(&network, image.clone(), i);
        let of = |kind: &str| fixture[&format!("{kind}{i}")].values::<f32>().expect("floats");
        let value = difference(&sample(&logits), of("y"));
        let mut slope = difference(&sample(&gradient), of("g"));
        println!("{name} {size:?}: {value:.1e} {slope:.1e}");
        if slope > TOLERANCE && slope < ACROSS_A_KINK {
            slope = difference(&sample(&exact_gradient(&network, &image, i)), of("g"));
            println!("{name} {size:?}: {slope:.1e} in double precision");
        }
        if value.is_nan() || value > TOLERANCE || slope.is_nan() || slope > TOLERANCE {
            failures.push(format!("{name} at {size:?}: {value}, {slope}"));
        }
    }
    failures
}

/// The gradient in double precision.
fn exact_gradient(network: &Network, image: &Tensor, i: usize) -> Tensor {
    let exact = network.widened().expect("widens");
    let trace = exact.trace(&[(zoo::IMAGE, wide(image))], &[zoo::LOGITS]).expect("runs");
    let cotangent = wide(&rule::field(&format!("cotangent{i}"), trace.tensors()[0].shape()));
    narrow(&trace.pullback(&[(zoo::LOGITS, cotangent)]).expect("pulls back").swap_remove(0).1)
}

fn narrow(tensor: &Tensor) -> Tensor {
    let values = tensor.values::<f64>().expect("doubles").iter().map(|&v| v as f32);
    Tensor::new(tensor.shape(), values.collect::<Vec<f32>>())
}

fn wide(tensor: &Tensor) -> Tensor {
    let values = tensor.values::<f32>().expect("floats").iter().map(|&v| f64::from(v));
    Tensor::new(tensor.shape(), values.collect::<Vec<f64>>())
}

#[test]
fn resnets_answer_as_in_pytorch() {
    check(&["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "wide_resnet50_2"]);
}

#[test]
fn small_image_resnets_answer_as_in_pytorch() {
    check(&["cifar_resnet20", "cifar_resnet56", "cifar_resnet18", "cifar_resnet50"]);
}

#[test]
fn dilated_residual_networks_answer_as_in_pytorch() {
    check(&["drn_c_26", "drn_d_22", "drn_d_38", "drn_d_54", "drn_d_105"]);
    check(&["drnseg_c_26", "drnseg_d_22", "drnseg_d_38", "drnseg_d_54", "drnseg_d_105"]);
}

#[test]
fn torchvision_segmenters_answer_as_in_pytorch() {
    check(&["fcn_resnet50", "fcn_resnet101", "deeplabv3_resnet50", "deeplabv3_resnet101"]);
    check(&["deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"]);
}

#[test]
fn deeplab_v3_plus_answers_as_in_pytorch() {
    check(&["deeplabv3plus_resnet50", "deeplabv3plus_resnet101", "deeplabv3plus_mobilenet"]);
    check(&["deeplabv3plus_resnet50_os8", "deeplabv3plus_resnet101_os8", "deeplabv3plus_mobilenet_os8"]);
    let names = ["resnet50", "resnet101", "mobilenet"].map(|trunk| format!("deeplabv3plus_jfzhang_{trunk}"));
    check(&names.each_ref().map(String::as_str));
}

#[test]
fn a_written_onnx_or_safetensors_file_answers_the_same() {
    let weights = weights(&asked(zoo::find("deeplabv3plus_mobilenet").expect("known")));
    let blueprint = zoo::recognise(&weights).expect("recognised");
    let image = rule::field("image0", &[1, 3, 33, 48]);
    let (expected, _) = answer(&blueprint.network(Limits::default()).expect("builds"), image.clone(), 0);
    let onnx = Network::from_bytes(blueprint.onnx().expect("small"), Limits::default()).expect("loads");
    assert_eq!(sample(&answer(&onnx, image.clone(), 0).0), sample(&expected));
    let path = std::env::temp_dir().join(format!("evenkeel-zoo-{}.safetensors", std::process::id()));
    std::fs::write(&path, blueprint.safetensors(&weights).expect("floats")).expect("written");
    let loaded = Network::load(&path);
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(sample(&answer(&loaded.expect("loads"), image, 0).0), sample(&expected));
}

#[test]
fn what_does_not_fit_is_listed() {
    let asked = asked(zoo::find("resnet18").expect("known"));
    let kept = asked.iter().filter(|(name, _)| name != "layer2.0.conv1.weight");
    let mut tensors: Vec<(String, Tensor)> = kept
        .map(|(name, shape)| {
            (format!("module.{name}"), Tensor::new(shape, vec![0f32; shape.iter().product()]))
        })
        .collect();
    tensors.push(("module.layer2.0.conv9.weight".into(), Tensor::new(&[1], vec![0f32])));
    let told = zoo::recognise(&Weights::new(tensors)).expect_err("does not fit").to_string();
    let lines = [
        "no known architecture has these tensors; the nearest is resnet18",
        "  missing (1):",
        "    layer2.0.conv1.weight [128, 64, 3, 3]",
        "  unexpected (1):",
        "    layer2.0.conv9.weight",
    ];
    assert_eq!(told, lines.join("\n"));
    assert!(zoo::find("resnet19").expect_err("unknown").to_string().contains("drnseg_d_22"));
}

/// A network of the shared data folder, if there is one.
#[test]
fn a_legacy_checkpoint_answers_as_its_onnx() {
    let data = std::env::var_os("EVENKEEL_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = data.join("models/resnet20-12fca82f.th");
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
        return;
    }
    let checkpoint = zoo::load(&path).expect("read");
    assert_eq!(checkpoint.blueprint(None).expect("recognised").architecture(), "cifar_resnet20");
    let network = Network::load(&path).expect("loads");
    let onnx = Network::load(data.join("models/resnet20_cifar10.onnx")).expect("loads");
    let image = rule::field("image0", &[1, 3, 32, 32]);
    let (input, output) =
        (onnx.inputs().next().expect("an input").0, onnx.outputs().next().expect("an output"));
    let expected = onnx.run(&[(input, image.clone())], &[output]).expect("runs").swap_remove(0);
    let got = network.run(&[(zoo::IMAGE, image)], &[zoo::LOGITS]).expect("runs").swap_remove(0);
    assert!(difference(&sample(&got), &sample(&expected)) < 1e-4);
}
