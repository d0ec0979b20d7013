//! `evenkeel model import` as a person uses it, and as somebody with a poisoned checkpoint hopes it is used.

use std::path::Path;
use std::process::{Command, Output};

use evenkeel_network::zoo::{self, Weights};
use evenkeel_network::{Error, Tensor};

fn evenkeel(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(arguments).output().expect("the binary runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The weights an architecture asks for, all of them this.
fn weights(architecture: &str, value: f32) -> Vec<(String, Tensor)> {
    let asked = match zoo::find(architecture).expect("known").blueprint(&Weights::default()) {
        Err(Error::Weights(misfit)) => misfit.missing,
        other => panic!("{other:?}"),
    };
    let tensor = |shape: &[usize]| Tensor::new(shape, vec![value; shape.iter().product()]);
    asked.iter().map(|(name, shape)| (name.clone(), tensor(shape))).collect()
}

#[test]
fn an_imported_network_is_taken_by_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let weights = Weights::new(weights("cifar_resnet20", 0.1));
    let bytes = zoo::recognise(&weights).expect("recognised").safetensors(&weights).expect("floats");
    std::fs::write(path("weights"), bytes).expect("written");
    for (file, more) in [("net.safetensors", None), ("net.onnx", Some("--onnx"))] {
        let mut arguments = vec!["model", "import"];
        let (from, to) = (path("weights"), path(file));
        arguments.extend([&*from, "-o", &*to]);
        arguments.extend(more);
        let output = evenkeel(&arguments);
        assert!(said(&output).starts_with("cifar_resnet20, "), "{}", said(&output));
        let output = evenkeel(&["model", "inspect", &to, "--size", "32x32"]);
        assert!(output.status.success(), "{}", said(&output));
        assert!(said(&output).contains("logits"));
    }
    let output = evenkeel(&["model", "import", &path("weights"), "--arch", "resnet18", "-o", &path("x")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("the tensors are not those of resnet18"), "{}", said(&output));
    assert!(said(&output).contains("missing (") && said(&output).contains("unexpected ("));
    assert!(!Path::new(&path("x")).exists());
}

/// A checkpoint of the older format whose object is this pickle.
fn checkpoint(object: &[u8]) -> Vec<u8> {
    let magic = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.";
    let writer = b"\x80\x02}X\x0d\0\0\0little_endian\x88s.";
    [magic, &writer[..], object, b"\x80\x02]X\x01\0\0\x000a.", &6u64.to_le_bytes(), &[0; 24]].concat()
}

/// {"w": a tensor of this length in a storage said to hold this many elements}
fn tensor(elements: i64, length: i64) -> Vec<u8> {
    let int = |value: i64| [&[0x8a, 8][..], &value.to_le_bytes()].concat();
    [
        &b"\x80\x02}X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpu"[..],
        &int(elements),
        b"tQK\0",
        &int(length),
        b"\x85K\x01\x85\x89}tRs.",
    ]
    .concat()
}

#[cfg(target_os = "linux")]
#[test]
fn a_hostile_checkpoint_is_refused_with_a_sentence_in_little_memory() {
    let laughs: Vec<u8> =
        (0..60u8).flat_map(|i| [&b"]("[..], &[b'h', i].repeat(10), &[b'e', b'q', i + 1]].concat()).collect();
    let cases: [(&str, Vec<u8>, &str); 6] = [
        (
            "system",
            b"\x80\x02cos\nsystem\nX\x02\0\0\0ls\x85R.".to_vec(),
            "asks for os.system, which is not data",
        ),
        ("laughs", [&b"\x80\x02]q\0"[..], &laughs, b"."].concat(), "which its object never mentions"),
        ("flood", [&b"\x80\x02"[..], &b"](".repeat(3 << 20), b"."].concat(), "nests deeper"),
        ("storage", tensor(7, 7), "storage \"0\" has 6 elements where its object says 7"),
        ("terabyte", tensor(6, 1 << 38), "asks for more than the file can hold"),
        ("terabytes", tensor(1 << 38, 1 << 38), "storage \"0\" has 6 elements"),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for (name, object, expected) in cases {
        let path = folder.path().join(name);
        std::fs::write(&path, checkpoint(&object)).expect("written");
        // The address space, and so the memory, is held to 200 MB.
        let command = "ulimit -v 204800 && exec \"$0\" model import \"$1\" -o \"$1.out\"";
        let arguments = ["-c", command, env!("CARGO_BIN_EXE_evenkeel"), &path.display().to_string()];
        let output = Command::new("sh").args(arguments).output().expect("the shell runs");
        assert_eq!(output.status.code(), Some(2), "{name}: {}", said(&output));
        assert!(said(&output).contains(expected), "{name}: {}", said(&output));
    }
}
