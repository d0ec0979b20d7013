//! Sets of views that have a name: the standard ones, and `only-…` for eight views of one kind.

use super::{VIEWS, Value, ViewKind, ViewRule, ViewSet};

/// The stretch of the published set.
pub(super) const STRETCH: [f32; 2] = [0.8, 1.2];

/// A named set: its name, a line about it, its rules.
type Named = (&'static str, &'static str, fn() -> Vec<ViewRule>);

const SETS: &[Named] = &[
    ("standard", "the published eight: four resizes, two rotations, colours, a flip", || {
        ViewSet::standard().rules
    }),
    (
        "reference",
        "the standard set with rotations in normalised coordinates, as the reference code has them",
        || ViewSet::reference().rules,
    ),
    ("vote", "six for votes: a flip, two smaller sizes, three larger ones", || {
        [vec![flipped()], [0.5, 0.75, 1.4, 2.0, 2.0].map(resized).to_vec()].concat()
    }),
    ("teach", "six for views that teach: a flip, three sizes, two small rotations", || {
        let rotate = |low: f32, high: f32| rule("rotate", &[("degrees", [low, high].into())]);
        let turned = vec![rotate(-12.0, -6.0), rotate(6.0, 12.0)];
        [vec![flipped()], [0.5, 0.75, 1.4].map(resized).to_vec(), turned].concat()
    }),
    ("only-resize", "eight resizes by the standard factors, stretched", || {
        let scales = [2.0, 0.3, 2.0, 0.5, 2.0, 0.3, 2.0, 0.5];
        scales.map(|scale| rule("resize", &[("scale", scale.into()), ("stretch", STRETCH.into())])).to_vec()
    }),
    ("only-rotation", "eight rotations by up to 15 degrees", || {
        vec![rule("rotate", &[("degrees", [-15.0, 15.0].into())]); 8]
    }),
    ("only-flip", "eight flips, stretched", || vec![rule("flip", &[("stretch", STRETCH.into())]); 8]),
    ("only-turn", "eight turns by one, two or three quarters", || {
        vec![rule("turn", &[("quarters", vec![1, 2, 3].into())]); 8]
    }),
    ("only-crop", "eight windows of 60 to 100 % of each side", || {
        vec![rule("crop", &[("share", [0.6, 1.0].into())]); 8]
    }),
    ("only-translate", "eight moves by up to 10 % of each side", || {
        vec![rule("translate", &[("most", 0.1.into())]); 8]
    }),
    ("only-colour", "eight changes of colours, stretched", || vec![colours(); 8]),
];

/// A flip, stretched a little.
fn flipped() -> ViewRule {
    rule("flip", &[("stretch", [0.95, 1.05].into())])
}

/// Another size, stretched a little.
fn resized(scale: f32) -> ViewRule {
    rule("resize", &[("scale", scale.into()), ("stretch", [0.95, 1.05].into())])
}

/// A rule whose values are written in this crate.
pub(super) fn rule(kind: &str, given: &[(&str, Value)]) -> ViewRule {
    ViewRule::of(kind, given).expect("a rule of the crate's own")
}

/// The colours of the published set.
pub(super) fn colours() -> ViewRule {
    let amounts =
        [("brightness", 0.8), ("contrast", 0.8), ("saturation", 0.8), ("hue", 0.2), ("greyscale", 0.2)];
    let mut given: Vec<(&str, Value)> = amounts.map(|(name, amount)| (name, amount.into())).to_vec();
    given.push(("stretch", STRETCH.into()));
    rule("colour", &given)
}

/// The kinds that need no values to be drawn and have no set of their own above; eight of one are `only-KIND`.
fn complete_kinds() -> impl Iterator<Item = (String, &'static ViewKind)> {
    let listed = |name: &str| SETS.iter().any(|set| set.0 == name);
    let complete = VIEWS.iter().filter(|kind| kind.keys.iter().all(|key| key.default.is_some()));
    complete.map(|kind| (format!("only-{}", kind.name), kind)).filter(move |(name, _)| !listed(name))
}

/// The names of sets that [`ViewSet::named`] knows, each with a line about it.
pub fn view_sets() -> Vec<(String, String)> {
    let named = SETS.iter().map(|(name, about, _)| (name.to_string(), about.to_string()));
    let rest =
        complete_kinds().map(|(name, kind)| (name, format!("eight views by default values: {}", kind.about)));
    named.chain(rest).collect()
}

/// The set of this name.
pub(super) fn find(name: &str) -> Option<ViewSet> {
    if let Some((_, _, rules)) = SETS.iter().find(|set| set.0 == name) {
        return Some(ViewSet::of(rules()));
    }
    let (_, kind) = complete_kinds().find(|(own, _)| own == name)?;
    Some(ViewSet::of(vec![rule(kind.name, &[]); 8]))
}
