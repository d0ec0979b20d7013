//! What an experiment file may say, and how it comes apart into cells.

use super::*;
use crate::store::Key;
use std::collections::BTreeMap;

const SMALL: &str = r#"
name = "small"
seeds = [0, 1]
[[subject]]
name = "crops"
model = "embedded:classifier"
data = "scenes-objects"
path = "4@32x32"
[[attack]]
kind = "pgd"
[[attack]]
kind = "transfer"
[[attack]]
kind = "bpda"
[[attack]]
kind = "adaptive"
weight = [1, 1000]
[[corruption]]
kind = ["fog", "snow"]
severity = [1, 5]
[[defence]]
kind = "random"
[[defence]]
kind = "equivariance"
steps = [1, 5]
[[detector]]
kind = "variance"
"#;

fn parse(text: &str) -> Result<Experiment> {
    Experiment::parse(text, Path::new("my.toml"))
}

/// The design of an experiment whose subjects are classifiers with two images.
pub(crate) fn design(text: &str) -> Design {
    let experiment = parse(text).unwrap();
    let card = |rule: &SubjectRule| SubjectCard {
        rule: rule.clone(),
        model: Key::of(&"model").unwrap(),
        heads: BTreeMap::new(),
        task: "classification".into(),
        class_names: Vec::new(),
        classes: 10,
        variant: None,
        epsilon_255: 4.0,
        images: vec!["a".into(), "b".into()],
        columns: Vec::new(),
        rows: Vec::new(),
        detectors: Vec::new(),
    };
    let cards = experiment.subjects.iter().map(card).collect();
    Design::new(experiment, cards).unwrap()
}

#[test]
fn lists_come_apart_and_equal_settings_share_an_image() {
    let design = design(SMALL);
    let card = &design.subjects[0];
    let labels: Vec<_> = card.columns.iter().map(|c| c.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "clean",
            "pgd",
            "transfer",
            "bpda",
            "adaptive λ=1",
            "adaptive λ=1000",
            "fog 1",
            "fog 5",
            "snow 1",
            "snow 5"
        ]
    );
    let rows: Vec<_> = card.rows.iter().map(|r| r.label.as_str()).collect();
    assert_eq!(rows, ["none", "random", "equivariance T=1", "equivariance T=5"]);
    let work = |column: &str, row: &str| {
        let cell = design
            .cells
            .iter()
            .find(|c| design.column(c).label == column && design.row(c).label == row && c.draw == 0);
        cell.unwrap().work
    };
    assert_eq!(work("pgd", "none"), work("transfer", "equivariance T=5"), "made on the bare network");
    assert_eq!(work("pgd", "none"), work("bpda", "none"), "through nothing");
    assert_ne!(work("bpda", "equivariance T=1"), work("bpda", "equivariance T=5"));
    assert_eq!(work("adaptive λ=1", "equivariance T=1"), work("adaptive λ=1", "equivariance T=5"));
    assert_ne!(work("adaptive λ=1", "none"), work("adaptive λ=1000", "none"));
    let corrupted = design.cells.iter().filter(|c| design.column(c).label == "fog 1").count();
    assert_eq!(corrupted, 2, "the bare network only, once a draw");
    assert_eq!(work("clean", "none"), work("clean", "random"));
}

#[test]
fn a_change_changes_only_the_keys_it_touches() {
    let (before, after) = (design(SMALL), design(&SMALL.replace("steps = [1, 5]", "steps = [1, 6]")));
    let keys = |d: &Design| d.keys(0).into_iter().collect::<std::collections::BTreeSet<_>>();
    let (before, after) = (keys(&before), keys(&after));
    assert!(before.intersection(&after).count() > before.len() / 2);
    assert!(before != after);
    let renamed = design(&SMALL.replace("name = \"small\"", "name = \"other\""));
    assert_eq!(keys(&renamed), before, "a name decides nothing");
    let other = design(&SMALL.replace("name = \"small\"", "name = \"small\"\nseed = 9"));
    assert_eq!(keys(&other).intersection(&before).count(), 0);
}

