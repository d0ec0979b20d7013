//! What stops people in the first hour, second part: messages that name the cure, and words that promise no more than was seen.

mod program;

use std::path::{Path, PathBuf};
use std::process::Output;

use evenkeel::image::Image;

use program::{complained, cut_short, lines, picture, said};

fn evenkeel(folder: &Path, line: &str) -> Output {
    program::evenkeel(folder, &line.split_whitespace().collect::<Vec<_>>())
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// `net.onnx` (the shipped classifier) with its contract, an export `resnet.onnx` with one, and four photos of which the second is cut short.
fn scratch() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for (from, to) in [
        ("crates/evenkeel/models/scenes_classifier.onnx", "net.onnx"),
        ("crates/evenkeel/models/scenes_classifier.evenkeel.toml", "net.evenkeel.toml"),
        ("crates/evenkeel/models/scenes_classifier.evenkeel.toml", "other.toml"),
        ("testdata/propose/resnet18_dynamo.onnx", "resnet.onnx"),
    ] {
        std::fs::copy(repository(from), at(to)).expect("copied");
    }
    std::fs::create_dir(at("photos")).expect("made");
    (0..4).for_each(|k| picture(at(&format!("photos/p{k}.png")), (64, 64), k));
    cut_short(at("photos/p1.png"));
    folder
}

/// Every command that goes through images, in that folder.
const COMMANDS: [&str; 5] = [
    "predict net.onnx photos",
    "attack net.onnx photos --steps 1",
    "detect net.onnx photos",
    "defend net.onnx photos --defence-steps 1",
    "corrupt photos --corruption fog --out fog",
];

#[test]
fn the_common_flags_are_common_to_all() {
    let scratch = scratch();
    for command in COMMANDS {
        let stopped = evenkeel(scratch.path(), command);
        assert_eq!(stopped.status.code(), Some(2), "{command}");
        assert!(complained(&stopped).contains("--skip-bad"), "{command}: {}", complained(&stopped));
        let contract = if command.starts_with("corrupt") { "" } else { " --contract other.toml" };
        let every = format!("{command} --skip-bad --every 2 --limit 1 --threads 2 --json{contract}");
        let output = evenkeel(scratch.path(), &every);
        assert_eq!(output.status.code(), Some(0), "{every}: {}", complained(&output));
        let answers = lines(&output);
        assert!(answers.len() == 1 && answers[0]["image"] == "photos/p0.png", "{every}: {answers:?}");
        let all = evenkeel(scratch.path(), &format!("{command} --skip-bad --json"));
        assert_eq!(lines(&all).len(), 3, "{command}: {}", complained(&all));
        let progress = complained(&all);
        assert!(progress.contains("4/4 images") && progress.contains("skipped 1 of 4"), "{progress}");
        assert!(!progress.contains("5/4") && progress.contains("skipped: "), "{progress}");
    }
}

#[test]
fn a_classifier_says_its_five_best() {
    let scratch = scratch();
    let told = said(&evenkeel(scratch.path(), "predict net.onnx photos/p0.png"));
    assert_eq!(told.matches(" %").count(), 5, "{told}");
    let line = &lines(&evenkeel(scratch.path(), "predict net.onnx photos/p0.png --json"))[0];
    let top = line["prediction"]["top"].as_array().expect("a list");
    assert!(top.len() == 5 && top[0]["name"].is_string() && top[4]["probability"].is_f64(), "{line}");
    for entry in top {
        assert!(told.contains(entry["name"].as_str().expect("a name")), "{told}: {entry}");
    }
}

#[test]
fn a_photo_shows_three_answers_under_each_preset() {
    let scratch = scratch();
    let told = said(&evenkeel(scratch.path(), "model init resnet.onnx --try photos/p0.png"));
    let imagenet = told.lines().find(|line| line.trim_start().starts_with("imagenet ")).expect("a line");
    assert_eq!(imagenet.matches(" %").count(), 3, "{told}");
}

#[test]
fn a_network_that_takes_one_size_gives_one_image_for_each_photo() {
    let scratch = scratch();
    std::fs::create_dir(scratch.path().join("wide")).expect("made");
    picture(scratch.path().join("wide/w.png"), (300, 240), 1);
    assert!(evenkeel(scratch.path(), "model init resnet.onnx --pixels imagenet").status.success());
    let output = evenkeel(scratch.path(), "attack resnet.onnx wide --steps 1 --out attacked");
    assert_eq!(output.status.code(), Some(0), "{}", complained(&output));
    assert!(complained(&output).contains("next: evenkeel defend resnet.onnx attacked/images"));
    let files = |part: &str| std::fs::read_dir(scratch.path().join(part)).expect("made").count();
    assert_eq!((files("attacked/images"), files("attacked/network"), files("attacked/pictures")), (1, 1, 1));
    let size = |part: &str| Image::load(scratch.path().join(part)).expect("a picture").size();
    assert_eq!(size("attacked/images/w.png"), (240, 300), "as it came");
    assert_eq!(size("attacked/network/w.png"), (224, 224), "as the network takes it");
}

