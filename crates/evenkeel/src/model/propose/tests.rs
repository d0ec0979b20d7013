//! Proposals for exports of two kinds, for the shipped networks, and for the networks of $EVENKEEL_DATA where they are.

use std::path::{Path, PathBuf};

use super::*;
use crate::model::contract::{Contract, Order};
use crate::shipped::SHIPPED;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// Task, score tensors and feature tensors.
fn seen(proposal: &Proposal) -> (&str, String, String) {
    let task = proposal.task.as_ref().map_or("none", |task| task.value);
    let output = proposal.output.as_ref().map(|output| output.value.to_string());
    let feature = proposal.features.first().map(|candidate| candidate.names.to_string());
    (task, output.unwrap_or_default(), feature.unwrap_or_default())
}

/// Every candidate is made by a node, has a known shape, and says why.
fn check_candidates(proposal: &Proposal, network: &Network, name: &str) {
    assert!(!proposal.features.is_empty() && proposal.features.len() <= 3, "{name}");
    for candidate in &proposal.features {
        assert_eq!(candidate.names.len(), candidate.shapes.len(), "{name}");
        assert!(!candidate.why.is_empty());
        for (tensor, shape) in candidate.names.iter().zip(&candidate.shapes) {
            let value = network.graph().find(tensor).unwrap();
            assert!(network.graph().values[value].constant.is_none(), "{name}: {tensor} is a weight");
            let vector = shape.len() == 2 && candidate.why.contains("transformer");
            assert!(shape.len() == 4 || vector, "{name}: {tensor} {shape:?}");
        }
    }
}

#[test]
fn exports_of_both_kinds_are_read() {
    let cases = [
        ("resnet18_legacy", "classification", "191", "/layer4/layer4.1/relu_1/Relu_output_0", 1000),
        ("resnet18_dynamo", "classification", "linear", "relu_16", 1000),
        (
            "deeplabv3_mobilenet_v3_large_legacy",
            "semantic",
            "591",
            "/classifier/classifier.4/Conv_output_0",
            21,
        ),
        ("deeplabv3_mobilenet_v3_large_dynamo", "semantic", "upsample_bilinear2d_1", "conv2d_69", 21),
    ];
    for (name, task, output, feature, classes) in cases {
        let path = testdata("propose").join(format!("{name}.onnx"));
        let proposal = Proposal::of_file(&path).unwrap();
        assert_eq!(seen(&proposal), (task, output.into(), feature.into()), "{name}");
        assert_eq!(proposal.classes, Some(classes), "{name}");
        assert_eq!(proposal.size.as_ref().map(|size| size.value), Some((224, 224)), "{name}");
        check_candidates(&proposal, &Network::load(&path).unwrap(), name);
        let questions = proposal.contract(&Answers::default()).unwrap().unwrap_err();
        let fields: Vec<_> = questions.iter().map(|question| question.field).collect();
        assert_eq!(fields, ["order", "scale", "mean", "std"], "{name}: only pixels cannot be known");
    }
}

/// Of timm's networks: the vector of a transformer, the last map of a convolutional one; never what attention makes of tokens.
#[test]
fn transformers_and_other_families_are_read() {
    let cases: [(&str, &[usize], &[usize]); 3] = [
        ("vit_tiny", &[1, 192], &[1, 192, 14, 14]),
        ("swin_tiny", &[1, 768], &[1, 96, 56, 56]),
        ("mobilenetv3_small", &[1, 576, 7, 7], &[1, 288, 14, 14]),
    ];
    for (family, best, next) in cases {
        for exporter in ["legacy", "dynamo"] {
            let name = format!("{family}_{exporter}");
            let path = testdata("propose").join(format!("{name}.onnx"));
            if name == "swin_tiny_legacy" {
                continue; // its tables make it large
            }
            let proposal = Proposal::of_file(&path).unwrap();
            let task = proposal.task.as_ref().map(|task| task.value);
            assert_eq!((task, proposal.classes), (Some("classification"), Some(1000)), "{name}");
            let shapes: Vec<_> =
                proposal.features.iter().map(|feature| feature.shapes[0].as_slice()).collect();
            assert!(shapes.len() > 1 && shapes[0] == best && shapes[1] == next, "{name}: {shapes:?}");
            check_candidates(&proposal, &Network::load(&path).unwrap(), &name);
        }
    }
}

