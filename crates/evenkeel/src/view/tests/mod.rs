//! Views against PyTorch, against their own transposes, against what undoing should give back, and against an earlier release.

mod kinds;
mod pytorch;
mod sets;
mod unchanged;

use super::*;
use crate::network::Extents;
use crate::random::Random;

fn noise(count: usize, random: &mut Random) -> Vec<f32> {
    (0..count).map(|_| random.uniform(0.05, 0.95)).collect()
}

fn image(size: (usize, usize), random: &mut Random) -> Image {
    Image::new(size.0, size.1, noise(3 * size.0 * size.1, random)).unwrap()
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// The sets that have a name.
fn all_sets() -> Vec<(String, ViewSet)> {
    view_sets().into_iter().map(|(name, _)| (name.clone(), ViewSet::named(&name).unwrap())).collect()
}

/// Every distinct rule of the named sets, and two that set every key of theirs; at least one of each kind of the table.
fn rules() -> Vec<ViewRule> {
    let shear = [("degrees", [-30.0, 30.0].into()), ("vertical_degrees", [-30.0, 30.0].into())];
    let mut rules = ViewSet::contrastive(1).rules;
    rules.push(ViewRule::of("shear", &shear).unwrap());
    for rule in all_sets().into_iter().flat_map(|(_, set)| set.rules) {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    for kind in VIEWS {
        assert!(rules.iter().any(|rule| rule.kind().name == kind.name), "no named set has {}", kind.name);
    }
    rules
}
