//! Properties that every kind of the table has to have, on every canvas.

use super::*;

const CANVASES: [Canvas; 3] =
    [Canvas::FREE, Canvas { fixed: true, multiple: 1 }, Canvas { fixed: false, multiple: 3 }];

/// Every rule drawn on every canvas.
fn drawn(seed: u64) -> Vec<(DrawnView, Canvas)> {
    let draw = |rule: &ViewRule| rule.draw(&mut Random::new(seed));
    let on = |view: Arc<dyn View>| CANVASES.map(|canvas| (DrawnView::new(view.clone(), canvas), canvas));
    rules().iter().map(draw).flat_map(on).collect()
}

fn assert_near(left: f64, right: f64, what: &str) {
    assert!((left - right).abs() <= 1e-5 * left.abs().max(1.0), "{what}: {left} {right}");
}

/// <A x, y> = <x, A' y> for resampling and undoing. Colours change before pixels move, so a view's apply is linear in the recoloured
/// image; the recolouring itself is held to central differences below.
#[test]
fn pullbacks_are_transposes_over_twenty_sizes() {
    let mut random = Random::new(11);
    for trial in 0..20 {
        let size = (8 + random.below(40), 8 + random.below(40));
        for (view, canvas) in drawn(trial) {
            let what = format!("{} {canvas:?} {size:?}", view.caption());
            let placed = view.placed(size);
            let x = image(size, &mut random);
            let recoloured = view.view().recolour(&x);
            let seen = placed.apply(&x);
            let y = noise(seen.pixels().len(), &mut random);
            if recoloured.is_none() {
                assert_near(dot(seen.pixels(), &y), dot(x.pixels(), &placed.pull_apply(&x, &y)), &what);
            }
            let map =
                Extents { channels: 5, height: seen.height().div_ceil(4), width: seen.width().div_ceil(3) };
            let undo = placed.undo_onto(map.size(), (size.0.div_ceil(4), size.1.div_ceil(3)));
            let features = noise(map.len(), &mut random);
            let undone = undo.apply(&features, 5);
            let y = noise(undone.len(), &mut random);
            assert_near(dot(&undone, &y), dot(&features, &undo.pullback(&y, 5)), &format!("undo {what}"));
        }
    }
}

/// The pullback of apply, recolouring included, against central differences along random directions, away from seams.
#[test]
fn pullbacks_match_central_differences() {
    let mut random = Random::new(5);
    for rule in rules() {
        let (mut checked, mut tried) = (0, 0);
        for seed in 0..12 {
            let view = DrawnView::new(rule.draw(&mut Random::new(seed)), Canvas::FREE).placed((6, 7));
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
                tried += 1;
                // on a seam (a clip, a change of sextant) the two halves differ and there is no derivative to check
                let (up, down) = ((at(1e-3) - at(0.0)) / 1e-3, (at(0.0) - at(-1e-3)) / 1e-3);
                if (up - down).abs() < 2e-2 * up.abs().max(0.1) {
                    let (central, own) = ((up + down) / 2.0, f64::from(gradient[i]));
                    assert!(
                        (central - own).abs() < 1e-2 * central.abs().max(0.5),
                        "{rule:?}: {central} {own}"
                    );
                    checked += 1;
                }
            }
        }
        assert!(2 * checked > tried, "{rule:?}: {checked} of {tried}");
    }
}

/// One cell in from the rim of a mask, where a zero outside cannot have leaked in.
fn inside(mask: &[f32], (height, width): (usize, usize), i: usize) -> bool {
    let (y, x) = (i / width % height, i % width);
    (0..9).all(|k| {
        let near = |at: usize, step: usize, side: usize| (at + step).saturating_sub(1).min(side - 1);
        mask[near(y, k / 3, height) * width + near(x, k % 3, width)] > 0.0
    })
}

