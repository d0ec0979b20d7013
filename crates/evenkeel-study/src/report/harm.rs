//! What a defence costs and a study cannot carry, as doubts: clean scores lowered, an objective lowered by the defence that raises it, too few images, a promised
//! coverage that was missed.
//!
//! These are not sanity checks of attacks, which `warnings` has; they stand beside them at the head of the page.

use evenkeel_data::metric::Unit;

use super::calibrated::{self, PROMISED};
use super::detection::Detections;
use super::results::{Figure, Results};
use super::tables::mean;
use super::warnings::Doubt;

/// What a defence may cost on clean images before a reader is warned: points of a share, or the same part of a figure in another unit.
const POINTS: f64 = 0.05;
/// Images below which a study is a trial.
const FEW: usize = 20;
/// Columns named in one sentence.
const NAMED: usize = 3;

/// All of them, by subject.
pub(super) fn doubts(results: &Results<'_>, detections: &Detections) -> Vec<Doubt> {
    let subjects = results.design.subjects.iter().enumerate().filter(|(_, card)| card.foreign.is_none());
    let mut all = Vec::new();
    for (subject, card) in subjects {
        all.extend(few(&card.rule.name, card.images.len()));
        for row in 1..card.rows.len() {
            all.extend(clean_cost(results, subject, row));
            all.extend(lowered(results, subject, row));
        }
        if let Some((held, of)) = calibrated::coverage(results.design, detections, subject) {
            all.extend(uncovered(&card.rule.name, held, of));
        }
    }
    all
}

fn few(name: &str, images: usize) -> Option<Doubt> {
    (1..FEW).contains(&images).then(|| {
        let plural = if images == 1 { "image" } else { "images" };
        Doubt::sure(format!(
            "Few images: {name} has {images} {plural}, fewer than {FEW}: its figures and intervals say little."
        ))
    })
}

fn clean_cost(results: &Results<'_>, subject: usize, row: usize) -> Option<Doubt> {
    let card = &results.design.subjects[subject];
    let (bare, defended) = (results.figure(subject, 0, 0)?, results.figure(subject, 0, row)?);
    costs(&format!("{}, {}", card.rule.name, card.rows[row].label), bare, defended)
}

/// A defence that costs clean images too much; a difference that may be chance says so.
fn costs(place: &str, bare: Figure, defended: Figure) -> Option<Doubt> {
    let lost = bare.merit() - defended.merit();
    let most = if bare.unit == Unit::Share { POINTS } else { POINTS * bare.value.abs() };
    (lost > most).then(|| {
        let sentence = format!(
            "It costs clean images: {place}: clean images go from {} without a defence to {} with it.",
            bare.words(),
            defended.words()
        );
        Doubt::of(sentence, bare, defended)
    })
}

/// A defence after which its own objective is lower than before.
fn lowered(results: &Results<'_>, subject: usize, row: usize) -> Option<Doubt> {
    let card = &results.design.subjects[subject];
    let mut found = Vec::new();
    for (column, c) in card.columns.iter().enumerate() {
        let pairs = || results.results(subject, column, row).iter().filter_map(|r| r.objective);
        let (Some(before), Some(after)) = (mean(pairs().map(|o| o.0)), mean(pairs().map(|o| o.1))) else {
            continue;
        };
        if after < before {
            found.push(format!("{} {before:.3} to {after:.3}", c.label));
        }
    }
    let more = match found.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (!found.is_empty()).then(|| {
        found.truncate(NAMED);
        Doubt::sure(format!(
            "It lowers what it should raise: {}, {}: its own objective is lower after the defence than before: {}{more}.",
            card.rule.name,
            card.rows[row].label,
            found.join(", ")
        ))
    })
}

/// An interval that held on fewer clean images than was promised. It may be chance if chance gives so few at least one time in twenty.
fn uncovered(name: &str, held: usize, of: usize) -> Option<Doubt> {
    let coverage = held as f64 / of.max(1) as f64;
    (of > 0 && coverage < PROMISED).then(|| {
        let mut words = format!(
            "Promised coverage missed: {name}: the interval of the error estimate was to hold on {:.0} % of clean images and held on {:.0} % of {of}.",
            100.0 * PROMISED,
            100.0 * coverage
        );
        let slight = at_most(held, of, PROMISED) > 0.05;
        if slight {
            words += " So few may come about by chance.";
        }
        Doubt { words, slight }
    })
}

/// The probability of at most `k` of `n`, each with probability `p`.
fn at_most(k: usize, n: usize, p: f64) -> f64 {
    // ln of the term, from one to the next: C(n, i) p^i (1 − p)^(n − i)
    let mut term = n as f64 * (1.0 - p).ln();
    let mut sum = 0.0;
    for i in 0..=k.min(n) {
        sum += term.exp();
        term += ((n - i) as f64 / (i + 1) as f64).ln() + (p / (1.0 - p)).ln();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_data::metric::Better;

    fn figure(value: f64, interval: (f64, f64), unit: Unit) -> Figure {
        let better = if unit == Unit::Share { Better::Higher } else { Better::Lower };
        Figure { value, interval: Some(interval), images: 40, unit, better }
    }

    #[test]
    fn more_than_five_points_are_told_and_chance_is_told_apart() {
        let share = |value, interval| figure(value, interval, Unit::Share);
        let bare = share(0.60, (0.55, 0.65));
        assert!(costs("s, d", bare, share(0.56, (0.5, 0.6))).is_none(), "four points");
        let sure = costs("s, d", bare, share(0.40, (0.35, 0.45))).unwrap();
        assert!(sure.words.contains("60.0") && sure.words.contains("40.0") && !sure.slight, "{sure:?}");
        assert!(costs("s, d", bare, share(0.54, (0.4, 0.7))).is_some_and(|doubt| !doubt.slight));
        let wide = share(0.60, (0.3, 0.9));
        assert!(costs("s, d", wide, share(0.54, (0.4, 0.7))).is_some_and(|doubt| doubt.slight));
        let metres = |value| figure(value, (0.0, 0.1), Unit::Value);
        assert!(costs("s, d", metres(2.0), metres(2.05)).is_none());
        assert!(costs("s, d", metres(2.0), metres(1.0)).is_none(), "it gains");
        assert!(costs("s, d", metres(2.0), metres(2.5)).unwrap().words.contains("2.500"));
    }

    #[test]
    fn few_images_are_told() {
        assert!(few("s", 20).is_none() && few("s", 0).is_none());
        assert!(
            few("s", 19).unwrap().words.contains("19 images")
                && few("s", 1).unwrap().words.contains("1 image,")
        );
    }

    #[test]
    fn coverage_that_is_missed_is_told() {
        assert!(uncovered("s", 9, 10).is_none() && uncovered("s", 0, 0).is_none());
        assert!(uncovered("s", 8, 10).is_some_and(|doubt| doubt.slight));
        assert!(
            uncovered("s", 120, 200)
                .is_some_and(|doubt| !doubt.slight && doubt.words.contains("60 % of 200"))
        );
        // 0.1² + 2·0.9·0.1, and everything
        assert!((at_most(1, 2, 0.9) - 0.19).abs() < 1e-12 && (at_most(5, 5, 0.9) - 1.0).abs() < 1e-12);
    }
}
