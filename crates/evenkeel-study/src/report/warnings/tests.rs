//! Which warnings a report gives, and which it leaves out.

use super::*;
use crate::experiment::spec;
use evenkeel_data::metric::Better;

fn seen<'a>(spec: &'a AimedAttack, label: &'a str, value: f64) -> Seen<'a> {
    Seen {
        label,
        spec,
        figure: Figure { value, interval: None, images: 4, unit: Unit::Share, better: Better::Higher },
    }
}

fn attack(kind: &str, steps: usize, epsilon_255: f64) -> AimedAttack {
    let text = format!(
        "name='x'\n[[subject]]\nname='s'\nmodel='m'\ndata='d'\npath='p'\n[[attack]]\nkind='{kind}'\nsteps={steps}\nepsilon_255={epsilon_255}"
    );
    let experiment: crate::experiment::Experiment = toml::from_str(&text).unwrap();
    let columns = spec::columns(&experiment, &experiment.subjects[0]).unwrap();
    let Threat::Attack(spec) = &columns[1].threat else { panic!("an attack") };
    spec.clone()
}

fn with(attack: &AimedAttack, knob: &str, value: impl Into<evenkeel::settings::Value>) -> AimedAttack {
    AimedAttack { attack: attack.attack.clone().with(knob, value).unwrap(), target: attack.target.clone() }
}

#[test]
fn subjects_with_the_same_defences_are_told_together_and_long_lists_are_cut() {
    let place = |subject: &str, defence: &str| (subject.to_string(), defence.to_string());
    let two = [place("a", "x"), place("a", "y"), place("b", "x"), place("b", "y"), place("c", "x")];
    assert_eq!(gathered(&two), "x, y on a, b; of x on c");
    let many: Vec<Place> = (1..=6).map(|i| place("a", &format!("d{i}"))).collect();
    assert_eq!(gathered(&many), "d1, d2, d3, d4 and 2 more on a");
    let comma = [place("a", "x"), place("a, hardened", "x")];
    assert_eq!(gathered(&comma), "x on a, “a, hardened”");
}

#[test]
fn masked_gradients_and_weaker_budgets_are_seen() {
    let (square, bpda, pgd) = (attack("square", 9, 4.0), attack("bpda", 9, 4.0), attack("pgd", 9, 4.0));
    let mut all = Vec::new();
    masked("s, e", false, &[seen(&square, "square", 0.3), seen(&bpda, "bpda", 0.4)], &mut all);
    assert!(all.len() == 1 && all[0].words.contains("square") && all[0].words.contains("30.0"), "{all:?}");
    masked("s, e", false, &[seen(&pgd, "pgd", 0.3), seen(&bpda, "bpda", 0.4)], &mut all);
    assert!(all.len() == 2 && all[1].words.contains("made on the bare network"), "{all:?}");
    assert!(all[1].words.contains("warm_steps") && !all[0].words.contains("warm_steps"), "{all:?}");
    let warm = with(&bpda, "warm_steps", 9usize);
    masked("s, e", false, &[seen(&pgd, "pgd", 0.3), seen(&warm, "warm", 0.4)], &mut all);
    assert!(all.pop().is_some_and(|doubt| !doubt.words.contains("warm_steps")), "it starts there already");
    masked("s, e", false, &[seen(&pgd, "pgd", 0.5), seen(&bpda, "bpda", 0.4)], &mut all);
    masked("s, none", true, &[seen(&pgd, "pgd", 0.2), seen(&square, "square", 0.4)], &mut all);
    assert_eq!(all.len(), 2, "{all:?}");
    let (long, wide, free) = (attack("pgd", 99, 4.0), attack("pgd", 9, 8.0), attack("pgd", 9, 255.0));
    let mut all = Vec::new();
    let list = [seen(&pgd, "pgd", 0.3), seen(&long, "long", 0.35), seen(&wide, "wide", 0.2)];
    monotone("s, e", false, &list, &mut all);
    assert!(all.len() == 1 && all[0].words.contains("more steps are weaker"), "{all:?}");
    assert!(all[0].words.contains("made on the bare network"), "{all:?}");
    monotone("s, none", true, &[seen(&pgd, "pgd", 0.3), seen(&wide, "wide", 0.31)], &mut all);
    assert!(
        all.len() == 2 && all[1].words.contains("larger budget") && !all[1].words.contains("made on"),
        "{all:?}"
    );
    let middle = attack("pgd", 20, 4.0);
    let list = [seen(&pgd, "pgd", 0.3), seen(&long, "long", 0.35), seen(&middle, "middle", 0.32)];
    let mut steps = Vec::new();
    monotone("s, e", false, &list, &mut steps);
    assert!(steps.len() == 2 && steps.iter().all(|s| s.words.contains("middle")), "{steps:?}");
    unbounded("s, e", &[seen(&free, "free", 0.5), seen(&pgd, "pgd", 0.5)], &mut all);
    assert!(all.len() == 3 && all[2].words.contains("Not at the floor"), "{all:?}");
}

