//! The first hour with a network: the things that stopped new users, each once. Runs on the networks that come with the program.

mod program;

use std::process::{Command, Stdio};

use evenkeel::image::Image;

use program::{complained, cut_short, evenkeel, lines, picture, said};

/// Four crops of scenes in `photos`, and one file that is cut short in `mixed` beside two of them.
fn scratch() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("photos")).expect("made");
    std::fs::create_dir(at("mixed")).expect("made");
    for k in 0..4 {
        picture(at(&format!("photos/p{k}.png")), (64, 64), k);
        picture(at(&format!("mixed/p{k}.png")), (64, 64), k);
    }
    cut_short(at("mixed/p1.png"));
    folder
}

const NET: &str = "embedded:classifier";

#[test]
fn one_broken_file_does_not_end_a_run_if_it_may_be_skipped() {
    let scratch = scratch();
    for words in [
        &["predict", NET, "mixed"][..],
        &["detect", NET, "mixed"],
        &["corrupt", "mixed", "--corruption", "fog", "--out", "fog"],
    ] {
        let stopped = evenkeel(scratch.path(), words);
        assert_eq!(stopped.status.code(), Some(2), "{words:?}");
        let complaint = complained(&stopped);
        assert!(complaint.contains("p1.png") && complaint.contains("--skip-bad"), "{complaint}");
        let skipped = evenkeel(scratch.path(), &[words, &["--skip-bad", "--json"]].concat());
        assert_eq!(skipped.status.code(), Some(0), "{}", complained(&skipped));
        assert_eq!(lines(&skipped).len(), 3, "{words:?}");
        assert!(complained(&skipped).contains("skipped 1 of 4 images"), "{}", complained(&skipped));
    }
}

#[test]
fn images_are_chosen_by_limit_and_step_and_counted_as_images() {
    let scratch = scratch();
    let count = |extra: &[&str]| {
        let output = evenkeel(scratch.path(), &[&["predict", NET, "photos", "--json"], extra].concat());
        let names: Vec<String> = lines(&output).iter().map(|line| line["image"].to_string()).collect();
        (names.len(), names.concat(), complained(&output))
    };
    assert_eq!(count(&[]).0, 4);
    assert!(count(&[]).2.contains("4/4 images"), "{}", count(&[]).2);
    assert_eq!(count(&["--limit", "3"]).0, 3);
    let (number, names, _) = count(&["--every", "2"]);
    assert!(number == 2 && names.contains("p0") && names.contains("p2"), "{names}");
    assert_eq!(count(&["--threads", "1"]).1, count(&["--threads", "2"]).1);
}

#[test]
fn data_sets_are_images_too() {
    let scratch = scratch();
    let words = ["predict", NET, "scenes-objects:3@64x64", "--json"];
    let output = evenkeel(scratch.path(), &words);
    assert_eq!(lines(&output).len(), 3, "{}", complained(&output));
    let attacked =
        evenkeel(scratch.path(), &["attack", NET, "scenes-objects:2@64x64", "--steps", "2", "--json"]);
    assert_eq!(lines(&attacked).len(), 2, "{}", complained(&attacked));
}

#[test]
fn an_alarm_is_exit_code_3() {
    let scratch = scratch();
    let calibrated = evenkeel(
        scratch.path(),
        &["detect", NET, "--calibrate", "photos", "--calibration", "c.toml", "--false-alarms", "0.2"],
    );
    assert_eq!(calibrated.status.code(), Some(0), "{}", complained(&calibrated));
    let detect =
        |file: &str| evenkeel(scratch.path(), &["detect", NET, "photos", "--calibration", file, "--json"]);
    let calm = detect("c.toml");
    let alarms = lines(&calm).iter().filter(|line| line["alarm"] == true).count();
    assert_eq!(calm.status.code(), Some(if alarms > 0 { 3 } else { 0 }));
    let text = std::fs::read_to_string(scratch.path().join("c.toml")).expect("a calibration");
    let low: String = text
        .lines()
        .map(|line| {
            if line.starts_with("threshold") { "threshold = -1.0\n".to_owned() } else { format!("{line}\n") }
        })
        .collect();
    std::fs::write(scratch.path().join("low.toml"), low).expect("written");
    let loud = detect("low.toml");
    assert_eq!(loud.status.code(), Some(3), "{}", complained(&loud));
    assert!(!said(&loud).contains('\u{1b}'), "a pipe gets no colours");
    assert_eq!(detect("gone.toml").status.code(), Some(2));
}

