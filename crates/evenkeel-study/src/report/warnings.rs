//! What should make a reader doubt a figure: the sanity checks of an honest evaluation, and what an evaluation lacks.
//!
//! A gradient attack that a blind one beats was looking at masked gradients; an attack that grows weaker with more steps or a larger
//! budget is broken; a term without a gradient is not there. These come first in a report; a difference that the images at hand cannot tell
//! from chance says so, and comes after the others.

use evenkeel::attack::{AttackSettings, Estimator};
use evenkeel::budget::Norm;

use super::results::{Figure, Results};
use crate::experiment::{AimedAttack, Threat};
use evenkeel_data::metric::Unit;

/// One column that is an attack, with its figure in a row.
struct Seen<'a> {
    label: &'a str,
    spec: &'a AimedAttack,
    figure: Figure,
}

/// Which attacks.
type Choice<'c> = &'c dyn Fn(&&Seen<'_>) -> bool;

/// Whether the second attack differs from the first in one thing alone, and has more of it.
type Order<'c> = &'c dyn Fn(&AimedAttack, &AimedAttack) -> bool;

/// A reason to doubt.
#[derive(Debug)]
pub(super) struct Doubt {
    pub(super) words: String,
    /// Whether it may well be chance.
    pub(super) slight: bool,
}

impl Doubt {
    pub(super) fn sure(words: String) -> Self {
        Self { words, slight: false }
    }

    /// One that rests on the difference of two figures.
    pub(super) fn of(words: String, one: Figure, other: Figure) -> Self {
        let inside =
            |value: f64, of: Figure| of.interval.is_some_and(|(low, high)| low <= value && value <= high);
        let slight = inside(one.value, other) && inside(other.value, one);
        let words = if slight { words + " Each lies within the other's interval." } else { words };
        Self { words, slight }
    }
}

/// What the attacks themselves give reason to doubt.
pub(super) fn doubts(results: &Results<'_>) -> Vec<Doubt> {
    let mut all = Vec::new();
    for subject in 0..results.design.subjects.len() {
        let card = &results.design.subjects[subject];
        for (row, defence) in card.rows.iter().enumerate() {
            let seen: Vec<Seen<'_>> = card
                .columns
                .iter()
                .enumerate()
                .filter_map(|(column, c)| match &c.threat {
                    Threat::Attack(spec) if spec.target.is_none() => {
                        let figure = results.figure(subject, column, row)?;
                        Some(Seen { label: &c.label, spec, figure })
                    }
                    _ => None,
                })
                .collect();
            let place = format!("{}, {}", card.rule.name, defence.label);
            let bare = defence.is_none();
            masked(&place, bare, &seen, &mut all);
            monotone(&place, bare, &seen, &mut all);
            flat_terms(results, (subject, row), &place, &mut all);
            unbounded(&place, &seen, &mut all);
        }
    }
    all
}

/// What helps attacks through the defence that a transferred one beats.
const WARM: &str = " With `warm_steps`, attacks through the defence start there.";

/// Whether an attack asks for no gradient.
fn uses_no_gradient(aimed: &AimedAttack) -> bool {
    aimed.attack.name() == "square"
}

/// The radius in 1/255 and the norm.
fn budget_of(aimed: &AimedAttack) -> (f64, Norm) {
    let settings = aimed.attack.settings();
    (settings.epsilon_255, settings.norm)
}

/// Attacks that look through the defence (or, at the bare network, by its gradient) should beat those that do not.
fn masked(place: &str, bare: bool, seen: &[Seen<'_>], all: &mut Vec<Doubt>) {
    let blind = |s: &&Seen<'_>| uses_no_gradient(s.spec);
    let white = |s: &&Seen<'_>| if bare { !uses_no_gradient(s.spec) } else { s.spec.knows_defence() };
    let transfer = |s: &&Seen<'_>| !bare && !s.spec.knows_defence() && !uses_no_gradient(s.spec);
    let warm = seen.iter().any(|s| s.spec.attack.settings().warm_steps > 0);
    let groups: [(Choice<'_>, &str, &str); 2] = [
        (&blind, "which uses no gradient", ""),
        (&transfer, "made on the bare network", if warm { "" } else { WARM }),
    ];
    let lowest = |of: Choice<'_>, budget: (f64, Norm)| {
        let same = seen.iter().filter(|s| budget_of(s.spec) == budget).filter(of);
        same.min_by(|a, b| a.figure.merit().total_cmp(&b.figure.merit()))
    };
    let mut budgets: Vec<(f64, Norm)> = Vec::new();
    for budget in seen.iter().map(|s| budget_of(s.spec)) {
        if !budgets.contains(&budget) {
            budgets.push(budget);
        }
    }
    for (group, words, remedy) in groups {
        for &budget in &budgets {
            let (Some(other), Some(best)) = (lowest(group, budget), lowest(&white, budget)) else {
                continue;
            };
            if other.figure.merit() < best.figure.merit() {
                let words = format!(
                    "Masked gradients? {place}: {} ({words}) leaves {}, worse than the strongest white-box attack, {}, which leaves {}. The defended \
                     figure under white-box attack is too good; believe the worse one.{remedy}",
                    other.label,
                    other.figure.words(),
                    best.label,
                    best.figure.words()
                );
                all.push(Doubt::of(words, other.figure, best.figure));
            }
        }
    }
}

/// Whether two attacks are the same once a setting of the first is changed.
fn same_but(a: &AimedAttack, b: &AimedAttack, change: impl FnOnce(&mut AttackSettings)) -> bool {
    let mut changed = a.attack.settings().clone();
    change(&mut changed);
    (a.attack.name(), &a.target, &changed) == (b.attack.name(), &b.target, b.attack.settings())
}

/// More steps and larger budgets must not be weaker than the next smaller.
fn monotone(place: &str, bare: bool, seen: &[Seen<'_>], all: &mut Vec<Doubt>) {
    let more_steps = |a: &AimedAttack, b: &AimedAttack| {
        let most = b.attack.settings().steps;
        a.attack.settings().steps < most && same_but(a, b, |settings| settings.steps = most)
    };
    let more_room = |a: &AimedAttack, b: &AimedAttack| {
        let most = b.attack.settings().epsilon_255;
        a.attack.settings().epsilon_255 < most && same_but(a, b, |settings| settings.epsilon_255 = most)
    };
    let ways: [(Order<'_>, &str); 2] =
        [(&more_steps, "more steps are weaker"), (&more_room, "a larger budget is weaker")];
    for (more, what) in ways {
        for a in seen {
            for b in seen.iter().filter(|b| more(a.spec, b.spec) && b.figure.merit() > a.figure.merit()) {
                if seen.iter().any(|c| more(a.spec, c.spec) && more(c.spec, b.spec)) {
                    continue;
                }
                let blind = match !bare && !b.spec.knows_defence() {
                    true => " (made on the bare network, which it may fit too well)",
                    false => "",
                };
                let words = format!(
                    "Not monotone: {place}: {what}: {} leaves {}, {} leaves {}{blind}.",
                    a.label,
                    a.figure.words(),
                    b.label,
                    b.figure.words()
                );
                all.push(Doubt::of(words, a.figure, b.figure));
            }
        }
    }
}

/// The second term of an adaptive attack must have a gradient.
fn flat_terms(results: &Results<'_>, (subject, row): (usize, usize), place: &str, all: &mut Vec<Doubt>) {
    for (column, c) in results.design.subjects[subject].columns.iter().enumerate() {
        let results = results.results(subject, column, row);
        let flat = results.iter().filter(|r| r.term_gradient.is_some_and(|g| g < 1e-12)).count();
        if flat > 0 {
            all.push(Doubt::sure(format!(
                "A term that does nothing: {place}: {}: the second term has no gradient on {flat} of {} images.",
                c.label,
                results.len()
            )));
        }
    }
}

/// What an attack without a bound may leave and still have reached the floor.
const FLOOR: f64 = 0.05;

/// With no bound an attack must reach the floor.
fn unbounded(place: &str, seen: &[Seen<'_>], all: &mut Vec<Doubt>) {
    // values have no floor
    let left = |s: &&Seen<'_>| s.figure.unit == Unit::Share && s.figure.value > FLOOR;
    for s in seen.iter().filter(|s| is_unbounded(s.spec)).filter(left) {
        all.push(Doubt::sure(format!(
            "Not at the floor: {place}: {} has next to no bound and still leaves {}.",
            s.label,
            s.figure.words()
        )));
    }
}

/// Half of all there is, in every value.
fn is_unbounded(aimed: &AimedAttack) -> bool {
    let (epsilon_255, norm) = budget_of(aimed);
    norm == Norm::Linf && epsilon_255 >= 128.0
}

/// What an honest evaluation of a defence would contain and this study does not: for every subject and defence that climbs, by what it met.
pub(super) fn lacking(results: &Results<'_>) -> Vec<String> {
    let mut all: Vec<(Vec<String>, Vec<Place>)> = Vec::new();
    for (subject, card) in results.design.subjects.iter().enumerate() {
        for (row, defence) in card.rows.iter().enumerate().filter(|(_, d)| d.spec.takes_gradients()) {
            let met: Vec<&AimedAttack> = card
                .columns
                .iter()
                .enumerate()
                .filter(|(column, _)| !results.results(subject, *column, row).is_empty())
                .filter_map(|(_, c)| match &c.threat {
                    Threat::Attack(spec) => Some(spec),
                    _ => None,
                })
                .collect();
            if met.is_empty() {
                continue;
            }
            let lacks = not_met(&met, results.design.experiment.seeds.len(), !card.detectors.is_empty());
            let place = (card.rule.name.clone(), defence.label.clone());
            match all.iter_mut().find(|(known, _)| *known == lacks) {
                Some((_, places)) => places.push(place),
                None => all.push((lacks, vec![place])),
            }
        }
    }
    all.retain(|(lacks, _)| !lacks.is_empty());
    let sentence = |(lacks, places): &(Vec<String>, Vec<Place>)| {
        format!("An honest evaluation of {} would also contain: {}.", gathered(places), lacks.join("; "))
    };
    all.iter().map(sentence).collect()
}

/// A subject and a defence of it.
type Place = (String, String);

/// Names after which a list is cut short.
const NAMED: usize = 4;

/// The defences by subject; subjects with the same defences together.
fn gathered(places: &[Place]) -> String {
    let mut of_subject: Vec<(&str, Vec<&str>)> = Vec::new();
    for (subject, defence) in places {
        match of_subject.iter_mut().find(|(known, _)| known == subject) {
            Some((_, defences)) => defences.push(defence),
            None => of_subject.push((subject, vec![defence])),
        }
    }
    let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for (subject, defences) in of_subject {
        match groups.iter_mut().find(|(known, _)| *known == defences) {
            Some((_, subjects)) => subjects.push(subject),
            None => groups.push((defences, vec![subject])),
        }
    }
    // a comma in a name would pass for one between names
    let whole = |name: &&str| if name.contains(',') { format!("“{name}”") } else { (*name).to_string() };
    let list = |names: &[&str]| {
        let first = names.iter().take(NAMED).map(whole).collect::<Vec<_>>().join(", ");
        match names.len().saturating_sub(NAMED) {
            0 => first,
            more => format!("{first} and {more} more"),
        }
    };
    let words =
        |(defences, subjects): &(Vec<&str>, Vec<&str>)| format!("{} on {}", list(defences), list(subjects));
    groups.iter().map(words).collect::<Vec<_>>().join("; of ")
}

fn not_met(met: &[&AimedAttack], draws: usize, detects: bool) -> Vec<String> {
    let has = |test: &dyn Fn(&AttackSettings) -> bool| met.iter().any(|a| test(a.attack.settings()));
    let by = |estimator: Estimator| move |s: &AttackSettings| s.looks_through() == Some(estimator);
    let bpda = |s: &AttackSettings| by(Estimator::Identity)(s) && !s.known_draw;
    let adaptive = || met.iter().filter(|a| a.attack.entry().reads_objective).map(|a| a.attack.settings());
    let several = |values: Vec<f64>| values.iter().any(|v| *v != values[0]);
    let checks = [
        (has(&bpda), "BPDA"),
        (has(&|s| bpda(s) && s.draws >= 20), "BPDA with at least 20 draws (EOT)"),
        (has(&|s| s.known_draw), "an attacker who knows the defence's random numbers"),
        (has(&by(Estimator::Exact)), "the gradient through the unrolled defence"),
        (several(adaptive().map(|s| s.weight).collect()), "the adaptive attack with a sweep of its weight"),
        (met.iter().any(|a| uses_no_gradient(a)), "a black-box attack"),
        (several(met.iter().map(|a| budget_of(a).0).collect()), "larger and smaller budgets"),
        (met.iter().any(|a| is_unbounded(a)), "a budget without bound"),
        (draws > 1, "several draws of the defence's randomness"),
        (!detects || adaptive().next().is_some(), "an attacker who also keeps the detector quiet"),
    ];
    checks.iter().filter(|(there, _)| !there).map(|(_, what)| (*what).to_string()).collect()
}

#[cfg(test)]
mod tests {
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
        AimedAttack {
            attack: attack.attack.clone().with(knob, value).unwrap(),
            target: attack.target.clone(),
        }
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
        assert!(
            all.len() == 1 && all[0].words.contains("square") && all[0].words.contains("30.0"),
            "{all:?}"
        );
        masked("s, e", false, &[seen(&pgd, "pgd", 0.3), seen(&bpda, "bpda", 0.4)], &mut all);
        assert!(all.len() == 2 && all[1].words.contains("made on the bare network"), "{all:?}");
        assert!(all[1].words.contains("warm_steps") && !all[0].words.contains("warm_steps"), "{all:?}");
        let warm = with(&bpda, "warm_steps", 9usize);
        masked("s, e", false, &[seen(&pgd, "pgd", 0.3), seen(&warm, "warm", 0.4)], &mut all);
        assert!(
            all.pop().is_some_and(|doubt| !doubt.words.contains("warm_steps")),
            "it starts there already"
        );
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
            let figure = Figure {
                value,
                interval: Some(interval),
                images: 4,
                unit: Unit::Share,
                better: Better::Higher,
            };
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
            let figure =
                Figure { unit: Unit::Value, better: Better::Lower, ..seen(spec, label, value).figure };
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
}
