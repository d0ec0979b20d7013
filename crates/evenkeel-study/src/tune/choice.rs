//! The choice: who is on the front, and which one is taken, by a rule that can be said in a sentence.
//!
//! One is better than another if it is no worse in clean score, under unaware attackers, under aware ones and in cost, and better in one. The rule: among those that
//! lose at most a given number of points clean, the best under aware attackers; of those that cannot be told from it (their intervals overlap), the best under unaware ones, and
//! then the cheapest. So says the half that chooses. On the half that judges it must lose no more, and beat the bare network beyond the intervals; else the next one
//! is taken, and the alarm alone is recommended if none is left.

use super::judged::{BARE, Judged};
use crate::report::results::Figure;
use crate::{Error, Result};

/// What decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// How many points of the clean score may be lost.
    pub clean_loss: f64,
}

impl Rule {
    /// The rule in a sentence.
    pub fn words(&self) -> String {
        format!(
            "of those that lose at most {} points clean, the best under attackers who know it; of those that cannot be told from it, the best under attackers who do not, \
             then the cheapest; the images that did not choose must agree that it loses no more and beats the bare network beyond the intervals, or the next one is \
             taken; the alarm alone if none is left",
            self.clean_loss
        )
    }
}

/// What is recommended.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The bare network.
    pub bare: Judged,
    /// What to use; none for the alarm alone.
    pub chosen: Option<Judged>,
    /// The labels on the front.
    pub front: Vec<String>,
}

fn ends(figure: &Figure) -> (f64, f64) {
    figure.interval.unwrap_or((figure.value, figure.value))
}

/// The worst that attackers who know it leave; those who do not, where the others were not tried.
fn worst(one: &Judged) -> Figure {
    one.aware.unwrap_or(one.unaware)
}

fn beats(one: &Figure, other: &Figure) -> bool {
    ends(one).0 > ends(other).1
}

fn dominates(a: &Judged, b: &Judged) -> bool {
    let sides = |j: &Judged| [j.clean.value, j.unaware.value, worst(j).value, -j.cost];
    let pairs = || sides(a).into_iter().zip(sides(b));
    pairs().all(|(a, b)| a >= b) && pairs().any(|(a, b)| a > b)
}

/// Those that no other is better than in everything.
pub fn front(all: &[Judged]) -> Vec<&Judged> {
    all.iter().filter(|one| !all.iter().any(|other| dominates(other, one))).collect()
}

fn bare(all: &[Judged]) -> Option<&Judged> {
    all.iter().find(|one| one.candidate == BARE)
}

/// All but the bare network, the best first: those within the clean loss before the others, then by the mean of both worst cases.
pub(super) fn ranked<'j>(all: &'j [Judged], rule: &Rule) -> Vec<&'j Judged> {
    let least = bare(all).map_or(f64::NEG_INFINITY, |bare| bare.clean.value - rule.clean_loss / 100.0);
    let mut left: Vec<&Judged> = all.iter().filter(|one| one.candidate != BARE).collect();
    let key = |one: &&Judged| (one.clean.value >= least, worst(one).value + one.unaware.value, -one.cost);
    left.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(b.2.total_cmp(&a.2))
    });
    left
}

/// Those that lose little enough clean, the rule's favourite first.
fn favourites<'j>(all: &'j [Judged], rule: &Rule) -> Vec<&'j Judged> {
    let least = bare(all).map_or(f64::NEG_INFINITY, |bare| bare.clean.value - rule.clean_loss / 100.0);
    let mut able: Vec<&Judged> =
        all.iter().filter(|one| one.candidate != BARE && one.clean.value >= least).collect();
    let top = able.iter().map(|one| worst(one)).max_by(|a, b| a.value.total_cmp(&b.value));
    let level = |one: &Judged| top.is_some_and(|top| ends(&worst(one)).1 >= ends(&top).0);
    able.sort_by(|a, b| {
        let by_value = match (level(a), level(b)) {
            (true, true) => b.unaware.value.total_cmp(&a.unaware.value),
            (false, false) => worst(b).value.total_cmp(&worst(a).value),
            (a, b) => b.cmp(&a),
        };
        by_value.then(a.cost.total_cmp(&b.cost))
    });
    able
}

