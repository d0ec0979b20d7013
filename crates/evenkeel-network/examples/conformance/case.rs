//! One test case of the ONNX standard, as `testdata/onnx/export_cases.py` writes it, and what becomes of it.
//!
//! A case passes if the fast walk and the literal one both give every output with the right type, shape and values: floats within
//! `|a - b| <= atol + rtol |b|`, all else exactly. It is not claimed if the engine says in words that it lacks the operator,
//! the option or the type. A case with types that are widened at load (half floats, 16-bit and unsigned integers) is never
//! counted as passed, only as widened.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use evenkeel_network::format::onnx;
use evenkeel_network::tensor::Data;
use evenkeel_network::{Error, Fault, Limits, Network, Tensor};

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Right.
    Passed,
    /// Right after widening its types.
    Widened,
    /// Wrong.
    Failed(String),
    /// The engine does not claim it.
    NotClaimed(String),
}

/// A case and what became of it.
pub(crate) struct Case {
    /// The folder's name.
    pub name: String,
    /// The kind: the name of the folder around it.
    pub kind: String,
    /// The operator it tests.
    pub operator: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// Types the engine has.
const OWN: [&str; 7] = ["float", "double", "int32", "int64", "uint8", "int8", "bool"];
/// Types it widens.
const WIDENED: [&str; 6] = ["float16", "bfloat16", "int16", "uint16", "uint32", "uint64"];

struct Note {
    operator: String,
    rtol: f64,
    atol: f64,
    types: Vec<String>,
}

fn note(folder: &Path) -> Option<Note> {
    let text = fs::read_to_string(folder.join("case.txt")).ok()?;
    let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    Some(Note {
        operator: field("operator")?.into(),
        rtol: field("rtol")?.parse().ok()?,
        atol: field("atol")?.parse().ok()?,
        types: field("types")?.split_whitespace().map(String::from).collect(),
    })
}

/// Runs the case in this folder.
pub(crate) fn run(folder: &Path) -> Option<Case> {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let note = note(folder)?;
    let outcome = catch_unwind(AssertUnwindSafe(|| outcome(folder, &note)));
    let outcome = outcome.unwrap_or_else(|_| Outcome::Failed("panicked".into()));
    Some(Case { name: name(folder)?, kind: name(folder.parent()?)?, operator: note.operator, outcome })
}

fn outcome(folder: &Path, note: &Note) -> Outcome {
    let known = |kind: &String| OWN.contains(&&**kind) || WIDENED.contains(&&**kind);
    if let Some(other) = note.types.iter().find(|kind| !known(kind)) {
        return Outcome::NotClaimed(format!("type {other}"));
    }
    let widened = note.types.iter().any(|kind| !OWN.contains(&&**kind));
    match attempt(folder, note) {
        Ok(()) if widened => Outcome::Widened,
        Ok(()) => Outcome::Passed,
        Err(Outcome::Failed(why)) if widened => Outcome::NotClaimed(format!("widened types: {why}")),
        Err(outcome) => outcome,
    }
}

fn attempt(folder: &Path, note: &Note) -> Result<(), Outcome> {
    let bytes = fs::read(folder.join("model.onnx")).map_err(|error| Outcome::Failed(error.to_string()))?;
    // The light networks make hundreds of megabytes of weights from nothing.
    let limits = Limits { fold_bytes: 2 << 30, ..Limits::default() };
    let network = Network::from_bytes(bytes, limits).map_err(refusal)?;
    for set in 0.. {
        let inputs = values(folder, "input", set);
        let expected = values(folder, "output", set);
        if expected.is_empty() {
            break;
        }
        let names: Vec<&str> = network.inputs().map(|(name, _)| name).collect();
        let outputs: Vec<&str> = network.outputs().collect();
        let given: Vec<(&str, Tensor)> =
            names.into_iter().zip(inputs.into_iter().map(|(_, tensor)| tensor)).collect();
        for (walk, network) in [("fast", network.clone()), ("literal", network.literal())] {
            let got = network.run(&given, &outputs).map_err(refusal)?;
            for (i, ((element_type, expected), got)) in expected.iter().zip(&got).enumerate() {
                let problem = compare(got, expected, *element_type, note);
                problem.map_err(|why| Outcome::Failed(format!("output {i}, {walk} walk: {why}")))?;
            }
            if got.len() != expected.len() {
                return Err(Outcome::Failed(format!("{} outputs of {}", got.len(), expected.len())));
            }
        }
    }
    Ok(())
}

/// Whether an error says that something is not claimed.
fn refusal(error: Error) -> Outcome {
    fn says_so(fault: &Fault) -> bool {
        match fault {
            Fault::Unsupported(_) | Fault::Type { .. } => true,
            Fault::Body(inner) => matches!(&**inner, Error::Node { fault, .. } if says_so(fault)),
            _ => false,
        }
    }
    match &error {
        Error::Unsupported(_) => Outcome::NotClaimed(error.to_string()),
        Error::Node { fault, .. } if says_so(fault) => Outcome::NotClaimed(error.to_string()),
        _ => Outcome::Failed(error.to_string()),
    }
}

fn values(folder: &Path, what: &str, set: usize) -> Vec<(i32, Tensor)> {
    let read = |i: usize| {
        let bytes = fs::read(folder.join(format!("{what}_{set}_{i}.pb"))).ok()?;
        let (_, element_type, tensor) = onnx::tensor(bytes).ok()?;
        Some((element_type, tensor))
    };
    (0..).map_while(read).collect()
}

fn compare(got: &Tensor, expected: &Tensor, element_type: i32, note: &Note) -> Result<(), String> {
    if got.dtype() != expected.dtype() || got.shape() != expected.shape() {
        return Err(format!("expected {}, got {}", expected.describe(), got.describe()));
    }
    let half = match onnx::type_name(element_type).as_str() {
        "float16" => 2f64.powi(-9),
        "bfloat16" => 2f64.powi(-6),
        _ => 0.0,
    };
    let rtol = note.rtol.max(half);
    let close =
        |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= note.atol + rtol * b.abs();
    let differing = |pairs: Vec<(f64, f64)>| pairs.into_iter().enumerate().find(|&(_, (a, b))| !close(a, b));
    let wide = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| (a.into(), b.into())).collect();
    let wrong = match (got.data(), expected.data()) {
        (Data::F32(a), Data::F32(b)) => differing(wide(a, b)),
        (Data::F64(a), Data::F64(b)) => differing(a.iter().zip(b.iter()).map(|(&a, &b)| (a, b)).collect()),
        (Data::Bool(a), Data::Bool(b)) => {
            let as_float = |flag: evenkeel_kernels::buffer::Flag| f64::from(u8::from(flag.get()));
            differing(a.iter().zip(b.iter()).map(|(&a, &b)| (as_float(a), as_float(b))).collect())
        }
        _ => {
            let (a, b) = (got.integers().unwrap_or_default(), expected.integers().unwrap_or_default());
            let at = a.iter().zip(&b).position(|(a, b)| a != b);
            at.map(|i| (i, (a[i] as f64, b[i] as f64)))
        }
    };
    match wrong {
        None => Ok(()),
        Some((i, (a, b))) => Err(format!("value {i} of {} is {a}, expected {b}", got.describe())),
    }
}
