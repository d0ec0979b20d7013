//! What an experiment file may say, and how it comes apart into cells.

use super::*;
use crate::key::Key;
use evenkeel::attack::AttackKind;
use evenkeel::defence::DefenceKind;
use evenkeel::detect::DetectorKind;
use evenkeel::objective::Pairing;
use evenkeel::settings::{Entry, Kind, Knob, Knobs, Spec, Value, names};
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
        error_range: Some(1.0),
        variant: None,
        epsilon_255: 4.0,
        images: vec!["a".into(), "b".into()],
        columns: Vec::new(),
        rows: Vec::new(),
        detectors: Vec::new(),
        foreign: None,
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
    assert!(wild.contains("schedule = s must be one of"), "{wild}");
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
            // a step of 0 is refused by the knob's name
            let word = key.trim_end_matches("_255");
            assert!(said.starts_with("my.toml: attack pgd: ") && said.contains(word), "{said}");
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
    let foreign = |keys: &str| {
        let text = format!("{SMALL}[[foreign]]\nname = \"far\"\ndata = \"folder\"\npath = \"p\"\n{keys}");
        parse(&text).map_err(|e| e.to_string())
    };
    assert_eq!(foreign("paper = \"cityscapes/coco\"").unwrap().foreign[0].name, "far");
    assert!(foreign("paper = \"coco\"").unwrap_err().contains("voc/cityscapes"));
    assert!(foreign("limit = 0").unwrap_err().contains("foreign data far: limit"));
    assert!(foreign("subjects = [\"nobody\"]").unwrap_err().contains("no subject `nobody`"));
    assert!(foreign("size = \"native\"").unwrap_err().contains("size"));
    let doubled = format!("{SMALL}[[detector]]\nkind = \"variance\"");
    assert!(parse(&doubled).unwrap_err().to_string().contains("two detectors"));
    let alike = format!(
        "{SMALL}[[defence]]\nkind=\"random\"\nname=\"a b\"\n[[defence]]\nkind=\"random\"\nname=\"a_b\""
    );
    assert!(parse(&alike).unwrap_err().to_string().contains("the same file"));
    let number = parse(&SMALL.replacen(pgd, &format!("{pgd}\ntarget = 3"), 1)).unwrap();
    assert_eq!(number.attacks[0].target.as_deref(), Some("3"));
}

/// A text with one table more, after those of a subject.
fn with_table(kind: &str, lines: &str) -> String {
    let subject = SMALL.split("[[attack]]").next().unwrap();
    format!("{subject}[[{kind}]]\n{lines}\n")
}

/// A value that a knob accepts, as TOML: its default, or what its kind allows.
fn accepted<E: Entry>(spec: &Spec<E>, knob: &Knob<E::Settings>) -> String {
    let written = |value: Value| match value {
        Value::Text(text) => format!("{text:?}"),
        other => other.to_string(),
    };
    match (knob.get(spec.settings()), knob.kind) {
        (Some(value), _) => written(value),
        (None, Kind::Choice(names)) => format!("{:?}", names()[0]),
        (None, _) => "1".into(),
    }
}