#[test]
fn a_target_that_was_not_reached_is_not_claimed() {
    let scratch = scratch();
    let base = "attack embedded:instances scenes-instances:1@256x128 --steps 1 --epsilon 0.01/255";
    let seen = said(&evenkeel(scratch.path(), "predict embedded:instances scenes-instances:1@256x128"));
    let (class, other) = if seen.contains(" car") { ("car", "person") } else { ("person", "car") };
    assert!(seen.contains(class), "{seen}");
    let told = said(&evenkeel(scratch.path(), &format!("{base} --target vanish:{class}")));
    assert!(told.contains("does not say what the attacker wants") && !told.contains("; ;"), "{told}");
    if !seen.contains(other) {
        let told = said(&evenkeel(scratch.path(), &format!("{base} --target vanish:{other}")));
        assert!(told.contains("nothing to attack"), "{told}");
    }
}

#[test]
fn too_few_clean_images_are_told_before_the_work() {
    let scratch = scratch();
    for (line, cure) in [
        ("detect net.onnx --calibrate photos --skip-bad", "--false-alarms 0.2"),
        ("detect net.onnx --calibrate photos --false-alarms 2", "between 0 and 1"),
    ] {
        let output = evenkeel(scratch.path(), line);
        let complaint = complained(&output);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(complaint.contains(cure) && !complaint.contains("1/4 images"), "{complaint}");
    }
    let line = "detect net.onnx --calibrate photos --skip-bad --false-alarms 0.3";
    let output = evenkeel(scratch.path(), line);
    assert!(complained(&output).contains("next: evenkeel detect net.onnx"), "{}", complained(&output));
}

#[test]
fn what_an_estimate_is_stands_once() {
    let scratch = scratch();
    let output = evenkeel(scratch.path(), "detect net.onnx photos --skip-bad");
    assert_eq!(said(&output).matches("expected error").count(), 3, "{}", said(&output));
    assert!(!said(&output).contains("one minus"), "{}", said(&output));
    assert_eq!(
        complained(&output).matches("one minus the probability").count(),
        1,
        "{}",
        complained(&output)
    );
}

#[test]
fn a_defence_shows_how_far_views_agreed_and_a_policy_is_heard() {
    let scratch = scratch();
    let line = "predict net.onnx photos/p0.png --defence equivariance --defence-steps 1";
    let told = said(&evenkeel(scratch.path(), line));
    assert!(told.contains("views disagreed by") && told.contains("after"), "{told}");
    evenkeel(scratch.path(), "detect net.onnx --calibrate photos --skip-bad --false-alarms 0.3");
    let calibration = std::fs::read_to_string(scratch.path().join("net.calibration.toml")).expect("written");
    let model = calibration.lines().find(|line| line.starts_with("model")).expect("its fingerprint");
    std::fs::remove_file(scratch.path().join("net.calibration.toml")).expect("removed");
    let figures = |clean: f64, aware: f64| {
        let at = |name: &str, value: f64| {
            format!("[figures.{name}]\nvalue = {value:.1}\nlow = {value:.1}\nhigh = {value:.1}\n")
        };
        let head = "[figures]\nmetric = \"accuracy\"\nepsilon_255 = 4.0\nimages = 20\ncost = 9.0\n";
        let rows = [("clean", clean), ("unaware", aware), ("aware", aware), ("bare_clean", 90.0)];
        let rows = rows.map(|(name, value)| at(name, value)).concat();
        format!("{head}{rows}{}", at("bare_attacked", 2.0))
    };
    let write = |acts: &str, figures: String| {
        let text = format!("{model}\n{acts}{figures}");
        std::fs::write(scratch.path().join("net.policy.toml"), text).expect("written");
    };
    write("", figures(90.0, 2.0));
    let warned = complained(&evenkeel(scratch.path(), line));
    assert!(warned.contains("warning") && warned.contains("worth what it costs"), "{warned}");
    let vote = "[answer]\nkind = \"vote\"\n";
    write(vote, figures(70.0, 8.0));
    let warned = complained(&evenkeel(scratch.path(), "predict net.onnx photos/p0.png"));
    assert!(
        warned.contains("costs more than it gives") && warned.contains("70.0 instead of 90.0"),
        "{warned}"
    );
    write(vote, figures(89.0, 40.0));
    let calm = complained(&evenkeel(scratch.path(), "predict net.onnx photos/p0.png"));
    assert!(calm.contains("vote, always") && !calm.contains("warning"), "{calm}");
}

