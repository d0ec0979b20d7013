//! The report's page for a person: what it warns of, and how it is shown on a phone.

use std::path::Path;
use std::process::{Command, Stdio};

/// A defence that turns most of the answer over, on fewer than twenty scenes.
const HARMFUL: &str = r#"
name = "harm"
[[subject]]
name = "streets"
model = "embedded:segmenter"
data = "scenes"
path = "6@64x32"
[[attack]]
kind = "pgd"
steps = 2
[[corruption]]
kind = ["fog", "contrast"]
severity = [1, 3]
defended = true
[[defence]]
name = "hasty"
kind = "equivariance"
steps = 1
schedule = "paper"
epsilon_255 = 24
[[defence]]
kind = "random"
[[detector]]
kind = "variance"
"#;

fn evenkeel(folder: &Path, line: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.current_dir(folder).args(line.split_whitespace()).stdin(Stdio::null());
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

fn page() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("harm.toml"), HARMFUL).expect("written");
    evenkeel(folder.path(), "study run harm.toml");
    evenkeel(folder.path(), "study report harm.study");
    std::fs::read_to_string(folder.path().join("harm.study/report/index.html")).expect("a page")
}

#[test]
fn a_report_says_what_is_wrong_and_fits_a_phone() {
    let page = page();
    for words in [
        "Few images: streets has 6 images",
        "It costs clean images: streets, hasty",
        "Clean images most harmed by hasty",
        "Colours are on one scale in all these tables",
        "name=\"viewport\"",
    ] {
        assert!(page.contains(words), "{words} is missing from the page");
    }
    assert!(
        page.contains("<code>evenkeel list metrics</code>") && !page.contains('`'),
        "code is marked as such"
    );
    assert!(!page.contains("No sanity check of this study failed"), "doubts and a clean bill on one page");
    let legend = page.split("<p class=\"legend\">").nth(1).expect("a legend under the gallery's heading");
    assert!(legend.split("</p>").next().is_some_and(|names| names.contains("road")), "{}", &legend[..200]);
    assert!(page.contains("<label class=\"zoom\">"), "pictures open large");
    let tables = page.matches("<table").count();
    assert!(tables > 3 && page.matches("class=\"wide\"").count() >= tables, "a table that cannot scroll");
}
