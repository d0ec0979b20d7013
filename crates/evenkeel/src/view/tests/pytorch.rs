//! Values and gradients of views against those PyTorch gave: `testdata/views/views.json`, made by `make.py` beside it.

use serde_json::Value as Json;

use super::*;

fn floats(value: &Json) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

fn view_of(name: &str, view: &Json) -> DrawnView {
    let number = |key: &str| view[key].as_f64().unwrap_or_default() as f32;
    let plain = Colour {
        brightness: 1.0,
        contrast: 1.0,
        saturation: 1.0,
        hue: 0.0,
        order: [0, 1, 2, 3],
        greyscale: false,
    };
    let colour = |colour: Colour| DrawnView::of(Recolour { colour, then: Arc::new(Stay) });
    match name {
        "resize" => DrawnView::of(Resize { height: number("height"), width: number("width") }),
        "rotate" => DrawnView::of(Rotate {
            degrees: number("degrees"),
            normalised: view["normalised"].as_bool().unwrap(),
        }),
        "flip" => DrawnView::of(Flip { width: number("width") }),
        "turn" => DrawnView::of(Turn { quarters: number("quarters") as u8 }),
        "brightness" => colour(Colour { brightness: number("factor"), ..plain }),
        "contrast" => colour(Colour { contrast: number("factor"), ..plain }),
        "saturation" => colour(Colour { saturation: number("factor"), ..plain }),
        "hue" => colour(Colour { hue: number("factor"), ..plain }),
        other => panic!("{other}"),
    }
}

#[test]
fn values_and_gradients_are_those_of_pytorch() {
    let cases: Vec<Json> =
        serde_json::from_str(include_str!("../../../../../testdata/views/views.json")).unwrap();
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
