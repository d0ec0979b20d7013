//! `POST /v2/models/{model}/infer`: the protocol's inference, JSON or binary.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::budget::Share;
use crate::error::{Error, Result};
use crate::protocol::{InferRequest, TensorLimits, Written, parse};
use crate::routes::Call;
use crate::{body, respond, tensors};

/// Where the JSON ends and binary tensors begin.
const JSON_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");
/// JSON longer than this is parsed apart from the threads that serve connections.
const LONG: usize = 128 << 10;
/// The same of bodies with binary tensors, which only have to be copied.
const LONG_BINARY: usize = 4 << 20;

pub(crate) async fn answer(call: Call) -> Result<Response<Body>> {
    let hosted = call.model()?;
    let Call { service, request, .. } = call;
    let (head, sent) = request.into_parts();
    let mut share = Share::new(&service.budget);
    let bytes = body::read(&head.headers, sent, &service.limits, &mut share).await?;
    let limits = service.tensor_limits();
    let mut request = parsed(bytes, json_length(&head.headers)?, limits, &service.long_bodies).await?;
    let question = tensors::question(&hosted, &mut request, &limits, share)?;
    let outcomes = service.ask(question, request.id.as_deref()).await?;
    let Written { body, json_length } = tensors::response(&hosted, &request, &outcomes)?.write();
    let content_type = if json_length.is_some() { "application/octet-stream" } else { "application/json" };
    let (coding, body) = match body::compressed(&head.headers, &body) {
        Some((coding, smaller)) => (Some(coding), smaller),
        None => (None, body),
    };
    let mut response = respond::bytes(StatusCode::OK, content_type, body);
    if let Some(length) = json_length {
        response.headers_mut().insert(JSON_LENGTH, HeaderValue::from(length));
    }
    if let Some(coding) = coding {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    Ok(response)
}

/// Parses a request; a long one on a thread of its own, because connections wait meanwhile, and one after the other, because JSON takes several times its
/// length while it is parsed.
async fn parsed(
    bytes: Bytes,
    json_length: Option<usize>,
    limits: TensorLimits,
    one_by_one: &Semaphore,
) -> Result<InferRequest> {
    match json_length.unwrap_or(bytes.len()) > LONG || bytes.len() > LONG_BINARY {
        true => {
            let _turn = one_by_one.acquire().await;
            let task = tokio::task::spawn_blocking(move || parse(&bytes, json_length, &limits));
            task.await.unwrap_or(Err(Error::Panicked))
        }
        false => parse(&bytes, json_length, &limits),
    }
}

fn json_length(headers: &HeaderMap) -> Result<Option<usize>> {
    let Some(value) = headers.get(JSON_LENGTH) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    number
        .map(Some)
        .ok_or_else(|| Error::malformed("Inference-Header-Content-Length", "is not a number of bytes"))
}
