//! Training on a user's own data, as a user does it: the program on a folder of labelled images, and what it says of folders that are broken.

use evenkeel::{Image, LabelMap, Random};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Writes `count` images of 64x48: sky over ground, and a bright box in a third of them; labels 0, 1 and 2.
fn folder_of(root: &Path, count: usize) {
    let (height, width) = (48, 64);
    std::fs::create_dir_all(root.join("images")).unwrap();
    std::fs::create_dir_all(root.join("labels")).unwrap();
    for k in 0..count {
        let mut random = Random::new(7).fork(k as u64);
        let horizon = 12 + random.below(24);
        let (top, left) = (random.below(height - 14), random.below(width - 14));
        let label = |y: usize, x: usize| match k % 3 == 0
            && (top..top + 14).contains(&y)
            && (left..left + 14).contains(&x)
        {
            true => 2,
            false => u16::from(y >= horizon),
        };
        let places = || (0..height).flat_map(|y| (0..width).map(move |x| (y, x)));
        let labels: Vec<u16> = places().map(|(y, x)| label(y, x)).collect();
        let colours = [[0.3, 0.5, 0.9], [0.4, 0.35, 0.2], [0.95, 0.9, 0.2]];
        let mut pixels = Vec::new();
        for c in 0..3 {
            pixels.extend(labels.iter().map(|&l| {
                let value: f32 = colours[usize::from(l)][c] + 0.05 * random.normal();
                value.clamp(0.0, 1.0)
            }));
        }
        let name = format!("{k:03}.png");
        Image::new(height, width, pixels).unwrap().save_png(root.join("images").join(&name)).unwrap();
        LabelMap::new(height, width, labels)
            .unwrap()
            .save_png(root.join("labels").join(&name), None)
            .unwrap();
    }
}

fn train(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel-train")).current_dir(folder).args(words).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A tiny training of the folder `data`, to `name.onnx`.
fn tiny<'a>(name: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = [
        "segmenter",
        "--data",
        "labelled-folder",
        "data",
        "--width",
        "8",
        "--batch",
        "4",
        "--crop",
        "48x48",
        "--rate",
        "5e-3",
        "-o",
        name,
    ];
    words.iter().chain(more).copied().collect()
}

fn score_of(told: &str) -> f64 {
    let after = told.split("mIoU ").last().unwrap_or_default();
    after.split(' ').next().unwrap_or_default().parse().unwrap_or_else(|_| panic!("no score in {told}"))
}

#[test]
fn sixty_labelled_images_train_end_to_end() {
    let folder = tempfile::tempdir().unwrap();
    folder_of(&folder.path().join("data"), 60);
    let output = train(
        folder.path(),
        &tiny("net.onnx", &["--steps", "150", "--every", "50", "--names", "sky,ground,box"]),
    );
    let told = text(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("48 pictures to train on, 12 to score on, 3 classes"), "{told}");
    assert!(score_of(&told) > 60.0, "{told}");
    // the network works at once, by its contract
    let model = evenkeel::model::Model::load(folder.path().join("net.onnx")).unwrap();
    let image = Image::load(folder.path().join("data/images/003.png")).unwrap();
    let truth = LabelMap::load(folder.path().join("data/labels/003.png")).unwrap();
    let said = model.predict(&image).unwrap();
    let labels = said.label_map().expect("a label map");
    let right = labels.labels().iter().zip(truth.labels()).filter(|(a, b)| a == b).count();
    assert!(right * 10 > truth.labels().len() * 8, "{right} of {}", truth.labels().len());
    let card = std::fs::read_to_string(folder.path().join("net.card.md")).unwrap();
    for word in ["--steps 150", "| sky |", "| box |", "BLAKE3", "150 of 150 steps", "mIoU"] {
        assert!(card.contains(word), "{word} in {card}");
    }
    assert!(folder.path().join("net.checkpoint.curves.png").is_file());
    // a second network that starts from the first one's file: fine-tuning
    let words = [
        "fine-tune",
        "net.onnx",
        "--data",
        "labelled-folder",
        "data",
        "--steps",
        "4",
        "--batch",
        "2",
        "--crop",
        "48x48",
        "--rate",
        "1e-4",
        "-o",
        "finer.onnx",
    ];
    let output = train(folder.path(), &words);
    let finer = text(&output);
    assert!(output.status.success(), "{finer}");
    assert!(score_of(&finer) > score_of(&told) - 10.0, "{finer}");
    evenkeel::model::Model::load(folder.path().join("finer.onnx")).unwrap().predict(&image).unwrap();
}

