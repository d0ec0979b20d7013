//! Help and error texts, held to the files in `testdata/cli/texts` (what `evenkeel list` prints is held to `docs/reference.md`). `EVENKEEL_BLESS=1 cargo test -p evenkeel-cli --test
//! texts` writes them anew; the difference is then looked at before it is committed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use evenkeel::Image;

/// What people type wrong, and what stops them.
const WRONG: [&str; 22] = [
    "attak embedded:classifier p.png",
    "attack embedded:classifier p.png --attack pgdd",
    "attack embedded:classifier p.png --attack bpda",
    "attack embedded:classifier p.png --attack fgsm --steps 3",
    "attack embedded:classifier p.png --epsilon 4",
    "attack embedded:classifier p.png --target truck,bus",
    "predict embedded:classifier",
    "predict embedded:classifer p.png",
    "predict gone.onnx p.png",
    "predict embedded:classifier gone.png",
    "predict embedded:classifier broken.png",
    "predict embedded:classifier p.png --defence equivarianc",
    "predict embedded:classifier p.png --defence-epsilon 2/255",
    "predict embedded:classifier p.png --format jpeg",
    "predict net.onnx p.png",
    "detect embedded:classifier p.png --false-alarms 0.1",
    "detect embedded:classifier --calibrate p.png",
    "model init net.onnx",
    "model init net.onnx --pixels imagnet",
    "model init net.onnx --pixels imagenet --size 7",
    "study run gone.toml",
    "list attack",
];

fn told(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.current_dir(folder).args(words).env("COLUMNS", "100").stdin(Stdio::null());
    let output = command.output().expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let all = text(&output.stdout) + &text(&output.stderr);
    assert!(!all.contains('\u{1b}'), "{words:?}: no colours in a pipe");
    let lines: Vec<&str> = all.lines().map(str::trim_end).collect();
    format!(
        "$ evenkeel {}\n{}\n[exit {}]\n",
        words.join(" "),
        lines.join("\n"),
        output.status.code().unwrap_or(-1)
    )
}

/// Compares with the file, or writes it.
fn held_to(name: &str, text: &str) {
    let kept = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cli/texts").join(name);
    if std::env::var_os("EVENKEEL_BLESS").is_some() {
        std::fs::write(&kept, text).expect("written");
    }
    let known = std::fs::read_to_string(&kept).unwrap_or_default();
    let first = known.lines().zip(text.lines()).find(|(known, now)| known != now);
    assert!(
        known == text,
        "testdata/cli/texts/{name} is not what the program says; first difference (kept, now): {first:#?}. If it should say that: EVENKEEL_BLESS=1 cargo test -p evenkeel-cli --test texts"
    );
}

/// The help of a command and of those below it, in the order in which they are listed.
fn help(words: &[&str], all: &mut Vec<String>) {
    let own = told(&std::env::temp_dir(), &[words, &["--help"]].concat());
    let listed =
        own.split_once("\nCommands:\n").map_or("", |(_, rest)| rest.split("\n\n").next().unwrap_or(""));
    let name = |line: &str| {
        let name = line.strip_prefix("  ")?.split_whitespace().next()?;
        (!line.starts_with("   ") && name != "help").then(|| name.to_owned())
    };
    let below: Vec<String> = listed.lines().filter_map(name).collect();
    all.push(own);
    for name in &below {
        help(&[words, &[name]].concat(), all);
    }
}

#[test]
fn help_is_what_was_agreed() {
    let mut all = Vec::new();
    help(&[], &mut all);
    assert!(all.len() > 35, "only {} commands have a help text", all.len());
    held_to("help.txt", &(all.join("\n") + "\n"));
}

#[test]
fn errors_are_what_was_agreed() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    Image::filled(64, 64, 0.5).save_png(at("p.png")).expect("written");
    let whole = std::fs::read(at("p.png")).expect("read");
    std::fs::write(at("broken.png"), &whole[..whole.len() / 2]).expect("written");
    let net = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/propose/resnet18_dynamo.onnx");
    std::fs::copy(net, at("net.onnx")).expect("copied");
    let mut text = String::new();
    for wrong in WRONG {
        let words: Vec<&str> = wrong.split_whitespace().collect();
        let said = told(folder.path(), &words);
        assert!(said.ends_with("[exit 2]\n"), "{said}");
        text += &(said + "\n");
    }
    held_to("errors.txt", &text);
}
