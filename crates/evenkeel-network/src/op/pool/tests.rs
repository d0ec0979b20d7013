use std::sync::Arc;

use super::super::proof::{Numbers, build, outputs, prove_gradient, room};
use super::super::{Attribute, Call, Operator};
use crate::tensor::Tensor;

fn ints(values: &[i64]) -> Attribute {
    Attribute::Ints(values.to_vec())
}

/// 1 to 25 in rows of five.
fn counting() -> Tensor {
    Tensor::new(&[1, 1, 5, 5], (1..=25).map(|v| v as f32).collect::<Vec<_>>())
}

fn run(name: &str, attributes: &[(&str, Attribute)], x: Tensor, count: usize) -> Vec<Tensor> {
    let op: Arc<dyn Operator> = build(name, 12, attributes, 1).into();
    outputs(&op, &[Some(x)], count)
}

#[test]
fn maxima_and_their_places() {
    let two = [("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))];
    let y = run("MaxPool", &two, counting(), 2);
    assert_eq!(y[0].values::<f32>(), Some(&[7.0, 9.0, 17.0, 19.0][..]));
    assert_eq!(y[1].values::<i64>(), Some(&[6, 8, 16, 18][..]));
    let columns = [two.as_slice(), &[("storage_order", Attribute::Int(1))]].concat();
    assert_eq!(run("MaxPool", &columns, counting(), 2)[1].values::<i64>(), Some(&[6, 16, 8, 18][..]));
    let up = [two.as_slice(), &[("ceil_mode", Attribute::Int(1))]].concat();
    let y = run("MaxPool", &up, counting(), 1);
    assert_eq!(y[0].values::<f32>(), Some(&[7.0, 9.0, 10.0, 17.0, 19.0, 20.0, 22.0, 24.0, 25.0][..]));
}

#[test]
fn means_count_padding_when_told() {
    let three = [("kernel_shape", ints(&[3, 3])), ("pads", ints(&[1, 1, 1, 1])), ("strides", ints(&[4, 4]))];
    assert_eq!(
        run("AveragePool", &three, counting(), 1)[0].values::<f32>(),
        Some(&[4.0, 7.0, 19.0, 22.0][..])
    );
    let counted = [three.as_slice(), &[("count_include_pad", Attribute::Int(1))]].concat();
    let ninths = [16.0f32, 28.0, 76.0, 88.0].map(|sum| sum / 9.0);
    assert_eq!(run("AveragePool", &counted, counting(), 1)[0].values::<f32>(), Some(&ninths[..]));
}

#[test]
fn unpooling_puts_values_back() {
    let two = [("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))];
    let op: Arc<dyn Operator> = build("MaxUnpool", 11, &two, 3).into();
    let x = Some(Tensor::new(&[1, 1, 1, 2], vec![1.0f32, 2.0]));
    let at = Some(Tensor::new(&[1, 1, 1, 2], vec![5i64, 3]));
    let larger = Some(Tensor::new(&[4], vec![1i64, 1, 2, 5]));
    let y = outputs(&op, &[x, at, larger], 1);
    assert_eq!(y[0].values::<f32>(), Some(&[0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0][..]));
}

#[test]
fn pullbacks_agree_with_differences() {
    let mut numbers = Numbers::new(21);
    let cases: &[&[(&str, Attribute)]] = &[
        &[("kernel_shape", ints(&[3, 3])), ("strides", ints(&[2, 2])), ("pads", ints(&[1, 1, 1, 1]))],
        &[("kernel_shape", ints(&[2, 3])), ("strides", ints(&[2, 1])), ("ceil_mode", Attribute::Int(1))],
        &[("kernel_shape", ints(&[2, 2])), ("dilations", ints(&[2, 3])), ("pads", ints(&[1, 0, 0, 1]))],
        &[("kernel_shape", ints(&[3, 2])), ("auto_pad", Attribute::Text("SAME_LOWER".into()))],
    ];
    for attributes in cases {
        for shape in [[2, 3, 5, 6], [1, 9, 4, 5]] {
            let x = Some(numbers.tensor(&shape, -1.0, 1.0));
            let counted = [*attributes, &[("count_include_pad", Attribute::Int(1))]].concat();
            let cubic = [*attributes, &[("p", Attribute::Int(3))]].concat();
            prove_gradient(build("MaxPool", 12, attributes, 1), std::slice::from_ref(&x), 1, 1e-5);
            prove_gradient(build("MaxPool", 12, attributes, 1), std::slice::from_ref(&x), 2, 1e-5);
            prove_gradient(build("AveragePool", 19, attributes, 1), std::slice::from_ref(&x), 1, 1e-5);
            prove_gradient(build("AveragePool", 19, &counted, 1), std::slice::from_ref(&x), 1, 1e-5);
            prove_gradient(build("LpPool", 18, &cubic, 1), &[x], 1, 1e-4);
        }
    }
    for shape in [&[2, 3, 7][..], &[2, 9, 3, 4], &[1, 2, 3, 2, 2]] {
        let x = Some(numbers.tensor(shape, -1.0, 1.0));
        let kernel = [("kernel_shape", ints(&vec![2; shape.len() - 2]))];
        for name in ["MaxPool", "AveragePool", "LpPool"] {
            prove_gradient(build(name, 12, &kernel, 1), std::slice::from_ref(&x), 1, 1e-4);
        }
        for name in ["GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"] {
            prove_gradient(build(name, 12, &[], 1), std::slice::from_ref(&x), 1, 1e-4);
        }
    }
    let x = Some(numbers.tensor(&[1, 2, 2, 2], -1.0, 1.0));
    let at = Some(Tensor::new(&[1, 2, 2, 2], vec![0i64, 2, 9, 15, 17, 18, 24, 30]));
    let two = [("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2, 2]))];
    prove_gradient(build("MaxUnpool", 11, &two, 2), &[x, at], 1, 1e-5);
}

#[test]
fn windows_that_cannot_be_are_refused() {
    let room = room();
    let refuse = |attributes: &[(&str, Attribute)]| {
        let call = Call { inputs: vec![Some(counting())], wants: &[false], outputs: 1, room: &room };
        assert!(build("MaxPool", 12, attributes, 1).apply(call).is_err(), "{attributes:?}");
    };
    refuse(&[("kernel_shape", ints(&[6, 1]))]);
    refuse(&[("kernel_shape", ints(&[2]))]);
    refuse(&[]);
    refuse(&[("kernel_shape", ints(&[1 << 20, 1])), ("pads", ints(&[1 << 20, 0, 1 << 20, 0]))]);
    refuse(&[("kernel_shape", ints(&[1, 1])), ("pads", ints(&[1 << 20; 4]))]);
}