#[test]
fn a_stopped_training_resumes_to_the_same_bytes_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    folder_of(&folder.path().join("data"), 15);
    let run = |name: &str, threads: &str, more: &[&str]| {
        let words = tiny(name, &[&["--steps", "12", "--every", "5"], more].concat());
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel-train"));
        command.current_dir(folder.path()).env("RAYON_NUM_THREADS", threads).args(words);
        command
    };
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(run("whole.onnx", "1", &[]).output().unwrap().status.success());
    assert!(run("threads.onnx", "2", &[]).output().unwrap().status.success());
    assert!(bytes("whole.onnx") == bytes("threads.onnx"), "the number of threads shows");
    assert!(run("parts.onnx", "2", &["--until", "7"]).output().unwrap().status.success());
    assert!(run("parts.onnx", "1", &[]).output().unwrap().status.success());
    assert!(bytes("whole.onnx") == bytes("parts.onnx"), "stopping shows");
    // killed in the middle: goes on from the last checkpoint
    let mut child = run("killed.onnx", "2", &["--adversarial", "2/255"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let checkpoint = folder.path().join("killed.checkpoint.safetensors");
    while !checkpoint.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let _ = child.kill();
    child.wait().unwrap();
    for name in ["killed.onnx", "unkilled.onnx"] {
        assert!(run(name, "2", &["--adversarial", "2/255"]).output().unwrap().status.success());
    }
    assert!(bytes("killed.onnx") == bytes("unkilled.onnx"), "killing shows");
}

/// What is said of a folder after `harm` was done to it.
fn refused(harm: impl Fn(&Path), more: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    folder_of(&folder.path().join("data"), 12);
    harm(&folder.path().join("data"));
    let output = train(folder.path(), &tiny("net.onnx", &[&["--steps", "2"], more].concat()));
    let told = text(&output);
    assert!(!output.status.success(), "{told}");
    assert!(!told.contains("step "), "refused before the first step: {told}");
    assert!(!folder.path().join("net.checkpoint.safetensors").exists());
    told
}

fn relabel(data: &Path, name: &str, size: (usize, usize), label: u16) {
    let map = LabelMap::new(size.0, size.1, vec![label; size.0 * size.1]).unwrap();
    map.save_png(data.join("labels").join(name), None).unwrap();
}

#[test]
fn bad_data_is_named_before_the_first_step() {
    let told = refused(|data| std::fs::remove_file(data.join("labels/004.png")).unwrap(), &[]);
    assert!(told.contains("004.png is missing"), "{told}");
    let told = refused(|data| relabel(data, "005.png", (48, 64), 9), &["--classes", "3"]);
    assert!(told.contains("005.png") && told.contains("label 9") && told.contains("3 classes"), "{told}");
    let told = refused(|data| relabel(data, "006.png", (40, 64), 1), &[]);
    assert!(told.contains("006.png") && told.contains("64x40") && told.contains("64x48"), "{told}");
    let told = refused(|data| (0..12).for_each(|k| relabel(data, &format!("{k:03}.png"), (48, 64), 1)), &[]);
    assert!(told.contains("one class, 1"), "{told}");
    let told =
        refused(|data| (0..12).for_each(|k| relabel(data, &format!("{k:03}.png"), (48, 64), 255)), &[]);
    assert!(told.contains("nothing in it is labelled"), "{told}");
    let told = refused(|data| std::fs::write(data.join("images/002.png"), b"no picture").unwrap(), &[]);
    assert!(told.contains("002.png"), "{told}");
    // all of them at once
    let two = |data: &Path| {
        relabel(data, "006.png", (40, 64), 1);
        std::fs::remove_file(data.join("labels/004.png")).unwrap();
    };
    let told = refused(two, &[]);
    assert!(told.contains("004.png is missing") && told.contains("006.png"), "{told}");
    let told = refused(|_| {}, &["--names", "sky,ground"]);
    assert!(told.contains("2"), "{told}");
    let told = refused(|data| std::fs::remove_dir_all(data).unwrap(), &[]);
    assert!(told.contains("data"), "{told}");
}

#[test]
fn networks_that_cannot_be_trained_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    folder_of(&folder.path().join("data"), 12);
    let net = evenkeel_network::zoo::Blueprint::new("test");
    let mut net = net;
    let dims = ["n", "h", "w"].map(|name| evenkeel_network::graph::Dim::Free(name.into()));
    let [n, h, w] = dims;
    net.input("image", evenkeel_network::DType::F32, vec![n, evenkeel_network::graph::Dim::Fixed(3), h, w]);
    net.step("Sigmoid", &["image"], "curved", []);
    net.step("Exp", &["curved"], "logits", []);
    net.output("logits", evenkeel_network::DType::F32, 4);
    let path: PathBuf = folder.path().join("odd.onnx");
    std::fs::write(&path, net.onnx().unwrap()).unwrap();
    let contract = "task = \"semantic\"\noutput = \"logits\"\nfeature = \"logits\"\n[input]\norder = \"rgb\"\nscale = 1.0\nmean = [0.0, 0.0, 0.0]\nstd = [1.0, 1.0, 1.0]\n\
                    channels_last = false\nresize = \"stretch\"\n";
    std::fs::write(folder.path().join("odd.evenkeel.toml"), contract).unwrap();
    let words =
        ["fine-tune", "odd.onnx", "--data", "labelled-folder", "data", "--steps", "2", "-o", "out.onnx"];
    let told = text(&train(folder.path(), &words));
    for word in ["curved (Sigmoid)", "logits (Exp)", "the trainer knows Conv"] {
        assert!(told.to_lowercase().contains(&word.to_lowercase()), "{word}: {told}");
    }
}
