//! Sets: the published one, their names, files, and the form in which results are stored under them.

use super::*;

#[test]
fn the_standard_set_is_the_published_one_and_a_seed_fixes_it() {
    let set = ViewSet::standard();
    let views = set.draw(&Random::new(9));
    let shown = |views: &[DrawnView]| format!("{views:?}");
    assert_eq!(shown(&views), shown(&set.draw(&Random::new(9))));
    assert_ne!(shown(&views), shown(&set.draw(&Random::new(10))));
    let sizes: Vec<_> = views.iter().map(|v| v.seen_size((100, 200))).collect();
    let heights: Vec<_> = sizes.iter().map(|s| s.0).collect();
    assert_eq!(heights, [200, 30, 200, 50, 100, 100, 100, 100]);
    assert!((320..=480).contains(&sizes[0].1) && (48..=72).contains(&sizes[1].1));
    let enlarge: Vec<_> = views.iter().map(|v| v.enlarges((100, 200))).collect();
    assert_eq!(enlarge, [true, false, true, false, false, false, false, false]);
    let kinds: Vec<_> = set.rules.iter().map(|rule| rule.kind().name).collect();
    assert_eq!(kinds, ["resize", "resize", "resize", "resize", "rotate", "rotate", "colour", "flip"]);
    let multiples = ViewSet::standard().fitted(false, 8).draw(&Random::new(9));
    assert!(multiples.iter().take(4).all(|v| {
        let (h, w) = v.seen_size((100, 200));
        h.is_multiple_of(8) && w.is_multiple_of(8)
    }));
}

#[test]
fn the_stored_form_of_a_set_does_not_change() {
    let stored = concat!(
        r#"{"view":[{"kind":"resize","scale":2.0,"stretch":[0.8,1.2]},{"kind":"resize","scale":0.3,"stretch":[0.8,1.2]},"#,
        r#"{"kind":"resize","scale":2.0,"stretch":[0.8,1.2]},{"kind":"resize","scale":0.5,"stretch":[0.8,1.2]},"#,
        r#"{"kind":"rotate","degrees":[-15.0,15.0],"normalised":false},"#,
        r#"{"kind":"rotate","degrees":[-15.0,15.0],"normalised":false},"#,
        r#"{"kind":"colour","brightness":0.8,"contrast":0.8,"saturation":0.8,"hue":0.2,"greyscale":0.2,"#,
        r#""stretch":[0.8,1.2],"crop":null},{"kind":"flip","stretch":[0.8,1.2]}],"fixed_canvas":false,"multiple":1}"#,
    );
    assert_eq!(serde_json::to_string(&ViewSet::standard()).unwrap(), stored);
    // through a `Value`, as the keys of studies are made: each number is the f64 of an f32
    let value = serde_json::to_value(ViewSet::standard()).unwrap();
    assert_eq!(value["view"][6]["hue"].as_f64(), Some(f64::from(0.2f32)));
    let windows = serde_json::to_string(&ViewSet::contrastive(1)).unwrap();
    assert!(windows.contains(r#""stretch":[1.0,1.0],"crop":[0.6,1.0]}"#), "{windows}");
    let turns = serde_json::to_string(&ViewSet::named("only-turn").unwrap().rules[0]).unwrap();
    assert_eq!(turns, r#"{"kind":"turn","quarters":[1,2,3]}"#);
    for (name, set) in all_sets() {
        let json = serde_json::to_string(&set).unwrap();
        assert_eq!(serde_json::from_str::<ViewSet>(&json).unwrap(), set, "{name}");
        let text = toml::to_string(&set).unwrap();
        assert_eq!(toml::from_str::<ViewSet>(&text).unwrap(), set, "{name}");
    }
}

#[test]
fn every_named_set_has_eight_views_and_other_names_are_refused_with_a_list() {
    for (name, set) in all_sets() {
        set.check().unwrap();
        assert_eq!(set.rules.len(), if ["vote", "teach"].contains(&name.as_str()) { 6 } else { 8 }, "{name}");
    }
    let names: Vec<String> = view_sets().into_iter().map(|(name, _)| name).collect();
    let old =
        ["standard", "reference", "only-flip", "only-resize", "only-rotation", "only-turn", "only-colour"];
    let sentence = ViewSet::named("only-nothing").unwrap_err().to_string();
    for name in old.iter().map(ToString::to_string).chain(names.clone()) {
        assert!(names.contains(&name) && sentence.contains(&name), "{name}: {sentence}");
    }
    assert!(sentence.contains("only-nothing"), "{sentence}");
}

#[test]
fn sets_are_read_from_files_and_senseless_ones_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("views.toml");
    std::fs::write(&path, "fixed_canvas = true\n[[view]]\nkind = \"resize\"\nscale = 0.5\n[[view]]\nquarters = [1, 3]\nkind = \"turn\"\n")
        .unwrap();
    let set = ViewSet::named(path.to_str().unwrap()).unwrap();
    assert!(set.fixed_canvas && set.rules.len() == 2);
    assert_eq!(set.rules[1].value("quarters"), Some(&Value::Choices(vec![1, 3])));
    for (text, words) in [
        ("view = []", ["at least one", ""]),
        ("[[view]]\nkind = \"resize\"\nscale = -1.0", ["scale", "-1"]),
        ("[[view]]\nkind = \"resize\"\nscale = nan", ["scale", "number"]),
        ("[[view]]\nkind = \"resize\"", ["needs scale", "factor of both sides"]),
        ("[[view]]\nkind = \"resize\"\nscale = 1\nstrech = [1.0, 1.1]", ["does not read strech", "stretch"]),
        ("[[view]]\nkind = \"wobble\"", ["wobble", "resize, rotate"]),
        ("[[view]]\nscale = 1.0", ["needs a kind", ""]),
        ("[[view]]\nkind = \"crop\"\nshare = [0.5, 1.5]", ["share", "at most 1"]),
        ("[[view]]\nkind = \"turn\"\nquarters = [4]", ["quarters", "from 0 to 3"]),
        ("colour = true\n[[view]]\nkind = \"flip\"", ["colour", "unknown field"]),
    ] {
        std::fs::write(&path, text).unwrap();
        let sentence = ViewSet::load(&path).unwrap_err().to_string();
        let named = words.iter().all(|word| sentence.contains(word));
        assert!(named && sentence.contains("views.toml"), "{text}: {sentence}");
    }
}
