//! `evenkeel demo` as a person runs it, in an empty folder: a table, and one page that fetches nothing.

use std::process::Command;

#[test]
fn the_demo_prints_its_tables_and_writes_one_page() {
    let folder = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["demo", "--scenes", "1", "--crops", "2", "--instances", "1", "--steps", "1"])
        .args(["--output", "page"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    for word in
        ["mIoU", "accuracy", "mask AP50", "rotation", "contrastive", "equivariance", "AUROC", "index.html"]
    {
        assert!(said.contains(word), "{word} is missing from\n{said}");
    }
    let page = std::fs::read_to_string(folder.path().join("page/index.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(
        !page.contains("http:") && !page.contains("https:") && !page.contains("<script"),
        "the page must fetch nothing"
    );
    let pictures = page.matches("data:image/png;base64,").count();
    // Eight of the scene, eight views of it, four of each crop, and eight of the scene with its cars and people.
    assert_eq!(pictures, 8 + 8 + 2 * 4 + 8, "pictures on the page");
}
