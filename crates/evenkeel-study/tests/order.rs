//! The modules of this crate depend one way, in the order that `lib.rs` gives: nothing names a module that comes after its own.

use std::path::{Path, PathBuf};

/// From the first to the last. A module may name those before it.
const ORDER: [&str; 9] = ["error", "key", "experiment", "record", "store", "rows", "run", "report", "tune"];

fn rust_files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, all);
        } else if path.extension().is_some_and(|e| e == "rs") {
            all.push(path);
        }
    }
}

/// The modules that a statement names by `crate::`: `use crate::store::Key`, `crate::{record::Entry, store}`, `pub(in crate::run)`.
fn named(statement: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut all = Vec::new();
    for rest in statement.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(list) => all.extend(list.split([',', '{', '}']).map(word)),
            None => all.push(word(rest)),
        }
    }
    all
}

/// Statements that go against the order; a list of imports may go over several lines.
fn against(source: &str, own: usize) -> Vec<String> {
    let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let later = |name: String| ORDER.iter().position(|m| *m == name).is_some_and(|place| place > own);
    let code = code.join(" ");
    code.split(';')
        .filter(|one| named(one).into_iter().any(later))
        .map(|one| one.trim().to_string())
        .collect()
}

#[test]
fn modules_depend_one_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    let mut seen = 0;
    for file in files {
        let inner = file.strip_prefix(&root).unwrap();
        let first = inner.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let module = first.trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let own = ORDER.iter().position(|m| *m == module);
        let own =
            own.unwrap_or_else(|| panic!("{module} is a new module: give it a place in ORDER and in lib.rs"));
        let text = std::fs::read_to_string(&file).unwrap();
        let bad = against(&text, own);
        assert!(bad.is_empty(), "{} names a module after its own: {bad:?}", inner.display());
        seen += 1;
    }
    assert!(seen > 30, "only {seen} files were read");
}

#[test]
fn a_cycle_would_be_seen() {
    let record = ORDER.iter().position(|m| *m == "record").unwrap();
    for line in [
        "use crate::store::Store;",
        "use crate::{Error, run::Study};",
        "    crate::report::page()",
        "use crate::{\n    Error,\n    store::Store,\n};",
    ] {
        assert_eq!(against(line, record).len(), 1, "{line}");
    }
    for line in ["use crate::experiment::Design;", "use crate::{Error, Result};", "//! see [`crate::rows`]"] {
        assert!(against(line, record).is_empty(), "{line}");
    }
}