#[test]
fn refusals_name_the_file_and_the_key() {
    let said = |text: &str| parse(text).unwrap_err().to_string();
    let unknown = said(&SMALL.replace("kind = \"pgd\"", "kind = \"pgd\"\nstep = 3"));
    assert!(unknown.starts_with("my.toml: ") && unknown.contains("step"), "{unknown}");
    assert!(said(&SMALL.replace("\"pgd\"", "\"pgdd\"")).contains("pgdd"));
    assert!(said(&SMALL.replace("\"fog\"", "\"smog\"")).contains("smog"));
    assert!(said(&SMALL.replace("[1, 5]\n[[defence]]", "[0]\n[[defence]]")).contains("severity 0"));
    assert!(said(&SMALL.replace("\"variance\"", "\"nose\"")).contains("nose"));
    assert!(said(&format!("{SMALL}[[attack]]\nkind = \"pgd\"")).contains("two attacks or corruptions"));
    assert!(
        said(&format!("{SMALL}[[attack]]\nname = \"x\"\nkind = \"pgd\"\ndefences = [\"y\"]")).contains("`y`")
    );
    let wild =
        said(&SMALL.replace("kind = \"random\"", "kind = \"equivariance\"\nname = \"e\"\nschedule = \"s\""));
    assert!(wild.contains("schedule s"), "{wild}");
    let back = parse(&parse(SMALL).unwrap().to_toml().unwrap()).unwrap();
    assert_eq!(back, parse(SMALL).unwrap(), "what is written can be read");
}

/// Images of the same names at another size, or of another data set, are other images; more of the same are not.
#[test]
fn subjects_do_not_share_results_of_other_images() {
    let twice = |path: &str| {
        let second = SMALL.split("[[attack]]").next().unwrap().split_once("[[subject]]").unwrap().1;
        let second = second.replace("crops", "others").replace("4@32x32", path);
        design(&format!("{SMALL}[[subject]]{second}"))
    };
    let keys = |d: &Design, subject| d.keys(subject).into_iter().collect::<std::collections::BTreeSet<_>>();
    let larger = twice("4@64x64");
    assert!(keys(&larger, 0).is_disjoint(&keys(&larger, 1)));
    assert_eq!(keys(&larger, 0), keys(&design(SMALL), 0));
    let same = twice("4@32x32");
    assert_eq!(keys(&same, 0), keys(&same, 1));
}

#[test]
fn numbers_without_a_meaning_are_refused_by_name() {
    let said = |from: &str, to: &str| {
        let text = SMALL.replacen(from, to, 1);
        assert_ne!(text, SMALL, "{from}");
        parse(&text).unwrap_err().to_string()
    };
    let pgd = "kind = \"pgd\"";
    for (key, values) in [
        ("epsilon_255", ["nan", "inf", "-1"]),
        ("step_255", ["nan", "0", "-1"]),
        ("weight", ["nan", "inf", "-1"]),
        ("momentum", ["nan", "5", "-1"]),
        ("sharpness", ["nan", "0", "-1"]),
        ("confidence", ["nan", "inf", "-1"]),
        ("targets", ["0", "0", "0"]),
    ] {
        for value in values {
            let said = said(pgd, &format!("{pgd}\n{key} = {value}"));
            assert!(said.starts_with("my.toml: attack pgd: ") && said.contains(key), "{said}");
        }
    }
    let random = "kind = \"random\"";
    for (key, values) in [
        ("epsilon_ratio", ["nan", "inf", "-1"]),
        ("step_255", ["nan", "0", "-1"]),
        ("cells", ["nan", "0", "2"]),
    ] {
        for value in values {
            let said = said(random, &format!("{random}\n{key} = {value}"));
            assert!(said.contains("defence random") && said.contains(key), "{said}");
        }
    }
    assert!(said("[0, 1]", "[0, 0]").contains("a draw twice"));
    assert!(said("[0, 1]", "[]").contains("seeds"));
    assert!(said("\"small\"", "\"../small\"").contains("../small"));
    assert!(said("\"small\"", "\"a/b\"").contains("--out"));
    assert!(said("\"crops\"", "\"a\\nb\"").contains("one line"));
    assert!(said(pgd, &format!("{pgd}\ndefences = []")).contains("asks for nothing"));
    assert!(said("path = ", "paper = \"bogus\"\npath = ").contains("cityscapes-standard"));
    assert!(said("path = ", "limit = 0\npath = ").contains("subject crops: limit"));
    let doubled = format!("{SMALL}[[detector]]\nkind = \"variance\"");
    assert!(parse(&doubled).unwrap_err().to_string().contains("two detectors"));
    let alike = format!(
        "{SMALL}[[defence]]\nkind=\"random\"\nname=\"a b\"\n[[defence]]\nkind=\"random\"\nname=\"a_b\""
    );
    assert!(parse(&alike).unwrap_err().to_string().contains("the same file"));
    let number = parse(&SMALL.replacen(pgd, &format!("{pgd}\ntarget = 3"), 1)).unwrap();
    assert_eq!(number.attacks[0].target.as_deref(), Some("3"));
}
