//! A request: what it asks for, and its images' values, from JSON alone or JSON with binary tensors behind it.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::data::Flat;
use super::{Datatype, InputData, TensorLimits, binary, count, parameters};
use crate::error::{Error, Result};

/// Parameters of a request, an input or an output.
pub type Parameters = Map<String, Value>;

/// One tensor that came in.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its values, as many as the shape says.
    pub data: InputData,
}

/// One output that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedOutput {
    /// Its name.
    pub name: String,
    /// Whether it is to be binary.
    pub binary: bool,
}

/// A request whose tensors agree with their shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct InferRequest {
    /// Echoed.
    pub id: Option<String>,
    /// What else is asked for.
    pub parameters: Parameters,
    /// The tensors.
    pub inputs: Vec<Input>,
    /// The outputs wanted; the model's own if empty.
    pub outputs: Vec<WantedOutput>,
    /// Whether outputs that are not listed are to be binary.
    pub binary_output: bool,
}

#[derive(Deserialize)]
struct RawRequest<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default, deserialize_with = "parameters::read")]
    parameters: Parameters,
    #[serde(borrow)]
    inputs: Vec<RawInput<'a>>,
    #[serde(default, borrow)]
    outputs: Vec<RawOutput<'a>>,
}

#[derive(Deserialize)]
struct RawInput<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    shape: Vec<u64>,
    #[serde(borrow)]
    datatype: Cow<'a, str>,
    #[serde(default, deserialize_with = "parameters::read")]
    parameters: Parameters,
    #[serde(default)]
    data: Option<Flat>,
}

#[derive(Deserialize)]
struct RawOutput<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default, deserialize_with = "parameters::read")]
    parameters: Parameters,
}

/// A request from its body; `json_length` is the header `Inference-Header-Content-Length`, if there was one.
///
/// # Errors
/// If it is not such a request, or larger than the limits.
pub fn parse(body: &Bytes, json_length: Option<usize>, limits: &TensorLimits) -> Result<InferRequest> {
    let split = json_length.unwrap_or(body.len());
    if split > body.len() {
        let reason = format!("{split} is more than the body's {} bytes", body.len());
        return Err(Error::malformed("Inference-Header-Content-Length", reason));
    }
    let (json, mut rest) = (body.slice(..split), body.slice(split..));
    let raw: RawRequest<'_> =
        serde_json::from_slice(&json).map_err(|e| Error::malformed("request", e.to_string()))?;
    let mut inputs = Vec::with_capacity(raw.inputs.len().min(4));
    for input in raw.inputs {
        inputs.push(input.read(&mut rest, limits)?);
    }
    if !rest.is_empty() {
        let reason = format!("{} bytes are left behind the last input", rest.len());
        return Err(Error::malformed("request", reason));
    }
    let mut parameters = raw.parameters;
    let binary_output = flag(&mut parameters, "binary_data_output")?.unwrap_or(false);
    let wanted = |output: RawOutput<'_>| wanted(output, binary_output);
    let outputs = raw.outputs.into_iter().map(wanted).collect::<Result<_>>()?;
    Ok(InferRequest { id: raw.id, parameters, inputs, outputs, binary_output })
}

fn wanted(mut output: RawOutput<'_>, binary_output: bool) -> Result<WantedOutput> {
    let name = output.name.into_owned();
    let place = format!("output {name}");
    let binary = flag(&mut output.parameters, "binary_data")?.unwrap_or(binary_output);
    if let Some(other) = output.parameters.keys().next() {
        return Err(Error::malformed(place, format!("has no parameter {other:?}; it has binary_data")));
    }
    Ok(WantedOutput { name, binary })
}

/// Takes a parameter that is true or false.
fn flag(parameters: &mut Parameters, name: &str) -> Result<Option<bool>> {
    match parameters.remove(name) {
        None => Ok(None),
        Some(Value::Bool(value)) => Ok(Some(value)),
        Some(other) => {
            Err(Error::malformed(format!("parameter {name}"), format!("{other} is neither true nor false")))
        }
    }
}

