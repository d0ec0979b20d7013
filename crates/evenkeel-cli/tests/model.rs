//! `evenkeel model` as a person uses it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn evenkeel(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(arguments).output().expect("the binary runs")
}

fn fixture(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/networks");
    folder.join(name).display().to_string()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complained(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn inspect_tells_what_a_network_is() {
    let output = evenkeel(&["model", "inspect", &fixture("resnet.onnx"), "--size", "48x40"]);
    assert!(output.status.success(), "{}", complained(&output));
    let text = said(&output);
    for part in ["input", "output", "Conv", "parameters", "FLOP", "tape"] {
        assert!(text.contains(part), "{part} is missing from\n{text}");
    }
    let json =
        evenkeel(&["model", "inspect", &fixture("resnet.onnx"), "--size", "48x40", "--json", "--tensors"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert!(value["flops"].as_f64().expect("a number") > 1e6);
    assert!(
        value["tape_bytes"].as_u64().expect("a number") < value["gradient_bytes"].as_u64().expect("a number")
    );
    assert!(value["tensors"].as_array().expect("a list").len() > 10);
}

#[test]
fn the_embedded_network_needs_no_file() {
    let output = evenkeel(&["model", "bench", "--size", "32x32", "--rounds", "1", "--threads", "2"]);
    assert!(output.status.success(), "{}", complained(&output));
    assert!(said(&output).contains("forward + gradient"));
}

#[test]
fn layers_account_for_every_operation() {
    let arguments = ["model", "bench", "--size", "32x32", "--rounds", "2", "--threads", "1", "--layers"];
    let output = evenkeel(&arguments);
    assert!(output.status.success(), "{}", complained(&output));
    assert!(said(&output).contains("pullback ms") && said(&output).contains("Conv 3x3"), "{}", said(&output));
    let output = evenkeel(&[&arguments[..], &["--json"]].concat());
    let value: serde_json::Value = serde_json::from_str(&said(&output)).expect("JSON");
    let sum = |pass: &str, table: &str, direction: &str| -> f64 {
        let rows = value["layers"][pass][table].as_array().expect("a list").iter();
        rows.map(|row| row[direction]["flops"].as_f64().expect("a number")).sum()
    };
    let flops = value["flops"].as_f64().expect("a number");
    for (pass, direction) in [("forward", "forward"), ("gradient", "forward"), ("gradient", "pullback")] {
        for table in ["layers", "operators"] {
            assert!((sum(pass, table, direction) / flops - 1.0).abs() < 1e-9, "{pass} {table} {direction}");
        }
    }
    let timed = &value["layers"]["gradient"]["operators"][0];
    assert!(timed["forward"]["milliseconds"].as_f64() > Some(0.0), "{timed}");
    assert!(timed["pullback"]["milliseconds"].as_f64() > Some(0.0), "{timed}");
}

#[test]
fn check_compares_values_and_gradients() {
    let folder = tempfile::tempdir().expect("a folder");
    let stored = folder.path().join("ref.npz");
    write_npz(&stored, "transformer", 1.0);
    let right =
        evenkeel(&["model", "check", &fixture("transformer.onnx"), "--against", path(&stored), "--gradient"]);
    assert!(right.status.success(), "{}{}", said(&right), complained(&right));
    assert!(said(&right).contains("ok     gradient with respect to x"));
    write_npz(&stored, "transformer", 1.01);
    let wrong = evenkeel(&["model", "check", &fixture("transformer.onnx"), "--against", path(&stored)]);
    assert_eq!(wrong.status.code(), Some(2), "{}", said(&wrong));
    assert!(said(&wrong).contains("FAILED y"));
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// The fixture's first case as `input` and `y`, with the answer multiplied by `factor`.
fn write_npz(to: &Path, name: &str, factor: f32) {
    use evenkeel_network::format::npz;
    let stored = npz::load(Path::new(&fixture(&format!("{name}.npz")))).expect("fixture");
    let array = |key: &str| stored.iter().find(|(k, _)| k == key).map(|(_, t)| t).expect("stored");
    let y: Vec<f32> = array("y0").values::<f32>().expect("f32").iter().map(|v| v * factor).collect();
    let x = array("x0").values::<f32>().expect("f32");
    let entries = [("input", array("x0").shape(), x), ("y", array("y0").shape(), &y[..])];
    let mut zip = Vec::new();
    let mut directory = Vec::new();
    for (name, shape, values) in entries {
        let bytes = npy(shape, values);
        let (offset, name) = (zip.len() as u32, format!("{name}.npy"));
        let crc = crc32(&bytes);
        let common = |out: &mut Vec<u8>| {
            out.extend([20, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            out.extend(crc.to_le_bytes());
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend((name.len() as u16).to_le_bytes());
            out.extend([0, 0]);
        };
        zip.extend(b"PK\x03\x04");
        common(&mut zip);
        zip.extend(name.as_bytes());
        zip.extend(&bytes);
        directory.extend(b"PK\x01\x02\x14\x00");
        common(&mut directory);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (start, size) = (zip.len() as u32, directory.len() as u32);
    zip.extend(directory);
    zip.extend(b"PK\x05\x06\0\0\0\0\x02\0\x02\0");
    zip.extend(size.to_le_bytes());
    zip.extend(start.to_le_bytes());
    zip.extend([0, 0]);
    std::fs::write(to, zip).expect("written");
}

fn npy(shape: &[usize], values: &[f32]) -> Vec<u8> {
    let dims: String = shape.iter().map(|dim| format!("{dim}, ")).collect();
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({dims}), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    })
}

#[test]
fn bad_input_gets_a_sentence_and_exit_code_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let truncated = folder.path().join("half.onnx");
    let whole = std::fs::read(fixture("resnet.onnx")).expect("fixture");
    std::fs::write(&truncated, &whole[..whole.len() / 2]).expect("written");
    let empty = folder.path().join("empty.onnx");
    std::fs::write(&empty, []).expect("written");
    let cases: &[(&[&str], &str)] = &[
        (&["model", "inspect", "no-such-file.onnx"], "no-such-file.onnx"),
        (&["model", "inspect", path(&truncated)], "half.onnx"),
        (&["model", "inspect", path(&empty)], "empty.onnx"),
        (&["model", "check", &fixture("resnet.onnx")], "--against"),
        (&["model", "check", &fixture("resnet.onnx"), "--against", path(&truncated)], "half.onnx"),
        (&["model", "bench", &fixture("resnet.onnx"), "--size", "3x"], "WIDTHxHEIGHT"),
        (&["model", "bench", &fixture("transformer.onnx"), "--size", "64x64"], "32x32"),
    ];
    for (arguments, expected) in cases {
        let output = evenkeel(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        let complaint = complained(&output);
        assert!(complaint.contains(expected), "{arguments:?} said {complaint}");
        assert!(!complaint.contains("panicked"), "{arguments:?} said {complaint}");
    }
}

#[test]
fn an_unknown_instruction_set_is_refused_in_words() {
    let program = env!("CARGO_BIN_EXE_evenkeel");
    let out = std::process::Command::new(program)
        .args(["list", "attacks"])
        .env("EVENKEEL_CPU", "mmx")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("EVENKEEL_CPU") && said.contains("avx2") && !said.contains("panicked"), "{said}");
}
