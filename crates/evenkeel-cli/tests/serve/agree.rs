//! For the same image, settings and seed the server says what `evenkeel predict` prints, byte for byte: every defence and answer of the tables, every task,
//! with and without the alarm, and the picture that is painted.

use std::path::PathBuf;

use evenkeel::answer::AnswerKind;
use evenkeel::defence::DefenceKind;
use evenkeel::policy::Alarm;
use evenkeel::settings::{Entry, names};
use evenkeel::{AnswerSpec, DefenceSpec, DetectorSpec, Model, Policy};
use serde_json::{Value, json};

use crate::program::{Program, evenkeel, example, shipped};

const FILES: [&str; 2] = ["clean", "attacked"];

fn files(model: &str) -> Vec<PathBuf> {
    FILES.iter().map(|which| example(&format!("{model}.{which}.png"))).collect()
}

/// What the command line prints of the files, without their names and how far views disagreed.
fn predicted(model: &str, files: &[PathBuf], flags: &[String]) -> Vec<Value> {
    let network = if model.ends_with(".onnx") { model.to_owned() } else { format!("embedded:{model}") };
    let files = files.iter().map(|file| file.to_str().unwrap());
    let args: Vec<&str> = ["predict", &network, "--json"]
        .into_iter()
        .chain(files)
        .chain(flags.iter().map(String::as_str))
        .collect();
    let output = evenkeel(&args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let line = |line: &str| {
        let mut verdict: Value = serde_json::from_str(line).unwrap();
        // the evidence beside a defended answer is the command line's own
        for own in ["image", "disagreement_before", "disagreement_after"] {
            verdict.as_object_mut().unwrap().remove(own);
        }
        verdict
    };
    String::from_utf8(output.stdout).unwrap().lines().map(line).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

/// Knobs that make an entry quick, as parameters and as flags.
fn quick<E: Entry>(name: &str, knobs: &[(&str, u64)], prefix: &str, flag: &str) -> (Value, Vec<String>) {
    let entry = E::table().iter().find(|entry| entry.name() == name).unwrap();
    let (mut parameters, mut flags) = (json!({}), Vec::new());
    for (knob, value) in knobs.iter().filter(|(knob, _)| entry.reads().contains(knob)) {
        parameters[format!("{prefix}{knob}")] = json!(value);
        flags.extend([format!("--{flag}-{knob}"), value.to_string()]);
    }
    (parameters, flags)
}

#[test]
fn every_defence_and_answer_agrees_with_the_command_line() {
    let server = Program::start(&["embedded:classifier", "--quiet"]);
    let files = files("classifier");
    let heads = |name: &str| match name {
        "rotation" => vec![PathBuf::from("--head"), shipped("scenes_classifier.rotation.safetensors")],
        "contrastive" => {
            let file = shipped("scenes_classifier.contrastive.safetensors");
            vec!["--head".into(), file.clone(), "--bank".into(), file]
        }
        _ => Vec::new(),
    };
    let mut cases = Vec::new();
    for name in names::<DefenceKind>() {
        let (mut parameters, mut flags) = quick::<DefenceKind>(name, &[("steps", 2)], "", "defence");
        parameters["defence"] = json!(name);
        flags.extend(words(&format!("--defence {name}")));
        flags.extend(heads(name).iter().map(|word| word.to_str().unwrap().to_owned()));
        cases.push((parameters, flags));
    }
    for name in names::<AnswerKind>() {
        let (mut parameters, mut flags) = quick::<AnswerKind>(name, &[("draws", 8)], "answer_", "answer");
        parameters["answer"] = json!(name);
        flags.extend(words(&format!("--answer {name}")));
        cases.push((parameters, flags));
    }
    let both = json!({ "defence": "jpeg", "quality": 40, "answer": "vote" });
    cases.push((both, words("--defence jpeg --quality 40 --answer vote")));
    for (mut parameters, mut flags) in cases {
        parameters["seed"] = json!(11);
        flags.extend(words("--seed 11"));
        // the alarm decides
        let scored = ["evenkeel.score", "evenkeel.verdict"];
        let expected = predicted("classifier", &files, &[&flags[..], &words("--detect")].concat());
        assert_eq!(server.verdicts("classifier", &files, &scored, &parameters), expected, "{parameters}");
        assert_eq!((&expected[0]["alarm"], &expected[1]["alarm"]), (&json!(false), &json!(true)));
        // no alarm is asked for
        parameters["always"] = json!(true);
        let expected = predicted("classifier", &files, &flags);
        let told = server.verdicts("classifier", &files, &["evenkeel.verdict"], &parameters);
        assert_eq!(told, expected, "{parameters}");
    }
}

#[test]
fn every_task_agrees_with_the_command_line_and_so_does_the_picture() {
    let server = Program::start(&["embedded:segmenter", "embedded:instances", "--quiet"]);
    for model in ["segmenter", "instances"] {
        let files = files(model);
        let flags = words("--detect --defence equivariance --defence-steps 1 --seed 4");
        let parameters = json!({ "defence": "equivariance", "steps": 1, "seed": 4 });
        let scored = ["evenkeel.score", "evenkeel.verdict"];
        let expected = predicted(model, &files, &flags);
        assert_eq!(server.verdicts(model, &files, &scored, &parameters), expected, "{model}");

        let folder = tempfile::tempdir().unwrap();
        let out = words(&format!("--out {}", folder.path().display()));
        predicted(model, &files[1..], &[&flags[..], &out].concat());
        let painted = std::fs::read(folder.path().join(format!("{model}.attacked.overlay.png"))).unwrap();
        let mut form = Vec::new();
        for (name, value) in [("defence", "equivariance"), ("steps", "1"), ("seed", "4")] {
            form.extend(part(name, value.as_bytes()));
        }
        form.extend(part("image", &std::fs::read(&files[1]).unwrap()));
        form.extend(b"--x--\r\n");
        let headers = "content-type: multipart/form-data; boundary=x\r\naccept: image/png\r\n";
        let told = server.post(&format!("/v2/models/{model}/judge"), headers, &form);
        assert!(told == painted, "{model}: the picture differs");
    }
}

/// A network of one's own under a policy beside it, which raises the alarm for every image or for none.
#[test]
fn a_policy_is_obeyed_as_the_command_line_obeys_it() {
    let folder = tempfile::tempdir().unwrap();
    let network = folder.path().join("net.onnx");
    let shown = network.to_str().unwrap();
    std::fs::copy(shipped("scenes_classifier.onnx"), &network).unwrap();
    std::fs::copy(shipped("scenes_classifier.evenkeel.toml"), network.with_extension("evenkeel.toml"))
        .unwrap();
    let model = Model::load(&network).unwrap();
    let files = files("classifier");
    for threshold in [-1.0, 1e9] {
        let detector = DetectorSpec::named("variance").unwrap().with("seed", 5u64).unwrap();
        let defence = DefenceSpec::named("jpeg").unwrap().with("quality", 50).unwrap();
        let policy = Policy {
            alarm: Some(Alarm { threshold, images: 20, false_alarm_rate: 0.05, detector }),
            defence: Some(defence),
            answer: Some(AnswerSpec::named("vote").unwrap()),
            seed: 3,
            ..Policy::none(&model)
        };
        policy.save(&Policy::path_beside(&network)).unwrap();
        let server = Program::start(&[shown, "--quiet"]);
        for (parameters, flags) in [(json!({}), ""), (json!({ "seed": 8 }), "--seed 8")] {
            let expected = predicted(shown, &files, &words(flags));
            let scored = ["evenkeel.score", "evenkeel.verdict"];
            assert_eq!(server.verdicts("net", &files, &scored, &parameters), expected, "{parameters}");
            assert_eq!(expected[0]["alarm"], json!(threshold < 0.0));
        }
    }
}

fn part(name: &str, value: &[u8]) -> Vec<u8> {
    let head = format!("--x\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\n\r\n");
    [head.as_bytes(), value, b"\r\n"].concat()
}
