//! Images of every attack at twenty settings each, as an earlier release made them: `testdata/attacks/unchanged.json`.
//!
//! A case names the attack and its knobs as files write them, and holds a hash of the image at 8 bits and one of its exact values. The
//! first is what the test compares; the second, which the last bits of the system's `exp` decide, only with `EVENKEEL_EXACT=1`.

use serde_json::Value;

use super::tests::{Scene, changed, classifier, segmenter, small_defence_of};
use super::*;
use crate::budget::Budget;

fn image_of(case: &Value) -> Image {
    let number = |key: &str| case[key].as_f64().unwrap();
    let count = |key: &str| number(key) as usize;
    let semantic = case["semantic"] == true;
    let mut scene = match semantic {
        true => Scene::new(segmenter(), (12, 16)),
        false => Scene::new(classifier(false), (16, 16)),
    };
    let defence = small_defence_of(&scene.model, case["schedule"].as_str().unwrap());
    scene.pipeline = scene.pipeline.clone().with_defence(defence);
    let norm = if case["norm"] == "l2" { Norm::L2 } else { Norm::Linf };
    let budget = Budget { norm, radius: (number("epsilon_255") / 255.0) as f32 };
    let name = case["attack"].as_str().unwrap();
    let reads = |knob: &str| Attack::named(name).unwrap().knobs().any(|k| k.name == knob);
    let attack = changed(name, budget, |s| {
        s.epsilon_255 = number("epsilon_255");
        s.steps = count("steps");
        s.step_255 = Some(number("step_255")).filter(|step| *step > 0.0);
        s.restarts = count("restarts");
        s.momentum = number("momentum");
        s.confidence = Some(number("confidence")).filter(|c| *c >= 0.0);
        s.weight = number("weight");
        s.targets = count("targets");
        // what only concerns a defence is not given to attacks of the bare network, which it would turn into others
        let through = s.estimator.is_some();
        s.draws = if reads("draws") && through { count("draws") } else { s.draws };
        s.warm_steps = if through { count("warm_steps") } else { 0 };
        s.sharpness = number("sharpness");
        s.seed = case["seed"].as_u64().unwrap();
    });
    let classes = crate::task::ClassInfo { count: 5, ..Default::default() };
    let target = scene.model.task.target("permuted", &scene.truth, &classes, 3).unwrap().unwrap();
    let targeted = case["targeted"] == true && attack.entry().targeted;
    let scenario = Scenario { target: targeted.then_some(&target), ..scene.scenario() };
    attack.run(&scenario).unwrap_or_else(|e| panic!("{case}: {e}")).image
}

fn hashes(image: &Image) -> (String, String) {
    let exact: Vec<u8> = image.pixels().iter().flat_map(|v| v.to_le_bytes()).collect();
    let file: Vec<u8> = image.pixels().iter().map(|v| (v * 255.0).round() as u8).collect();
    let short = |bytes: &[u8]| blake3::hash(bytes).to_hex()[..16].to_string();
    (short(&file), short(&exact))
}

#[test]
fn attacks_make_the_images_they_made_before() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../../../testdata/attacks/unchanged.json")).unwrap();
    let compared = if std::env::var_os("EVENKEEL_EXACT").is_some() { "exact" } else { "file" };
    let mut changed = std::collections::BTreeMap::new();
    for case in &cases {
        let (file, exact) = hashes(&image_of(case));
        if case[compared] != if compared == "exact" { exact } else { file } {
            *changed.entry(case["attack"].as_str().unwrap()).or_insert(0) += 1;
        }
    }
    assert_eq!(cases.len(), 460);
    assert!(changed.is_empty(), "of 20 cases each: {changed:?}");
}