#[test]
fn labels_that_say_nothing_are_told_as_what_they_are() {
    let scratch = scratch();
    std::fs::write(scratch.path().join("none.csv"), "file,class\nelse.png,bus\n").expect("written");
    std::fs::write(scratch.path().join("typo.csv"), "p0.png,buss\n").expect("written");
    std::fs::create_dir(scratch.path().join("empty")).expect("made");
    for (labels, expected) in [
        ("gone.csv", "gone.csv: there is no such file"),
        ("none.csv", "none.csv: says nothing about photos/p0.png"),
        ("typo.csv", "did you mean bus"),
        ("empty", "empty: says nothing about photos/p0.png"),
        ("buss", "did you mean bus"),
    ] {
        let line = format!("attack net.onnx photos/p0.png --steps 1 --labels {labels}");
        let output = evenkeel(scratch.path(), &line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", said(&output));
        assert!(complained(&output).contains(expected), "{labels}: {}", complained(&output));
    }
    let line = "attack embedded:segmenter photos/p0.png --steps 1 --labels road";
    let complaint = complained(&evenkeel(scratch.path(), line));
    assert!(complaint.contains("label map"), "{complaint}");
}

#[test]
fn wrong_answers_to_model_init_name_the_cure() {
    let scratch = scratch();
    for (flags, expected) in [
        ("resnet.onnx --pixels imagenet --task semantic", "declare the task `classification`"),
        ("resnet.onnx --pixels imagenet --output nosuch", "--tensors"),
        ("resnet.onnx --pixels imagenet --feature nosuch", "--tensors"),
        ("photos --pixels imagenet", "photos"),
        ("net.onnx --force --pixels unit --multiple 8 --size 60x64", "64x64 is near"),
    ] {
        let output = evenkeel(scratch.path(), &format!("model init {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}: {}", said(&output));
        assert!(complained(&output).contains(expected), "{flags}: {}", complained(&output));
    }
    let complaint =
        complained(&evenkeel(scratch.path(), "attack net.onnx photos/p0.png --target vanish:bus"));
    assert!(complaint.contains("a classifier finds none"), "{complaint}");
    let complaint = complained(&evenkeel(scratch.path(), "attack net.onnx photos/p0.png --epsilon 300/255"));
    assert!(complaint.contains("4/255") && !complaint.contains("1764705"), "{complaint}");
}

#[test]
fn a_contract_says_sizes_as_people_do_and_reads_the_older_list() {
    let scratch = scratch();
    assert!(evenkeel(scratch.path(), "model init resnet.onnx --pixels imagenet").status.success());
    let path = scratch.path().join("resnet.evenkeel.toml");
    let text = std::fs::read_to_string(&path).expect("written");
    assert!(text.contains("size = \"224x224\""), "{text}");
    for (size, works) in [("[224, 224]", true), ("\"224x224\"", true), ("\"224\"", false), ("[224]", false)] {
        std::fs::write(&path, text.replace("\"224x224\"", size)).expect("written");
        let output = evenkeel(scratch.path(), "predict resnet.onnx photos/p0.png");
        assert_eq!(output.status.success(), works, "{size}: {}", complained(&output));
        assert!(works || complained(&output).contains("WIDTHxHEIGHT"), "{size}: {}", complained(&output));
    }
}

#[test]
fn numbers_and_colours_bring_the_names_with_them() {
    let scratch = scratch();
    let at = |name: &str| scratch.path().join(name);
    for (from, to) in [("scenes_instances", "inst.onnx"), ("scenes_segmenter", "seg.onnx")] {
        std::fs::copy(repository(&format!("crates/evenkeel/models/{from}.onnx")), at(to)).expect("copied");
    }
    for (line, file, names) in [
        ("model init inst.onnx --pixels unit --ids coco", "inst.evenkeel.toml", "names = \"coco\""),
        (
            "model init seg.onnx --pixels unit --palette cityscapes",
            "seg.evenkeel.toml",
            "names = \"cityscapes\"",
        ),
    ] {
        let output = evenkeel(scratch.path(), line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", complained(&output));
        let contract = std::fs::read_to_string(at(file)).expect("a contract");
        assert!(contract.contains(names), "{line}: {contract}");
    }
    let line = "attack inst.onnx scenes-instances:1@256x128 --target vanish:person --steps 1";
    let output = evenkeel(scratch.path(), line);
    assert_eq!(output.status.code(), Some(0), "{}", complained(&output));
    let told = said(&evenkeel(scratch.path(), "predict seg.onnx scenes:1@64x32"));
    assert!(told.contains(" %") && !told.contains("class "), "{told}");
}
