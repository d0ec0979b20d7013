//! Between gRPC's messages and the protocol's own types.

use std::collections::HashMap;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;

use super::inference::infer_parameter::ParameterChoice;
use super::inference::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use super::inference::model_infer_response::InferOutputTensor;
use super::inference::model_metadata_response::TensorMetadata;
use super::inference::{InferParameter, InferTensorContents, ModelInferRequest, ModelInferResponse};
use crate::error::{Error, Result};
use crate::metadata;
use crate::protocol::{
    InferRequest, InferResponse, Output, Parameters, TensorLimits, VERSION, WantedOutput, parse_input,
};

/// A request with its tensors; they come raw, or as lists of values.
pub(super) fn request(request: ModelInferRequest, limits: &TensorLimits) -> Result<InferRequest> {
    let raw = request.raw_input_contents;
    if !raw.is_empty() && raw.len() != request.inputs.len() {
        let reason = format!("{} raw contents for {} inputs", raw.len(), request.inputs.len());
        return Err(Error::malformed("raw_input_contents", reason));
    }
    let mut raw = raw.into_iter();
    let mut inputs = Vec::new();
    for InferInputTensor { name, datatype, shape, parameters, contents } in request.inputs {
        if parameters.contains_key("shared_memory_region") {
            return Err(Error::malformed(
                format!("input {name}"),
                "shared memory is not offered; send the values",
            ));
        }
        let bytes = match (raw.next(), contents) {
            (Some(bytes), None) => bytes,
            (None, Some(contents)) => listed(&name, &datatype, contents)?,
            (Some(_), Some(_)) => {
                return Err(Error::malformed(format!("input {name}"), "has contents twice"));
            }
            (None, None) => return Err(Error::malformed(format!("input {name}"), "has no contents")),
        };
        inputs.push(parse_input(&name, &datatype, &shape, bytes, limits)?);
    }
    let wanted = |output: InferRequestedOutputTensor| WantedOutput { name: output.name, binary: true };
    Ok(InferRequest {
        id: Some(request.id).filter(|id| !id.is_empty()),
        parameters: parameters(request.parameters)?,
        inputs,
        outputs: request.outputs.into_iter().map(wanted).collect(),
        binary_output: true,
    })
}

fn parameters(given: HashMap<String, InferParameter>) -> Result<Parameters> {
    let value = |(name, parameter): (String, InferParameter)| {
        let value = match parameter.parameter_choice {
            Some(ParameterChoice::BoolParam(value)) => Value::from(value),
            Some(ParameterChoice::Int64Param(value)) => Value::from(value),
            Some(ParameterChoice::Uint64Param(value)) => Value::from(value),
            Some(ParameterChoice::DoubleParam(value)) => Value::from(value),
            Some(ParameterChoice::StringParam(value)) => Value::from(value),
            None => return Err(Error::malformed(format!("parameter {name}"), "has no value")),
        };
        Ok((name, value))
    };
    // raw contents are all there is here
    let own = |(name, _): &(String, InferParameter)| name != "binary_data_output";
    given.into_iter().filter(own).map(value).collect()
}

/// Values of a list in the binary form that raw contents have.
fn listed(name: &str, datatype: &str, contents: InferTensorContents) -> Result<Bytes> {
    let mut bytes = BytesMut::new();
    match datatype {
        "FP32" => contents.fp32_contents.iter().for_each(|v| bytes.put_f32_le(*v)),
        "UINT8" => {
            for value in contents.uint_contents {
                let value = u8::try_from(value);
                bytes.put_u8(
                    value
                        .map_err(|_| Error::malformed(format!("input {name}"), "holds a value above 255"))?,
                );
            }
        }
        "BYTES" => contents.bytes_contents.iter().for_each(|string| {
            bytes.put_u32_le(string.len() as u32);
            bytes.put_slice(string);
        }),
        other => {
            let reason = format!("contents of datatype {other:?} come as raw_input_contents only");
            return Err(Error::malformed(format!("input {name}"), reason));
        }
    }
    Ok(bytes.freeze())
}

/// A response with raw contents.
pub(super) fn response(response: InferResponse) -> ModelInferResponse {
    let mut raw = Vec::new();
    let output = |(output, _): (Output, bool)| {
        let mut bytes = Vec::new();
        output.data.write_binary(&mut bytes);
        raw.push(Bytes::from(bytes));
        InferOutputTensor {
            datatype: output.data.datatype().name().into(),
            name: output.name,
            shape: output.shape.iter().map(|side| *side as i64).collect(),
            ..InferOutputTensor::default()
        }
    };
    let outputs = response.outputs.into_iter().map(output).collect();
    ModelInferResponse {
        model_name: response.model,
        model_version: VERSION.into(),
        id: response.id.unwrap_or_default(),
        outputs,
        raw_output_contents: raw,
        ..ModelInferResponse::default()
    }
}

/// A tensor's description.
pub(super) fn tensor(metadata: metadata::TensorMetadata) -> TensorMetadata {
    TensorMetadata { name: metadata.name, datatype: metadata.datatype.into(), shape: metadata.shape }
}