#[test]
fn undoing_gives_back_what_the_view_shows() {
    let size = (48, 64);
    // a smooth image, so that resampling twice changes little
    let smooth = |i: usize| 0.5 + 0.4 * ((i / 64 % 48) as f32 * 0.11).sin() * ((i % 64) as f32 * 0.09).cos();
    let x = Image::new(48, 64, (0..3 * 48 * 64).map(smooth).collect()).unwrap();
    for (view, canvas) in (3..6).flat_map(drawn) {
        let what = format!("{} {canvas:?}", view.caption());
        let placed = view.placed(size);
        let seen = placed.apply(&x);
        assert_eq!(seen.size(), placed.seen_size(), "{what}");
        assert!(!canvas.fixed || seen.size() == size, "{what}");
        let undo = placed.undo_onto(seen.size(), size);
        assert!(undo.mask().iter().all(|m| *m == 0.0 || *m == 1.0), "{what}");
        let covered = undo.mask().iter().sum::<f32>() / (48.0 * 64.0);
        assert!(covered > 0.1, "{what} shows {covered}");
        let (back, changed) = (undo.apply(seen.pixels(), 3), view.view().recolour(&x).unwrap_or(x.clone()));
        let far = |from: &[f32]| {
            let within = (0..from.len()).filter(|&i| inside(undo.mask(), size, i));
            let mut far: Vec<f32> = within.map(|i| (from[i] - changed.pixels()[i]).abs()).collect();
            far.sort_by(f32::total_cmp);
            far[far.len() * 9 / 10]
        };
        assert!(far(&back) < 0.03, "{what}: {}", far(&back));
        if seen.size() == size {
            // else an undo that does nothing could pass for that of a small motion
            let (undone, not_undone) = (far(&back), far(seen.pixels()));
            assert!(undone < 0.003 + 0.25 * not_undone, "{what}: {undone} {not_undone}");
        }
    }
}

#[test]
fn a_seed_fixes_a_view_and_values_stay_in_range() {
    let mut random = Random::new(2);
    let x = image((20, 24), &mut random);
    for rule in rules() {
        let of = |seed: u64| rule.draw(&mut Random::new(seed));
        assert_eq!(format!("{:?}", of(4)), format!("{:?}", of(4)), "{rule:?}");
        let differs = (5..25).any(|seed| format!("{:?}", of(4)) != format!("{:?}", of(seed)));
        assert!(differs, "{rule:?} draws the same for every seed");
        for canvas in CANVASES {
            let seen = DrawnView::new(of(4), canvas).apply(&x);
            assert!(seen.pixels().iter().all(|v| (0.0..=1.0).contains(v)), "{rule:?}");
        }
    }
}

#[test]
fn captions_name_the_kind_and_what_was_drawn() {
    for rule in rules() {
        let caption = rule.draw(&mut Random::new(1)).caption();
        assert!(caption.starts_with(rule.kind().name), "{caption}");
        assert!(caption.chars().any(|c| c.is_ascii_digit()), "{caption}");
    }
}

/// A value that breaks each key: out of bounds at either end, or of another form.
fn bad_values(form: Form) -> Vec<Value> {
    match form {
        Form::Number(Bounds { low, high, .. }) => {
            vec![(low - 1.0).into(), (high + 1.0).into(), f32::NAN.into(), true.into()]
        }
        Form::Range(Bounds { low, high, .. }) | Form::OptionalRange(Bounds { low, high, .. }) => vec![
            [low - 1.0, high].into(),
            [high, high + 1.0].into(),
            [high, 0.5 * (low + high)].into(),
            [f32::NAN, high].into(),
            high.into(),
        ],
        Form::Flag => vec![1.0.into()],
        Form::Choices(last) => vec![vec![].into(), vec![last + 1].into(), false.into()],
    }
}

#[test]
fn bad_values_unknown_and_missing_keys_are_refused_by_name() {
    for rule in rules() {
        let kind = rule.kind();
        for key in kind.keys {
            for bad in bad_values(key.form) {
                let sentence = rule.with(key.name, bad.clone()).unwrap_err().to_string();
                let named = [kind.name, key.name].iter().all(|word| sentence.contains(word));
                assert!(named && sentence.contains("must be"), "{sentence}");
            }
            assert!(
                key.default.as_ref().is_none_or(|value| key.form.admits(value)),
                "{} {}",
                kind.name,
                key.name
            );
        }
        let sentence = rule.with("wobble", 1.0).unwrap_err().to_string();
        assert!(sentence.contains("wobble") && sentence.contains(kind.keys[0].name), "{sentence}");
        if let Some(required) = kind.keys.iter().find(|key| key.default.is_none()) {
            let sentence = ViewRule::of(kind.name, &[]).unwrap_err().to_string();
            assert!(sentence.contains("needs") && sentence.contains(required.name), "{sentence}");
        }
    }
}

#[test]
fn masks_say_what_a_view_shows() {
    let count = |view: DrawnView| view.mask((32, 40), (8, 10), (8, 10)).iter().sum::<f32>();
    assert_eq!(count(DrawnView::of(Stay)), 80.0);
    assert_eq!(count(DrawnView::of(Resize { height: 0.5, width: 0.5 })), 80.0, "a resize shows everything");
    assert_eq!(count(DrawnView::of(Translate { down: 0.5, right: 0.0 })), 40.0, "half was pushed out");
    let turned = DrawnView::of(Rotate { degrees: 15.0, normalised: false });
    assert!(count(turned) < 80.0, "corners leave the canvas");
}
