//! What a server leaves on disk and on standard error: logs as lines or as JSON, alarms as lines, images only if asked and up to a cap; and what it refuses at the start.

use evenkeel::Image;
use serde_json::{Value, json};

use crate::program::{Program, evenkeel, example};

#[test]
fn alarms_are_logged_and_images_kept_only_in_the_folder_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let files = [example("classifier.clean.png"), example("classifier.attacked.png")];
    for (round, keep) in [(1, vec!["--keep-alarms-mb", "0"]), (2, Vec::new())] {
        let (log, kept) = (at("alarms.jsonl"), at("kept"));
        let flags = ["embedded:classifier", "--log-json", "--alarm-log", &log, "--keep-alarms", &kept];
        let server = Program::start(&[&flags[..], &keep].concat());
        let outputs = ["evenkeel.score", "evenkeel.verdict"];
        let told = server.verdicts("classifier", &files, &outputs, &json!({}));
        server.terminate();
        let (code, lines) = server.end();
        assert_eq!(code, Some(0));
        let alarms = std::fs::read_to_string(&log).unwrap();
        let alarms: Vec<Value> = alarms.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(alarms.len(), round, "one a round, appended");
        let last = alarms.last().unwrap();
        let hash = blake3_of(&files[1]);
        assert_eq!((&last["score"], &last["blake3"]), (&told[1]["score"], &json!(hash)));
        assert!(last["time"].as_f64().unwrap() > 1.7e9 && last["threshold"].is_number(), "{last}");
        let names: Vec<_> = std::fs::read_dir(&kept).unwrap().map(|f| f.unwrap().file_name()).collect();
        match round {
            1 => assert!(names.is_empty(), "there is no room: {names:?}"),
            _ => {
                assert_eq!(names, [format!("{hash}.png").as_str()]);
                let kept = Image::load(std::path::Path::new(&kept).join(&names[0])).unwrap();
                assert_eq!(kept, Image::load(&files[1]).unwrap());
            }
        }
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let has = |key: &str, value: Value| lines.iter().any(|line| line[key] == value);
        assert!(has("message", json!("alarm")) && has("blake3", json!(hash)) && has("status", json!(200)));
        assert!(lines.iter().all(|line| line["timestamp"].is_string() && line["level"].is_string()));
    }
}

fn blake3_of(file: &std::path::Path) -> String {
    blake3::hash(&std::fs::read(file).unwrap()).to_hex().to_string()
}

#[test]
fn lines_for_people_are_no_json_and_quiet_is_quiet() {
    for (flag, logged) in [("--no-policy", true), ("--quiet", false)] {
        let server = Program::start(&["embedded:classifier", flag]);
        server.verdicts(
            "classifier",
            &[example("classifier.clean.png")],
            &["evenkeel.verdict"],
            &json!({ "always": true }),
        );
        server.terminate();
        let (_, log) = server.end();
        assert_eq!(log.contains("answered") && log.contains("status=200"), logged, "{log}");
        assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_err()), "{log}");
    }
}

#[test]
fn an_address_that_others_can_reach_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "correct horse battery\n").unwrap();
    for (flags, word) in [(vec![], "--token-file"), (vec!["--token-file", token.to_str().unwrap()], "TLS")] {
        let server = Program::start(&[&["embedded:classifier", "--quiet"][..], &flags].concat());
        server.terminate();
        assert_eq!(server.end(), (Some(0), String::new()), "loopback needs no warning");
        let server =
            Program::start(&[&["embedded:classifier", "--quiet", "--host", "0.0.0.0"][..], &flags].concat());
        server.terminate();
        let (code, log) = server.end();
        assert!(code == Some(0) && log.contains("WARN") && log.contains(word), "{log}");
    }
}

#[test]
fn what_cannot_be_served_is_refused_with_its_name_and_a_cure() {
    let folder = tempfile::tempdir().unwrap();
    let short = folder.path().join("token");
    std::fs::write(&short, "abc").unwrap();
    let short = short.to_str().unwrap();
    for (args, words) in [
        (vec!["nowhere.onnx"], vec!["nowhere.onnx"]),
        (vec!["embedded:oracle"], vec!["oracle", "segmenter"]),
        (vec!["embedded:classifier", "embedded:classifier"], vec!["classifier", "two models"]),
        (vec!["embedded:classifier", "--token-file", short], vec![short, "16 characters"]),
        (vec!["embedded:classifier", "--header-time", "0"], vec!["--header-time"]),
        (vec!["embedded:classifier", "--policy", "nowhere.toml"], vec!["nowhere.toml"]),
        (vec!["embedded:classifier", "--alarm-log", "/nowhere/alarms"], vec!["/nowhere/alarms"]),
        (vec!["embedded:classifier", "--keep-alarms", short], vec![short]),
    ] {
        let output = evenkeel(&[&["serve", "--port", "0"][..], &args].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && words.iter().all(|word| said.contains(word)), "{args:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}
