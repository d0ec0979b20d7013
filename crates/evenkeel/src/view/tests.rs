//! Views against PyTorch, against their own transposes, and against what undoing should give back.

use serde_json::Value;

use super::*;
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

/// Every kind of motion, drawn.
fn motions(random: &mut Random) -> Vec<Motion> {
    let factor = random.uniform(0.3, 2.2);
    vec![
        Motion::Stay,
        Motion::Resize { height: factor, width: factor * random.uniform(0.8, 1.2) },
        Motion::Flip { width: random.uniform(0.8, 1.2) },
        Motion::Rotate { degrees: random.uniform(-30.0, 30.0), normalised: false },
        Motion::Rotate { degrees: random.uniform(-30.0, 30.0), normalised: true },
        Motion::Turn { quarters: 1 + random.below(3) as u8 },
        Motion::Crop {
            top: 0.1,
            left: 0.2,
            height: random.uniform(0.4, 0.8),
            width: random.uniform(0.4, 0.8),
        },
        Motion::Translate { down: random.uniform(-0.3, 0.3), right: random.uniform(-0.3, 0.3) },
    ]
}

#[test]
fn pullbacks_are_transposes_over_fifty_sizes() {
    let mut random = Random::new(11);
    for trial in 0..50 {
        let size = (8 + random.below(40), 8 + random.below(40));
        for motion in motions(&mut random) {
            for fixed_canvas in [false, true] {
                let view = View { fixed_canvas, multiple: 1 + trial % 3, ..View::of(motion) };
                let x = image(size, &mut random);
                let seen = view.apply(&x);
                let y = noise(seen.pixels().len(), &mut random);
                let (left, right) = (dot(seen.pixels(), &y), dot(x.pixels(), &view.pull_apply(&x, &y)));
                assert!(
                    (left - right).abs() <= 1e-5 * left.abs().max(1.0),
                    "apply {view:?} {size:?}: {left} {right}"
                );

                let map = Extents {
                    channels: 5,
                    height: seen.height().div_ceil(4),
                    width: seen.width().div_ceil(3),
                };
                let to = (size.0.div_ceil(4), size.1.div_ceil(3));
                let features = noise(map.len(), &mut random);
                let undone = view.undo(size, &features, map, to);
                let y = noise(undone.len(), &mut random);
                let (left, right) = (dot(&undone, &y), dot(&features, &view.pull_undo(size, &y, map, to)));
                assert!(
                    (left - right).abs() <= 1e-5 * left.abs().max(1.0),
                    "undo {view:?} {size:?}: {left} {right}"
                );
            }
        }
    }
}

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

fn view_of(name: &str, view: &Value) -> View {
    let number = |key: &str| view[key].as_f64().unwrap_or_default() as f32;
    let plain = Colour {
        brightness: 1.0,
        contrast: 1.0,
        saturation: 1.0,
        hue: 0.0,
        order: [0, 1, 2, 3],
        greyscale: false,
    };
    let colour = |colour: Colour| View { colour: Some(colour), ..View::of(Motion::Stay) };
    match name {
        "resize" => View::of(Motion::Resize { height: number("height"), width: number("width") }),
        "rotate" => View::of(Motion::Rotate {
            degrees: number("degrees"),
            normalised: view["normalised"].as_bool().unwrap(),
        }),
        "flip" => View::of(Motion::Flip { width: number("width") }),
        "turn" => View::of(Motion::Turn { quarters: number("quarters") as u8 }),
        "brightness" => colour(Colour { brightness: number("factor"), ..plain }),
        "contrast" => colour(Colour { contrast: number("factor"), ..plain }),
        "saturation" => colour(Colour { saturation: number("factor"), ..plain }),
        "hue" => colour(Colour { hue: number("factor"), ..plain }),
        other => panic!("{other}"),
    }
}

#[test]
fn values_and_gradients_are_those_of_pytorch() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../../../../testdata/views/views.json")).unwrap();
    assert!(cases.len() >= 14);
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let size = (case["size"][0].as_u64().unwrap() as usize, case["size"][1].as_u64().unwrap() as usize);
        let x = Image::new(size.0, size.1, floats(&case["image"])).unwrap();
        let view = view_of(name, &case["view"]);
        let seen = view.apply(&x);
        let near = |ours: &[f32], theirs: &[f32], what: &str| {
            assert_eq!(ours.len(), theirs.len(), "{name} {what}");
            let far = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(far <= 1e-5, "{name} {} {what}: {far}", case["view"]);
        };
        near(seen.pixels(), &floats(&case["seen"]), "value");
        near(&view.pull_apply(&x, &floats(&case["cotangent"])), &floats(&case["gradient"]), "gradient");
    }
}

