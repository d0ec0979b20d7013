//! Contracts as people write them, and images brought to size.

use super::*;
use crate::task::Classification;
use crate::toy::{Conv, picture};

fn contract() -> Contract {
    Contract {
        task: "semantic".into(),
        output: "y".into(),
        feature: "f".into(),
        input: InputRule {
            order: Order::Bgr,
            scale: 255.0,
            mean: [104.0, 117.0, 123.0],
            std: [1.0; 3],
            channels_last: false,
            size: Some([64, 128]),
            resize: ResizeRule::Stretch,
            multiple: 8,
        },
        classes: Classes { palette: Some(PaletteRule::Named("voc:21".into())), ..Classes::default() },
        tables: Default::default(),
    }
}

#[test]
fn contracts_are_saved_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let network = folder.path().join("net.onnx");
    let path = Contract::path_beside(&network);
    assert!(path.ends_with("net.evenkeel.toml"));
    let sentence = Contract::beside(&network).unwrap_err().to_string();
    assert!(sentence.contains("model init"), "{sentence}");
    contract().save(&path).unwrap();
    assert_eq!(Contract::beside(&network).unwrap(), contract());
    assert_eq!(contract().palette().unwrap().unwrap().colours().len(), 21);
    let mut with_background = contract();
    with_background.classes.palette = Some(PaletteRule::Named("cityscapes:20".into()));
    assert_eq!(with_background.palette().unwrap().unwrap().colours()[18..], [[119, 11, 32], [0, 0, 0]]);
}

#[test]
fn senseless_contracts_are_refused_by_field() {
    let refused = |change: &dyn Fn(&mut Contract)| {
        let mut contract = contract();
        change(&mut contract);
        contract.check().unwrap_err().to_string()
    };
    assert!(refused(&|c| c.task = "haiku".into()).contains("haiku"));
    assert!(refused(&|c| c.input.scale = 0.0).contains("input.scale"));
    assert!(refused(&|c| c.input.std = [1.0, 0.0, 1.0]).contains("input.std"));
    assert!(refused(&|c| c.input.mean = [f32::NAN; 3]).contains("input.mean"));
    assert!(refused(&|c| c.input.size = Some([63, 64])).contains("input.size"));
    assert!(refused(&|c| c.classes.palette = Some(PaletteRule::Named("rainbow".into()))).contains("rainbow"));
    let twice = Some(PaletteRule::Colours(vec![[0, 0, 0], [0, 0, 0]]));
    assert!(refused(&|c| c.classes.palette.clone_from(&twice)).contains("share the colour"));
}

#[test]
fn images_are_brought_to_size_only_as_allowed() {
    let network = Conv::random(&[4], 3, false, 1);
    let mut model = Model::new(Box::new(network), Box::new(Classification), "scores", "features");
    model.multiple = 8;
    assert_eq!(model.fit(&picture((16, 24), 1)).unwrap().size(), (16, 24));
    let sentence = model.fit(&picture((17, 24), 1)).unwrap_err().to_string();
    assert!(sentence.contains("expected 24x16, got 24x17"), "{sentence}");
    model.resize = ResizeRule::Stretch;
    assert_eq!(model.fit(&picture((17, 30), 1)).unwrap().size(), (16, 24));
    let sentence = model.fit(&picture((1, 1), 1)).unwrap_err().to_string();
    assert!(sentence.contains("1x1 is too small"), "{sentence}");
    model.size = Some((16, 16));
    model.resize = ResizeRule::Crop;
    let wide = model.fit(&picture((16, 48), 1)).unwrap();
    let eight_bits = picture((16, 48), 1).rounded_to_8_bits();
    assert_eq!(wide.plane(0)[..16], eight_bits.plane(0)[16..32], "the middle, in steps of 1/255");
    let numbers = LabelMap::new(16, 48, (0..16 * 48).map(|i| i as u16 % 48).collect()).unwrap();
    assert_eq!(model.fit_labels(&numbers).unwrap().labels()[..16], numbers.labels()[16..32], "as the image");
    model.resize = ResizeRule::Refuse;
    assert!(model.fit_labels(&numbers).is_err());
}
