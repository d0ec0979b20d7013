//! Every entry of every table against every knob of that table, in each front: flags of the command line, keys of a study's file, parameters of a
//! request. (Keyword arguments of the Python package are held to the same tables by its own tests.)

use super::*;
use clap::Args;
use evenkeel::answer::AnswerKind;
use evenkeel::attack::AttackKind;
use evenkeel::defence::{DefenceKind, DefenceSettings};
use evenkeel::detect::DetectorKind;
use evenkeel_serve::{Allowed, Choice};
use evenkeel_study::experiment::Experiment;
use std::path::Path;

/// A value that a knob accepts, in words: its default, or what its kind allows.
fn words<E: Entry>(entry: &E, knob: &Knob<E::Settings>) -> String {
    let other = || match knob.kind {
        Kind::Choice(names) => names()[0].to_string(),
        Kind::Radius => "1/255".into(),
        _ => "1".into(),
    };
    knob.text(&entry.defaults()).unwrap_or_else(other)
}

fn given<E: Entry>(words: Vec<String>) -> KnobArgs<E> {
    let command = KnobArgs::<E>::augment_args(Command::new("test").no_binary_name(true));
    KnobArgs::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
}

fn on_the_command_line<E: Entry>(entry: &E, knob: &Knob<E::Settings>) -> Result<(), String> {
    let mut line = vec![format!("--{}", flag::<E>(knob.name))];
    line.extend((!matches!(knob.kind, Kind::Switch)).then(|| words(entry, knob)));
    let mut spec = Spec::<E>::named(entry.name()).unwrap();
    given::<E>(line).apply(&mut spec).map_err(|e| e.to_string())
}

/// A study of one subject with one table more.
fn study(table: &str) -> Result<(), String> {
    let subject =
        "name = \"crops\"\nmodel = \"embedded:classifier\"\ndata = \"scenes-objects\"\npath = \"4\"";
    let text = format!("name = \"small\"\n[[subject]]\n{subject}\n{table}\n");
    Experiment::parse(&text, Path::new("my.toml")).map(|_| ()).map_err(|e| e.to_string())
}

fn in_a_study<E: Entry>(entry: &E, knob: &Knob<E::Settings>) -> Result<(), String> {
    let (name, value) = (entry.name(), words(entry, knob));
    let table = match E::KIND {
        "answer" => {
            format!("[[defence]]\nkind = \"none\"\nanswer = {name:?}\nanswer_{} = {value:?}", knob.name)
        }
        kind => format!("[[{kind}]]\nkind = {name:?}\n{} = {value:?}", knob.name),
    };
    study(&table)
}

/// Requests choose defences and answers; attacks and detectors are none of theirs.
fn in_a_request<E: Entry>(entry: &E, knob: &Knob<E::Settings>) -> Option<Result<(), String>> {
    let prefix = match E::KIND {
        "answer" => "answer_",
        "defence" => "",
        _ => return None,
    };
    let parameters = [
        (E::KIND.to_string(), entry.name().into()),
        (format!("{prefix}{}", knob.name), words(entry, knob).into()),
    ];
    let allowed = Allowed { default: Choice::default(), free: true, most: 1000 };
    Some(Choice::read(&parameters.into_iter().collect(), &allowed).map(|_| ()).map_err(|e| e.to_string()))
}

/// Every knob is taken by the entries that read it and refused by name by the others, whatever the front.
fn walk<E: Entry>() {
    for entry in E::table() {
        for knob in E::Settings::knobs() {
            let fronts = [
                ("command line", Some(on_the_command_line(entry, knob))),
                ("study", Some(in_a_study(entry, knob))),
                ("request", in_a_request(entry, knob)),
            ];
            for (front, taken) in fronts.into_iter().filter_map(|(front, taken)| Some((front, taken?))) {
                let place = format!("{front}: {} {} {}", E::KIND, entry.name(), knob.name);
                match (entry.reads().contains(&knob.name), taken) {
                    // a study has seeds of its own
                    (true, Err(sentence)) if (front, knob.name) == ("study", "seed") => {
                        assert!(sentence.contains("`seeds`"), "{place}: {sentence}");
                    }
                    (true, taken) => assert!(taken.is_ok(), "{place}: {taken:?}"),
                    (false, taken) => {
                        let sentence = taken.expect_err(&place);
                        let named = sentence.contains("does not read") && sentence.contains(knob.name);
                        assert!(named, "{place}: {sentence}");
                    }
                }
            }
        }
        let unknown: Vec<_> =
            entry.reads().iter().filter(|n| E::Settings::knobs().iter().all(|k| k.name != **n)).collect();
        assert!(unknown.is_empty(), "{} reads {unknown:?}, which are no knobs", entry.name());
    }
}

#[test]
fn every_front_takes_exactly_what_the_tables_read() {
    walk::<AnswerKind>();
    walk::<AttackKind>();
    walk::<DefenceKind>();
    walk::<DetectorKind>();
}

/// A knob that was renamed goes by its former name too.
#[test]
fn former_names_are_understood() {
    let mut spec = Spec::<AttackKind>::named("pgd").unwrap();
    given::<AttackKind>(vec!["--judge-draws".into(), "3".into()]).apply(&mut spec).unwrap();
    assert_eq!(spec.settings().final_draws, 3);
    assert!(spec.values().contains_key("final_draws"));
    study("[[attack]]\nkind = \"pgd\"\njudge_draws = [2, 3]").unwrap();
    let kept = evenkeel::Attack::named("pgd").unwrap().with("judge_draws", 5).unwrap();
    assert_eq!(kept.settings().final_draws, 5);
}

/// A radius without its 255 is refused with the cure, whatever the front.
#[test]
fn a_forgotten_255_is_noticed_in_every_front() {
    fn cured<T, E: ToString>(outcome: Result<T, E>) {
        let sentence = outcome.map(|_| ()).map_err(|e| e.to_string()).unwrap_err();
        assert!(sentence.contains("did you mean 4/255"), "{sentence}");
    }
    let line = |flag: &str| vec![flag.to_string(), "4".into()];
    cured(given::<AttackKind>(line("--epsilon")).apply(&mut Spec::named("pgd").unwrap()));
    cured(given::<DefenceKind>(line("--defence-epsilon")).apply(&mut Spec::named("equivariance").unwrap()));
    for table in ["[[attack]]\nkind = \"pgd\"", "[[defence]]\nkind = \"equivariance\""] {
        cured(study(&format!("{table}\nepsilon = 4")));
    }
    let parameters = [("defence".to_string(), "equivariance".into()), ("epsilon".to_string(), 4.into())];
    let allowed = Allowed { default: Choice::default(), free: true, most: 1000 };
    cured(Choice::read(&parameters.into_iter().collect(), &allowed));
}

#[test]
fn help_tells_the_one_default() {
    let mut command = KnobArgs::<DefenceKind>::augment_args(Command::new("test"));
    let help = command.render_long_help().to_string();
    let radius = format!("[default: {}/255]", DefenceSettings::default().epsilon_255);
    assert!(help.contains("--defence-epsilon") && help.contains(&radius), "{help}");
}

#[test]
fn a_switch_sets_its_value() {
    let mut spec = Spec::<AttackKind>::named("pgd").unwrap();
    given::<AttackKind>(vec!["--l2".into()]).apply(&mut spec).unwrap();
    assert_eq!(spec.settings().norm, evenkeel::Norm::L2);
}