#[test]
fn undoing_gives_back_what_was_in_sight() {
    let mut random = Random::new(3);
    let size = (48, 64);
    // a smooth image, so that resampling twice changes little
    let smooth = |i: usize| 0.5 + 0.4 * ((i / 64 % 48) as f32 * 0.11).sin() * ((i % 64) as f32 * 0.09).cos();
    let x = Image::new(48, 64, (0..3 * 48 * 64).map(smooth).collect()).unwrap();
    for motion in motions(&mut random) {
        for fixed_canvas in [false, true] {
            let view = View { fixed_canvas, ..View::of(motion) };
            let seen = view.apply(&x);
            if fixed_canvas {
                assert_eq!(seen.size(), size, "{motion:?}");
            }
            let extents = Extents { channels: 3, height: seen.height(), width: seen.width() };
            let back = view.undo(size, seen.pixels(), extents, size);
            let mask = view.mask(size, seen.size(), size);
            let covered = mask.iter().sum::<f32>() / mask.len() as f32;
            assert!(covered > 0.1, "{motion:?} {fixed_canvas} shows {covered}");
            // one cell in from the rim of the mask, where a zero outside cannot have leaked in
            let inner = |i: usize| {
                let (y, w) = (i % mask.len() / 64, i % 64);
                (0..9).all(|k| {
                    let (y, x) =
                        ((y + k / 3).saturating_sub(1).min(47), (w + k % 3).saturating_sub(1).min(63));
                    mask[y * 64 + x] > 0.0
                })
            };
            let mut far: Vec<f32> =
                (0..back.len()).filter(|&i| inner(i)).map(|i| (back[i] - x.pixels()[i]).abs()).collect();
            far.sort_by(f32::total_cmp);
            assert!(far[far.len() * 9 / 10] < 0.03, "{motion:?} {fixed_canvas}: {}", far[far.len() * 9 / 10]);
        }
    }
}

#[test]
fn masks_say_what_was_in_sight() {
    let size = (32, 40);
    let count = |motion: Motion| View::of(motion).mask(size, (8, 10), (8, 10)).iter().sum::<f32>();
    assert_eq!(count(Motion::Stay), 80.0);
    assert_eq!(count(Motion::Resize { height: 0.5, width: 0.5 }), 80.0, "a resize shows everything");
    assert_eq!(count(Motion::Translate { down: 0.5, right: 0.0 }), 40.0, "half was pushed out");
    assert!(count(Motion::Rotate { degrees: 15.0, normalised: false }) < 80.0, "corners leave the canvas");
}

#[test]
fn colour_pullbacks_match_central_differences() {
    let mut random = Random::new(5);
    let rule = &ViewSet::standard().rules[6];
    let mut checked = 0;
    for trial in 0..20 {
        let set = ViewSet { rules: vec![rule.clone()], fixed_canvas: false, multiple: 1 };
        let view = &set.draw(&Random::new(trial))[0];
        let x = image((6, 7), &mut random);
        let cotangent = noise(view.apply(&x).pixels().len(), &mut random);
        let gradient = view.pull_apply(&x, &cotangent);
        for _ in 0..10 {
            let i = random.below(x.pixels().len());
            let at = |step: f32| {
                let mut moved = x.clone();
                moved.pixels_mut()[i] += step;
                dot(view.apply(&moved).pixels(), &cotangent)
            };
            // on a seam (a clip, a change of sextant) the two halves differ and there is no derivative to check
            let (up, down) = ((at(1e-3) - at(0.0)) / 1e-3, (at(0.0) - at(-1e-3)) / 1e-3);
            if (up - down).abs() < 2e-2 * up.abs().max(0.1) {
                let central = (up + down) / 2.0;
                assert!(
                    (central - f64::from(gradient[i])).abs() < 2e-2 * central.abs().max(0.5),
                    "{central} {}",
                    gradient[i]
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 120, "{checked}");
}

#[test]
fn the_standard_set_is_the_published_one_and_a_seed_fixes_it() {
    let set = ViewSet::standard();
    let views = set.draw(&Random::new(9));
    assert_eq!(views, set.draw(&Random::new(9)));
    assert_ne!(views, set.draw(&Random::new(10)));
    let sizes: Vec<_> = views.iter().map(|v| v.placement((100, 200)).to).collect();
    let heights: Vec<_> = sizes.iter().map(|s| s.0).collect();
    assert_eq!(heights, [200, 30, 200, 50, 100, 100, 100, 100]);
    assert!((320..=480).contains(&sizes[0].1) && (48..=72).contains(&sizes[1].1));
    assert!(views[6].colour.is_some() && matches!(views[7].motion, Motion::Flip { .. }));
    let multiples = ViewSet::standard().fitted(false, 8).draw(&Random::new(9));
    assert!(multiples.iter().take(4).all(|v| {
        let (h, w) = v.placement((100, 200)).to;
        h.is_multiple_of(8) && w.is_multiple_of(8)
    }));
}

#[test]
fn sets_are_read_from_files_and_senseless_ones_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("views.toml");
    std::fs::write(&path, "fixed_canvas = true\n[[view]]\nkind = \"resize\"\nscale = 0.5\n[[view]]\nkind = \"turn\"\nquarters = [1, 3]\n")
        .unwrap();
    let set = ViewSet::load(&path).unwrap();
    assert!(set.fixed_canvas && set.rules.len() == 2);
    for (text, word) in [
        ("view = []", "at least one"),
        ("[[view]]\nkind = \"resize\"\nscale = -1.0", "view 0"),
        ("[[view]]\nkind = \"wobble\"", "wobble"),
        ("[[view]]\nkind = \"crop\"\nshare = [0.5, 1.5]", "share"),
    ] {
        std::fs::write(&path, text).unwrap();
        let sentence = ViewSet::load(&path).unwrap_err().to_string();
        assert!(sentence.contains(word) && sentence.contains("views.toml"), "{sentence}");
    }
    let standard = toml::to_string(&ViewSet::standard()).unwrap();
    std::fs::write(&path, standard).unwrap();
    assert_eq!(ViewSet::load(&path).unwrap(), ViewSet::standard());
}
