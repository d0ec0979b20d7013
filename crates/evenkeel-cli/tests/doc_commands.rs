//! Every `evenkeel` command in README.md and the book is run, page by page, on a small network and small images; so a page cannot show a flag that is gone.
//!
//! Commands stand in blocks marked `sh`; what follows a ` # ` is a remark. Commands on files that are not here (`OUTSIDE`) must be stopped by the missing file and not by
//! their flags. What is asked of a server is asked of one.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use evenkeel::Image;
use evenkeel_data::dataset::{Dataset, Request, Truth};

/// Networks, data and stores that a page talks of and that are not in the repository.
const OUTSIDE: [&str; 6] =
    ["yolo11n-seg.onnx", "maskrcnn.pth", "depth.onnx", "CHECKPOINT", "val2017", "espnet"];
/// What is made smaller: the figure in the page, and here.
const SMALLER: [(&str, &str); 8] = [
    ("--classes 19", "--classes 11"),
    ("--data labelled-folder data/", "--minutes 0.3 --data labelled-folder data/"),
    ("--limit 2", "--limit 1"),
    ("--minutes 60", "--steps 2 --batch 2 --crop 32x32"),
    ("study run my.toml --threads 8", "study run my.toml --quick --limit 1 --out protocol.study"),
    ("demo", "demo --quick --scenes 1 --crops 1 --instances 1 --steps 1"),
    ("--compare other.study", "--compare protocol.study"),
    ("merge shard-1 shard-2", "merge protocol.study"),
];
/// Pages whose commands are long measurements, or asked of a server below.
const ELSEWHERE: [&str; 4] = ["server.md", "python.md", "reference.md", "speed.md"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// README.md, and the pages that SUMMARY.md names.
fn pages() -> Vec<PathBuf> {
    let docs = repository().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).expect("docs/SUMMARY.md");
    let names = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    std::iter::once(repository().join("README.md")).chain(names.map(|name| docs.join(name))).collect()
}

/// The commands of a page, continued lines joined, remarks left out.
fn commands(page: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut shell = false;
    let mut open = String::new();
    for line in page.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            shell = language == "sh";
            continue;
        }
        if !shell {
            continue;
        }
        let said = line.split(" # ").next().unwrap_or_default().trim();
        match said.strip_suffix('\\') {
            Some(part) => open += &(part.to_owned() + " "),
            None => found.push(std::mem::take(&mut open) + said),
        }
    }
    found.retain(|command| command.starts_with("evenkeel ") || command.starts_with("curl "));
    found
}

/// What pages take for granted: a network with eleven classes, photos, clean images, labelled ones, a study's answers and truths.
fn bench() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::copy(repository().join("crates/evenkeel/models/scenes_segmenter.onnx"), at("my.onnx"))
        .expect("copied");
    for name in ["photos", "clean", "data/images", "data/labels"] {
        std::fs::create_dir_all(at(name)).expect("made");
    }
    let scenes = Dataset::open("scenes", Path::new("20@64x32"), &Request::default()).expect("scenes");
    for (k, sample) in scenes.samples().enumerate() {
        let sample = sample.expect("a scene");
        let save = |image: &Image, name: String| image.save_png(at(&name)).expect("written");
        save(&sample.image, format!("clean/c{k}.png"));
        if k < 2 {
            save(&sample.image, format!("photos/p{k}.png"));
        }
        if k < 4 {
            save(&sample.image, format!("data/images/d{k}.png"));
            let Truth::Labels(labels) = sample.truth else { panic!("a scene has labels") };
            labels.save_png(at(&format!("data/labels/d{k}.png")), None).expect("written");
        }
    }
    std::fs::copy(at("photos/p0.png"), at("photo.png")).expect("copied");
    folder
}

/// Runs a command; one that ran out of time goes on, as it says that it does.
fn run(folder: &Path, command: &str) -> Output {
    let mut output = once(folder, command);
    for _ in 0..20 {
        if !String::from_utf8_lossy(&output.stderr).contains("give it more --minutes") {
            break;
        }
        output = once(folder, command);
    }
    output
}

fn once(folder: &Path, command: &str) -> Output {
    let mut line = command.strip_prefix("evenkeel ").expect("a command").to_owned();
    for (from, to) in SMALLER {
        line = line.replacen(from, to, 1);
    }
    let (line, into) =
        line.split_once(" > ").map_or((line.as_str(), None), |(line, file)| (line, Some(file.trim())));
    let words = line.split_whitespace().map(|word| word.trim_matches('"'));
    let mut program = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    let output =
        program.current_dir(folder).args(words).stdin(Stdio::null()).output().expect("the binary runs");
    if let Some(file) = into {
        std::fs::write(folder.join(file), &output.stdout).expect("written");
    }
    output
}

/// The pages of results take hours; their studies must at least be in the repository.
fn studies_are_there(commands: &[String]) {
    for file in commands.iter().filter_map(|command| command.strip_prefix("evenkeel study run ")) {
        let name = Path::new(file.trim()).file_name().expect("a name");
        assert!(repository().join("docs/studies").join(name).is_file(), "docs/studies: {file}");
    }
}

