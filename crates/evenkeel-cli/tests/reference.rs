//! `docs/reference.md` is made of what `evenkeel list` prints, and this holds it to that. `EVENKEEL_BLESS=1 cargo test --test reference` writes it anew.

use std::path::PathBuf;
use std::process::Command;

const TABLES: [(&str, &str); 9] = [
    ("Attacks", "attacks"),
    ("Defences", "defences"),
    ("Answers", "answers"),
    ("Detectors", "detectors"),
    ("Views", "views"),
    ("Corruptions", "corruptions"),
    ("Data", "data"),
    ("Metrics", "metrics"),
    ("Tasks", "tasks"),
];

fn listed(table: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    let output = command.args(["list", table]).output().expect("the binary runs");
    assert!(output.status.success(), "list {table}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_reference_is_what_the_program_lists() {
    let mut page =
        "# Reference\n\nMade from the tables of the program; `evenkeel list TABLE` prints the same.\n"
            .to_owned();
    for (title, table) in TABLES {
        page += &format!("\n## {title}\n\n");
        for line in listed(table).lines() {
            page += if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") }.as_str();
        }
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    if std::env::var_os("EVENKEEL_BLESS").is_some() {
        std::fs::write(&path, &page).expect("written");
    }
    let kept = std::fs::read_to_string(&path).expect("docs/reference.md");
    assert!(
        kept == page,
        "docs/reference.md is not current: EVENKEEL_BLESS=1 cargo test -p evenkeel-cli --test reference"
    );
}
