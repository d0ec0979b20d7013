//! The sample of the ONNX standard's own tests in testdata/onnx/cases. `examples/conformance` runs all of them.

#[path = "../examples/conformance/case.rs"]
mod case;

use std::path::{Path, PathBuf};

use case::Outcome;

fn inside(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    paths.sort();
    paths
}

#[test]
fn the_sample_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/onnx/cases");
    let folders: Vec<PathBuf> = inside(&root).iter().flat_map(|kind| inside(kind)).collect();
    assert!(folders.len() > 300, "{} cases", folders.len());
    let mut wrong = Vec::new();
    for folder in &folders {
        let case = case::run(folder).unwrap_or_else(|| panic!("{} is not a case", folder.display()));
        if case.outcome != Outcome::Passed {
            wrong.push(format!("{}/{} ({}): {:?}", case.kind, case.name, case.operator, case.outcome));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