/// Every entry of a table takes exactly the knobs that it reads, by key and by name, and refuses the others by name.
fn walk<E: Entry>() {
    for name in names::<E>() {
        let spec = Spec::<E>::named(name).unwrap();
        for knob in E::Settings::knobs() {
            let value = accepted(&spec, knob);
            let read = |key: &str, value: &str| {
                parse(&with_table(E::KIND, &format!("kind = {name:?}\n{key} = {value}")))
            };
            let reads = spec.knobs().any(|k| k.name == knob.name);
            match (reads, read(knob.key, &value)) {
                (true, Err(e)) if knob.name == "seed" => assert!(e.to_string().contains("`seeds`"), "{e}"),
                (true, found) => {
                    found.unwrap_or_else(|e| panic!("{name} reads {}: {e}", knob.key));
                    let by_name =
                        knob.text(spec.settings()).unwrap_or_else(|| value.trim_matches('"').into());
                    read(knob.name, &format!("{by_name:?}")).unwrap();
                    read(knob.key, &format!("[{value}]")).unwrap();
                    if !matches!(knob.kind, Kind::Text) {
                        let wrong = read(knob.key, "\"nonsense\"").unwrap_err().to_string();
                        assert!(wrong.contains(knob.key) && wrong.contains("nonsense"), "{wrong}");
                    }
                }
                (false, found) => {
                    let said = found.map(|_| ()).expect_err(knob.key).to_string();
                    let place = format!("my.toml: {} {name}: does not read `{}`", E::KIND, knob.key);
                    assert!(said.starts_with(&place), "{said}");
                }
            }
        }
        let unknown = parse(&with_table(E::KIND, &format!("kind = {name:?}\nwarmth = 1"))).unwrap_err();
        assert!(unknown.to_string().contains("has no setting `warmth`"), "{unknown}");
    }
}

#[test]
fn every_entry_of_every_table_takes_what_it_reads_and_nothing_else() {
    walk::<AttackKind>();
    walk::<DefenceKind>();
    walk::<DetectorKind>();
}

#[test]
fn a_forgotten_255_is_noticed() {
    let said = |kind: &str, lines: &str| parse(&with_table(kind, lines)).unwrap_err().to_string();
    for (kind, entry) in [("attack", "pgd"), ("defence", "equivariance")] {
        for radius in ["epsilon_255 = 1020", "epsilon = 4"] {
            let said = said(kind, &format!("kind = {entry:?}\n{radius}"));
            assert!(said.contains("did you mean 4/255"), "{said}");
        }
    }
    let both = said("defence", "kind = \"random\"\nepsilon_ratio = 2\nepsilon = \"4/255\"");
    assert!(both.contains("epsilon_ratio") && both.contains("leave one out"), "{both}");
    let twice = said("attack", "kind = \"pgd\"\nepsilon_255 = 4\nepsilon = \"4/255\"");
    assert!(twice.contains("the same setting"), "{twice}");
    let alarm = said("attack", "kind = \"pgd\"\nevade = 1");
    assert!(alarm.contains("evade") && alarm.contains("alarm"), "{alarm}");
}

#[test]
fn radii_are_the_experiments_the_defaults_or_a_multiple() {
    let text = SMALL.replace("name = \"small\"", "name = \"small\"\nepsilon_255 = 2");
    let ratio = "kind = \"equivariance\"\nepsilon_ratio = [1.5, 2]\nname = \"r\"";
    let design = design(&format!(
        "{text}[[defence]]\n{ratio}\n[[defence]]\nkind = \"invariance\"\nepsilon = \"3/255\""
    ));
    let card = &design.subjects[0];
    let Threat::Attack(pgd) = &card.columns[1].threat else { panic!("an attack") };
    assert_eq!(pgd.attack.settings().epsilon_255, 2.0);
    let rows: Vec<_> = card.rows.iter().map(|r| (r.label.as_str(), r.spec.settings().epsilon_255)).collect();
    let usual = evenkeel::defence::DefenceSettings::default().epsilon_255;
    assert_eq!(rows[1], ("random", usual));
    assert_eq!(rows[4..], [("r ε_v/ε=1.5", 3.0), ("r ε_v/ε=2", 4.0), ("invariance", 3.0)]);
}

