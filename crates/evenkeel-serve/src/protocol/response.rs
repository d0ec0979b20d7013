//! A response: outputs in JSON, or binary behind the JSON.

use serde::Serialize;

use super::OutputData;

/// One tensor that goes out.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its values.
    pub data: OutputData,
}

/// What a model answers.
#[derive(Clone, Debug, PartialEq)]
pub struct InferResponse {
    /// The model.
    pub model: String,
    /// The request's id.
    pub id: Option<String>,
    /// The outputs, each with whether it is to be binary.
    pub outputs: Vec<(Output, bool)>,
}

/// A response as bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// JSON, and binary tensors behind it.
    pub body: Vec<u8>,
    /// How much of it is JSON, if there is anything else.
    pub json_length: Option<usize>,
}

#[derive(Serialize)]
struct Json<'a> {
    model_name: &'a str,
    model_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    outputs: Vec<JsonOutput<'a>>,
}

#[derive(Serialize)]
struct JsonOutput<'a> {
    name: &'a str,
    shape: &'a [usize],
    datatype: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a OutputData>,
}

#[derive(Serialize)]
struct Size {
    binary_data_size: usize,
}

/// The only version of every model.
pub(crate) const VERSION: &str = "1";

impl InferResponse {
    /// The bytes to send.
    pub fn write(&self) -> Written {
        let mut binary = Vec::new();
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for (output, as_binary) in &self.outputs {
            let before = binary.len();
            if *as_binary {
                output.data.write_binary(&mut binary);
            }
            outputs.push(JsonOutput {
                name: &output.name,
                shape: &output.shape,
                datatype: output.data.datatype().name(),
                parameters: as_binary.then(|| Size { binary_data_size: binary.len() - before }),
                data: (!as_binary).then_some(&output.data),
            });
        }
        let any_binary = self.outputs.iter().any(|(_, binary)| *binary);
        let json = Json { model_name: &self.model, model_version: VERSION, id: self.id.as_deref(), outputs };
        let mut body = serde_json::to_vec(&json).unwrap_or_default();
        let json_length = any_binary.then_some(body.len());
        body.append(&mut binary);
        Written { body, json_length }
    }
}