#[test]
fn shipped_networks_are_read_as_their_contracts_say() {
    for shipped in &SHIPPED {
        let network =
            Network::from_bytes(shipped.network.to_vec(), evenkeel_network::Limits::default()).unwrap();
        let contract = Contract::parse(shipped.contract, Path::new(shipped.name)).unwrap();
        let proposal = Proposal::of(&network, None).unwrap();
        let expected = (contract.task.as_str(), contract.output.to_string(), contract.feature.to_string());
        assert_eq!(seen(&proposal), expected, "{}", shipped.name);
        check_candidates(&proposal, &network, shipped.name);
        if contract.input.size.is_none() {
            assert!(contract.input.multiple.is_multiple_of(proposal.multiple.value), "{}", shipped.name);
        }
    }
}

/// Network, task, scores, feature: as docs/studies and docs/zoo.md use them.
const OUTSIDE: [(&str, &str, &str, &str, usize); 12] = [
    ("resnet_2b", "classification", "33", "29", 10),
    ("resnet_4b", "classification", "54", "50", 10),
    ("sri_resnet_a", "classification", "output", "94", 10),
    ("resnet20_cifar10", "classification", "logits", "/layer3/layer3.2/Relu_1_output_0", 10),
    ("squeezenet_v1.1", "classification", "logits", "conv10_relu_conv10", 1000),
    ("efficientnet_lite0_224", "classification", "logits", "/_swish_1/Clip_output_0", 1000),
    ("espnet_p2_q8_city_dynamic", "semantic", "logits", "/conv/act/PRelu_output_0", 20),
    ("drn_small_city_dynamic", "semantic", "logits", "/n/seg/Conv_output_0", 19),
    (
        "espnetv2_s1.0_city_512x256",
        "semantic",
        "logits",
        "/bu_dec_l4/merge_layer/merge_layer.3/Conv_output_0",
        20,
    ),
    (
        "espnetv2_s2.0_pascal_256x256",
        "semantic",
        "logits",
        "/bu_dec_l4/merge_layer/merge_layer.3/Conv_output_0",
        21,
    ),
    ("deeplabv3_mnv2_voc_257", "semantic", "logits", "logits_semantic_BiasAdd", 21),
    (
        "yolo11n-seg",
        "instance",
        "output0, output1",
        "/model.16/cv2/act/Mul_output_0, /model.19/cv2/act/Mul_output_0, /model.22/cv2/act/Mul_output_0",
        80,
    ),
];

#[test]
fn networks_from_outside_are_read_as_the_studies_use_them() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("EVENKEEL_DATA").map_or(beside, PathBuf::from);
    if !data.join("models").is_dir() {
        eprintln!("skipped: no networks in {}; set EVENKEEL_DATA", data.display());
        return;
    }
    for (name, task, output, feature, classes) in OUTSIDE {
        let path = data.join("models").join(format!("{name}.onnx"));
        let proposal = Proposal::of_file(&path).unwrap();
        assert_eq!(seen(&proposal), (task, output.into(), feature.into()), "{name}");
        assert_eq!(proposal.classes, Some(classes), "{name}");
        assert!(proposal.names.as_ref().is_some_and(|set| set.value.len() == classes), "{name}");
        check_candidates(&proposal, &Network::load(&path).unwrap(), name);
        let stepped = if name.ends_with("dynamic") { 8 } else { 1 };
        assert_eq!(proposal.multiple.value, stepped, "{name}");
        let inside = ["drn_small_city_dynamic", "yolo11n-seg"].contains(&name);
        assert_eq!(proposal.pixels.is_some(), inside, "{name}");
    }
}

/// A map of one channel holds values, of which only what they mean is asked; and no network is taken for one that has class scores as well.
#[test]
fn one_channel_is_proposed_as_values() {
    let path = testdata("regression/depth.onnx");
    let proposal = Proposal::of_file(&path).unwrap();
    assert_eq!((seen(&proposal).0, seen(&proposal).1.as_str()), ("regression", "depth"));
    assert_eq!((proposal.classes, proposal.names.is_none()), (None, true));
    check_candidates(&proposal, &Network::load(&path).unwrap(), "depth");
    let pixels = Answers {
        order: Some(Order::Rgb),
        scale: Some(1.0),
        mean: Some([0.0; 3]),
        std: Some([1.0; 3]),
        ..Answers::default()
    };
    let questions = proposal.contract(&pixels).unwrap().unwrap_err();
    assert_eq!(questions.iter().map(|q| q.field).collect::<Vec<_>>(), ["unit"]);
    let answers = Answers { own: vec![("range".into(), "2,60".into())], ..pixels };
    let contract = proposal.contract(&answers).unwrap().unwrap();
    assert_eq!((contract.task.as_str(), contract.input.multiple), ("regression", 8));
}