impl RawInput<'_> {
    fn read(mut self, rest: &mut Bytes, limits: &TensorLimits) -> Result<Input> {
        let name = self.name.into_owned();
        let place = || format!("input {name}");
        if self.parameters.contains_key("shared_memory_region") {
            return Err(Error::malformed(place(), "shared memory is not offered; send the values"));
        }
        let datatype = Datatype::of_input(&name, &self.datatype)?;
        let shape = sizes(&name, &self.shape)?;
        let values = checked_count(&name, &shape, datatype, limits)?;
        let data = match (self.parameters.remove("binary_data_size"), self.data) {
            (Some(size), None) => {
                let size = size.as_u64().and_then(|n| usize::try_from(n).ok());
                let Some(size) = size.filter(|size| *size <= rest.len()) else {
                    let reason = format!("binary_data_size is not one of the {} bytes left", rest.len());
                    return Err(Error::malformed(place(), reason));
                };
                binary::read(&name, datatype, values, rest.split_to(size))?
            }
            (None, Some(flat)) => flat.read(&name, datatype, values)?,
            (Some(_), Some(_)) => return Err(Error::malformed(place(), "has data and binary_data_size")),
            (None, None) => return Err(Error::malformed(place(), "has no data")),
        };
        checked(Input { name, shape, data })
    }
}

/// An input whose values come apart from any JSON, as gRPC sends them.
///
/// # Errors
/// As [`parse`].
pub fn parse_input(
    name: &str,
    datatype: &str,
    shape: &[i64],
    bytes: Bytes,
    limits: &TensorLimits,
) -> Result<Input> {
    let datatype = Datatype::of_input(name, datatype)?;
    let sides = shape.iter().map(|side| u64::try_from(*side)).collect::<Result<Vec<u64>, _>>();
    let sides = sides.map_err(|_| Error::malformed(format!("input {name}"), "has a negative side"))?;
    let shape = sizes(name, &sides)?;
    let values = checked_count(name, &shape, datatype, limits)?;
    checked(Input { name: name.to_owned(), data: binary::read(name, datatype, values, bytes)?, shape })
}

fn sizes(name: &str, shape: &[u64]) -> Result<Vec<usize>> {
    let sides = shape.iter().map(|side| usize::try_from(*side)).collect::<Result<Vec<usize>, _>>();
    sides.map_err(|_| Error::malformed(format!("input {name}"), "has a side beyond counting"))
}

/// The number of values of a shape that is within the limits.
fn checked_count(name: &str, shape: &[usize], datatype: Datatype, limits: &TensorLimits) -> Result<usize> {
    let most = match datatype {
        Datatype::Bytes => limits.batch,
        _ => limits.pixels.saturating_mul(3),
    };
    match count(shape) {
        Some(0) => Err(Error::malformed(format!("input {name}"), "has no values")),
        Some(values) if values <= most => Ok(values),
        _ => Err(Error::TooLarge { what: "input", limit: most, unit: "values" }),
    }
}

fn checked(input: Input) -> Result<Input> {
    match &input.data {
        InputData::Fp32(values) if values.iter().any(|v| !v.is_finite()) => {
            Err(Error::malformed(format!("input {}", input.name), "holds NaN or infinity"))
        }
        _ => Ok(input),
    }
}

impl Flat {
    fn read(self, name: &str, datatype: Datatype, values: usize) -> Result<InputData> {
        let place = format!("input {name}");
        let have = self.numbers.len().max(self.texts.len());
        if have != values {
            return Err(Error::malformed(place, format!("has {have} values, its shape wants {values}")));
        }
        let wrong = |reason: &str| Error::malformed(place.clone(), reason);
        Ok(match datatype {
            Datatype::Bytes => {
                if self.texts.is_empty() {
                    return Err(wrong("is of datatype BYTES and holds numbers"));
                }
                InputData::Bytes(self.texts.iter().map(|text| decoded(name, text)).collect::<Result<_>>()?)
            }
            _ if !self.texts.is_empty() => return Err(wrong("holds strings, which only BYTES may")),
            Datatype::Uint8 => {
                let byte = |v: &f64| (v.fract() == 0.0 && (0.0..=255.0).contains(v)).then_some(*v as u8);
                let bytes = self.numbers.iter().map(byte).collect::<Option<Vec<u8>>>();
                InputData::Uint8(
                    bytes.ok_or_else(|| wrong("holds a value that is not from 0 to 255"))?.into(),
                )
            }
            _ => InputData::Fp32(self.numbers.into_iter().map(|v| v as f32).collect()),
        })
    }
}

/// JSON cannot hold an image's bytes, so they come in base64.
fn decoded(name: &str, text: &str) -> Result<Bytes> {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text);
    bytes
        .map(Bytes::from)
        .map_err(|e| Error::malformed(format!("input {name}"), format!("base64 in JSON: {e}")))
}
