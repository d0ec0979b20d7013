//! A Mask R-CNN with made-up weights as a model of the method: it answers, an attack raises its losses, a defence raises the agreement of its pyramid.

#[path = "../../evenkeel-network/tests/zoo/rule.rs"]
#[allow(dead_code)] // the zoo's own tests use the rest
mod rule;

use std::path::Path;

use evenkeel::attack::{Attack, Scenario};
use evenkeel::defence::DefenceSpec;
use evenkeel::detect::Heads;
use evenkeel::image::Image;
use evenkeel::model::{Classes, Contract, InputRule, Model, Order, ResizeRule};
use evenkeel::task::Truth;
use evenkeel::task::instance::{Instance, InstanceRule, Mask, NamedHead};
use evenkeel_network::Error;
use evenkeel_network::zoo::{self, Weights};

const ARCHITECTURE: &str = "maskrcnn_resnet50_fpn";
const SIZE: (usize, usize) = (64, 96);

fn checkpoint() -> Vec<u8> {
    let architecture = zoo::find(ARCHITECTURE).unwrap();
    let Err(Error::Weights(misfit)) = architecture.blueprint(&Weights::default()) else {
        panic!("no misfit")
    };
    let asked = misfit.missing.iter();
    let weights =
        Weights::new(asked.map(|(name, shape)| (name.clone(), rule::of_mask_rcnn(name, shape, false))));
    architecture.blueprint(&weights).unwrap().safetensors(&weights).unwrap()
}

fn contract() -> Contract {
    let head = NamedHead::find("mask-rcnn").unwrap();
    Contract {
        task: "instance".into(),
        output: head.output.unwrap()(),
        feature: head.feature.unwrap()(),
        input: InputRule {
            order: Order::Rgb,
            scale: 1.0,
            mean: [0.5; 3],
            std: [0.5; 3],
            channels_last: false,
            size: None,
            resize: ResizeRule::Refuse,
            multiple: 1,
        },
        classes: Classes::default(),
        tables: Default::default(),
    }
    .with_table(&InstanceRule {
        head: head.name.into(),
        confidence: 0.05,
        overlap: 0.5,
        most: 20,
        classes: None,
    })
    .unwrap()
}

fn picture() -> Image {
    let pixels = rule::field("picture", &[3, SIZE.0, SIZE.1]);
    let pixels = pixels.values::<f32>().unwrap().iter().map(|v| 0.5 + 0.4 * v).collect();
    Image::new(SIZE.0, SIZE.1, pixels).unwrap()
}

#[test]
fn mask_rcnn_is_a_model_like_any_other() {
    let path = Path::new("made-up.safetensors");
    let model = Model::from_bytes(&checkpoint(), path, &contract()).unwrap();
    assert_eq!(model.classes, 91);
    let image = picture();
    let said = model.predict(&image).unwrap();
    let found = said.instances().expect("instances");
    assert!(!found.is_empty() && found.len() <= 20);
    assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
    assert!(found.iter().all(|i| (1..91).contains(&i.class) && i.mask.size() == SIZE));

    let square = Mask::new(SIZE, (10, 20), (40, 50), vec![true; 2000]).unwrap();
    let truth = Truth::of_instances(vec![Instance::truth(3, square)]);
    let scenario = Scenario::new(&model, &image, &truth);
    let outcome = Attack::named("pgd").unwrap().with("steps", 2usize).unwrap().run(&scenario).unwrap();
    let loss = |image: &Image| {
        let own = model.task.own_loss(&truth).unwrap().unwrap();
        own.evaluate(&model.scores(image).unwrap()).unwrap().0
    };
    let (before, after) = (loss(&image), loss(&outcome.image));
    assert!(after > 1.01 * before, "{before} {after}");

    let spec = DefenceSpec::named("equivariance").unwrap().with("steps", 1usize).unwrap();
    let defence = spec.build(&model, &Heads::default()).unwrap();
    let verdict = defence.apply(&model, &outcome.image, 1).unwrap();
    assert_ne!(verdict.image, outcome.image);
}

#[test]
fn a_network_without_named_weights_is_refused_in_words() {
    let onnx = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cli/instances.onnx"));
    let path = Path::new("instances.onnx");
    let mut contract = contract();
    let names =
        evenkeel_network::Network::from_bytes(onnx.as_ref().unwrap().clone(), Default::default()).unwrap();
    let output = names.outputs().next().unwrap().to_owned();
    (contract.output, contract.feature) = (output.clone().into(), output.into());
    let refusal = Model::from_bytes(&onnx.unwrap(), path, &contract).err().unwrap().to_string();
    assert!(refusal.contains("mask-rcnn") && refusal.contains("model import"), "{refusal}");
}