#[test]
fn what_may_be_chance_is_told_apart() {
    let (pgd, long) = (attack("pgd", 9, 4.0), attack("pgd", 99, 4.0));
    let with = |spec, value, interval| {
        let figure =
            Figure { value, interval: Some(interval), images: 4, unit: Unit::Share, better: Better::Higher };
        Seen { label: "x", spec, figure }
    };
    for (interval, slight) in [((0.25, 0.37), true), ((0.32, 0.37), false)] {
        let mut all = Vec::new();
        let list = [with(&pgd, 0.3, (0.2, 0.4)), with(&long, 0.35, interval)];
        monotone("s, none", true, &list, &mut all);
        assert_eq!(all.len(), 1);
        assert_eq!(
            (all[0].slight, all[0].words.contains("other's interval")),
            (slight, slight),
            "{}",
            all[0].words
        );
    }
}

#[test]
fn what_a_defence_did_not_meet_is_named() {
    let eot = |draws: usize| with(&attack("bpda-eot", 9, 4.0), "draws", draws);
    let aimed = |weight: f64| with(&attack("adaptive", 9, 4.0), "weight", weight);
    let (pgd, free) = (attack("pgd", 9, 4.0), attack("pgd", 9, 255.0));
    let rest = ["bpda", "fixed-seed", "unrolled", "square"].map(|kind| attack(kind, 9, 4.0));
    let (many, few) = (eot(20), eot(5));
    let (one, two) = (aimed(1.0), aimed(10.0));
    let mut met: Vec<&AimedAttack> = vec![&pgd, &free, &many, &one, &two];
    met.extend(&rest);
    assert!(not_met(&met, 2, true).is_empty());
    assert_eq!(not_met(&met, 1, true), ["several draws of the defence's randomness"]);
    met.retain(|a| {
        let settings = a.attack.settings();
        a.attack.name() != "bpda-eot" && settings.weight != 10.0 && settings.epsilon_255 == 4.0
    });
    met.push(&few);
    let lacks = not_met(&met, 2, true).join("; ");
    for words in ["20 draws", "sweep", "budgets", "without bound"] {
        assert!(lacks.contains(words), "{words}: {lacks}");
    }
    assert_eq!(lacks.matches(';').count(), 3, "{lacks}");
    assert!(not_met(&[&pgd], 2, true).iter().any(|l| l.contains("detector quiet")));
}

/// An error grows under attack: the attack that leaves the larger one is the stronger.
#[test]
fn errors_are_compared_the_other_way_round() {
    let metres = |spec, label, value| {
        let figure = Figure { unit: Unit::Value, better: Better::Lower, ..seen(spec, label, value).figure };
        Seen { label, spec, figure }
    };
    let (pgd, long, free) = (attack("pgd", 9, 4.0), attack("pgd", 99, 4.0), attack("pgd", 9, 255.0));
    let mut all = Vec::new();
    monotone("s, none", true, &[metres(&pgd, "pgd", 2.0), metres(&long, "long", 3.0)], &mut all);
    unbounded("s, none", &[metres(&free, "free", 19.0)], &mut all);
    assert!(all.is_empty(), "{all:?}");
    monotone("s, none", true, &[metres(&pgd, "pgd", 3.0), metres(&long, "long", 2.0)], &mut all);
    assert!(all.len() == 1 && all[0].words.contains("pgd leaves 3.0000, long leaves 2.0000"), "{all:?}");
}

#[test]
fn budgets_of_two_norms_are_not_compared() {
    let square = with(&attack("square", 9, 4.0), "norm", "l2");
    let bpda = attack("bpda", 9, 4.0);
    let mut all = Vec::new();
    masked("s, e", false, &[seen(&square, "square", 0.3), seen(&bpda, "bpda", 0.4)], &mut all);
    let half = with(&attack("pgd", 9, 128.0), "norm", "l2");
    unbounded("s, e", &[seen(&half, "half", 0.5)], &mut all);
    assert!(all.is_empty(), "{all:?}");
}
