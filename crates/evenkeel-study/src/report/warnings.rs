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

/// Attacks that aim through the defence (or, at the bare network, by its gradient) should beat those that do not.
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

/// What an honest evaluation of a defence would contain and this study does not: for every subject and defence that takes gradients, by what it met.
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
    let by = |estimator: Estimator| move |s: &AttackSettings| s.aims_through() == Some(estimator);
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
mod tests;