#[test]
fn lists_come_apart_in_one_order_and_labels_say_the_symbol() {
    let defence = "kind = \"equivariance\"\ncells = [0.5, 1]\nschedule = [\"paper\", \"sgd\"]\nsteps = [1, 2]\nepsilon_255 = [2, 4]";
    let attack =
        "kind = \"unrolled-eot\"\nsharpness = [1, 2]\ndraws = [3, 4]\nsteps = [5, 6]\nepsilon_255 = [2, 4.5]";
    let experiment = parse(&format!("{}[[attack]]\n{attack}", with_table("defence", defence))).unwrap();
    let rows = spec::defences(&experiment, &experiment.subjects[0]).unwrap();
    let columns = spec::columns(&experiment, &experiment.subjects[0]).unwrap();
    let labels: Vec<&str> = rows.iter().map(|r| r.label.as_str()).collect();
    assert_eq!(labels.len(), 17);
    assert_eq!(
        labels[1..4],
        [
            "equivariance ε_v=2 paper T=1 p=0.5",
            "equivariance ε_v=2 paper T=1 p=1",
            "equivariance ε_v=2 paper T=2 p=0.5"
        ]
    );
    assert_eq!(labels[5], "equivariance ε_v=2 sgd T=1 p=0.5");
    assert_eq!(columns[2].label, "unrolled-eot ε=2 T=5 m=3 k=2");
    assert_eq!(columns[16].label, "unrolled-eot ε=4.5 T=6 m=4 k=2");
}

/// As version 3 of the keys stored them: every knob there was, read or not.
const OLD: [&str; 3] = [
    r#"{"label":"pgd","threat":{"attack":{"kind":"pgd","epsilon_255":4.0,"norm":"linf","steps":7,"step_255":null,"restarts":1,"weight":1000.0,"draws":20,
        "momentum":0.5,"confidence":null,"targets":9,"sharpness":1.0,"target":"permuted"}},"rows":null}"#,
    r#"{"label":"bpda-eot","threat":{"attack":{"kind":"bpda-eot","epsilon_255":2.5,"norm":"l2","steps":20,"step_255":0.5,"restarts":2,"weight":1000.0,
        "draws":5,"warm_steps":50,"momentum":0.5,"confidence":null,"targets":9,"sharpness":1.0,"target":null}},"rows":["none"]}"#,
    r#"{"label":"equivariance T=1","kind":"equivariance","epsilon_255":6.0,"norm":"linf","steps":1,"schedule":null,"step_255":null,"views":"gone.toml",
        "pairing":"all-pairs","cells":0.5}"#,
];

#[test]
fn stored_designs_of_older_versions_are_read() {
    let column = |text: &str| -> Column { serde_json::from_str(text).unwrap() };
    let Threat::Attack(pgd) = column(OLD[0]).threat else { panic!("an attack") };
    assert_eq!(
        (pgd.attack.name(), pgd.attack.settings().steps, pgd.target.as_deref()),
        ("pgd", 7, Some("permuted"))
    );
    assert!(!pgd.knows_defence(), "its draws were not read");
    let Threat::Attack(eot) = column(OLD[1]).threat else { panic!("an attack") };
    let settings = eot.attack.settings();
    assert_eq!(
        (settings.draws, settings.warm_steps, settings.step_255, settings.restarts),
        (5, 50, Some(0.5), 2)
    );
    let row: DefenceRow = serde_json::from_str(OLD[2]).unwrap();
    let settings = row.spec.settings();
    assert_eq!((row.label.as_str(), settings.steps, settings.cells), ("equivariance T=1", 1, 0.5));
    assert_eq!((settings.views.name.as_str(), settings.pairing), ("gone.toml", Pairing::AllPairs));
    let none = r#"{"label":"none","kind":"none","epsilon_255":0.0,"norm":"linf","steps":0,"schedule":null,"step_255":null,"views":"standard",
        "pairing":"anchor","cells":1.0}"#;
    assert!(serde_json::from_str::<DefenceRow>(none).unwrap().is_none());
    let detector = r#"{"label":"rotation","kind":"rotation","views":"standard"}"#;
    assert_eq!(serde_json::from_str::<DetectorRow>(detector).unwrap().spec.name(), "rotation");
    let rule = r#"{"kind":"pgd","norm":"linf","steps":[1,2],"restarts":1,"weight":1000.0,"draws":20,"momentum":0.5,"targets":9,"sharpness":1.0}"#;
    assert_eq!(serde_json::from_str::<AttackRule>(rule).unwrap().knobs["steps"].0.len(), 2);
}

