//! The parser by itself: what it takes, what it refuses, and that what it writes can be read back.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{InferResponse, InputData, Output, OutputData, TensorLimits, parse, parse_input};
use crate::error::{Error, Result};

const LIMITS: TensorLimits = TensorLimits { batch: 4, pixels: 100 };

fn read(value: &Value, data: &[u8]) -> Result<super::InferRequest> {
    let text = value.to_string();
    let body = Bytes::from([text.as_bytes(), data].concat());
    parse(&body, (!data.is_empty()).then_some(text.len()), &LIMITS)
}

fn input(shape: Value, datatype: &str, data: Value) -> Value {
    json!({ "inputs": [{ "name": "image", "shape": shape, "datatype": datatype, "data": data }] })
}

#[test]
fn nested_and_flat_data_are_the_same() {
    let flat = read(&input(json!([1, 3, 1, 2]), "FP32", json!([0, 1, 0.5, 0.25, 1.0, 0])), b"").unwrap();
    let nested =
        read(&input(json!([1, 3, 1, 2]), "FP32", json!([[[[0, 1]], [[0.5, 0.25]], [[1.0, 0]]]])), b"")
            .unwrap();
    assert_eq!(flat, nested);
    assert_eq!(flat.inputs[0].data, InputData::Fp32(vec![0.0, 1.0, 0.5, 0.25, 1.0, 0.0]));
}

#[test]
fn binary_data_is_what_the_header_says() {
    let two = json!({ "inputs": [
        { "name": "a", "shape": [2], "datatype": "UINT8", "parameters": { "binary_data_size": 2 } },
        { "name": "b", "shape": [1], "datatype": "FP16", "parameters": { "binary_data_size": 2 } },
    ], "outputs": [{ "name": "x", "parameters": { "binary_data": true } }, { "name": "y" }] });
    let request = read(&two, &[7, 9, 0x00, 0x3c]).unwrap();
    assert_eq!(request.inputs[0].data, InputData::Uint8(Bytes::from_static(&[7, 9])));
    assert_eq!(request.inputs[1].data, InputData::Fp32(vec![1.0]));
    assert_eq!(request.outputs.iter().map(|o| o.binary).collect::<Vec<_>>(), [true, false]);
    for data in [&[7u8][..], &[7, 9, 0], &[7, 9, 0, 0, 0]] {
        assert!(matches!(read(&two, data), Err(Error::Malformed { .. })), "{data:?}");
    }
}

#[test]
fn strings_are_not_longer_than_the_data() {
    let bytes = |data: &'static [u8], count: i64| {
        parse_input("a", "BYTES", &[count], Bytes::from_static(data), &LIMITS)
    };
    let one = bytes(&[2, 0, 0, 0, b'h', b'i'], 1).unwrap();
    assert_eq!(one.data, InputData::Bytes(vec![Bytes::from_static(b"hi")]));
    for (data, count) in [
        (&[2, 0, 0, 0, b'h'][..], 1),
        (&[0xff, 0xff, 0xff, 0xff], 1),
        (&[0, 0, 0], 1),
        (&[0, 0, 0, 0, 1], 1),
        (&[0, 0, 0, 0], 2),
        (&[], -1),
    ] {
        let wrong = parse_input("a", "BYTES", &[count], Bytes::copy_from_slice(data), &LIMITS);
        assert!(matches!(wrong, Err(Error::Malformed { .. })), "{data:?}");
    }
}

#[test]
fn shapes_are_counted_before_anything_is_allocated() {
    for shape in [json!([5, 3, 10, 10]), json!([u64::MAX, 2]), json!([1u64 << 40, 1u64 << 40])] {
        assert!(matches!(read(&input(shape, "FP32", json!([])), b""), Err(Error::TooLarge { .. })));
    }
    assert!(matches!(read(&input(json!([-1]), "FP32", json!([])), b""), Err(Error::Malformed { .. })));
    let infinite =
        parse_input("a", "FP32", &[1], Bytes::copy_from_slice(&f32::INFINITY.to_le_bytes()), &LIMITS);
    assert!(matches!(infinite, Err(Error::Malformed { .. })));
}

#[test]
fn parameters_are_few_and_plain() {
    let with = |parameters: Value| {
        let mut request = input(json!([1]), "FP32", json!([0.5]));
        request["parameters"] = parameters;
        read(&request, b"")
    };
    let plain = json!({ "a": 1, "b": -2, "c": 0.5, "d": "text", "e": true, "f": null });
    assert_eq!(Value::from(with(plain.clone()).unwrap().parameters), plain);
    let many: serde_json::Map<_, _> = (0..65).map(|i| (i.to_string(), json!(i))).collect();
    for wrong in [json!({ "a": [0, 0] }), json!({ "a": {} }), many.into(), json!([]), json!(null)] {
        assert!(matches!(with(wrong.clone()), Err(Error::Malformed { .. })), "{wrong}");
    }
    let twice = Bytes::from_static(br#"{"inputs": [], "parameters": {"a": 1, "a": 2}}"#);
    assert!(parse(&twice, None, &LIMITS).is_err());
    let texts = input(json!([1]), "BYTES", json!(vec![""; 70_000]));
    assert!(read(&texts, b"").unwrap_err().to_string().contains("strings"));
}

#[test]
fn what_is_written_says_where_its_json_ends() {
    let output = |name: &str, data: OutputData| Output { name: name.into(), shape: vec![2], data };
    let response = InferResponse {
        model: "net".into(),
        id: None,
        outputs: vec![
            (output("a", OutputData::Fp32(vec![1.5, -2.0])), true),
            (output("b", OutputData::Bool(vec![true, false])), false),
            (output("c", OutputData::Bytes(vec!["hi".into(), String::new()])), true),
        ],
    };
    let written = response.write();
    let split = written.json_length.unwrap();
    let json: Value = serde_json::from_slice(&written.body[..split]).unwrap();
    assert_eq!(json["outputs"][0]["parameters"]["binary_data_size"], 8);
    assert_eq!(json["outputs"][1]["data"], json!([true, false]));
    assert_eq!(
        written.body[split..],
        [&1.5f32.to_le_bytes()[..], &(-2.0f32).to_le_bytes(), &[2, 0, 0, 0], b"hi", &[0; 4]].concat()
    );
}