/// The choice by the rule: what the first half prefers of what the second half `judged` to help.
///
/// # Errors
/// If nothing was judged.
pub fn choose(chosen_by: &[Judged], judged: &[Judged], rule: &Rule) -> Result<Choice> {
    let nothing =
        || Error::Request("no candidate could be judged in the time; give it more --minutes".into());
    let bare = bare(judged).ok_or_else(nothing)?;
    let least = bare.clean.value - rule.clean_loss / 100.0;
    let helps = |one: &&Judged| {
        one.clean.value >= least && (beats(&worst(one), &worst(bare)) || beats(&one.unaware, &bare.unaware))
    };
    let of = |favourite: &&Judged| judged.iter().find(|one| one.label == favourite.label);
    let chosen = favourites(chosen_by, rule).iter().filter_map(of).find(helps);
    let front = front(judged).iter().map(|one| one.label.clone()).collect();
    Ok(Choice { bare: bare.clone(), chosen: chosen.cloned(), front })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(label: &str, [clean, unaware, aware]: [f64; 3], cost: f64) -> Judged {
        let at = |v: f64| Figure {
            value: v / 100.0,
            interval: Some((v / 100.0 - 0.02, v / 100.0 + 0.02)),
            images: 5,
            unit: evenkeel_data::metric::Unit::Share,
            better: evenkeel_data::metric::Better::Higher,
        };
        Judged {
            label: label.into(),
            candidate: label.into(),
            threshold: None,
            threshold_images: 0,
            clean: at(clean),
            unaware: at(unaware),
            aware: Some(at(aware)),
            cost,
        }
    }

    const RULE: Rule = Rule { clean_loss: 2.0 };

    fn chosen(all: &[Judged]) -> Option<String> {
        choose(all, all, &RULE).unwrap().chosen.map(|one| one.label)
    }

    #[test]
    fn the_best_under_knowing_attackers_is_taken_unless_it_costs_too_much() {
        let bare = one("none", [80.0, 5.0, 1.0], 1.0);
        let strong = one("strong", [79.0, 50.0, 30.0], 70.0);
        let dear = one("dear", [60.0, 60.0, 50.0], 70.0);
        assert_eq!(chosen(&[bare.clone(), strong.clone(), dear]), Some("strong".into()));
        // cannot be told from the strongest, and better against those who do not know it
        let even = one("even", [79.0, 60.0, 28.0], 70.0);
        assert_eq!(chosen(&[bare.clone(), strong.clone(), even.clone()]), Some("even".into()));
        let cheap = Judged { cost: 7.0, ..one("cheap", [79.0, 60.0, 28.0], 7.0) };
        assert_eq!(chosen(&[bare, strong, even, cheap]), Some("cheap".into()));
    }

    #[test]
    fn what_helps_nobody_is_not_recommended() {
        let bare = one("none", [80.0, 5.0, 1.0], 1.0);
        let weak = one("weak", [79.5, 7.0, 3.0], 7.0);
        assert_eq!(chosen(&[bare.clone(), weak]), None);
        let alone = [one("x", [1.0; 3], 1.0)];
        assert!(choose(&alone, &alone, &RULE).is_err(), "without the bare network");
        assert_eq!(chosen(&[bare]), None);
    }

    #[test]
    fn one_half_chooses_and_the_other_may_only_refuse() {
        let bare = one("none", [80.0, 5.0, 1.0], 1.0);
        let [good, best] = [[79.0, 50.0, 30.0], [79.0, 60.0, 40.0]].map(|f| one("", f, 7.0));
        let named = |label: &str, one: &Judged| Judged { label: label.into(), ..one.clone() };
        let half = |a: &Judged, b: &Judged| vec![bare.clone(), named("a", a), named("b", b)];
        let chosen = |by: &[Judged], judged: &[Judged]| choose(by, judged, &RULE).unwrap().chosen.unwrap();
        let taken = chosen(&half(&best, &good), &half(&good, &best));
        assert_eq!((taken.label.as_str(), taken.unaware.value), ("a", 0.5), "its figures are the judges'");
        let dear = one("", [70.0, 60.0, 50.0], 7.0);
        assert_eq!(chosen(&half(&best, &good), &half(&dear, &good)).label, "b");
    }

    #[test]
    fn the_front_leaves_out_what_is_worse_in_everything() {
        let all = [
            one("none", [80.0, 5.0, 1.0], 1.0),
            one("good", [79.0, 50.0, 30.0], 70.0),
            one("worse", [78.0, 50.0, 30.0], 70.0),
            one("cheap", [78.0, 20.0, 10.0], 7.0),
        ];
        let labels: Vec<&str> = front(&all).iter().map(|one| one.label.as_str()).collect();
        assert_eq!(labels, ["none", "good", "cheap"]);
    }
}