#[test]
fn a_stored_design_is_the_design() {
    let attack = "[[attack]]\nname = \"through\"\nkind = \"apgd-ce\"\ndraws = 5\n";
    let design = design(&format!("{SMALL}{attack}"));
    let back: Design = serde_json::from_str(&design.to_json().unwrap()).unwrap();
    assert_eq!(back, design);
}

/// Views are known to keys by what is in them; knobs that change nothing on the bare network change no key there.
#[test]
fn keys_hold_what_decides_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, quarters: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("[[view]]\nkind = \"turn\"\nquarters = {quarters}\n")).unwrap();
        path
    };
    let keys = |path: &Path| {
        let design = design(&format!("{SMALL}[[defence]]\nkind = \"invariance\"\nviews = {path:?}"));
        design.keys(0).into_iter().collect::<std::collections::BTreeSet<_>>()
    };
    let (one, same, other) = (file("a.toml", "[1]"), file("b.toml", "[1]"), file("c.toml", "[2]"));
    assert_eq!(keys(&one), keys(&same));
    assert_ne!(keys(&one), keys(&other));
    let many = "[[attack]]\nname = \"a\"\nkind = \"pgd\"\nfinal_draws = 3\nsharpness = 2\n[[attack]]\nname = \"b\"\nkind = \"pgd\"\ndraws = 3";
    let design = design(&format!("{SMALL}{many}"));
    let work = |column: &str, row: &str| {
        let found =
            design.cells.iter().find(|c| design.column(c).label == column && design.row(c).label == row);
        found.unwrap().work
    };
    assert_eq!(work("a", "random"), work("pgd", "random"), "made on the bare network");
    assert_eq!(work("b", "none"), work("pgd", "none"), "through nothing");
    assert_ne!(work("b", "random"), work("pgd", "random"), "through the defence");
}

/// `answer` and `answer_…` of a defence make rows of their own, with keys of their own; rows without them keep the keys that they had.
#[test]
fn answers_are_rows_with_keys_of_their_own() {
    let text = SMALL.replace(
        "[[defence]]\nkind = \"random\"",
        "[[defence]]\nkind = \"none\"\nanswer = \"vote\"\nanswer_combine = [\"mean\", \"median\"]\n[[defence]]\nkind = \"random\"\nanswer = [\"plain\", \"noise-vote\"]\nanswer_draws = 3",
    );
    let (old, new) = (design(SMALL), design(&text));
    let labels: Vec<&str> = new.subjects[0].rows.iter().map(|r| r.label.as_str()).collect();
    let expected = [
        "none",
        "vote mean",
        "vote median",
        "random",
        "random + noise-vote",
        "equivariance T=1",
        "equivariance T=5",
    ];
    assert_eq!(labels, expected);
    let (old, new_keys) = (old.keys(0), new.keys(0));
    assert!(old.iter().all(|key| new_keys.contains(key)), "a key changed");
    assert!(new_keys.len() > old.len());
    let mut unique = new_keys.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), new_keys.len());
    let read: Design = serde_json::from_str(&new.to_json().unwrap()).unwrap();
    assert_eq!(read, new);
    assert!(read.subjects[0].rows[4].answer.settings().draws == 3);
    for (bad, words) in [
        ("answer = \"prayer\"", "is not one of plain, vote"),
        ("answer = \"vote\"\nanswer_draws = 3", "does not read `answer_draws`"),
        ("answer_draws = 3", "does not read `answer_draws`"),
    ] {
        let text = SMALL
            .replace("[[defence]]\nkind = \"random\"", &format!("[[defence]]\nkind = \"random\"\n{bad}"));
        let sentence = parse(&text).unwrap_err().to_string();
        assert!(sentence.contains(words), "{sentence}");
    }
}
