//! Runs the ONNX standard's own tests and prints how many passed, failed, or are not claimed.
//!
//!     python testdata/onnx/export_cases.py CASES
//!     cargo run --release -p evenkeel-network --example conformance -- CASES [--only TEXT] [--write docs/operators.md] [--passed FILE]

use std::path::{Path, PathBuf};
use std::{env, fs};

mod case;
mod table;

use case::{Case, Outcome};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let option = |name: &str| {
        arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1)).map(String::as_str)
    };
    let Some(folder) = arguments.first().filter(|a| !a.starts_with("--")) else {
        eprintln!("usage: conformance CASES [--only TEXT] [--write FILE] [--passed FILE]");
        std::process::exit(2);
    };
    let only = option("--only").unwrap_or("");
    std::panic::set_hook(Box::new(|info| eprintln!("{info}")));
    let mut cases = Vec::new();
    for path in folders(Path::new(folder)) {
        if !path.to_string_lossy().contains(only) {
            continue;
        }
        let Some(case) = case::run(&path) else { continue };
        match &case.outcome {
            Outcome::Failed(why) => println!("failed {}/{} ({}): {why}", case.kind, case.name, case.operator),
            Outcome::NotClaimed(why) if !only.is_empty() || option("--explain").is_some() => {
                println!("not claimed {}/{}: {why}", case.kind, case.name)
            }
            _ => {}
        }
        cases.push(case);
    }
    print!("{}", table::summary(&cases));
    if let Some(path) = option("--write")
        && let Err(error) = fs::write(path, table::document(&cases))
    {
        eprintln!("cannot write {path}: {error}");
        std::process::exit(2);
    }
    let passed = cases.iter().filter(|case| case.outcome == Outcome::Passed);
    let names: String = passed.map(|case| format!("{}/{}\n", case.kind, case.name)).collect();
    if let Some(path) = option("--passed")
        && let Err(error) = fs::write(path, names)
    {
        eprintln!("cannot write {path}: {error}");
        std::process::exit(2);
    }
    let failed = |case: &Case| matches!(case.outcome, Outcome::Failed(_));
    std::process::exit(i32::from(cases.iter().any(failed)));
}

/// The folders of cases, in order: two levels down.
fn folders(root: &Path) -> Vec<PathBuf> {
    let inside = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        paths.sort();
        paths
    };
    inside(root).iter().flat_map(|kind| inside(kind)).collect()
}
