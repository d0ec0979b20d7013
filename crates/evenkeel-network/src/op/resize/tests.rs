use std::sync::Arc;

use super::super::proof::{Numbers, build, outputs, prove_gradient, room};
use super::super::{Attribute, Call, Operator};
use crate::tensor::Tensor;

fn text(value: &str) -> Attribute {
    Attribute::Text(value.into())
}

fn floats(values: &[f32]) -> Option<Tensor> {
    Some(Tensor::new(&[values.len()], values.to_vec()))
}

fn ints(values: &[i64]) -> Option<Tensor> {
    Some(Tensor::new(&[values.len()], values.to_vec()))
}

fn line(values: &[f32]) -> Option<Tensor> {
    Some(Tensor::new(&[1, 1, 1, values.len()], values.to_vec()))
}

fn run(attributes: &[(&str, Attribute)], x: Option<Tensor>, scales: &[f32]) -> Vec<f32> {
    let op: Arc<dyn Operator> = build("Resize", 19, attributes, 4).into();
    outputs(&op, &[x, None, floats(scales), None], 1)[0].values::<f32>().expect("f32").to_vec()
}

#[test]
fn lines_are_stretched_as_the_standard_says() {
    let linear = [("mode", text("linear"))];
    assert_eq!(run(&linear, line(&[1.0, 2.0]), &[1.0, 1.0, 1.0, 2.0]), [1.0, 1.25, 1.75, 2.0]);
    let corners = [linear.as_slice(), &[("coordinate_transformation_mode", text("align_corners"))]].concat();
    assert_eq!(run(&corners, line(&[0.0, 3.0]), &[1.0, 1.0, 1.0, 2.0]), [0.0, 1.0, 2.0, 3.0]);
    let smooth = [linear.as_slice(), &[("antialias", Attribute::Int(1))]].concat();
    assert_eq!(run(&smooth, line(&[0.0, 4.0, 8.0, 12.0]), &[1.0, 1.0, 1.0, 0.5])[0], 2.5);
    let within = [smooth.as_slice(), &[("exclude_outside", Attribute::Int(1))]].concat();
    assert_eq!(run(&within, line(&[0.0, 4.0, 8.0, 12.0]), &[1.0, 1.0, 1.0, 0.5])[0], 20.0 / 7.0);
    assert_eq!(run(&[], line(&[1.0, 2.0, 3.0]), &[1.0, 1.0, 1.0, 1.5]), [1.0, 1.0, 2.0, 3.0]);
}

#[test]
fn old_files_upsample() {
    let scales = [("scales", Attribute::Floats(vec![1.0, 1.0, 2.0, 2.0]))];
    let op: Arc<dyn Operator> = build("Upsample", 7, &scales, 1).into();
    let y = outputs(&op, &[line(&[1.0, 2.0])], 1);
    assert_eq!(y[0].values::<f32>(), Some(&[1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0][..]));
}

#[test]
fn pullbacks_agree_with_differences() {
    let mut numbers = Numbers::new(31);
    let modes = [
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "tf_half_pixel_for_nn",
        "align_corners",
        "asymmetric",
        "tf_crop_and_resize",
    ];
    for (i, coordinates) in modes.iter().enumerate() {
        for (mode, antialias) in [("nearest", 0), ("linear", 0), ("linear", 1), ("cubic", 0), ("cubic", 1)] {
            let attributes = [
                ("mode", text(mode)),
                ("coordinate_transformation_mode", text(coordinates)),
                ("antialias", Attribute::Int(antialias)),
                ("exclude_outside", Attribute::Int(i as i64 % 2)),
                ("extrapolation_value", Attribute::Float(3.0)),
            ];
            let x = Some(numbers.tensor(&[1, 3, 5, 4], -1.0, 1.0));
            let region = floats(&[0.0, 0.0, 0.1, -0.2, 1.0, 1.0, 0.9, 1.1]);
            let op = build("Resize", 19, &attributes, 4);
            let scales = floats(&[1.0, 1.0, 1.7, 0.6]);
            prove_gradient(op, &[x.clone(), region.clone(), scales, None], 1, 1e-5);
            let op = build("Resize", 19, &attributes, 4);
            prove_gradient(op, &[x, region, None, ints(&[2, 3, 2, 9])], 1, 1e-5);
        }
    }
}

#[test]
fn hostile_sizes_are_refused() {
    let room = room();
    let refuse = |scales: Option<Tensor>, sizes: Option<Tensor>, antialias: i64| {
        let attributes = [("mode", text("linear")), ("antialias", Attribute::Int(antialias))];
        let inputs = vec![line(&[1.0, 2.0]), None, scales, sizes];
        let call = Call { inputs, wants: &[false; 4], outputs: 1, room: &room };
        assert!(build("Resize", 18, &attributes, 4).apply(call).is_err());
    };
    refuse(floats(&[1.0, 1.0, 1.0, 1e30]), None, 0);
    refuse(floats(&[1.0, 1.0, 1e9, 1e9]), None, 0);
    refuse(floats(&[1.0, 1.0, 1.0, f32::NAN]), None, 0);
    refuse(floats(&[1.0, 1.0, 1.0, -1.0]), None, 0);
    refuse(floats(&[1.0, 1.0]), None, 0);
    refuse(None, ints(&[1, 1, 1, -2]), 0);
    refuse(None, ints(&[1, 1, 1, i64::MAX]), 0);
    refuse(None, None, 0);
}
