//! Views of every old set, as an earlier release made them: `testdata/views/unchanged.json`.
//!
//! A case names the set, the canvas and the seed, and holds a hash of all that its views give (image, undone map, both pullbacks and
//! mask) in steps of 1/255 and one of the exact values. The first is what the test compares; the second, which the last bits of the
//! system's sine decide, only with `EVENKEEL_EXACT=1`.

use serde_json::Value as Json;

use super::*;

fn set_of(name: &str) -> ViewSet {
    let rule = |kind: &str, key: &str, value: Value| ViewRule::of(kind, &[(key, value)]).unwrap();
    match name {
        "contrastive" => ViewSet::contrastive(4),
        "windows" => {
            ViewSet::of(vec![rule("crop", "share", [0.4, 0.9].into()), rule("translate", "most", 0.3.into())])
        }
        named => ViewSet::named(named).unwrap(),
    }
}

fn all_values(view: &DrawnView, x: &Image) -> Vec<f32> {
    let placed = view.placed(x.size());
    let seen = placed.apply(x);
    let cotangent: Vec<f32> = seen.pixels().iter().map(|v| 1.0 - v).collect();
    let (height, width) = (seen.height().div_ceil(2), seen.width().div_ceil(3));
    let features: Vec<f32> = (0..2 * height * width).map(|i| (i % 7) as f32 / 7.0).collect();
    let undo = placed.undo_onto((height, width), (10, 10));
    let undone = undo.apply(&features, 2);
    let (back, pulled) = (placed.pull_apply(x, &cotangent), undo.pullback(&undone, 2));
    [seen.pixels(), &back, &undone, &pulled, undo.mask()].concat()
}

#[test]
fn sets_make_the_views_they_made_before() {
    let cases: Vec<Json> =
        serde_json::from_str(include_str!("../../../../../testdata/views/unchanged.json")).unwrap();
    assert_eq!(cases.len(), 108);
    let mut random = Random::new(1);
    let x = Image::new(20, 28, (0..3 * 20 * 28).map(|_| random.unit()).collect()).unwrap();
    let exact = std::env::var_os("EVENKEEL_EXACT").is_some();
    for case in &cases {
        let (fixed, multiple) = (case["fixed_canvas"] == true, case["multiple"].as_u64().unwrap() as usize);
        let set = set_of(case["set"].as_str().unwrap()).fitted(fixed, multiple);
        let views = set.draw(&Random::new(case["seed"].as_u64().unwrap()));
        let values: Vec<f32> = views.iter().flat_map(|view| all_values(view, &x)).collect();
        let bytes: Vec<u8> = match exact {
            true => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            false => values.iter().flat_map(|v| ((v * 255.0).round() as i32).to_le_bytes()).collect(),
        };
        let hash = blake3::hash(&bytes).to_hex();
        assert_eq!(case[if exact { "exact" } else { "rounded" }], hash[..16], "{case}");
    }
}