#[test]
fn defend_shows_the_evidence() {
    let scratch = scratch();
    let words = ["defend", NET, "photos", "--limit", "2", "--defence-steps", "2", "--out", "safe", "--json"];
    let output = evenkeel(scratch.path(), &words);
    assert_eq!(output.status.code(), Some(0), "{}", complained(&output));
    for line in lines(&output) {
        assert_eq!(line["defended"], true, "{line}");
        assert!(line["disagreement_before"].is_f64() && line["disagreement_after"].is_f64(), "{line}");
        assert!(line["prediction"]["name"].is_string(), "{line}");
    }
    assert!(
        scratch.path().join("safe/p0.defended.png").is_file()
            && scratch.path().join("safe/p1.overlay.png").is_file()
    );
    let told = said(&evenkeel(scratch.path(), &["defend", NET, "photos/p0.png", "--defence-steps", "1"]));
    assert!(told.contains("before") && told.contains("after") && told.contains("defended"), "{told}");
}

#[test]
fn flags_without_effect_are_refused() {
    let scratch = scratch();
    let cases: [(&[&str], &str); 6] = [
        (&["predict", NET, "photos", "--defence-epsilon", "2/255"], "--defence-epsilon"),
        (&["predict", NET, "photos", "--format", "jpeg"], "--out"),
        (&["predict", NET, "photos", "--head", "h.safetensors"], "--head"),
        (&["predict", NET, "photos", "--contract", "c.toml"], "--contract"),
        (&["detect", NET, "photos", "--false-alarms", "0.1"], "--calibrate"),
        (&["attack", NET, "photos", "--answer-views", "votes"], "--answer"),
    ];
    for (words, expected) in cases {
        let output = evenkeel(scratch.path(), words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(complained(&output).contains(expected), "{words:?}: {}", complained(&output));
    }
}

#[test]
fn labels_are_a_class_a_table_or_folders() {
    let scratch = scratch();
    std::fs::write(scratch.path().join("truth.csv"), "file,class\np0.png,bus\np1.png,car\n")
        .expect("written");
    for class in ["bus", "car"] {
        std::fs::create_dir_all(scratch.path().join("sorted").join(class)).expect("made");
    }
    std::fs::copy(scratch.path().join("photos/p0.png"), scratch.path().join("sorted/bus/p0.png"))
        .expect("copied");
    std::fs::copy(scratch.path().join("photos/p1.png"), scratch.path().join("sorted/car/p1.png"))
        .expect("copied");
    let scores = |images: &[&str], labels: &str| {
        let words = [&["attack", NET], images, &["--labels", labels, "--steps", "1", "--json"]].concat();
        let output = evenkeel(scratch.path(), &words);
        assert_eq!(output.status.code(), Some(0), "{labels}: {}", complained(&output));
        let lines = lines(&output);
        lines.iter().map(|line| line["score_before"].to_string()).collect::<Vec<_>>()
    };
    let by_table = scores(&["photos/p0.png", "photos/p1.png"], "truth.csv");
    assert_eq!(by_table, scores(&["sorted"], "sorted"));
    let each = [scores(&["photos/p0.png"], "bus"), scores(&["photos/p1.png"], "car")].concat();
    assert_eq!(by_table, each);
}

#[test]
fn attacked_images_and_pictures_for_people_are_apart() {
    let scratch = scratch();
    let words =
        ["attack", NET, "photos", "--limit", "1", "--target", "bus", "--steps", "3", "--out", "attacked"];
    let output = evenkeel(scratch.path(), &words);
    assert_eq!(output.status.code(), Some(0), "{}", complained(&output));
    assert!(said(&output).contains("target bus"), "{}", said(&output));
    assert!(scratch.path().join("attacked/images/p0.png").is_file());
    assert!(scratch.path().join("attacked/pictures/p0.answer.png").is_file());
    let again = evenkeel(scratch.path(), &["predict", NET, "attacked/images", "--json"]);
    assert_eq!(lines(&again).len(), 1, "the folder of images holds images only");
}

#[test]
fn views_are_shown_on_a_screen_with_their_answers() {
    let scratch = scratch();
    for (net, image) in [(NET, "photos/p0.png"), ("embedded:segmenter", "photos/p1.png")] {
        let output = evenkeel(scratch.path(), &["inspect-views", net, image, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", complained(&output));
        let line = &lines(&output)[0];
        assert!(line["views"][0]["says"].is_string(), "{line}");
        let sheet =
            Image::load(scratch.path().join(line["saved"].as_str().expect("a name"))).expect("a picture");
        assert!(sheet.height() <= 1200 && sheet.width() <= 1920, "{:?}", sheet.size());
    }
}

#[test]
fn completions_and_manual_pages_are_made_from_the_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish"] {
        let script = said(&evenkeel(folder.path(), &["completions", shell]));
        assert!(script.contains("evenkeel") && script.contains("defend"), "{shell}");
    }
    let output = evenkeel(folder.path(), &["completions", "--man", "man"]);
    assert_eq!(output.status.code(), Some(0), "{}", complained(&output));
    let page = std::fs::read_to_string(folder.path().join("man/evenkeel-predict.1")).expect("a page");
    assert!(page.contains("skip\\-bad"), "{page}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_with_130() {
    let scratch = scratch();
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.current_dir(scratch.path()).args(["attack", NET, "photos", "--steps", "100000"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}