#[test]
fn every_command_of_the_pages_runs() {
    let mut ran = 0;
    for path in pages() {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let page = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut here = commands(&page);
        here.retain(|command| command.starts_with("evenkeel ") && !command.starts_with("evenkeel serve"));
        if path.parent().is_some_and(|folder| folder.ends_with("results")) {
            studies_are_there(&here);
            continue;
        }
        if ELSEWHERE.contains(&name.as_str()) {
            continue;
        }
        let bench = (!here.is_empty()).then(bench);
        if let Some(bench) = bench.as_ref().filter(|_| !here.iter().any(|c| c.contains("model init my.onnx")))
        {
            let contract = repository().join("crates/evenkeel/models/scenes_segmenter.evenkeel.toml");
            std::fs::copy(contract, bench.path().join("my.evenkeel.toml")).expect("copied");
        }
        for command in &here {
            let output = run(bench.as_ref().expect("there is a command").path(), command);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            ran += 1;
            match OUTSIDE.iter().find(|file| command.contains(**file)) {
                Some(file) => {
                    let stopped = output.status.code() == Some(2) && !said.contains("Usage:");
                    assert!(stopped && said.contains("o such file"), "{name}: {command}: {file}: {said}");
                }
                // an alarm is no failure
                None => assert!(matches!(output.status.code(), Some(0 | 3)), "{name}: {command}: {said}"),
            }
        }
    }
    assert!(ran > 25, "only {ran} commands were found");
}

/// A server that ends with the test.
struct Server(Child, String);

impl Server {
    /// The command of a page, on ports that are free.
    fn start(folder: &Path, command: &str) -> Self {
        let line = command.strip_prefix("evenkeel ").expect("a command").replace("8001", "0");
        let mut program = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        program.current_dir(folder).args(line.split_whitespace()).args(["--port", "0", "--quiet"]);
        let mut child = program.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
        let (_, address) = line.trim().rsplit_once("http://").unwrap_or_else(|| panic!("{command}: {line}"));
        Self(child, address.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts every server of README.md and of the server's page, and asks the first of each page what the page asks with `curl`.
#[test]
fn a_server_is_started_and_asked_as_the_pages_say() {
    let folder = bench();
    let at = |name: &str| folder.path().join(name);
    let shipped = |name: &str| repository().join("crates/evenkeel/models").join(name);
    for name in ["my", "net", "other"] {
        std::fs::copy(shipped("scenes_classifier.onnx"), at(&format!("{name}.onnx"))).expect("copied");
        let contract = at(&format!("{name}.evenkeel.toml"));
        std::fs::copy(shipped("scenes_classifier.evenkeel.toml"), contract).expect("copied");
    }
    std::fs::copy(at("photo.png"), at("photo.jpg")).expect("copied");
    std::fs::write(at("token"), "a secret of some length").expect("written");
    let curl = Command::new("curl").arg("--version").output().is_ok_and(|output| output.status.success());
    if !curl {
        eprintln!("skipped: what is asked with curl, which is not here");
    }
    let mut asked = 0;
    for page in ["README.md", "docs/server.md"] {
        let text = std::fs::read_to_string(repository().join(page)).expect("a page");
        let lines = commands(&text);
        let serving: Vec<&String> = lines.iter().filter(|line| line.starts_with("evenkeel serve")).collect();
        let servers: Vec<Server> =
            serving.iter().map(|command| Server::start(folder.path(), command)).collect();
        assert!(!servers.is_empty(), "{page} starts none");
        for line in lines.iter().filter(|line| curl && line.starts_with("curl ")) {
            let line = line.replace("localhost:8000", &servers[0].1).replacen("curl ", "curl -sSf ", 1);
            let output =
                Command::new("sh").current_dir(folder.path()).args(["-c", &line]).output().expect("sh");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{page}: {line}: {said}");
            asked += 1;
        }
    }
    assert!(!curl || asked > 5, "only {asked} questions were found");
    assert!(!curl || at("answer.png").is_file());
}

/// A command that stands elsewhere would not be run.
#[test]
fn commands_stand_in_blocks_that_are_run() {
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let stray = page.lines().find(|line| line.starts_with("    evenkeel ") && !line.contains('['));
        let name = path.file_name().expect("a name").to_string_lossy();
        assert!(stray.is_none() || ELSEWHERE.contains(&&*name), "{}: {stray:?}", path.display());
    }
}

/// Pages and places that other pages point to are there, and each page is in the book.
#[test]
fn links_between_pages_lead_somewhere() {
    let docs = repository().join("docs");
    let listed = pages();
    for path in &listed {
        let page = std::fs::read_to_string(path).expect("a page");
        for target in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") || target.starts_with('#') {
                continue;
            }
            let file = path.parent().expect("a folder").join(target.split('#').next().unwrap_or_default());
            assert!(file.exists(), "{}: {target}", path.display());
            let inside = file.canonicalize().expect("it exists").starts_with(&docs);
            assert!(inside || path.ends_with("README.md"), "{}: {target} is not in the book", path.display());
        }
    }
    for folder in [docs.clone(), docs.join("results")] {
        for entry in std::fs::read_dir(folder).expect("docs") {
            let file = entry.expect("an entry").path();
            let page = file.extension().is_some_and(|e| e == "md") && !file.ends_with("SUMMARY.md");
            assert!(!page || listed.contains(&file), "{} is not in SUMMARY.md", file.display());
        }
    }
}
